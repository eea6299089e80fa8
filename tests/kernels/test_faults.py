"""Faults of kernel libraries: who meets one is known, and no rewrite, stripe or loop leads there."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from scripts.benchmarks.networks import random_networks
from scripts.fuzzing.cell import Key
from scripts.fuzzing.cells import cells
from scripts.fuzzing.kernels import met_by
from tests.cascade.spaces import figures_of, space_of
from tests.model_builder import ModelBuilder, per_channel
from tests.tflm import run_models
from tflite_memopt import Options, analyze, optimize, verify
from tflite_memopt.cli import cli
from tflite_memopt.evidence.proof import prove
from tflite_memopt.kernels.esp_nn import s3_depthwise, s3_depthwise_writes, said_of_releases
from tflite_memopt.kernels.faults import FAULTS, Fault, faults_in, faults_of, form_of, new_faults
from tflite_memopt.kernels.mend import mend
from tflite_memopt.kernels.profile import KernelProfile
from tflite_memopt.kernels.profiles import PORTABLE, PROFILES, profile_named
from tflite_memopt.kernels.targets import profile_for
from tflite_memopt.memory.work import WorkLimit, slowest
from tflite_memopt.model.io.reader import read_model
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.model.ir.change import Changed
from tflite_memopt.model.ir.copying import copy_model
from tflite_memopt.model.ir.editor import SAME, VALID
from tflite_memopt.model.ir.model import DType, Model, Operator, Tensor
from tflite_memopt.model.ir.tensors import per_tensor
from tflite_memopt.operators.rows import Axis
from tflite_memopt.operators.window import KernelWindow
from tflite_memopt.report.summary import price_of
from tflite_memopt.report.words import percent
from tflite_memopt.run import candidate
from tflite_memopt.search.cascade.measure import Measure, Measured
from tflite_memopt.search.cascade.space import UNROLLED
from tflite_memopt.search.cascade.tiling import Tiling, Unrolled, apply_tilings

MVE = profile_named("cmsis-nn-mve")


def one_by_n(b: ModelBuilder, x: Tensor, taps: int, stride: int, padding: int = SAME, channels: int = 4) -> Tensor:
    columns = x.shape[2] - (taps - 1 if padding == VALID else 0)
    values = np.random.default_rng(taps).integers(-127, 128, (channels, 1, taps, x.shape[3])).astype(np.int8)
    weights = b.constant(f"{taps}_{len(b.graph.tensors)}/weights", values, per_tensor(0.01, 0))
    bias = b.constant(f"{taps}_{len(b.graph.tensors)}/bias", np.zeros(channels, np.int32), per_tensor(0.0005, 0))
    y = b.tensor(f"conv{len(b.graph.tensors)}", (1, x.shape[1], -(-columns // stride), channels))
    fields = {"padding": padding, "strideW": stride, "strideH": 1}
    b.operator("CONV_2D", (x, weights, bias), (y,), "Conv2DOptions", dilationWFactor=1, dilationHFactor=1, **fields)
    return y


def tall(stride: int) -> Model:
    """Wide activations around a 1x5 convolution: stripes pay."""
    b = ModelBuilder()
    y = b.conv(b.input("x", (1, 8, 32, 4)), 16, kernel=3, seed=1)
    return b.finish(b.conv(one_by_n(b, y, 5, stride), 2, seed=2))


def flat(width: int, taps: int, stride: int, padding: int) -> Model:
    b = ModelBuilder()
    return b.finish(one_by_n(b, b.input("x", (1, 1, width, 4)), taps, stride, padding))


SHAPES = [(w, k, s, p) for w in (8, 11, 16) for k in (2, 3, 5) for s in (1, 2, 3) for p in (SAME, VALID)]


S3, DSP, REFERENCE = (profile_named(name) for name in ("esp-nn-s3", "cmsis-nn-dsp", "reference"))
OLD = date(2024, 10, 1)


def at(profile: KernelProfile, day: date) -> KernelProfile:
    return replace(profile, tflm=day)


def layer(
    name: str, shape: tuple[int, ...], taps: tuple[int, int], stride: int = 1, channels: int | None = None, **more: Any
) -> Model:
    """One int8 convolution; ``depth`` of its filters, ``padding`` and ``zero_point`` may be given."""
    b = ModelBuilder()
    padding, made = more.get("padding", SAME), shape[3] if channels is None else channels
    x = b.input("x", shape, zero_point=more.get("zero_point", 3))
    sides = [
        -(-side // stride) if padding == SAME else (side - k) // stride + 1
        for side, k in zip(shape[1:3], taps, strict=True)
    ]
    y = b.tensor("y", (shape[0], *sides, made))
    is_depthwise = name == "DEPTHWISE_CONV_2D"
    filters = (1, *taps, made) if is_depthwise else (made, *taps, more.get("depth", shape[3]))
    weights = b.constant("w", np.random.default_rng(1).integers(-99, 99, filters).astype(np.int8), per_tensor(0.002, 0))
    bias = b.constant("b", np.arange(made, dtype=np.int32), per_tensor(0.0001, 0))
    fields = {"strideW": stride, "strideH": stride, "dilationWFactor": 1, "dilationHFactor": 1, "padding": padding}
    fields |= {"depthMultiplier": made // shape[3]} if is_depthwise else {}
    b.operator(name, (x, weights, bias), (y,), "DepthwiseConv2DOptions" if is_depthwise else "Conv2DOptions", **fields)
    return b.finish(y)


def depthwise(shape: tuple[int, ...], taps: tuple[int, int] = (3, 3), stride: int = 1, **more: Any) -> Model:
    return layer("DEPTHWISE_CONV_2D", shape, taps, stride, **more)


def convolution(shape: tuple[int, ...], taps: tuple[int, int] = (3, 3), stride: int = 1, **more: Any) -> Model:
    return layer("CONV_2D", shape, taps, stride, **{"channels": 8, **more})


def transposed(taps: int, stride: tuple[int, int], depth: int = 8, batch: int = 1) -> Model:
    b = ModelBuilder()
    x = b.input("x", (batch, 4, 4, depth), zero_point=3)
    y = b.tensor("y", (batch, 4 * stride[0], 4 * stride[1], 4))
    shape = b.constant("s", np.asarray(y.shape, np.int32))
    values = np.random.default_rng(2).integers(-99, 99, (4, taps, taps, depth)).astype(np.int8)
    operands = shape, b.constant("w", values, per_tensor(0.002, 0)), x
    options = {"strideH": stride[0], "strideW": stride[1], "padding": SAME}
    return b.finish(b.operator("TRANSPOSE_CONV", operands, (y,), "TransposeConvOptions", **options).outputs[0])


def turned(rank: int, dtype: DType = DType.INT8) -> Model:
    b = ModelBuilder()
    x, y = b.input("x", (2,) * rank, dtype), b.tensor("y", (2,) * rank, dtype)
    order = b.constant("order", np.arange(rank, dtype=np.int32)[::-1].copy())
    return b.finish(b.operator("TRANSPOSE", (x, order), (y,), "TransposeOptions").outputs[0])


def pooled(batch: int) -> Model:
    b = ModelBuilder()
    return b.finish(b.average_pool(b.input("x", (batch, 4, 4, 8)), 2))


def multiplied(left: tuple[int, ...], right: tuple[int, ...], **sides: bool) -> Model:
    b = ModelBuilder()
    y = b.tensor("y", (*left[:-2], 3, 3))
    operands = b.input("a", left), b.input("b", right)
    return b.finish(b.operator("BATCH_MATMUL", operands, (y,), "BatchMatMulOptions", **sides).outputs[0])


def to_batches(rows: int) -> Model:
    b = ModelBuilder()
    x, y = b.input("x", (1, 4, 4, 2)), b.tensor("y", (4, 2 + rows, 2, 2))
    block = b.constant("block", np.asarray([2, 2], np.int32))
    paddings = b.constant("paddings", np.asarray([[0, 2 * rows], [0, 0]], np.int32))
    return b.finish(b.operator("SPACE_TO_BATCH_ND", (x, block, paddings), (y,), "SpaceToBatchNDOptions").outputs[0])


def recurrent(dtype: DType) -> Model:
    b = ModelBuilder()
    x, y = b.input("x", (1, 4, 2), dtype), b.tensor("y", (1, 4, 2), dtype)
    return b.finish(
        b.operator("UNIDIRECTIONAL_SEQUENCE_LSTM", (x,), (y,), "UnidirectionalSequenceLSTMOptions").outputs[0]
    )


def converted(scales: int, dtype: DType = DType.INT8) -> Model:
    """A DEQUANTIZE of a tensor of four channels."""
    b = ModelBuilder()
    x, y = b.input("x", (4, 3), dtype), b.tensor("y", (4, 3), DType.FLOAT32)
    x.quantization = per_channel(np.linspace(0.01, 0.01 * scales, 4, dtype=np.float32), 0)
    return b.finish(b.operator("DEQUANTIZE", (x,), (y,), "DequantizeOptions").outputs[0])


def clamped(name: str, scale: float, zero_point: int = 3, dtype: DType = DType.INT8) -> Model:
    """A RELU or RELU6 of a tensor of scale 0.05 and zero point 3."""
    b = ModelBuilder()
    x, y = b.input("x", (1, 64), dtype, zero_point=3), b.tensor("y", (1, 64), dtype, scale, zero_point)
    return b.finish(b.operator(name, (x,), (y,)).outputs[0])


def by_weights(scales: int) -> Model:
    """A BATCH_MATMUL of activations and a constant."""
    b = ModelBuilder()
    weights = b.constant("w", np.random.default_rng(3).integers(-127, 128, (8, 4)).astype(np.int8))
    weights.quantization = per_channel(np.linspace(0.001, 0.001 * scales, 4, dtype=np.float32), 1)
    y = b.tensor("y", (1, 3, 4))
    operands = b.input("x", (1, 3, 8), zero_point=3), weights
    return b.finish(b.operator("BATCH_MATMUL", operands, (y,), "BatchMatMulOptions").outputs[0])


MEASURED = {cell.key: cell for cell in cells()}


def measured(wrong: Key, right: Key) -> Case:
    """Two cells of the table of what runtimes make of a file."""
    return REFERENCE, MEASURED[wrong].make(), MEASURED[right].make()


Case = tuple[KernelProfile, Model, Model]
CASES: dict[str, Case] = {
    "esp-nn 30": (S3, depthwise((1, 49, 20, 32), stride=2), depthwise((1, 48, 20, 32), stride=2)),
    "esp-nn rows of padding": (
        S3,
        depthwise((1, 60, 60, 16), (5, 5)),
        depthwise((1, 60, 60, 16), (5, 5), zero_point=0),
    ),
    "esp-nn 31": (S3, convolution((1, 32, 32, 8), stride=2), convolution((1, 33, 33, 8), stride=2)),
    "esp-nn 8": (
        profile_for("esp32s3@esp-nn-1.0"),
        convolution((1, 9, 9, 16), (1, 3)),
        convolution((1, 9, 9, 16), (3, 3)),
    ),
    "esp-nn small inputs": (S3, convolution((1, 2, 12, 3), stride=2), convolution((1, 4, 12, 3), stride=2)),
    "esp-nn groups": (S3, convolution((1, 9, 9, 8), depth=4), convolution((1, 9, 9, 8))),
    "CMSIS-NN one row": (MVE, flat(11, 5, 2, SAME), flat(11, 5, 1, SAME)),
    "CMSIS-NN 200": (at(DSP, OLD), convolution((1, 9, 9, 8), (1, 1), depth=4), convolution((1, 9, 9, 8), depth=4)),
    "CMSIS-NN 230": (DSP, transposed(4, (2, 2)), transposed(2, (2, 2))),
    "CMSIS-NN 243": (DSP, transposed(1, (1, 2)), transposed(2, (1, 2))),
    "CMSIS-NN images": (DSP, transposed(1, (1, 1), batch=2), transposed(1, (1, 1))),
    "CMSIS-NN five dimensions": (DSP, turned(5), turned(4)),
    "tflite-micro 3584": (at(DSP, OLD), pooled(2), pooled(1)),
    "tflite-micro 2740": (at(DSP, OLD), multiplied((3, 5), (3, 5), adjY=True), multiplied((3, 5), (5, 3))),
    "tflite-micro 3412": (
        at(REFERENCE, OLD),
        multiplied((2, 5, 3), (5, 3), adjX=True),
        multiplied((1, 2, 5, 3), (5, 3), adjX=True),
    ),
    "tflite-micro 3564": (DSP, recurrent(DType.INT8), recurrent(DType.FLOAT32)),
    "TFLM's padding of batches": (REFERENCE, to_batches(1), to_batches(0)),
    "TFLM's DEQUANTIZE of several scales": (REFERENCE, converted(30), converted(1)),
    "TFLM's RELU6 of another scale": (REFERENCE, clamped("RELU6", 0.025), clamped("RELU6", 0.05)),
    "BATCH_MATMUL of several scales": (MVE, by_weights(30), by_weights(1)),
    "TFLM's ADD of int32 with an activation": measured(
        Key("ADD", "int32", "", "4", "RELU"), Key("ADD", "int32", "", "4")
    ),
    "TFLM's TANH of another scale": measured(Key("TANH", "int8", "same", "4"), Key("TANH", "int8", "as written", "4")),
    "DIV of small quotients": measured(Key("DIV", "int8", "same", "4"), Key("DIV", "float32", "", "4")),
    "weights off zero": measured(
        Key("TRANSPOSE_CONV", "int8, int8", "per tensor, weights' zero point", "4"),
        Key("FULLY_CONNECTED", "int8, int8", "per tensor, weights' zero point", "2"),
    ),
    "bias of another width": measured(
        Key("FULLY_CONNECTED", "int8, int8, int64", "per channel", "2"),
        Key("FULLY_CONNECTED", "int8, int8", "per channel", "2"),
    ),
}
"""By fault: a model whose operator meets it, and one like it that does not."""


@pytest.mark.parametrize("name", CASES)
def test_who_meets_a_fault(name: str) -> None:
    profile, wrong, right = CASES[name]
    assert name in {each.fault.name for each in faults_in(wrong, profile)}
    assert name not in {each.fault.name for each in faults_in(right, profile)}


def test_every_fault_has_a_case_and_a_source() -> None:
    rows = [row for rows in FAULTS.values() for row in rows]
    assert {row.name for row in rows} == set(CASES)
    assert all(row.source and set(row.profiles) <= set(PROFILES) for row in rows)


ON_THE_WHEEL = ("TFLM's DEQUANTIZE of several scales", "TFLM's RELU6 of another scale")


@pytest.mark.parametrize("name", ON_THE_WHEEL)
def test_the_wheel_differs_from_litert_where_a_kernel_of_its_own_is_faulty(name: str) -> None:
    _, wrong, right = CASES[name]
    assert _differs_on_the_wheel(wrong)
    assert not _differs_on_the_wheel(right)
    assert not _differs_on_the_wheel(clamped("RELU", 0.025))  # which rescales


def _differs_on_the_wheel(model: Model) -> bool:
    (x,) = model.main.inputs
    sample = [np.arange(x.elements, dtype=np.int8).reshape(x.shape)]
    litert, tflm = (run_models(each, {"m": write_model(model)}, [sample], 2**16)["m"] for each in ("litert", "tflm"))
    assert litert.ran
    assert tflm.ran
    return not np.array_equal(litert.outputs[0][0], tflm.outputs[0][0])


def test_no_fault_of_integers_is_one_of_floats_or_of_16_bits() -> None:
    assert not faults_in(turned(5, DType.INT16), DSP)
    b = ModelBuilder()
    x, y = b.input("x", (1, 1, 8, 4), DType.FLOAT32), b.tensor("y", (1, 1, 4, 4), DType.FLOAT32)
    weights = b.constant("w", np.zeros((4, 1, 3, 4), np.float32))
    fields = {"padding": SAME, "strideW": 2, "strideH": 1, "dilationWFactor": 1, "dilationHFactor": 1}
    b.operator("CONV_2D", (x, weights), (y,), "Conv2DOptions", **fields)
    assert not faults_in(b.finish(y), profile_named("portable"))


def stripped(*ranks: int) -> Model:
    """TRANSPOSEs of so many dimensions, side by side; all tensors have one name, as in a file that was stripped."""
    b = ModelBuilder()
    outputs = []
    for rank in ranks:
        x, y = b.input("t", (2,) * rank), b.tensor("t", (2,) * rank)
        order = b.constant("t", np.arange(rank, dtype=np.int32)[::-1].copy())
        b.operator("TRANSPOSE", (x, order), (y,), "TransposeOptions")
        outputs.append(y)
    return b.finish(*outputs)


@pytest.mark.parametrize(
    ("before", "after", "new"),
    [
        ((5, 4), (5, 4), ()),
        ((5, 4), (4,), ()),  # it is gone
        ((5, 4), (5, 5), (5,)),  # once more
        ((5, 4), (5, 5, 5), (5, 5)),
        ((5, 4), (4, 6), (6,)),  # another one instead
        ((5, 6), (6, 5), ()),  # in another order
        ((), (5,), (5,)),
    ],
)
def test_a_fault_hides_no_other_one_where_names_are_equal(
    before: tuple[int, ...], after: tuple[int, ...], new: tuple[int, ...]
) -> None:
    original, model = (read_model(write_model(stripped(*ranks or (4,)))) for ranks in (before, after))
    assert {tensor.name for tensor in model.main.tensors} == {"t"}
    found = [each for each in faults_in(model, DSP) if each in new_faults(model, original, DSP)]
    assert len(new_faults(model, original, DSP)) == len(new)
    assert {len(each.form[2][0][1]) for each in found} == set(new)  # type: ignore[index]


def test_forms_tell_operators_by_what_faults_look_at() -> None:
    b = ModelBuilder()
    first = b.conv(b.input("x", (1, 9, 9, 8)), 8, kernel=3, seed=1)
    model = b.finish(b.conv(first, 8, kernel=3, seed=2))
    one, other = model.main.operators
    assert form_of(one) == form_of(other)  # weights and names are others
    assert len({form_of(to_batches(rows).main.operators[0]) for rows in (0, 1, 2)}) == 3
    changed = copy_model(model).main.operators[0]
    changed.outputs[0].quantization = per_tensor(0.1, 5)
    assert form_of(changed) != form_of(one)


def test_what_a_library_computes_wrongly_is_mended_in_a_stripped_file() -> None:
    wrong = convolution((1, 16, 16, 8), stride=2)
    for tensor in wrong.main.tensors:
        tensor.name = "t"
    result = optimize(write_model(wrong), Options(target="esp32s3", verify=False))
    assert not faults_in(read_model(result.model), S3)


def test_a_mended_release_has_it_no_more() -> None:
    _, wrong, _ = CASES["esp-nn 31"]
    assert faults_in(wrong, profile_for("esp32s3@esp-nn-1.1.2"))
    assert not faults_in(wrong, profile_for("esp32s3@esp-nn-1.2.3"))
    assert faults_in(wrong, S3)  # any release from 1.1.1 on counts
    _, wrong, _ = CASES["tflite-micro 3584"]
    assert not faults_in(wrong, DSP)  # TFLM as it was read


def test_releases_are_named_as_they_follow_one_another() -> None:
    assert said_of_releases([(1, 0, 2), (1, 2, 3)]) == "esp-nn 1.0.2 to 1.1.2, 1.2.3"


WRITTEN = {
    (24, 3, 32, 1, 3, 3, 1, 3, 1, 0, 24, 1): [(2800, 5216), (2800, 5216), (2800, 5232), (2800, 5232)],
    (12, 3, 64, 1, 3, 3, 1, 3, 1, 0, 12, 1): [(3280, 5792), (3280, 5792), (3280, 5840), (3280, 5840)],
    (48, 48, 32, 1, 3, 3, 2, 2, 0, 0, 24, 24): [(80304, 80304), (80304, 80304), (5104, 80304), (5104, 80304)],
    (10, 8, 1, 8, 8, 10, 2, 2, 3, 4, 5, 4): [(1456, 1472), (1472, 1472), (1472, 1472), (1472, 1472)],
    (20, 49, 32, 1, 3, 3, 2, 2, 0, 1, 10, 25): [(32944, 63328), (32944, 63328), (32944, 44912), (32944, 44912)],
    (48, 48, 16, 1, 3, 3, 1, 1, 1, 1, 48, 48): [(40160, 40160), (40160, 40160), (40160, 40160), (40160, 40160)],
    (24, 24, 32, 1, 5, 5, 1, 1, 2, 2, 24, 24): [(32, 0), (32, 0), (38496, 38496), (38496, 38496)],
    (9, 9, 24, 1, 3, 3, 2, 2, 1, 1, 5, 5): [(4336, 4336), (4352, 4336), (7424, 5712), (7424, 5712)],
    (6, 6, 20, 1, 3, 3, 1, 1, 1, 1, 6, 6): [(32, 0), (32, 0), (3328, 3312), (3328, 3312)],
    (12, 12, 8, 1, 3, 3, 1, 1, 1, 1, 12, 12): [(2464, 2464), (2480, 2464), (2480, 2464), (2480, 2464)],
    (7, 7, 4, 4, 3, 3, 1, 1, 1, 1, 7, 7): [(696, 712), (712, 712), (712, 712), (712, 712)],
    (60, 30, 64, 1, 3, 3, 1, 1, 1, 1, 60, 30): [(127568, 127568), (127568, 127568), (12496, 12496), (12496, 12496)],
    (60, 60, 16, 1, 5, 5, 1, 1, 2, 2, 60, 60): [(32, 0), (32, 0), (10432, 10432), (10432, 10432)],
}
"""By columns, rows, channels and multiplier, columns and rows of the filter and of the stride, leading columns and rows
of padding, and columns and rows of the output: bytes that esp-nn 1.0.0, 1.2.0, 1.2.1 and 1.2.3 ask for and write, as
their C code was run with stand-ins for its assembly. 24,000 random shapes agreed as well."""


@pytest.mark.parametrize("shape", WRITTEN)
def test_what_a_depthwise_convolution_asks_for_and_writes(shape: Any) -> None:
    wide, high, depth, multiplier, kw, kh, sw, sh, pw, ph, ow, oh = shape
    rows, columns = Axis(high, oh, sh, kh, ph), Axis(wide, ow, sw, kw, pw)
    window = KernelWindow(rows, columns, 1, depth, depth * multiplier, depth)
    versions = (1, 0, 0), (1, 2, 0), (1, 2, 1), (1, 2, 3)
    assert [(s3_depthwise(window, v), s3_depthwise_writes(window, v)) for v in versions] == WRITTEN[shape]


MENDED = (
    "esp-nn 30",
    "esp-nn rows of padding",
    "esp-nn 31",
    "esp-nn 8",
    "esp-nn small inputs",
    "CMSIS-NN 230",
    "TFLM's padding of batches",
)


@pytest.mark.few(3)
@pytest.mark.parametrize("name", MENDED)
def test_padding_apart_mends_and_computes_the_same(name: str) -> None:
    profile, wrong, _ = CASES[name]
    mended = copy_model(wrong)
    assert [use.rule for use in mend(mended, profile).uses] == ["padding_apart"]
    assert not faults_in(mended, profile)
    assert prove(wrong, mended).proved
    assert verify(write_model(wrong), write_model(mended))["litert"].equal


def test_a_copy_of_more_than_40_kb_is_padded_to_what_the_kernel_counts() -> None:
    wrong = depthwise((1, 48, 48, 32), stride=2)
    mended = copy_model(wrong)
    mend(mended, S3)
    assert not faults_in(mended, S3)
    assert [operator.outputs[0].shape for operator in mended.main.operators] == [(1, 50, 50, 32), (1, 24, 24, 32)]
    assert prove(wrong, mended).proved


def test_what_no_padding_mends_stays_and_is_said() -> None:
    profile, wrong, _ = CASES["CMSIS-NN five dimensions"]
    assert not mend(copy_model(wrong), profile).uses
    said = optimize(write_model(wrong), Options(kernels="cmsis-nn-dsp", verify=False)).report.warnings
    assert any("TRANSPOSE 'y'" in each and "CMSIS-NN five dimensions" in each for each in said)


def test_for_any_library_the_original_stays_and_its_fault_is_said() -> None:
    wrong = convolution((1, 16, 16, 8), stride=2)
    result = optimize(write_model(wrong), Options(verify=False, cascade=False, rewrite=False))
    assert [operator.name for operator in read_model(result.model).main.operators] == ["CONV_2D"]
    assert any("esp-nn-s3" in each for each in result.report.warnings)


def test_optimize_mends_for_the_library_of_a_target() -> None:
    data = write_model(convolution((1, 16, 16, 8), stride=2))
    result = optimize(data, Options(target="esp32s3"))
    assert not faults_in(read_model(result.model), S3)
    assert "padding_apart" in {use.rule for use in result.report.rewrites}
    assert not any("keep the original" in each for each in result.report.warnings)


@pytest.mark.parametrize("target", [None, "cortex-m4"])
def test_a_fault_of_every_library_is_mended_for_any(target: str | None) -> None:
    data = write_model(CASES["TFLM's padding of batches"][1])
    result = optimize(data, Options(target=target))
    assert not result.report.faults
    assert not any("keep the original" in each for each in result.report.warnings)


def test_what_meets_a_fault_is_told_so_first_and_check_fails(tmp_path: Path) -> None:
    file = tmp_path / "m.tflite"
    file.write_bytes(write_model(depthwise((1, 24, 33, 16), stride=2)))
    for arguments, code in (
        (["analyze", str(file), "--target", "esp32s3"], 1),
        (["check", str(file), "--target", "esp32s3"], 1),
        (["analyze", str(file), "--target", "cortex-m4"], 0),
        (["check", str(file)], 0),  # other libraries compute it right
        (["analyze", str(file)], 0),
    ):
        done = CliRunner().invoke(cli, arguments)
        assert done.exit_code == code, done.output
        assert ("COMPUTES WRONGLY with esp-nn-s3 kernels" in done.output) == bool(code)
        assert ("; optimize fixes that" in done.output) == bool(code)
        assert ("(esp-nn 30" in done.output) == ("cortex-m4" not in arguments and arguments[:3:2] != ["check"])
    found = analyze(file, target="esp32s3")
    assert [(each.operator, each.fault, each.library) for each in found.faults] == [
        ("DEPTHWISE_CONV_2D", "esp-nn 30", "esp-nn-s3")
    ]
    assert found.answer.judgement == "faulty kernels"
    small = optimize(file, Options(target="esp32s3", verify=False, effort="quick"))
    assert not small.report.faults
    assert analyze(small.model).answer.judgement == "right"


def test_a_state_that_is_lost_between_inferences_is_no_wrong_inference() -> None:
    found = faults_in(recurrent(DType.INT8), DSP)
    assert [(each.fault.effect, each.fault.is_wrong) for each in found] == [("forgets its state", False)]


@pytest.mark.slow
def test_networks_of_stock_layers_meet_none_when_written() -> None:
    """``scripts/fuzz kernels`` tries more."""
    met = met_by("esp32s3", 0, 6, Options(target="esp32s3", verify=False, effort="quick"))
    assert met.before
    assert not met.wrong
    assert not met.after


@pytest.mark.slow
@pytest.mark.parametrize("target", ["esp32s3", None])
def test_no_result_of_random_networks_meets_a_new_fault(target: str | None) -> None:
    for data in random_networks(6, 40):
        original = read_model(data)
        options = Options(target=target, effort="quick", max_slowdown=1.0, verify=False)
        assert not new_faults(read_model(optimize(data, options).model), original, options.profile)


@pytest.mark.slow
@pytest.mark.parametrize("kernels", ["cmsis-nn-mve", "portable", "cmsis-nn-dsp"])
def test_a_form_that_leads_there_cannot_be_measured(kernels: str) -> None:
    model, profile = tall(2), profile_named(kernels)
    measure, refused = Measure(model, profile, Measured()), 0
    for tiling in figures_of(space_of(model, profile)):
        made = apply_tilings(copy_model(model), [tiling])
        mend(made, profile)
        is_wrong = bool(new_faults(made, model, profile))
        assert (measure(tiling) is None) == is_wrong
        refused += is_wrong
    assert bool(refused) == (kernels != "cmsis-nn-dsp")


def _striped(model: Model, profile: object, options: Options, *_: object, **__: object) -> Changed:
    if options.cascade:
        apply_tilings(model, [Tiling(0, 2, Unrolled(tuple(range(1, 9)), *UNROLLED[0]))])
    return Changed(model, (), ())


@pytest.mark.parametrize(
    ("target", "is_searched", "height"), [("cortex-m7", True, 1), ("cortex-m55", True, 8), ("cortex-m55", False, 8)]
)
def test_a_stage_that_leads_there_is_left_out(
    monkeypatch: pytest.MonkeyPatch, target: str, is_searched: bool, height: int
) -> None:
    """The search leaves it out; where the search does not see it, the check of the written file does."""
    monkeypatch.setattr(candidate, "cascade", _striped)
    monkeypatch.setattr(WorkLimit, "is_kept_by", lambda *_: True)  # rows of one take more than twice the run time
    if not is_searched:
        monkeypatch.setattr(candidate, "new_faults", lambda *_: ())
    options = Options(verify=False, rewrite=False, objective="head", target=target)
    result = optimize(write_model(tall(2)), options)
    convolutions = [each for each in read_model(result.model).main.operators if is_one_by_five(each)]
    assert {each.inputs[0].shape[1] for each in convolutions if each.inputs[0] is not None} == {height}
    is_said = any("a kernel library computes the result wrongly" in each for each in result.report.warnings)
    assert is_said == (not is_searched)


def is_one_by_five(operator: Operator) -> bool:
    return operator.name == "CONV_2D" and operator.inputs[1] is not None and operator.inputs[1].shape[1:3] == (1, 5)


def test_an_original_that_the_library_computes_wrongly_is_said() -> None:
    data = write_model(flat(11, 5, 2, SAME))
    said = [
        any("CMSIS-NN one row" in text for text in result.report.warnings)
        for result in (optimize(data, Options(verify=False, target=name)) for name in ("cortex-m55", "cortex-m7", None))
    ]
    assert said == [True, False, True]


PAGE = Path(__file__).parents[2] / "docs" / "kernel_faults.md"


def test_the_page_has_the_table() -> None:
    said = [line for line in PAGE.read_text().splitlines() if line.startswith("| ")][1:]
    rows: dict[str, tuple[Fault, list[str]]] = {}
    for kind, faults in FAULTS.items():
        for fault in faults:
            rows.setdefault(fault.name, (fault, []))[1].append(kind)
    expected = [
        f"| {fault.name} | {', '.join(fault.profiles)} | {', '.join(kinds)}: {fault.condition} | {fault.effect} | "
        f"{fault.releases} | {fault.source} | {fault.evidence} |"
        for fault, kinds in rows.values()
    ]
    assert said == expected, "\n".join(expected)


@pytest.mark.parametrize("profile", [profile_named("esp-nn-s3"), PORTABLE], ids=lambda each: each.name)
def test_faults_that_are_known_are_those_that_an_operator_meets(profile: KernelProfile) -> None:
    """One profile is asked about all operators, and each operator is asked of a profile that knows nothing."""
    drawn, met = np.random.default_rng(5), set[bool]()
    b = ModelBuilder()
    for _ in range(200):
        height, width, kernel, stride = (int(drawn.integers(1, most)) for most in (9, 9, 6, 4))
        depth, padding = int(drawn.choice([1, 3, 8, 16])), int(drawn.choice([SAME, VALID]))
        if padding == VALID and min(height, width) < kernel:
            continue
        x = b.input(f"x{len(b.graph.tensors)}", (1, height, width, depth), zero_point=int(drawn.choice([0, 3])))
        y = b.conv(x, 8, kernel, stride, padding) if drawn.random() < 0.5 else b.depthwise(x, kernel, stride, padding)
        assert y.producer is not None
        weights, bias = y.producer.inputs[1:3]
        assert weights is not None
        assert weights.quantization is not None
        assert bias is not None
        weights.quantization.zero_point[:] = int(drawn.random() < 0.1)
        bias.dtype = DType.INT64 if drawn.random() < 0.1 else bias.dtype
        found = faults_of(y.producer, profile)
        assert found == faults_of(y.producer, replace(profile))
        assert all(each.output == y.name for each in found)
        met.add(bool(found))
    assert met == {False, True}


@pytest.mark.slow
def test_what_is_smaller_and_declined_for_a_fault_of_a_library_is_said() -> None:
    """Along H, convolutions of a sequence have another form, which esp-nn pads wrongly."""
    b, draw = ModelBuilder(), np.random.default_rng(0)
    x, y, z = b.input("x", (1, 1, 96, 1)), b.tensor("y", (1, 1, 48, 16)), b.tensor("z", (1, 1, 96, 32))
    end, shape = b.tensor("end", (1, 1, 48, 1)), b.constant("shape", np.asarray(z.shape, np.int32))
    first, second, third = (
        b.constant(f"w{depth}", draw.integers(-99, 99, (channels, 1, 7, depth)).astype(np.int8), per_tensor(0.002, 0))
        for depth, channels in ((1, 16), (16, 32), (32, 1))
    )
    b.operator("CONV_2D", (x, first, None), (y,), "Conv2DOptions", strideW=2, strideH=1, padding=0)
    b.operator("TRANSPOSE_CONV", (shape, second, y), (z,), "TransposeConvOptions", strideW=2, strideH=1, padding=0)
    b.operator("CONV_2D", (z, third, None), (end,), "Conv2DOptions", strideW=2, strideH=1, padding=0)
    data = write_model(b.finish(end))

    def said(**options: Any) -> list[str]:
        report = optimize(data, Options(verify=False, max_slowdown=1.0, effort="quick", **options)).report
        return [each.reason for each in report.refused if "computes wrongly" in each.reason]

    (reason,) = said()
    assert "in a form that esp-nn-s3 computes wrongly (esp-nn 31: " in reason
    assert not said(kernels="reference")


@pytest.mark.slow
def test_a_plan_for_any_kernels_is_mended_for_those_of_the_target() -> None:
    """With more effort the model is also made for any kernels, for which a fault of one library is left alone."""
    model = write_model(transposed(4, (2, 2)))
    report = optimize(model, Options(target="cortex-m4", verify=False, effort="thorough")).report
    assert "padding_apart" in {use.rule for use in report.rewrites}
    assert report.after.required_for_target > report.before.required_for_target


@pytest.mark.slow
def test_the_limit_on_run_time_counts_from_what_is_right() -> None:
    """Mending uses more than the limit; stripes have a limit of their own, and the price says both."""
    b = ModelBuilder()
    x = b.conv(b.input("x", (1, 49, 20, 4)), 48, kernel=1)
    model = write_model(b.finish(b.conv(b.depthwise(x, stride=2), 4, kernel=1)))
    limit = 0.1
    none, some = (
        optimize(model, Options(target="esp32s3", verify=False, max_slowdown=each)).report for each in (0.0, limit)
    )
    assert none.slowdown_of_mends == some.slowdown_of_mends > limit
    assert some.after.required_for_target < none.after.required_for_target
    added = slowest(some.before.instructions, some.after.instructions)
    assert added <= (1 + some.slowdown_of_mends) * (1 + limit) - 1
    assert f"{percent(some.slowdown_of_mends)} of it for what kernels compute wrongly" in price_of(some)
