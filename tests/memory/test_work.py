"""The estimate of run time: linear where kernels are, and as often as a loop turns."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.faults import raises
from tests.model_builder import ModelBuilder
from tests.models import mobile_chain, while_model
from tflite_memopt.errors import ErrorKind, ModelFormatError
from tflite_memopt.kernels.prices import DSP_PRICES, MVE_PRICES, REFERENCE_PRICES, SCALAR_PRICES, Prices
from tflite_memopt.kernels.profiles import PROFILES
from tflite_memopt.memory.work import model_work, operator_work
from tflite_memopt.model.analysis.loops import loops_of
from tflite_memopt.model.ir.editor import SAME, VALID
from tflite_memopt.model.ir.model import DType, Graph, Operator
from tflite_memopt.operators.rows import Axis
from tflite_memopt.search.cascade.tiling import ClampedLoop, Tiling, apply_tilings


def pointwise(pixels: int) -> Operator:
    b = ModelBuilder()
    b.conv(b.input("x", (1, 1, pixels, 8)), 16)
    return b.model.main.operators[0]


def test_a_convolution_of_one_pixel_is_a_sum_of_prices() -> None:
    price = REFERENCE_PRICES.pointwise
    assert operator_work(pointwise(1), REFERENCE_PRICES) == price.call + 128 * price.mac + 16 * price.output


def test_pixels_that_fill_no_block_cost_more() -> None:
    works = [operator_work(pointwise(pixels), MVE_PRICES) for pixels in (4, 5, 8)]
    even = (works[2] - works[0]) // 4
    assert works[1] - works[0] == even + 128 * MVE_PRICES.pointwise.leftover


@given(
    size=st.integers(1, 12),
    taps=st.integers(1, 5),
    stride=st.integers(1, 3),
    dilation=st.integers(1, 3),
    pad=st.integers(0, 4),
    outputs=st.integers(1, 12),
)
def test_taps_on_the_input_are_those_that_a_loop_counts(
    size: int, taps: int, stride: int, dilation: int, pad: int, outputs: int
) -> None:
    places = (o * stride - pad + t * dilation for o in range(outputs) for t in range(taps))
    axis = Axis(size, outputs, stride, taps, pad, dilation=dilation)
    assert axis.taps_inside() == sum(0 <= at < size for at in places)


def test_the_reference_kernels_skip_what_lies_outside() -> None:
    b = ModelBuilder()
    b.conv(b.input("x", (1, 4, 4, 2)), 3, kernel=3)
    same = b.model.main.operators[0]
    inside = 10 * 10 * 2 * 3  # of 12 rows and 12 columns under the filter two each lie outside
    price = REFERENCE_PRICES.window
    each = price.output + 9 * price.tap
    assert operator_work(same, REFERENCE_PRICES) == price.call + inside * price.mac + 48 * each


def along(rows: int, columns: int, high: int, wide: int) -> Operator:
    """A convolution of 8 channels with a filter that is not square."""
    b = ModelBuilder()
    x = b.input("x", (1, rows, columns, 8))
    y, filters = b.tensor("y", (1, rows, columns, 8)), b.tensor("filters", (8, high, wide, 8))
    b.operator("CONV_2D", (x, filters, None), (y,), "Conv2DOptions", strideH=1, strideW=1)
    return b.model.main.operators[0]


def test_a_filter_along_h_costs_a_row_of_the_filter_for_each_place() -> None:
    lying, standing = along(1, 60, 1, 5), along(60, 1, 5, 1)
    rows = 60 * (5 - 1) * DSP_PRICES.window.row
    assert operator_work(standing, DSP_PRICES) - operator_work(lying, DSP_PRICES) == rows


def test_helium_reads_an_input_of_one_row_in_place() -> None:
    price = MVE_PRICES.window
    copied = 60 * (5 * price.place + 5 * price.row)
    assert operator_work(along(60, 1, 5, 1), MVE_PRICES) - operator_work(along(1, 60, 1, 5), MVE_PRICES) == copied


def test_a_depthwise_convolution_is_never_read_in_place() -> None:
    """On Cortex-M55 one of 1x9 over 32 channels takes 151,937 instructions; without its copies it would be 117,924."""
    b = ModelBuilder()
    x, y, filters = b.input("x", (1, 1, 200, 32)), b.tensor("y", (1, 1, 200, 32)), b.tensor("filters", (1, 1, 9, 32))
    options = {"strideH": 1, "strideW": 1, "depthMultiplier": 1}
    b.operator("DEPTHWISE_CONV_2D", (x, filters, None), (y,), "DepthwiseConv2DOptions", **options)
    found = operator_work(b.model.main.operators[0], MVE_PRICES) // 100
    assert 0.9 <= found / 151_937 <= 1.1


@pytest.mark.parametrize(
    ("name", "source", "result", "prices", "executed"),
    [
        ("QUANTIZE", DType.FLOAT32, DType.INT8, SCALAR_PRICES, 3_800_960),
        ("QUANTIZE", DType.FLOAT32, DType.INT8, DSP_PRICES, 345_960),
        ("QUANTIZE", DType.FLOAT32, DType.INT8, MVE_PRICES, 269_188),
        ("QUANTIZE", DType.INT8, DType.INT8, DSP_PRICES, 960_040),
        ("QUANTIZE", DType.INT8, DType.INT16, MVE_PRICES, 844_563),
        ("DEQUANTIZE", DType.INT8, DType.FLOAT32, SCALAR_PRICES, 2_079_400),
        ("DEQUANTIZE", DType.INT8, DType.FLOAT32, DSP_PRICES, 230_760),
    ],
)
def test_conversions_cost_what_the_core_takes_for_them(
    name: str, source: DType, result: DType, prices: Prices, executed: int
) -> None:
    """As executed in QEMU; as elementwise operators they would be said to cost 0.3 to 14 times that."""
    b = ModelBuilder()
    b.operator(name, (b.input("x", (1, 80, 80, 3), source),), (b.tensor("y", (1, 80, 80, 3), result),))
    assert 0.85 <= operator_work(b.model.main.operators[0], prices) / 100 / executed <= 1.15


@pytest.mark.parametrize(
    ("shape", "multiplier", "dilation", "prices", "executed"),
    [
        ((1, 24, 24, 4), 4, 1, DSP_PRICES, 798_000),
        ((1, 24, 24, 4), 4, 1, MVE_PRICES, 569_500),
        ((1, 16, 16, 8), 2, 1, SCALAR_PRICES, 881_080),
        ((1, 16, 16, 8), 2, 1, DSP_PRICES, 873_320),
        ((1, 16, 16, 8), 2, 1, MVE_PRICES, 849_625),
        ((1, 24, 24, 1), 8, 2, SCALAR_PRICES, 913_240),
        ((1, 24, 24, 1), 8, 2, DSP_PRICES, 904_760),
        ((1, 32, 32, 1), 16, 1, DSP_PRICES, 1_363_920),
        ((1, 32, 32, 1), 16, 1, MVE_PRICES, 513_219),
    ],
)
def test_depthwise_convolutions_with_a_multiplier_have_prices_of_their_own(
    shape: tuple[int, ...], multiplier: int, dilation: int, prices: Prices, executed: int
) -> None:
    """3x3 without padding, as executed in QEMU; the price of a multiplier of one would be 0.1 to 0.8 of it."""
    b = ModelBuilder()
    channels, (high, wide) = shape[3] * multiplier, (side - 2 * dilation for side in shape[1:3])
    x, y, filters = b.input("x", shape), b.tensor("y", (1, high, wide, channels)), b.tensor("f", (1, 3, 3, channels))
    options = {"strideH": 1, "strideW": 1, "dilationHFactor": dilation, "dilationWFactor": dilation, "padding": VALID}
    b.operator(
        "DEPTHWISE_CONV_2D", (x, filters, None), (y,), "DepthwiseConv2DOptions", depthMultiplier=multiplier, **options
    )
    assert 0.9 <= operator_work(b.model.main.operators[0], prices) / 100 / executed <= 1.1


@pytest.mark.parametrize(
    ("size", "kernel", "channels", "made", "executed"),
    [
        (48, 3, 8, 48, (1_469_720, 1_742_880, 897_938, 7_746_640)),
        (3, 3, 256, 3, (143_240, 164_360, 50_031, 822_280)),
        (36, 5, 48, 16, (2_958_320, 6_743_520, 573_625, 11_030_800)),
        (2, 7, 384, 2, (474_440, 322_200, 109_469, 1_086_720)),
    ],
    ids=["3x3", "3x3 of a small image", "5x5 without padding", "7x7 that sees padding for the most part"],
)
def test_depthwise_convolutions_cost_what_lies_inside_the_image(
    size: int, kernel: int, channels: int, made: int, executed: tuple[int, ...]
) -> None:
    """As on Cortex-M7, M3, M55 and with TFLM's own kernels: where most taps are outside, they cost a half or less."""
    b = ModelBuilder()
    x, y = b.input("x", (1, size, size, channels)), b.tensor("y", (1, made, made, channels))
    filters, padding = b.tensor("f", (1, kernel, kernel, channels)), SAME if size == made else VALID
    options = {"strideH": size // made, "strideW": size // made, "depthMultiplier": 1, "padding": padding}
    b.operator("DEPTHWISE_CONV_2D", (x, filters, None), (y,), "DepthwiseConv2DOptions", **options)
    for prices, count in zip((DSP_PRICES, SCALAR_PRICES, MVE_PRICES, REFERENCE_PRICES), executed, strict=True):
        assert operator_work(b.model.main.operators[0], prices) / 100 == pytest.approx(count, rel=0.06)


@pytest.mark.parametrize(("dtype", "price"), [(DType.INT8, 4 * 3_300), (DType.FLOAT32, REFERENCE_PRICES.pool.mac)])
def test_a_mean_costs_what_it_reads(dtype: DType, price: int) -> None:
    b = ModelBuilder()
    x, y = b.input("x", (1, 6, 6, 8), dtype), b.tensor("y", (1, 1, 1, 8), dtype)
    b.operator("MEAN", (x, b.constant("axes", np.asarray([1, 2], np.int32))), (y,), "ReducerOptions", keepDims=True)
    (operator,) = b.model.main.operators
    assert operator_work(operator, REFERENCE_PRICES) == REFERENCE_PRICES.call + 6 * 6 * 8 * price


def test_operands_of_two_shapes_have_the_price_of_the_reference_kernels() -> None:
    b = ModelBuilder()
    x, y = b.input("x", (1, 4, 4, 8)), b.tensor("y", (1, 4, 4, 8))
    b.operator("ADD", (x, b.constant("one", np.ones(8, np.int8))), (y,), "AddOptions")
    assert operator_work(b.model.main.operators[0], MVE_PRICES) == MVE_PRICES.call + 128 * REFERENCE_PRICES.element


def test_pooling_costs_its_window_and_each_row_of_it() -> None:
    b = ModelBuilder()
    b.average_pool(b.input("x", (1, 6, 6, 8)), 3)
    price = DSP_PRICES.pool
    each = 4 * 8 * 9 * price.mac + 4 * 8 * price.output + 4 * 3 * price.row
    assert operator_work(b.model.main.operators[0], DSP_PRICES) == price.call + each


def test_many_short_calls_cost_more_than_a_long_one() -> None:
    for profile in PROFILES.values():
        assert 8 * operator_work(pointwise(1), profile.prices) > operator_work(pointwise(8), profile.prices)


@pytest.mark.parametrize(("shape", "copies"), [((1,), True), ((1, 4, 4, 8), False)])
def test_one_value_that_chooses_copies(shape: tuple[int, ...], copies: bool) -> None:
    b = ModelBuilder()
    x, y = b.input("x", (1, 4, 4, 8)), b.tensor("y", (1, 4, 4, 8))
    chosen = b.constant("chosen", np.ones(shape, np.bool_))
    b.operator("SELECT_V2", (chosen, x, x), (y,))
    price = DSP_PRICES.joined if copies else DSP_PRICES.element
    assert operator_work(b.model.main.operators[0], DSP_PRICES) == DSP_PRICES.call + 128 * price


def test_floats_have_the_prices_of_the_reference_kernels() -> None:
    b = ModelBuilder()
    x, y = b.input("x", (1, 4, 4, 8), DType.FLOAT32), b.tensor("y", (1, 4, 4, 8), DType.FLOAT32)
    b.operator("ADD", (x, x), (y,), "AddOptions")
    operator = b.model.main.operators[0]
    assert operator_work(operator, MVE_PRICES) == operator_work(operator, REFERENCE_PRICES)


def dense() -> ModelBuilder:
    b = ModelBuilder()
    b.dense(b.input("x", (16, 64)), 64)
    return b


def softmax() -> ModelBuilder:
    b = ModelBuilder()
    b.softmax(b.input("x", (16, 16), scale=0.1))
    return b


def of_two(name: str) -> ModelBuilder:
    b, shape = ModelBuilder(), (1, 16, 16, 8)
    inputs, y = (b.input("a", shape), b.input("b", shape)), b.tensor("y", shape)
    b.operator(name, inputs, (y,), f"{name.title()}Options")
    return b


@pytest.mark.parametrize(
    ("build", "executed"),
    [
        (dense(), (176_040, 46_000, 261_600, 525_120)),
        (softmax(), (137_480, 144_844, 134_280, 146_840)),
        (of_two("MUL"), (74_320, 14_718, 74_760, 121_520)),
        (of_two("SUB"), (231_200, 200_438, 186_280, 231_200)),
    ],
    ids=["dense", "softmax", "mul", "sub"],
)
def test_single_operators_are_near_what_was_executed(build: ModelBuilder, executed: tuple[int, ...]) -> None:
    """As counted in QEMU 7.2 on Cortex-M7, M55, M3, and with TFLM's own kernels (TFLM 90b983c2, CMSIS-NN 4ab83cc3)."""
    for prices, count in zip((DSP_PRICES, MVE_PRICES, SCALAR_PRICES, REFERENCE_PRICES), executed, strict=True):
        assert operator_work(build.model.main.operators[0], prices) / 100 == pytest.approx(count, rel=0.25)


def works(graph: Graph) -> int:
    return sum(operator_work(operator, DSP_PRICES) for operator in graph.operators)


def test_a_loop_costs_what_its_turns_do() -> None:
    model = mobile_chain()
    height = model.main.operators[1].outputs[0].shape[1]
    apply_tilings(model, [Tiling(0, 2, ClampedLoop(1))])
    (loop,) = loops_of(model)
    assert loop.iterations == height
    turns = height * works(loop.body) + (height + 1) * works(loop.condition) + (2 * height + 1) * DSP_PRICES.call
    assert model_work(model, DSP_PRICES) == works(model.main) + turns


def test_a_loop_that_cannot_be_followed_counts_once() -> None:
    model = while_model()
    assert model_work(model, DSP_PRICES) == sum(map(works, model.graphs))


@pytest.mark.parametrize("wrong", ["shape", "stride"])
def test_a_convolution_without_a_window_is_refused(wrong: str) -> None:
    b = ModelBuilder()
    b.conv(b.input("x", (1, 4, 4, 8)), 16, 3)
    operator = b.model.main.operators[0]
    assert operator.inputs[0] is not None
    if wrong == "shape":
        operator.inputs[0].shape = ()
    else:
        assert operator.options is not None
        operator.options = replace(operator.options, fields={**operator.options.fields, "strideH": 0})
    with raises(ModelFormatError, ErrorKind.OPERAND, "CONV_2D"):
        operator_work(operator, REFERENCE_PRICES)


def test_pooling_of_a_scalar_is_refused() -> None:
    b = ModelBuilder()
    b.average_pool(b.input("x", (1, 6, 6, 8)), 3).shape = ()
    with raises(ModelFormatError, ErrorKind.OPERAND, "AVERAGE_POOL_2D"):
        operator_work(b.model.main.operators[0], REFERENCE_PRICES)


@pytest.mark.parametrize("prices", [REFERENCE_PRICES, DSP_PRICES, MVE_PRICES], ids=lambda each: each.library)
def test_known_work_is_that_of_the_operator(prices: Prices) -> None:
    """One table of prices is asked about all convolutions, and each is asked of a table that knows nothing."""
    drawn, b = np.random.default_rng(3), ModelBuilder()
    for _ in range(100):
        height, width, kernel, stride = (int(drawn.integers(1, most)) for most in (9, 9, 5, 4))
        x = b.input(f"x{len(b.graph.tensors)}", (1, height, width, int(drawn.choice([1, 4, 8]))))
        multiplier, is_plain = int(drawn.choice([1, 2])), drawn.random() < 0.5
        y = b.conv(x, 8, kernel, stride) if is_plain else b.depthwise(x, kernel, stride, multiplier=multiplier)
        assert y.producer is not None
        assert operator_work(y.producer, prices) == operator_work(y.producer, replace(prices))
