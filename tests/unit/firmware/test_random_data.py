"""The host's random data against the firmware's own generator."""

import pytest

from tests.unit.firmware.conftest import StartDevice
from tests.unit.firmware.host_device import FILL, READ, SOAK
from tflm_forge.link.random_data import RandomData, random_bytes

TENSORS = (("INT8", 1000), ("FLOAT32", 20), ("BOOL", 3))
SEEDS = (0, 1, 2, 0x12345678, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)


@pytest.mark.parametrize("seed", SEEDS)
def test_fill(start_device: StartDevice, seed: int) -> None:
    device = start_device()
    for index, (tensor_type, size) in enumerate(TENSORS):
        device.exchange(FILL, bytes((index, 1)) + seed.to_bytes(4, "little"))
        body = bytes((0, index)) + (0).to_bytes(4, "little") + min(size, 500).to_bytes(2, "little")
        assert device.exchange(READ, body) == random_bytes(seed, tensor_type, size)[:500]


@pytest.mark.parametrize("seed", SEEDS)
def test_soak_goes_on_from_one_input_to_the_next(start_device: StartDevice, seed: int) -> None:
    """The fake model's outputs are copies of its inputs."""
    device = start_device()
    device.exchange(SOAK, (1).to_bytes(4, "little") + seed.to_bytes(4, "little"))
    data = RandomData(seed)
    for index, (tensor_type, size) in enumerate(TENSORS):
        body = bytes((1, index)) + (0).to_bytes(4, "little") + min(size, 500).to_bytes(2, "little")
        assert device.exchange(READ, body) == data.tensor_bytes(tensor_type, size)[:500]
