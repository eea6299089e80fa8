"""The profiles of CMSIS-NN and esp-nn: scratch as their own functions say, no sharing by their own loops."""

from __future__ import annotations

import pytest

from tflite_memopt.ir.builder import SAME, ModelBuilder
from tflite_memopt.ir.model import Operator
from tflite_memopt.kernels.cmsis_nn import DSP, MVE, SCALAR
from tflite_memopt.kernels.esp_nn import ESP_NN
from tflite_memopt.kernels.profile import KernelProfile
from tflite_memopt.kernels.profiles import PROFILES


def operator(name: str) -> Operator:
    b = ModelBuilder()
    x = b.input("x", (1, 8, 8, 8))
    y = {
        "conv 3x3": lambda: b.conv(x, 16, kernel=3),
        "conv 1x1": lambda: b.conv(x, 16),
        "conv 1x1 stride 2": lambda: b.conv(x, 16, 1, 2, SAME),
        "depthwise 3x3": lambda: b.depthwise(x),
        "depthwise 5x5": lambda: b.depthwise(x, kernel=5),
        "depthwise 5x5 multiplier 2": lambda: b.depthwise(x, kernel=5, multiplier=2),
        "pool": lambda: b.average_pool(x, 8),
        "dense": lambda: b.dense(b.reshape(x, (1, 512)), 10),
        "add": lambda: b.add(x, x),
        "reshape": lambda: b.reshape(x, (1, 512)),
    }[name]()
    return b.finish(y).main.operators[-1]


@pytest.mark.parametrize(
    ("name", "scalar", "dsp", "mve"),
    [
        ("conv 3x3", 288, 288, 320),
        ("conv 1x1", 0, 32, 0),
        ("conv 1x1 stride 2", 0, 0, 0),
        ("depthwise 3x3", 0, 0, 4464),
        ("depthwise 5x5", 0, 400, 12_400),
        ("depthwise 5x5 multiplier 2", 0, 0, 0),
        ("pool", 0, 32, 0),
        ("dense", 0, 0, 40),
        ("add", 0, 0, 0),
    ],
)
def test_cmsis_nn_scratch_is_what_the_librarys_functions_return(name: str, scalar: int, dsp: int, mve: int) -> None:
    """Worked out by hand from arm_*_get_buffer_sizes_s8.c."""
    found = [sum(profile.requests(operator(name), 32).scratch) for profile in (SCALAR, DSP, MVE)]
    assert found == [scalar, dsp, mve]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("conv 3x3", 800 + 2304 + 1536 + 800 + 64 + 64),
        ("conv 1x1", 8 * 16 + 16 * 8 + 64),
        ("conv 1x1 stride 2", 8 * 8 * 0 + 16 * 16 + 16 * 16 + 64 + 64),
        ("depthwise 3x3", 2 * (72 + 512) + 32),
        ("depthwise 5x5", 2 * (200 + 512) + 32),
        ("depthwise 5x5 multiplier 2", 32),
        ("pool", 0),
        ("dense", 0),
        ("add", 0),
    ],
)
def test_esp_nn_scratch_is_what_the_librarys_functions_return(name: str, expected: int) -> None:
    """Worked out by hand from esp_nn_conv_esp32s3.c and esp_nn_depthwise_conv_s8_esp32s3.c."""
    assert sum(ESP_NN.requests(operator(name), 32).scratch) == expected


@pytest.mark.parametrize("profile", [SCALAR, DSP, MVE, ESP_NN], ids=lambda profile: profile.name)
def test_its_own_kernels_share_nothing(profile: KernelProfile) -> None:
    for name in ("conv 3x3", "conv 1x1", "depthwise 3x3", "pool", "dense", "add"):
        assert profile.relations(operator(name)) == ()
    assert [reuse.kind for reuse in profile.relations(operator("reshape"))] == ["view"]
    assert PROFILES[profile.name] is profile
    assert not profile.is_portable
