"""--io int8: what is removed, what is refused and why, and that the same quantized values go in and out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import tflite_memopt
from tests.cascade.test_narrower import without_label
from tests.faults import differs_on, raises, wrong_option
from tests.model_builder import ModelBuilder, per_channel
from tests.models import dense_model, mobile_chain, quantized_at_the_boundary
from tests.rewrite.patterns import names_of
from tflite_memopt import EquivalenceError, Options, UsageError
from tflite_memopt.errors import ErrorKind
from tflite_memopt.evidence.proof import Status, prove
from tflite_memopt.model.io.reader import read_model
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.model.ir.check import check_model
from tflite_memopt.model.ir.copying import drop_dead_tensors
from tflite_memopt.model.ir.model import DType, Model, Tensor
from tflite_memopt.search.rewrite.boundary import take_integers

INT8 = Options(io="int8", runtimes=("litert", "tflm"), samples=3, cascade=False)
F32, I8, U8, I16 = DType.FLOAT32, DType.INT8, DType.UINT8, DType.INT16


def convert(b: ModelBuilder, name: str, x: Tensor, to: str, dtype: DType = I8, **quantization: float) -> Tensor:
    y = b.tensor(to, x.shape, dtype, **quantization)  # type: ignore[arg-type]
    b.operator(name, (x,), (y,), f"{name.title()}Options")
    return y


def test_the_interface_becomes_integers_and_keeps_its_names() -> None:
    model = quantized_at_the_boundary()
    found = take_integers(model)
    drop_dead_tensors(model)
    check_model(model)
    assert (names_of(found), found.refused) == (("image", "scores"), ())
    assert [operator.name for operator in model.main.operators] == ["CONV_2D", "DEPTHWISE_CONV_2D", "CONV_2D"]
    [x], [y] = model.main.inputs, model.main.outputs
    assert [(t.name, t.dtype, t.nbytes) for t in (x, y)] == [("image", I8, 108), ("scores", I8, 144)]
    assert model.signatures is not None
    assert model.signatures[0].inputs == (("picture", x),)
    assert model.signatures[0].outputs == (("result", y),)
    names = [tensor.name for tensor in model.main.tensors]
    assert len(set(names)) == len(names)
    assert "image_int8" not in names


def test_the_whole_run_on_every_runtime() -> None:
    result = tflite_memopt.optimize(write_model(quantized_at_the_boundary()), Options(io="int8", samples=3))
    report = result.report
    assert {verdict.equal for verdict in report.equivalence.values()} <= {True, None}
    assert report.equivalence["tflm"].equal
    assert report.equivalence["litert"].max_lsb_diff == 0
    assert report.bounds.io == 144
    assert report.after.arena_bytes < report.before.arena_bytes
    assert [use.rule for use in report.rewrites][:1] == ["boundary"]
    before, after = report.interface["before"], report.interface["after"]
    x = before[0]
    assert (x.side, x.name, x.type, x.bytes, x.scale) == ("input", "image", "float32", 432, None)
    assert (after[0].type, after[0].bytes, after[0].zero_point) == ("int8", 108, -7)
    assert after[0].scale == float(np.float32(0.0234))
    assert tflite_memopt.optimize(result.model, INT8).report.interface["after"] == after


def test_a_changed_weight_does_not_pass_through_another_interface() -> None:
    from tflite_memopt.evidence.equivalence.subject import Subject
    from tflite_memopt.evidence.equivalence.verification import verify_result

    original, changed = write_model(quantized_at_the_boundary()), quantized_at_the_boundary()
    take_integers(changed)
    good = write_model(changed)
    weights = next(tensor for tensor in changed.main.tensors if tensor.name == "depthwise2/weights")
    assert weights.buffer.data is not None
    weights.buffer.data = np.roll(weights.buffer.data, 1)
    bad = write_model(changed)
    proofs = [prove(read_model(original), read_model(data), converts=True) for data in (good, bad)]
    assert [each.status for each in proofs] == [Status.PROVED, Status.DIFFERENT]
    assert proofs[1].tensor == "depthwise2"
    for runtime in ("litert", "tflm"):
        options = replace(INT8, runtimes=(runtime,))
        verify_result(Subject(original, good), options, lambda _: None)
        with differs_on(runtime, "output 0"):
            verify_result(Subject(original, bad), options, lambda _: None)
    with raises(EquivalenceError, ErrorKind.INTERFACE, "--io int8"):
        verify_result(Subject(original, good), replace(INT8, io="keep"), lambda _: None)
    with raises(UsageError, ErrorKind.INTERFACE, "input 0 is 'image' float32 [1, 6, 6, 3]", "'image' int8"):
        tflite_memopt.verify(original, good, INT8)


def test_own_inputs_are_the_originals_and_quantized_for_the_new_model(tmp_path: Path) -> None:
    path = tmp_path / "own.npz"
    values = np.linspace(-9, 9, 2 * 108, dtype=np.float32).reshape(2, 1, 6, 6, 3)
    np.savez(path, image=values)
    report = tflite_memopt.optimize(write_model(quantized_at_the_boundary()), replace(INT8, inputs=path)).report
    assert {(verdict.samples, verdict.equal) for verdict in report.equivalence.values()} == {(2, True)}
    values[0, 0, 0, 0, 0] = np.nan
    np.savez(path, image=values)
    with raises(UsageError, ErrorKind.SAMPLES, "'image'"):
        tflite_memopt.optimize(write_model(quantized_at_the_boundary()), replace(INT8, inputs=path))


def of_integers(outer: DType, inner: DType, zero: int, inner_zero: int) -> Model:
    b = ModelBuilder()
    x = b.input("x", (1, 64), outer, zero_point=zero)
    q = convert(b, "QUANTIZE", x, "q", inner, zero_point=inner_zero)
    y = b.tensor("y", q.shape, inner, zero_point=inner_zero)
    b.operator("RELU", (q,), (y,))
    return b.finish(convert(b, "QUANTIZE", y, "z", outer, zero_point=zero))


def test_uint8_becomes_int8() -> None:
    report = tflite_memopt.optimize(write_model(of_integers(U8, I8, 130, 2)), INT8).report
    assert [tensor.type for tensor in report.interface["after"]] == ["int8", "int8"]
    assert {runtime: verdict.equal for runtime, verdict in report.equivalence.items()} == {"litert": True, "tflm": True}
    assert report.after.operators == 1


def test_int16_inside_is_int16_at_the_boundary() -> None:
    b = ModelBuilder()
    x = b.input("x", (1, 64), F32)
    q = convert(b, "QUANTIZE", x, "q", I16, scale=0.003)
    y = b.tensor("y", q.shape, I16, scale=0.006)
    b.operator("ADD", (q, q), (y,), "AddOptions", potScaleInt16=False)
    model = b.finish(convert(b, "DEQUANTIZE", y, "z", F32))
    report = tflite_memopt.optimize(write_model(model), INT8).report
    assert [(tensor.type, tensor.bytes) for tensor in report.interface["after"]] == [("int16", 128), ("int16", 128)]
    assert {runtime: verdict.equal for runtime, verdict in report.equivalence.items()} == {"litert": True, "tflm": True}


def test_a_shift_that_clamps_is_proved_with_the_values_that_get_through() -> None:
    report = tflite_memopt.optimize(write_model(of_integers(U8, I8, 100, 0)), INT8).report
    assert report.equivalence["litert"].equal
    assert report.equivalence["tflm"].equal


def test_equal_quantizes_of_one_input_become_one() -> None:
    b = ModelBuilder()
    x = b.input("x", (1, 64), F32)
    parts = [convert(b, "QUANTIZE", x, name) for name in ("p", "q")]
    model = b.finish(b.add(*parts))
    report = tflite_memopt.optimize(write_model(model), INT8).report
    assert report.after.operators == 1
    assert report.equivalence["tflm"].equal


def test_nothing_to_do_is_no_change() -> None:
    plain = tflite_memopt.optimize(write_model(dense_model()), replace(INT8, io="keep"))
    asked = tflite_memopt.optimize(write_model(dense_model()), INT8)
    assert without_label(asked.model) == without_label(plain.model)
    assert asked.report.warnings == ()


def float_layer() -> Model:
    b = ModelBuilder()
    x = b.input("x", (1, 8), F32)
    return b.finish(b.add(x, x))


def unread() -> Model:
    b = ModelBuilder()
    b.input("x", (1, 8), F32)
    return b.finish(b.dense(b.input("q", (1, 8)), 4))


def returned_too() -> Model:
    b = ModelBuilder()
    x = b.input("x", (1, 8), F32)
    return b.finish(b.dense(convert(b, "QUANTIZE", x, "q"), 4), x)


def two_scales() -> Model:
    b = ModelBuilder()
    x = b.input("x", (1, 8), F32)
    parts = [convert(b, "QUANTIZE", x, name, scale=scale) for name, scale in (("p", 0.1), ("q", 0.2))]
    return b.finish(*(b.dense(part, 4) for part in parts))


def integers_returned() -> Model:
    b = ModelBuilder()
    q = convert(b, "QUANTIZE", b.input("x", (1, 8), F32), "q")
    return b.finish(b.dense(q, 4), q)


def input_to_output() -> Model:
    b = ModelBuilder()
    return b.finish(convert(b, "DEQUANTIZE", b.input("q", (1, 8)), "z", F32))


def read_inside() -> Model:
    b = ModelBuilder()
    y = convert(b, "DEQUANTIZE", b.dense(b.input("q", (1, 8)), 4), "z", F32)
    return b.finish(y, b.add(y, y))


def returned_twice() -> Model:
    b = ModelBuilder()
    y = b.dense(b.input("q", (1, 8)), 4)
    return b.finish(y, convert(b, "DEQUANTIZE", y, "z", F32))


def wide() -> Model:
    b = ModelBuilder()
    x = b.input("x", (1, 8))
    q = convert(b, "QUANTIZE", x, "q", I16)
    return b.finish(convert(b, "QUANTIZE", b.add(q, q), "z"))


def other_scale() -> Model:
    b = ModelBuilder()
    return b.finish(b.dense(convert(b, "QUANTIZE", b.input("x", (1, 8), U8), "q", scale=0.07), 4))


def int32_inside() -> Model:
    b = ModelBuilder()
    x = b.input("x", (1, 8), F32)
    return b.finish(convert(b, "CAST", convert(b, "QUANTIZE", x, "q", DType.INT32), "y"))


def by_channel() -> Model:
    b = ModelBuilder()
    q = convert(b, "QUANTIZE", b.input("x", (1, 8), F32), "q")
    q.quantization = per_channel(np.full(8, 0.1, np.float32), 1)
    return b.finish(b.dense(q, 4))


@pytest.mark.parametrize(
    ("build", "reasons"),
    [
        (float_layer, {"x": "ADD 'add0' reads it as float32", "add0": "it comes from ADD 'add0', not from DEQUANTIZE"}),
        (unread, {"x": "no QUANTIZE reads it"}),
        (returned_too, {"x": "the model returns it too"}),
        (two_scales, {"x": "its QUANTIZE operators have different parameters"}),
        (integers_returned, {"x": "the model returns its integers as they are"}),
        (input_to_output, {"z": "its integers come from no operator: 'q' is an input, a constant or a variable"}),
        (read_inside, {"z": "ADD 'add2' reads it as float32"}),
        (returned_twice, {"z": "the model returns its integers already, as 'dense0'"}),
        (wide, {"x": "it would grow from int8 to int16", "z": "it would grow from int8 to int16"}),
        (other_scale, {"x": "the scales on both sides differ, which runtimes round differently"}),
        (int32_inside, {"x": "'q' is int32, or not quantized with one scale"}),
        (by_channel, {"x": "'q' is int8, or not quantized with one scale"}),
    ],
)
def test_what_is_left_alone_says_why(build: Callable[[], Model], reasons: dict[str, str]) -> None:
    model = build()
    before = len(model.main.operators)
    found = take_integers(model)
    assert {each.operator: each.reason for each in found.refused if each.operator in reasons} == reasons
    assert not set(names_of(found)) & set(reasons)
    assert before - len(model.main.operators) == len(names_of(found))
    check_model(model)


def test_refusals_are_warnings_and_unknown_words_are_refused() -> None:
    report = tflite_memopt.optimize(write_model(float_layer()), replace(INT8, verify=False)).report
    assert report.warnings[0] == "--io int8: 'x' keeps its type: ADD 'add0' reads it as float32"
    assert [each.rule for each in report.refused][:2] == ["boundary", "boundary"]
    with wrong_option("io"):
        tflite_memopt.optimize(write_model(mobile_chain()), replace(INT8, io="int4"))  # type: ignore[arg-type]


def test_without_rewriting_the_interface_still_changes() -> None:
    options = replace(INT8, rewrite=False, verify=False)
    written = tflite_memopt.optimize(write_model(quantized_at_the_boundary()), options).model
    assert read_model(written).main.inputs[0].dtype is I8
