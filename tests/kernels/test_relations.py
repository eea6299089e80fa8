"""What the profiles permit: TFLM computes the right bytes at exactly that distance; what is refused breaks."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.kernels.grid import GRIDS
from tests.kernels.probe import Case, probe
from tests.model_builder import ModelBuilder
from tests.models import concat_model
from tests.tflm import needs_wheel
from tflite_memopt.kernels.profiles import PORTABLE, PROFILES, REFERENCE
from tflite_memopt.model.ir.model import DType, Operator, Tensor

CASES = {case.label: case for grid in GRIDS for case in grid(False)}
PROBED = [
    "CONV_2D 3x3 stride 1 SAME 4->16",
    "CONV_2D 3x3 stride 2 SAME 16->4",
    "CONV_2D 1x1 stride 1 VALID 16->16",
    "FULLY_CONNECTED of pixels 4->16",
    "FULLY_CONNECTED of pixels 16->4",
    "DEPTHWISE_CONV_2D 3x3 stride 1 SAME multiplier 1",
    "DEPTHWISE_CONV_2D 3x3 stride 2 VALID multiplier 2",
    "MAX_POOL_2D 3x3 stride 2 SAME",
    "AVERAGE_POOL_2D 2x2 stride 2 VALID",
    "CONV_2D 3x3 stride 1 SAME float32",
    "DEPTHWISE_CONV_2D 3x3 stride 2 VALID float32",
    "RESIZE_NEAREST_NEIGHBOR 6 -> 12",
    "RESIZE_BILINEAR 6 -> 12 half_pixel_centers",
    "TRANSPOSE_CONV 2x2 stride 2",
    "PAD 1 before 1 after",
    "SLICE (1, 9, 7, 16) from (0, 1, 1, 0)",
    "STRIDED_SLICE (1, 8, 8, 16) from (0, 0, 0, 0)",
    "STRIDED_SLICE (1, 4, 9, 16) from (0, 2, 0, 0)",
    "ADD broadcast",
    "SOFTMAX",
    "QUANTIZE float32 -> int8",
    "DEQUANTIZE int8 -> float32",
    "CONCATENATION of rows",
    "SPLIT of rows",
]


@pytest.mark.few(8)
@needs_wheel
@pytest.mark.parametrize("label", PROBED)
def test_tflm_computes_the_right_bytes_at_the_rules_distance(label: str) -> None:
    probes = list(probe(CASES[label]))
    assert probes
    for found in probes:
        assert found.is_safe, found
        # Slices run ahead of their writes, and a transposed convolution may be written anywhere.
        assert found.is_close or "SLICE" in label or "TRANSPOSE" in label or "BILINEAR" in label, found


def last_operator(build: Callable[[ModelBuilder], Tensor]) -> Operator:
    b = ModelBuilder()
    b.finish(build(b))
    return b.model.main.operators[-1]


def _concat_of_channels(b: ModelBuilder) -> Tensor:
    return b.concat([b.input(f"x{n}", (1, 4, 4, 16)) for n in range(2)])


def _concat_of_other_scales(b: ModelBuilder) -> Tensor:
    y = b.tensor("y", (1, 4, 4, 16))
    parts = [b.input("a", (1, 2, 4, 16)), b.input("b", (1, 2, 4, 16), scale=0.1)]
    b.operator("CONCATENATION", parts, (y,), "ConcatenationOptions", axis=1)
    return y


def _computed_filter(b: ModelBuilder) -> Tensor:
    y = b.tensor("y", (1, 4, 4, 4))
    operands = [b.input("x", (1, 4, 4, 4)), b.input("filter", (4, 1, 1, 4)), b.constant("bias", np.zeros(4, np.int32))]
    b.operator("CONV_2D", operands, (y,), "Conv2DOptions", strideH=1, strideW=1)
    return y


def _computed_begin(b: ModelBuilder) -> Tensor:
    y = b.tensor("y", (1, 2, 4, 16))
    operands = [b.input("x", (1, 4, 4, 16)), b.input("begin", (4,), DType.INT32)]
    b.operator("SLICE", (*operands, b.constant("size", np.asarray((1, 2, 4, 16), np.int32))), (y,), "SliceOptions")
    return y


def _backward_slice(b: ModelBuilder) -> Tensor:
    y = b.tensor("y", (1, 4, 4, 16))
    values = {"begin": (0, 3, 0, 0), "end": (1, -5, 4, 16), "strides": (1, -1, 1, 1)}
    operands = [b.constant(name, np.asarray(value, np.int32)) for name, value in values.items()]
    b.operator("STRIDED_SLICE", (b.input("x", (1, 4, 4, 16)), *operands), (y,), "StridedSliceOptions")
    return y


def _unknown(b: ModelBuilder) -> Tensor:
    y = b.tensor("y", (1, 4))
    b.operator("GATHER", (b.input("x", (1, 4)),), (y,))
    return y


def _broadcast_input(b: ModelBuilder) -> Tensor:
    y = b.tensor("y", (1, 4, 4, 16))
    b.operator("ADD", (b.input("x", (1, 1, 1, 16)), b.input("z", (1, 1, 4, 16))), (y,), "AddOptions")
    return y


@pytest.mark.parametrize(
    "build",
    [
        _concat_of_channels,
        _concat_of_other_scales,
        _computed_filter,
        _computed_begin,
        _backward_slice,
        _unknown,
        _broadcast_input,
    ],
    ids=lambda build: build.__name__.strip("_"),
)
def test_where_a_kernel_is_not_sure_nothing_is_shared(build: Callable[[ModelBuilder], Tensor]) -> None:
    for profile in PROFILES.values():
        assert profile.relations(last_operator(build)) == ()


def test_portable_knows_views_only_but_for_kernels_that_no_library_replaces() -> None:
    for case in CASES.values():
        operator = case.model().main.operators[-1]
        kinds = {reuse.kind for reuse in PORTABLE.relations(operator)}
        assert kinds <= {"view"} or operator.name in ("SLICE", "DYNAMIC_UPDATE_SLICE")


def test_views_that_are_not_aligned_are_left_out() -> None:
    """The second part would start at byte 24."""
    operator = last_operator(lambda b: b.concat([b.input(f"x{n}", (1, 2, 3, 4)) for n in range(3)], axis=1))
    assert [reuse.distance for reuse in PORTABLE.relations(operator)] == [0, 48]
    assert REFERENCE.relations(concat_model().main.operators[2]) == ()


def test_a_window_that_lies_in_the_padding_reads_nothing() -> None:
    """5 x 5 kernel, dilation 4 on 3 x 3: corner taps only; the rule still covers what the center reads."""
    b = ModelBuilder()
    x, y = b.input("x", (1, 3, 3, 16)), b.tensor("y", (1, 3, 3, 16))
    filters = b.constant("filter", np.ones((16, 5, 5, 16), np.int8))
    bias = b.constant("bias", np.zeros(16, np.int32))
    fields = {"strideH": 1, "strideW": 1, "dilationHFactor": 4, "dilationWFactor": 4}
    b.operator("CONV_2D", (x, filters, bias), (y,), "Conv2DOptions", **fields)
    (reuse,) = REFERENCE.relations(b.finish(y).main.operators[0])
    assert reuse.distance == 16


def test_every_case_of_the_grid_is_known() -> None:
    assert all(isinstance(case, Case) for case in CASES.values())
    assert set(PROBED) <= set(CASES)
