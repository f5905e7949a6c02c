"""Reads one board file strictly: every problem of it in one error."""

import re
from pathlib import Path

from tflm_forge.board.cores import CORES
from tflm_forge.board.drivers import NAME, read_driver
from tflm_forge.board.records import Board, ChipId, Emulator, Region
from tflm_forge.board.table import ADDRESS_END, Problems, Table, read_toml

_USB_ID = re.compile(r"[0-9A-F]{4}:[0-9A-F]{4}")
_REGION_NAME = re.compile(r"[A-Z][A-Z0-9_]*")
_RUNNER_KEY = re.compile(r"[a-z][a-z0-9_]*")
_REGION_ALIGNMENT_BYTES = 256  # VTOR wants the vector table on 128 bytes or more (ARMv7-M ARM, B3.2.5)
_STACK_ALIGNMENT_BYTES = 16
_MIN_STACK_BYTES = 512
_MIN_REGION_BYTES = 1024


def read_board(path: Path) -> Board:
    """Read one board file.

    Raises:
        UsageError: the file can not be read, or keys of it are missing, unknown or wrong; each is named.
    """
    problems = Problems(path)
    table = Table(problems, "", read_toml(path, "board file"))
    board = _read(table, path, problems)
    problems.raise_any()
    return board


def _read(table: Table, path: Path, problems: Problems) -> Board:
    core = table.text("core")
    if core and core not in CORES:
        table.unknown("core", "core", core, CORES)
    if NAME.fullmatch(path.stem) is None:
        problems.add("the file's name", f"{path.stem!r} does not match {NAME.pattern}, as a board's name must")
    clock_hz = table.number("clock_hz", least=1)
    most_hz = table.number("max_clock_hz", least=1) if table.has("max_clock_hz") else None
    if clock_hz is not None and most_hz is not None and clock_hz > most_hz:
        table.problem("clock_hz", f"{clock_hz:,} is more than max_clock_hz, {most_hz:,}")
    baud = table.number("baud", least=1200)
    driver, constants = read_driver(table.table("driver"), problems, {"clock_hz": clock_hz, "baud": baud})
    stack_bytes = table.number("stack_bytes", least=_MIN_STACK_BYTES, multiple_of=_STACK_ALIGNMENT_BYTES)
    regions = _read_regions(table, stack_bytes)
    board = Board(
        name=path.stem,
        title=table.text("title"),
        path=path,
        source=table.text("source"),
        core=CORES.get(core, CORES["cortex-m3"]),
        clock_hz=clock_hz or 1,
        baud=baud or 1200,
        stack_bytes=stack_bytes or _MIN_STACK_BYTES,
        regions=regions,
        driver=driver,
        constants=constants,
        emulator=_read_emulator(table.table("emulator")) if table.has("emulator") else None,
        twin=table.text("twin", NAME) if table.has("twin") else None,
        usb_ids=table.texts("usb_ids", _USB_ID, "VID:PID in capital hexadecimal, like '0D28:0204'"),
        boot_bytes=(table.number("boot_bytes", multiple_of=_REGION_ALIGNMENT_BYTES) or 0)
        if table.has("boot_bytes")
        else 0,
        probe=table.text("probe") if table.has("probe") else None,
        usb_serials=table.texts("usb_serials"),
        chip_id=_read_chip_id(table.table("chip_id")) if table.has("chip_id") else None,
        runners=_read_runners(table),
        platformio=_read_platformio(table.table("platformio")) if table.has("platformio") else {},
    )
    if board.probe and not table.has("usb_ids"):
        table.problem("probe", "needs usb_ids: the USB ids of that probe's serial port")
    table.close()
    return board


def _read_regions(table: Table, stack_bytes: int | None) -> tuple[Region, ...]:
    regions: list[Region] = []
    items = table.tables("region")
    for i, item in enumerate(items):
        region = _read_region(item)
        if region is None:
            continue
        if any(other.name == region.name for other in regions):
            table.problem(f"region[{i}].name", f"{region.name!r} is used twice")
        for other in regions:
            if region.origin < other.end and other.origin < region.end:
                table.problem(
                    f"region[{i}].origin",
                    f"{region.name} 0x{region.origin:08X}..0x{region.end - 1:08X} overlaps "
                    f"{other.name} 0x{other.origin:08X}..0x{other.end - 1:08X}",
                )
        regions.append(region)
    for kind in ("flash", "ram"):
        if len(regions) == len(items) > 0 and all(region.kind != kind for region in regions):
            table.problem("region", f"the board has no region of kind {kind!r}")
    ram = next((region for region in regions if region.kind == "ram"), None)
    if ram is not None and stack_bytes is not None and stack_bytes >= ram.length_bytes:
        table.problem("stack_bytes", f"{stack_bytes} does not fit the {ram.length_bytes} bytes of {ram.name}")
    return tuple(regions)


def _read_region(table: Table) -> Region | None:
    """Return a region; None when it has no place or no kind."""
    kind = table.text("kind")
    if kind not in ("flash", "ram"):
        table.problem("kind", f"must be 'flash' or 'ram', not {kind!r}")
    name = table.text("name", _REGION_NAME)
    origin = table.number("origin", multiple_of=_REGION_ALIGNMENT_BYTES)
    length = table.number("length_bytes", least=_MIN_REGION_BYTES, multiple_of=_REGION_ALIGNMENT_BYTES)
    source = table.text("source")
    table.close()
    if origin is None or length is None or kind not in ("flash", "ram"):
        return None
    if origin + length > ADDRESS_END:
        table.problem("length_bytes", f"the region ends behind the address space, at 0x{origin + length:X}")
        return None
    return Region(
        name=name, kind="flash" if kind == "flash" else "ram", origin=origin, length_bytes=length, source=source
    )


def _read_emulator(table: Table) -> Emulator:
    emulator = Emulator(machine=table.text("machine", NAME), args=table.texts("args"), source=table.text("source"))
    table.close()
    return emulator


def _read_chip_id(table: Table) -> ChipId:
    address = table.number("address", multiple_of=4)
    value = table.number("value")
    mask = table.number("mask", least=1) if table.has("mask") else ADDRESS_END - 1
    source = table.text("source")
    table.close()
    if value is not None and mask is not None and value & ~mask:
        table.problem("value", f"0x{value:X} has bits outside the mask 0x{mask:X}")
    return ChipId(address=address or 0, value=value or 0, mask=mask or ADDRESS_END - 1, source=source)


def _read_runners(table: Table) -> dict[str, dict[str, str | int]]:
    """Return the tables [runner.NAME] in the file's order; which runners there are is not known here."""
    if not table.has("runner"):
        return {}
    runners = table.table("runner")
    found: dict[str, dict[str, str | int]] = {}
    for name in runners.rest():
        if NAME.fullmatch(name) is None:
            runners.problem(name, f"does not match {NAME.pattern}")
        settings = runners.table(name)
        for key in settings.rest():
            if _RUNNER_KEY.fullmatch(key) is None:
                settings.problem(key, f"does not match {_RUNNER_KEY.pattern}")
        found[name] = {key: settings.value(key) for key in settings.rest()}
    return found


def _read_platformio(table: Table) -> dict[str, str]:
    found = {"board": table.text("board", re.compile(r"[A-Za-z0-9_-]+"))}
    found["platform"] = table.text("platform")
    if table.has("framework"):
        framework = table.value("framework")
        if not isinstance(framework, str):
            table.problem("framework", f"must be text, not {framework!r}")
        found["framework"] = str(framework)
    table.close()
    return found
