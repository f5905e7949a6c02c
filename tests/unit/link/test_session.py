import socket
import struct
import time
import zlib
from collections.abc import Callable

import pytest

from tests.unit.link.simulated_device import (
    INT8,
    Line,
    MutePort,
    SimTensor,
    SimulatedDevice,
    SimulatedPort,
    SimulatedTarget,
    frame_bytes,
)
from tflm_forge.errors import DeviceError
from tflm_forge.link.exchange import Timeouts
from tflm_forge.link.failures import RefusedError
from tflm_forge.link.framing import FrameDecoder
from tflm_forge.link.messages import Progress, Space
from tflm_forge.link.port import Port, PortLost
from tflm_forge.link.session import Session, open_session

FAST = Timeouts(
    answer_s=0.002,
    longest_answer_s=0.01,
    silence_s=0.05,
    work_s=0.1,
    reset_s=0.03,
    boot_s=0.1,
    poll_s=0.001,
    settle_s=0.05,
    unpaced_bytes_per_s=1e9,
)
PATIENT = Timeouts(
    answer_s=0.0005, longest_answer_s=0.001, silence_s=20, work_s=20, boot_s=20, poll_s=0.0005, unpaced_bytes_per_s=1e9
)


def session_on(port: Port, timeouts: Timeouts = FAST, **options: object) -> Session:
    return Session(port, timeouts=timeouts, first_sequence=1, **options)  # type: ignore[arg-type]


def wide_device() -> SimulatedDevice:
    return SimulatedDevice(
        inputs=[SimTensor(INT8, (1, 200), 0.5, -1, bytearray(200))],
        outputs=[SimTensor(INT8, (1, 200), 0.5, -1, bytearray(200))],
        model=lambda inputs: [inputs[0][::-1]],
    )


def test_every_method() -> None:
    device = wide_device()
    device.layers = (b"", bytes(range(150)))
    port = SimulatedPort(device)
    with session_on(port) as session:
        info = session.connect()
        assert (info.board, info.mtu_bytes, info.arena_used_bytes) == ("sim", 64, 4000)
        assert session.log_lines == ("forge 0.1.0 board sim runtime bundled 0.1.0", "ready")
        assert session.info() == info
        assert [(o.builtin_code, o.custom_name) for o in session.ops()] == [(3, ""), (32, "Window")]
        assert all(s.code == 0 for s in session.selftest().steps)
        assert [(t.space, t.shape, t.size_bytes) for t in session.tensors()] == [
            (0, (1, 200), 200), (1, (1, 200), 200),
        ]  # fmt: skip
        data = bytes(range(200))
        session.write_tensor(Space.INPUT, 0, data)
        assert session.invoke(3).total_ticks == 3000
        assert session.read_tensor(Space.OUTPUT, 0, 200) == data[::-1]
        assert session.read_tensor(Space.OUTPUT, 0, 5, offset=10) == data[::-1][10:15]
        assert session.crc(Space.INPUT, 0) == zlib.crc32(data)
        assert session.soak(10, 7).loops_done == 10
        assert session.profile() == (10, 11, 12, 13, 14)
        session.fill_pattern(0, 0x04030201)
        assert session.read_tensor(Space.INPUT, 0, 6) == b"\1\2\3\4\1\2"
        session.fill_random(0, 1)
        # xorshift32 of 1, by hand: 1 ^ 1 << 13 = 0x2001; >> 17 changes nothing; ^ << 5 = 0x42021.
        assert session.read_tensor(Space.INPUT, 0, 1) == b"\x21"
        session.reset_state()
        assert device.state == 0
        assert session.layer_info(1) == (150, zlib.crc32(bytes(range(150))))
        assert [session.read_layer(i) for i in range(2)] == list(device.layers)
        with pytest.raises(RefusedError, match="LAYER"):
            session.read_layer(2)
    assert port.closed
    assert max(len(w) for w in port.writes) <= 64 + 6 + 2 + 2


def test_log_and_progress_are_handed_on() -> None:
    lines: list[str] = []
    seen: list[Progress] = []
    device = SimulatedDevice(progress=3)
    with session_on(SimulatedPort(device), on_log=lines.append, on_progress=seen.append) as session:
        session.connect()
        session.invoke()
    assert lines == ["forge 0.1.0 board sim runtime bundled 0.1.0", "ready"]
    assert seen == [Progress(done=i, total=3) for i in (1, 2, 3)]


class LoseFirst(Line):
    """Loses the first of every two transfers."""

    def carry(self, data: bytes) -> bytes:
        self.turn = not getattr(self, "turn", False)
        return b"" if self.turn else data


def test_a_lost_answer_is_asked_for_again_and_the_request_runs_once() -> None:
    device = SimulatedDevice()
    port = SimulatedPort(device, to_host=LoseFirst())
    with session_on(port) as session:
        session.connect()
        session.invoke()
        session.invoke()
    assert device.runs[0x11] == 2
    assert len(port.writes) >= 6
    assert len(set(port.writes)) == 3


def test_sequence_wraps_and_leaves_out_zero() -> None:
    port = SimulatedPort(SimulatedDevice())
    with Session(port, timeouts=FAST, first_sequence=254) as session:
        for _ in range(4):
            session.info()
    decoder = FrameDecoder(lowest_type=0)
    sequences = [e.sequence for w in port.writes for e in decoder.feed(w)]  # type: ignore[union-attr]
    assert list(dict.fromkeys(sequences)) == [254, 255, 1, 2]


def test_an_answer_of_an_earlier_request_is_not_taken() -> None:
    device = SimulatedDevice()
    port = SimulatedPort(device)
    with session_on(port) as session:
        session.connect()
        port.say(frame_bytes(0x93, 1, struct.pack("<I", 0xBAD)))
        port.say(frame_bytes(0x91, 2, bytes(26)))
        assert session.crc(Space.INPUT, 0) != 0xBAD


@pytest.mark.parametrize("seed", range(4))
def test_bad_lines_lose_and_change_nothing(seed: int) -> None:
    device = wide_device()
    bad = {"drop": 0.1, "duplicate": 0.1, "flip": 0.1, "truncate": 0.1}
    port = SimulatedPort(
        device,
        to_device=Line(seed=seed, **bad),
        to_host=Line(seed=seed + 100, **bad),
        piece_bytes=1 + 10 * seed,
    )
    with session_on(port, PATIENT) as session:
        session.connect()
        for i in range(25):
            data = bytes((i * 7 + k) & 0xFF for k in range(200))
            session.write_tensor(Space.INPUT, 0, data)
            session.invoke()
            assert session.read_tensor(Space.OUTPUT, 0, 200) == data[::-1]
    assert device.runs[0x11] == 25


def mute(data: bytes) -> Session:
    return session_on(MutePort(data))


@pytest.mark.parametrize(
    ("make", "words", "hint"),
    [
        (lambda: mute(b""), "nothing came from sim://mute: no answer to INFO", "right port"),
        (lambda: mute(b"\xfe\x81\x93\xf0" * 50), "only garbage came from sim://mute", "baud rate"),
        (
            lambda: mute(b"MicroPython v1.22\r\n>>> "),
            "prints text but does not speak the link",
            "MicroPython v1.22",
        ),
        (
            lambda: session_on(SimulatedPort(SimulatedDevice(protocol=2))),
            "version 2 of the link protocol",
            "newer",
        ),
        (
            lambda: session_on(MutePort(), target=SimulatedTarget(looks=3)),
            "the emulator behind sim://mute ended while forge waited for INFO",
            "qemu: fatal: Lockup",
        ),
        (
            lambda: session_on(
                SimulatedPort(SimulatedDevice(), lost_after_writes=0, to_device=Line(drop=1)),
                target=SimulatedTarget(looks=12),
            ),
            "the emulator behind sim://device ended",
            "ready",
        ),
        (
            lambda: session_on(SimulatedPort(SimulatedDevice(), lost_after_writes=0, to_device=Line(drop=1))),
            "the connection to sim://device was lost",
            "",
        ),
        (
            lambda: session_on(MutePort(frame_bytes(0x81, 77, b"x"))),
            "sends frames, but no answer to INFO came",
            "another program",
        ),
    ],
    ids=[
        "silent",
        "garbage",
        "other firmware",
        "protocol",
        "dead",
        "dead and port lost",
        "port lost",
        "other frames",
    ],
)
def test_failures_to_connect_each_have_their_words(make: Callable[[], Session], words: str, hint: str) -> None:
    with make() as session, pytest.raises(DeviceError) as caught:
        session.connect()
    assert words in caught.value.message
    assert hint in caught.value.hint


def test_silence_in_the_middle() -> None:
    port = SimulatedPort(SimulatedDevice())
    with session_on(port) as session:
        session.connect()
        port.to_device = Line(drop=1)
        with pytest.raises(DeviceError, match="went silent: no answer to INVOKE within") as caught:
            session.invoke()
    assert "ready" in caught.value.hint


def test_a_restart_in_the_middle() -> None:
    device = SimulatedDevice()
    port = SimulatedPort(device)
    with session_on(port) as session:
        session.connect()
        port.to_device = Line(drop=1)
        port.say(device.banner.encode())
        with pytest.raises(DeviceError, match="restarted by itself while forge waited for CRC"):
            session.crc(Space.INPUT, 0)


def test_refusals_carry_status_and_detail() -> None:
    device = SimulatedDevice()
    with session_on(SimulatedPort(device)) as session:
        session.connect()
        with pytest.raises(RefusedError, match="refused WRITE: offset and length lead out of the tensor") as caught:
            session.write_tensor(Space.INPUT, 0, b"12345")
        assert (caught.value.status.name, caught.value.detail) == ("OutOfRange", 4)
        device.ready = False
        with pytest.raises(
            RefusedError, match=r"inference is blocked by a failed boot step \(boot step model\)"
        ) as caught:
            session.invoke()
        assert caught.value.fault is None


def test_a_fault_brings_its_registers() -> None:
    device = SimulatedDevice(invoke_error=(0x60, 0), fault=(0x60, 0x8001234, 0x8005679, 0x8200, 0, 0, 0, 0x20001000))
    with session_on(SimulatedPort(device)) as session:
        session.connect()
        with pytest.raises(RefusedError, match="the processor took a fault") as caught:
            session.invoke()
    assert "PC 0x08001234" in caught.value.reasons[0]


def test_progress_keeps_a_slow_device_alive() -> None:
    """Each sign of life restarts the time-out: the work takes longer than `work_s` in all."""
    device = SimulatedDevice()
    port = SimulatedPort(device)

    with session_on(port, Timeouts(answer_s=0.01, longest_answer_s=0.02, work_s=0.2, poll_s=0.01)) as session:
        session.connect()
        port.to_host = Line(drop=1)
        sequence = 2
        reads = 0
        read = port.read

        def read_slowly(timeout_s: float) -> bytes:
            nonlocal reads
            time.sleep(min(timeout_s, 0.01))
            reads += 1
            if reads % 5 == 0 and reads < 40:
                return frame_bytes(0xF0, sequence, struct.pack("<II", reads, 40))
            if reads == 45:
                return frame_bytes(0x91, sequence, struct.pack("<HQQQ", 0, 5, 5, 5))
            return read(timeout_s)

        port.read = read_slowly  # type: ignore[method-assign]
        assert session.invoke().total_ticks == 5


def test_reset_waits_for_the_device() -> None:
    port = SimulatedPort(SimulatedDevice())
    with session_on(port) as session:
        session.connect()
        assert session.reset().board == "sim"
        assert session.info().board == "sim"


def test_reset_opens_a_vanished_port_again() -> None:
    device = SimulatedDevice()
    ports = [SimulatedPort(device, lost_after_writes=1), SimulatedPort(device)]
    session = session_on(ports[0], reopen=lambda: ports[1])
    session.connect()
    assert session.reset().board == "sim"
    assert ports[0].closed
    assert not ports[1].closed
    session.close()
    assert ports[1].closed


def test_reset_gives_up_when_the_port_stays_away() -> None:
    session = session_on(SimulatedPort(SimulatedDevice(), lost_after_writes=1))
    session.connect()
    with pytest.raises(PortLost):
        session.reset()


def test_leaving_the_emulator_closes_the_port() -> None:
    port = SimulatedPort(SimulatedDevice(), lost_after_writes=1)
    session = session_on(port, target=SimulatedTarget(looks=30))
    session.connect()
    session.leave_emulator()
    assert port.closed


def test_pages_that_lead_nowhere_are_refused() -> None:
    device = SimulatedDevice()
    device._ops = lambda body: struct.pack("<HB", 3, 0)  # type: ignore[method-assign]
    with session_on(SimulatedPort(device)) as session:
        session.connect()
        with pytest.raises(DeviceError, match="answered OPS with 0 items of 3"):
            session.ops()


def test_a_session_over_a_socket_waits_for_its_emulator() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"socket://127.0.0.1:{listener.getsockname()[1]}"
        with open_session(url, target=SimulatedTarget(), timeouts=FAST) as session:
            assert session.url == url


def test_an_emulator_that_ends_before_its_port_opens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"socket://127.0.0.1:{listener.getsockname()[1]}"
    with pytest.raises(DeviceError, match=f"the emulator ended before {url} could be opened") as caught:
        open_session(url, target=SimulatedTarget(looks=2), timeouts=Timeouts(boot_s=60))
    assert caught.value.hint == "qemu: fatal: Lockup"
