"""--io channels-last: what goes, what is refused and why, and that the same elements go in and out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import tflite_memopt
from tests.faults import differs_on, raises, wrong_option
from tests.model_builder import ModelBuilder, per_channel
from tests.rewrite.patterns import names_of
from tflite_memopt import EquivalenceError, Options, UsageError
from tflite_memopt.cli import cli
from tflite_memopt.errors import ErrorKind
from tflite_memopt.evidence.equivalence.interface import interface_between
from tflite_memopt.evidence.equivalence.subject import Subject
from tflite_memopt.evidence.equivalence.verification import verify_result
from tflite_memopt.evidence.proof import Status, prove
from tflite_memopt.firmware.describe import describe
from tflite_memopt.model.io import plan_label
from tflite_memopt.model.io.reader import read_model
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.model.ir.check import check_model
from tflite_memopt.model.ir.model import DType, Model, Signature, Tensor
from tflite_memopt.model.ir.tensors import is_channels_last, with_channels_last
from tflite_memopt.report.receipt import mismatches, receipt_of
from tflite_memopt.search.rewrite.boundary import take_channels_last

LAST = Options(channels_last=("*",), samples=3)
F32, I8 = DType.FLOAT32, DType.INT8
TO_LAST, TO_FIRST = (0, 2, 3, 1), (0, 3, 1, 2)


def transposed(b: ModelBuilder, x: Tensor, axes: tuple[int, ...] = TO_LAST, name: str | None = None) -> Tensor:
    place = len(b.graph.operators)
    y = b.tensor(name or f"transposed{place}", [x.shape[axis] for axis in axes], x.dtype)
    y.quantization = x.quantization
    order = b.constant(f"order{place}", np.asarray(axes, np.int32))
    b.operator("TRANSPOSE", (x, order), (y,), "TransposeOptions")
    return y


def padded(b: ModelBuilder, x: Tensor, amounts: tuple[tuple[int, int], ...]) -> Tensor:
    y = b.tensor("padded", [size + sum(pair) for size, pair in zip(x.shape, amounts, strict=True)], x.dtype)
    b.operator("PAD", (x, b.constant("amounts", np.asarray(amounts, np.int32))), (y,), "PadOptions")
    return y


def image() -> Model:
    """An image with channels first, which is transposed before the first convolution; a signature."""
    b = ModelBuilder()
    x = b.input("image", (1, 3, 8, 6))
    y = b.conv(b.conv(transposed(b, x), 8, kernel=3, seed=1), 4, seed=2)
    model = b.finish(y)
    model.signatures = [Signature("serving_default", model.main, (("picture", x),), (("result", y),))]
    return model


def to_image() -> Model:
    """The output is an image with channels first as well."""
    b = ModelBuilder()
    y = b.conv(transposed(b, b.input("image", (1, 3, 8, 6))), 5, kernel=3)
    return b.finish(transposed(b, y, TO_FIRST, "segments"))


def behind_padding() -> Model:
    """The image is padded with channels first."""
    b = ModelBuilder()
    x = padded(b, b.input("image", (1, 3, 8, 6)), ((0, 0), (0, 0), (1, 1), (1, 2)))
    return b.finish(b.conv(transposed(b, x), 4, kernel=3))


def quantized_inside() -> Model:
    """Floats at both ends, QUANTIZE before the TRANSPOSE and DEQUANTIZE behind the other one."""
    b = ModelBuilder()
    x = b.input("image", (1, 3, 8, 6), F32)
    q = b.tensor("q", x.shape, scale=0.03, zero_point=3)
    b.operator("QUANTIZE", (x,), (q,), "QuantizeOptions")
    y = transposed(b, b.conv(transposed(b, q), 4, kernel=3), TO_FIRST)
    z = b.tensor("segments", y.shape, F32)
    b.operator("DEQUANTIZE", (y,), (z,), "DequantizeOptions")
    return b.finish(z)


def sequence() -> Model:
    """A sequence (N, C, L)."""
    b = ModelBuilder()
    x = transposed(b, b.input("signal", (1, 4, 16)), (0, 2, 1))
    return b.finish(b.conv(b.reshape(x, (1, 1, 16, 4)), 3))


def two_images() -> Model:
    b = ModelBuilder()
    left, right = (b.conv(transposed(b, b.input(name, (1, 3, 8, 6))), 4) for name in ("left", "right"))
    return b.finish(b.add(left, right))


@pytest.mark.parametrize(
    ("build", "names"),
    [
        (image, ("image",)),
        (to_image, ("image", "segments")),
        (behind_padding, ("image",)),
        (quantized_inside, ("image", "segments")),
        (sequence, ("signal",)),
        (two_images, ("left", "right")),
    ],
)
def test_the_transposes_go_and_all_else_stays(build: Callable[[], Model], names: tuple[str, ...]) -> None:
    model, before = build(), build()
    found = take_channels_last(model, ("*",))
    check_model(model)
    assert (names_of(found), found.refused) == (names, ())
    assert "TRANSPOSE" not in [operator.name for operator in model.main.operators]
    for side in ("inputs", "outputs"):
        for old, new in zip(getattr(before.main, side), getattr(model.main, side), strict=True):
            turned = old.name in names
            assert (new.name, new.dtype) == (old.name, old.dtype)
            assert new.shape == (with_channels_last(old.shape) if turned else old.shape)
            assert is_channels_last(new.shape, old.shape) == turned
    tensors = [tensor.name for tensor in model.main.tensors]
    assert len(set(tensors)) == len(tensors)
    assert prove(before, model, turns=True).proved
    assert prove(before, model).status is Status.DIFFERENT


@pytest.mark.parametrize("build", [image, to_image, quantized_inside, sequence])
def test_the_whole_run_on_every_runtime(build: Callable[[], Model]) -> None:
    original = write_model(build())
    result = tflite_memopt.optimize(original, LAST)
    report = result.report
    assert {report.equivalence[name].equal for name in ("litert", "tflm")} == {True}
    assert report.proofs["result"].status == "proved"
    assert "channels_last" in [use.rule for use in report.rewrites]
    before, after = (
        {each.name: (each.shape, each.type, each.layout) for each in report.interface[when]}
        for when in ("before", "after")
    )
    assert {layout for _, _, layout in before.values()} == {None}
    first = next(iter(before))
    assert after[first] == (with_channels_last(before[first][0]), before[first][1], "channels last")


def test_both_changes_of_the_interface_together() -> None:
    report = tflite_memopt.optimize(write_model(quantized_inside()), replace(LAST, io="int8")).report
    assert [(each.type, each.shape) for each in report.interface["after"]] == [
        ("int8", (1, 8, 6, 3)),
        ("int8", (1, 8, 6, 4)),
    ]
    assert {report.equivalence[name].equal for name in ("litert", "tflm")} == {True}
    assert report.after.operators == 1


def test_without_rewriting_the_interface_still_changes() -> None:
    written = tflite_memopt.optimize(write_model(image()), replace(LAST, rewrite=False, verify=False)).model
    assert read_model(written).main.inputs[0].shape == (1, 8, 6, 3)


def test_the_signature_stays() -> None:
    model = image()
    take_channels_last(model, ("image",))
    assert model.signatures is not None
    assert model.signatures[0].inputs == (("picture", model.main.inputs[0]),)
    assert model.signatures[0].outputs == (("result", model.main.outputs[0]),)


def test_inputs_by_name() -> None:
    model = two_images()
    assert names_of(take_channels_last(model, ("right",))) == ("right",)
    assert [each.shape for each in model.main.inputs] == [(1, 3, 8, 6), (1, 8, 6, 3)]
    with raises(UsageError, ErrorKind.NAME, "middle", "'left'", "'right'"):
        take_channels_last(model, ("middle",))


def turned_wrongly() -> Model:
    """The image of ``image``, whose elements are reshaped where they should be in another order."""
    b = ModelBuilder()
    x = b.reshape(transposed(b, b.input("image", (1, 8, 6, 3)), (0, 2, 1, 3)), (1, 8, 6, 3))
    return b.finish(b.conv(b.conv(x, 8, kernel=3, seed=1), 4, seed=2))


@pytest.mark.parametrize("runtime", ["litert", "tflm"])
def test_other_elements_or_weights_do_not_pass(runtime: str) -> None:
    original, changed, options = write_model(image()), image(), replace(LAST, runtimes=(runtime,))
    take_channels_last(changed, ("*",))
    good, wrong = write_model(changed), write_model(turned_wrongly())
    weights = next(tensor for tensor in changed.main.tensors if tensor.name.endswith("/weights"))
    assert weights.buffer.data is not None
    weights.buffer.data = np.roll(weights.buffer.data, 1)
    verify_result(Subject(original, good), options, lambda _: None)
    for bad in (wrong, write_model(changed)):
        assert prove(read_model(original), read_model(bad), turns=True).status is Status.DIFFERENT
        with differs_on(runtime, "output 0"):
            verify_result(Subject(original, bad), options, lambda _: None)
    with raises(EquivalenceError, ErrorKind.INTERFACE, "--io channels-last"):
        verify_result(Subject(original, good), replace(options, channels_last=()), lambda _: None)


def test_ends_are_given_and_taken_in_the_other_order() -> None:
    model, turned = quantized_inside(), quantized_inside()
    take_channels_last(turned, ("*",))
    interface = interface_between(model, turned)
    assert interface.turned == {"image", "segments"}
    assert (interface.is_converted, interface.steps) == (False, {})
    values = np.arange(3 * 8 * 6, dtype=np.float32).reshape(1, 3, 8, 6)
    [given] = interface.given([values])
    assert np.array_equal(given, values.transpose(TO_LAST))
    made = np.arange(4 * 8 * 6, dtype=np.float32).reshape(1, 8, 6, 4)
    assert np.array_equal(interface.restored_outputs({0: [made]})[0][0], made.transpose(TO_FIRST))


def test_own_inputs_are_those_of_the_original(tmp_path: Path) -> None:
    path = tmp_path / "own.npz"
    np.savez(path, image=np.arange(2 * 144, dtype=np.int8).reshape(2, 1, 3, 8, 6))
    report = tflite_memopt.optimize(write_model(image()), replace(LAST, inputs=path)).report
    assert {(verdict.samples, verdict.equal) for verdict in report.equivalence.values()} == {(2, True)}


def test_the_label_has_the_names_that_verify_and_codegen_need() -> None:
    original = write_model(two_images())
    result = tflite_memopt.optimize(original, replace(LAST, channels_last=("left",)))
    label = plan_label.decode(read_model(result.model))
    assert label is not None
    assert label.channels_last == {"left"}
    assert all(each.equal for each in tflite_memopt.verify(original, result.model, Options(samples=3)).values())
    assert describe(result.model).channels_last == {"left"}
    assert not [*mismatches(receipt_of(result.report, result.model, "x"), original, result.model, lambda _: None)]
    unlabeled = read_model(result.model)
    plan_label.detach(unlabeled)
    with raises(UsageError, ErrorKind.INTERFACE, "'left' int8 [1, 3, 8, 6]", "[1, 8, 6, 3]"):
        tflite_memopt.verify(original, write_model(unlabeled), Options(samples=3))


def test_the_example_of_the_firmware_says_the_layout(tmp_path: Path) -> None:
    source, output, again, folder = (tmp_path / name for name in ("m.tflite", "o.tflite", "a.tflite", "firmware"))
    source.write_bytes(write_model(image()))

    def run(*words: str | Path) -> str:
        done = CliRunner().invoke(cli, [*map(str, words)])
        return f"{done.output}{done.exception or ''}"

    said = run("optimize", source, "-o", output, "--io", "channels-last", "--no-verify")
    assert "input 'image' [1, 3, 8, 6] is now [1, 8, 6, 3], channels last" in " ".join(said.split())
    run("optimize", source, "-o", again, "--replay", output, "--no-verify")
    assert again.read_bytes() == output.read_bytes()
    run("codegen", output, "-o", folder)
    assert '"image": int8, 1 x 8 x 6 x 3, channels last.' in (folder / "example.cc").read_text()
    for more, wrong in {
        ("--io", "keep", "--io", "int8"): "keep excludes",
        ("--io", "channels-last="): "is not one of",
        ("--io", "channels-last", "--parts", "2"): "does not work with --parts",
        ("--io", "channels-last", "--step"): "--step does not work with --io channels-last",
    }.items():
        assert wrong in run("optimize", source, "-o", tmp_path / "x", *more)


def square() -> Model:
    b = ModelBuilder()
    return b.finish(b.conv(transposed(b, b.input("x", (1, 4, 4, 4))), 3))


def read_as_it_is() -> Model:
    b = ModelBuilder()
    x = b.input("x", (1, 3, 8, 6))
    return b.finish(b.conv(transposed(b, x), 3), b.conv(x, 2))


def returned_too() -> Model:
    b = ModelBuilder()
    x = b.input("x", (1, 3, 8, 6))
    return b.finish(b.conv(transposed(b, x), 3), x)


def read_inside() -> Model:
    b = ModelBuilder()
    y = transposed(b, b.conv(b.input("q", (1, 8, 6, 4)), 3), TO_FIRST, "x")
    return b.finish(y, b.add(y, y))


def never_transposed() -> Model:
    b = ModelBuilder()
    return b.finish(b.conv(b.input("x", (1, 8, 6, 3)), 3))


def flat() -> Model:
    b = ModelBuilder()
    return b.finish(b.dense(b.input("x", (1, 8)), 4))


def by_channel() -> Model:
    b = ModelBuilder()
    x = b.input("x", (1, 3, 8, 6))
    x.quantization = per_channel(np.asarray((0.1, 0.2, 0.3), np.float32), 1)
    return b.finish(transposed(b, x))


@pytest.mark.parametrize(
    ("build", "said"),
    [
        (square, "nothing would show"),
        (read_as_it_is, "no TRANSPOSE"),
        (returned_too, "returns it"),
        (read_inside, "no TRANSPOSE"),
        (never_transposed, "no TRANSPOSE"),
        (flat, "2 dimensions"),
        (by_channel, "several scales"),
    ],
)
def test_what_is_left_alone_says_why(build: Callable[[], Model], said: str) -> None:
    model = build()
    before = [operator.name for operator in model.main.operators]
    found = take_channels_last(model, ("x",))
    assert not found.uses
    assert [(each.operator, said in each.reason) for each in found.refused] == [("x", True)]
    assert [operator.name for operator in model.main.operators] == before


def test_refusals_are_warnings_and_wrong_options_are_refused() -> None:
    report = tflite_memopt.optimize(write_model(square()), replace(LAST, channels_last=("x",), verify=False)).report
    assert [warning for warning in report.warnings if warning.startswith("--io channels-last: 'x'")]
    assert "channels_last" in {each.rule for each in report.refused}
    with wrong_option("channels_last"):
        Options(channels_last="x")  # type: ignore[arg-type]
    with wrong_option("step"):
        Options(channels_last=("x",), step=True)


def test_the_advice_has_bytes_that_are_kept() -> None:
    options = Options(target="cortex-m7", cascade=False, verify=False)
    report = tflite_memopt.optimize(write_model(image()), options).report
    (text,) = (each.text for each in report.summary.advice if each.option == "--io channels-last")
    said = int(text.split(" bytes or less")[0].replace(",", ""))
    after = tflite_memopt.optimize(write_model(image()), replace(options, channels_last=("*",))).report.after
    assert after.required_for_target <= said < report.after.required_for_target
