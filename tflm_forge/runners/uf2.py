"""Flashes a UF2 file: with picotool where it is installed, else onto the drive that the boot loader shows."""

import os
import string
import sys
from pathlib import Path

from tflm_forge.proc import has_tool
from tflm_forge.runners import Capabilities, Command, DriveCopy, FlashJob, Plan, Runner
from tflm_forge.runners._failures import Failure
from tflm_forge.runners._image import make_uf2
from tflm_forge.runners._probes import PICO_BOOT_LOADERS

PICOTOOL = "picotool"
DEFAULT_LABEL = "RPI-RP2"
INFO_NAME = "INFO_UF2.TXT"
"""By which a UF2 boot loader's drive is known: https://github.com/microsoft/uf2, "Files exposed by bootloaders"."""

_FLASH_TIMEOUT_S = 120.0


def plan(job: FlashJob) -> Plan:
    """Return picotool's command, which verifies and starts the firmware, or the copy onto the boot loader's drive."""
    uf2 = job.folder / f"{job.image.elf.stem}.uf2"
    files = {uf2: make_uf2(job.image, int(job.settings["family_id"]))}
    if has_tool(PICOTOOL) or job.serial_number is not None:
        where = ["--ser", job.serial_number] if job.serial_number is not None else []
        argv = (PICOTOOL, "load", "--verify", "--execute", str(uf2), *where)
        return Plan(steps=(Command(argv=argv, timeout_s=_FLASH_TIMEOUT_S, must_say="OK"),), files=files)
    label = job.text("drive", DEFAULT_LABEL)
    return Plan(steps=(DriveCopy(source=uf2, drive=find_drive(label), label=label),), files=files)


def find_drive(label: str, places: tuple[Path, ...] | None = None) -> Path | None:
    """Return the mounted drive of a UF2 boot loader with this label or Board-ID; None: there is none.

    Args:
        label: the drive's name, which boot loaders also give as Board-ID.
        places: folders in which drives are; by default those of this system.
    """
    for drive in sorted(_drives() if places is None else (d for place in places for d in place.glob("*"))):
        try:
            info = (drive / INFO_NAME).read_text(encoding="utf-8", errors="replace")
        except OSError:
            # No such file: the drive of something else, or one that is just going.
            continue
        if drive.name == label or f"Board-ID: {label}" in info:
            return drive
    return None


def _drives() -> list[Path]:
    if sys.platform == "win32":
        return [Path(f"{letter}:\\") for letter in string.ascii_uppercase]
    user = os.environ.get("USER", "")
    places = (Path("/media") / user, Path("/run/media") / user, Path("/media"), Path("/Volumes"), Path("/mnt"))
    return [drive for place in places for drive in place.glob("*")]


RUNNER = Runner(
    name="uf2",
    title="picotool",
    tools=(),
    install="https://github.com/raspberrypi/picotool; without it, the boot loader's drive is used",
    can=Capabilities(verify=True, serial_number=True),
    plan=plan,
    keys=("family_id", "drive"),
    required=("family_id",),
    probes=PICO_BOOT_LOADERS,
    failures=(
        Failure(
            kind="permission",
            pattern=r"picotool was unable to connect. Maybe try 'sudo'",
            source="picotool 2.1 main.cpp: texts of devices that can not be opened",
        ),
        Failure(
            kind="no probe",
            pattern=r"No accessible .* in BOOTSEL mode (?:was|were) found",
            source="picotool 2.1 main.cpp: missing_device_string",
        ),
        Failure(
            kind="several probes",
            pattern=r"requires a single RP-series device",
            source="picotool 2.1 main.cpp",
        ),
        Failure(
            kind="verify",
            pattern=r"The device contents did not match the file",
            source="picotool 2.1 main.cpp: load_guts",
        ),
        Failure(
            kind="wrong chip", pattern=r"Family ID .* cannot be downloaded anywhere", source="picotool 2.1 main.cpp"
        ),
    ),
)
