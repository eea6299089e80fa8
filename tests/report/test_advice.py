"""Each advice is followed on a model, and what it said is compared with what came of it."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scripts.makers.demo_model import demo_model
from tests.firmware.generated import generate
from tests.model_builder import ModelBuilder, per_channel
from tests.models import irregular_model, mobile_chain, quantized_at_the_boundary
from tflite_memopt import Options, analyze, optimize
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.model.ir.model import DType, Model
from tflite_memopt.options import CHANGED
from tflite_memopt.report.model import Advice, Report
from tflite_memopt.run.parts import ways
from tflite_memopt.run.parts.run import optimize_in_parts
from tflite_memopt.run.parts.ways import with_advice

UNVERIFIED = Options(verify=False)


def followed(advice: tuple[Advice, ...], option: str) -> str:
    """The text of the advice with this option."""
    (said,) = (each.text for each in advice if each.option == option)
    return said


def figure_in(said: str) -> int:
    """The bytes that an advice begins with."""
    return int(said.removeprefix("about ").partition(" ")[0].replace(",", ""))


def report_of(model: Model, **options: Any) -> Report:
    return optimize(write_model(model), Options(verify=False, **options)).report


def need(report: Report) -> int:
    return report.after.required_for_target


def in_floats(model: Model) -> Model:
    """The same network before its quantization."""
    for tensor in model.main.tensors:
        if tensor.dtype is DType.INT8 or (tensor.is_constant and tensor.quantization is not None):
            stored = np.int8 if tensor.dtype is DType.INT8 else np.int32
            if tensor.buffer.data is not None:
                tensor.buffer.data = tensor.buffer.data.view(stored).astype(np.float32).view(np.uint8)
            tensor.dtype, tensor.quantization = DType.FLOAT32, None
    return model


@pytest.mark.parametrize("make", [lambda: mobile_chain(48), irregular_model, demo_model])
def test_int8_needs_the_head_that_was_estimated(make: Callable[[], Model]) -> None:
    floats = analyze(write_model(in_floats(make())))
    head = analyze(write_model(make())).memory.arena_bytes
    said = followed(floats.summary.advice, "int8")
    assert f"{floats.memory.arena_bytes:,} bytes now" in said
    assert int(said.rpartition("about ")[2].split()[0].replace(",", "")) == pytest.approx(head, rel=0.05)


def test_int8_is_not_advised_where_the_structures_are_more_than_the_tensors() -> None:
    floats = analyze(write_model(in_floats(mobile_chain(8))))
    assert floats.memory.arena_bytes < floats.memory.tail_for_target
    assert "int8" not in {each.option for each in floats.summary.advice}


def test_int8_says_what_a_scale_per_channel_of_a_dense_layer_takes() -> None:
    def layer() -> Model:
        b = ModelBuilder()
        return b.finish(b.dense(b.input("x", (1, 2048)), 256))

    one, several = layer(), layer()
    for tensor in several.main.tensors:
        if tensor.is_constant:
            tensor.quantization = per_channel(np.full(256, 0.01 if tensor.dtype is DType.INT8 else 0.0005), 0)
    tails = [analyze(write_model(model)).memory.tail_for_target for model in (one, several)]
    said = followed(analyze(write_model(in_floats(layer()))).summary.advice, "int8")
    more = int(said.partition("dense layers takes ")[2].split()[0].replace(",", ""))
    assert more == pytest.approx(tails[1] - tails[0], rel=0.1)


@pytest.mark.parametrize("batch", [2, 8])
def test_a_batch_of_one_needs_the_share_that_was_said(batch: int) -> None:
    def convolutions(samples: int) -> bytes:
        b = ModelBuilder()
        return write_model(b.finish(b.conv(b.conv(b.input("x", (samples, 32, 32, 3)), 8), 4)))

    many, one = (analyze(convolutions(samples)) for samples in (batch, 1))
    assert f"tensors take 1/{batch}" in followed(many.summary.advice, "batch of 1")
    assert many.memory.arena_bytes == batch * one.memory.arena_bytes


def test_a_table_in_the_firmware_takes_the_bytes_that_were_said() -> None:
    b = ModelBuilder()
    y = b.input("x", (1, 8))
    for _ in range(30):
        y = b.dense(y, 8)
    made = optimize(write_model(b.finish(y)), Options(verify=False, target="cortex-m4"))
    said = followed(made.report.summary.advice, "codegen --planner table").partition(" ")[0]
    assert f"{said} bytes, " in generate(made.model, "cortex-m4", planner="table")["arena.h"].decode()


@pytest.mark.slow
def test_what_was_declined_is_what_all_changes_give() -> None:
    said = followed(report_of(demo_model(), target="cortex-m0").summary.advice, "--changes all")
    every = report_of(demo_model(), target="cortex-m0", **CHANGED["all"])
    assert said.startswith(f"{need(every):,} bytes ")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("option", "make", "before", "after"),
    [
        ("--target", lambda: mobile_chain(48), {"cascade": False}, {"cascade": False, "target": "cortex-m7"}),
        ("--changes stripes", lambda: mobile_chain(96), CHANGED["rewrites"], CHANGED["stripes"]),
    ],
)
def test_an_option_that_is_advised_saves_memory(
    option: str, make: Callable[[], Model], before: dict[str, Any], after: dict[str, Any]
) -> None:
    without = report_of(make(), **before)
    assert followed(without.summary.advice, option)
    assert need(report_of(make(), **after)) < need(without)


def convolutions() -> Model:
    b = ModelBuilder()
    y = b.input("x", (1, 16, 16, 4))
    for seed, channels in enumerate((16, 16, 16, 16, 16, 8)):
        y = b.conv(y, channels, kernel=3, seed=seed)
    return b.finish(b.average_pool(y, 16))


def uint8_at_the_boundary() -> Model:
    """A QUANTIZE of integers alone, as micro-wake-word has it: nothing becomes a quarter."""
    b = ModelBuilder()
    y = b.conv(b.input("x", (1, 4, 4, 2)), 2)
    z = b.tensor("z", y.shape, DType.UINT8, zero_point=128)
    b.operator("QUANTIZE", (y,), (z,))
    return b.finish(z)


def quantized_image() -> Model:
    """Of so many floats that their QUANTIZE runs in stripes."""
    b = ModelBuilder()
    x = b.input("x", (1, 32, 32, 3), DType.FLOAT32)
    y = b.tensor("q", x.shape)
    b.operator("QUANTIZE", (x,), (y,), "QuantizeOptions")
    for seed, channels in enumerate((16, 32, 32)):
        y = b.conv(y, channels, kernel=3, stride=2, seed=seed)
    return b.finish(y)


@pytest.mark.parametrize("make", [quantized_at_the_boundary, uint8_at_the_boundary, quantized_image])
def test_integers_need_no_more_than_was_said(make: Callable[[], Model]) -> None:
    said = followed(report_of(make()).summary.advice, "--io int8")
    assert need(report_of(make(), io="int8")) <= figure_in(said)


def test_integers_are_not_advised_where_they_save_little() -> None:
    b = ModelBuilder()
    x = b.input("x", (1, 2, 2, 1), DType.FLOAT32)
    y = b.tensor("q", x.shape)
    b.operator("QUANTIZE", (x,), (y,), "QuantizeOptions")
    for seed in range(2):
        y = b.conv(y, 64, kernel=3, seed=seed)
    report = report_of(b.finish(y))
    assert need(report_of(b.finish(y), io="int8")) < need(report)
    assert "--io int8" not in {each.option for each in report.summary.advice}


@pytest.mark.few(4)
@pytest.mark.parametrize("make", [convolutions, irregular_model, quantized_at_the_boundary, demo_model])
@pytest.mark.parametrize("changed", [{}, CHANGED["rewrites"]])
def test_advice_has_a_figure_or_says_that_it_has_none(make: Callable[[], Model], changed: dict[str, Any]) -> None:
    advised = report_of(make(), effort="quick", **changed).summary.advice
    assert advised
    for each in advised:
        assert re.match(r"(about )?[\d,]+ bytes|to try, not computed: ", each.text), each


@pytest.mark.slow
@pytest.mark.parametrize("target", ["cortex-m4", None])
def test_parts_need_no_more_than_was_said(target: str | None) -> None:
    options = Options(target=target, max_slowdown=0.5, verify=False)
    report = with_advice(optimize(write_model(convolutions()), options), options)
    said = followed(report.summary.advice, "--parts auto")
    program = optimize_in_parts(write_model(convolutions()), options, None).program
    assert program.arena <= figure_in(said) < need(report)
    assert max(program.slowdown.values()) <= 0.5


@pytest.mark.slow
def test_parts_of_many_operators_are_advised_without_a_draft(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = optimize(write_model(mobile_chain(24)), UNVERIFIED)
    monkeypatch.setattr(ways, "_MOST_DRAFTED", whole.report.after.operators - 1)
    monkeypatch.setattr(ways, "draft_of", None)
    (said,) = [each.text for each in with_advice(whole, UNVERIFIED).summary.advice if each.option == "--parts auto"]
    assert said.startswith("to try, not computed: ")


@pytest.mark.slow
def test_parts_are_not_advised_where_to_make_them_takes_more_time_than_is_allowed() -> None:
    whole = optimize(write_model(mobile_chain(24)), UNVERIFIED)
    assert "--parts auto" not in {each.option for each in with_advice(whole, UNVERIFIED).summary.advice}


_UNROLLED = """
import sys, keras, tensorflow as tf
keras.utils.set_random_seed(1)
x = keras.Input((5, 4), batch_size=eval(sys.argv[2]))
model = keras.Model(x, keras.layers.Dense(3)(keras.layers.LSTM(5, unroll=True)(x)))
open(sys.argv[1], "wb").write(tf.lite.TFLiteConverter.from_keras_model(model).convert())
"""


@pytest.mark.slow
@pytest.mark.tensorflow
@pytest.mark.skipif(find_spec("tensorflow") is None, reason="needs TensorFlow")
def test_a_batch_size_that_is_advised_leaves_out_what_computes_shapes(tmp_path: Path) -> None:
    found = []
    for batch in ("None", "1"):
        path = tmp_path / f"{batch}.tflite"
        command = [sys.executable, "-c", _UNROLLED, str(path), batch]
        subprocess.run(command, check=True, capture_output=True, timeout=300)
        found.append(optimize(path, UNVERIFIED).report)
    left_open, given = found
    assert followed(left_open.summary.advice, "batch_size=1")
    assert followed(analyze(tmp_path / "None.tflite").summary.advice, "batch_size=1")
    assert "batch_size=1" not in {each.option for each in given.summary.advice}
    assert need(given) < need(left_open)


def floats_between(*kinds: str) -> Model:
    """Operators between integers that quantizers leave in floats."""
    b = ModelBuilder()
    x = b.input("q", (1, 32, 32, 8), scale=0.0371, zero_point=3)
    for kind in ("DEQUANTIZE", *kinds, "QUANTIZE"):
        is_stored: dict[str, Any] = {"scale": 0.0213, "zero_point": -100} if kind == "QUANTIZE" else {}
        y = b.tensor(f"y{len(b.graph.tensors)}", x.shape, DType.INT8 if is_stored else DType.FLOAT32, **is_stored)
        options = f"{kind.title()}Options" if kind in ("DEQUANTIZE", "QUANTIZE") else None
        b.operator(kind, (x,), (y,), options)
        x = y
    return b.finish(x)


def test_floats_between_integers_are_named_with_their_bytes() -> None:
    said = followed(analyze(write_model(floats_between("SIN", "ABS"))).summary.advice, "integers")
    assert said.startswith("SIN and ABS in floats between DEQUANTIZE and QUANTIZE take 65,536 of the 65,536 bytes")


@pytest.mark.slow
def test_floats_that_become_integers_are_not_named() -> None:
    report = report_of(floats_between("RELU6"), max_slowdown=0.5)
    assert "integers" not in {each.option for each in report.summary.advice}
    assert need(report) < 0.5 * report.before.required_for_target
