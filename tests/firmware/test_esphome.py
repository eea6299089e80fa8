"""The manifest for ESPHome's micro_wake_word: the size of the arena there, and models that it cannot run."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from tests.faults import raises
from tests.model_builder import ModelBuilder
from tests.models import dense_model
from tflite_memopt import MemoptError, analyze
from tflite_memopt.cli import cli
from tflite_memopt.errors import ErrorKind, ModelFormatError, UnsupportedModelError, UsageError
from tflite_memopt.firmware.describe import describe
from tflite_memopt.firmware.esphome import manifest_of
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.model.ir.model import DType, Model
from tflite_memopt.model.ir.tensors import per_tensor

MICRO = {
    "probability_cutoff": 0.9,
    "feature_step_size": 10,
    "sliding_window_size": 5,
    "tensor_arena_size": 1,
    "minimum_esphome_version": "2024.7.0",
}
MANIFEST = {
    "type": "micro",
    "wake_word": "a word",
    "author": "we",
    "model": "another.tflite",
    "trained_languages": ["en"],
    "version": 2,
    "micro": MICRO,
}


def wake_word(
    stride: int = 3, features: int = 40, output: DType = DType.UINT8, keeps_state: bool = True, kind: str = "LOGISTIC"
) -> Model:
    """A model with the interface of a wake word's: it adds up features in a variable."""
    b = ModelBuilder()
    shape = (1, stride, features)
    x, handle, state = b.input("x", shape), b.tensor("handle", (), DType.RESOURCE), b.tensor("state", shape)
    if keeps_state:
        b.operator("CALL_ONCE", (), (), "CallOnceOptions", initSubgraphIndex=1)
        b.operator("VAR_HANDLE", (), (handle,), "VarHandleOptions", container=b"", sharedName=b"state")
        b.operator("READ_VARIABLE", (handle,), (state,), "ReadVariableOptions")
        x = b.add(x, state)
        b.operator("ASSIGN_VARIABLE", (handle, x), (), "AssignVariableOptions")
    image = b.reshape(x, (1, stride, features, 1))
    y = b.dense(b.reshape(b.conv(image, 8), (1, stride * features * 8)), 1)
    probability, found = b.tensor("p", (1, 1)), b.tensor("found", (1, 1), output)
    b.operator(kind, (y,), (probability,))
    b.operator("QUANTIZE", (probability,), (found,), "QuantizeOptions")
    model = b.finish(found)
    if keeps_state:
        b.new_graph("init")
        handle = b.tensor("init_handle", (), DType.RESOURCE)
        b.operator("VAR_HANDLE", (), (handle,), "VarHandleOptions", container=b"", sharedName=b"state")
        zeros = b.constant("zeros", np.zeros(shape, dtype=np.int8), per_tensor(0.05, 0))
        b.operator("ASSIGN_VARIABLE", (handle, zeros), (), "AssignVariableOptions")
        b.finish()
    return model


def made(model: Model, manifest: object = MANIFEST, target: str | None = "esp32s3") -> dict[str, object]:
    one = describe(write_model(model), target)
    found = json.loads(manifest_of(one, json.dumps(manifest).encode(), "m.json", "small.tflite"))
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize("target", ["esp32", "esp32s3", "esp32s3@esp-nn-1.1"])
def test_the_arena_is_what_tflm_needs_with_the_kernels_of_the_chip(target: str) -> None:
    """With TFLM's own planner, which ESPHome has, also where codegen writes a table."""
    model = wake_word()
    micro = made(model, target=target)["micro"]
    assert isinstance(micro, dict)
    needed = analyze(write_model(model), target=target).memory.required_bytes["target"]
    assert micro == MICRO | {"tensor_arena_size": needed}


def test_another_esp_nn_needs_another_arena() -> None:
    of_all, of_one = (made(wake_word(), target=target)["micro"] for target in ("esp32s3", "esp32s3@esp-nn-1.1"))
    assert isinstance(of_all, dict)
    assert isinstance(of_one, dict)
    assert of_all["tensor_arena_size"] > of_one["tensor_arena_size"]


def test_all_else_stays() -> None:
    given = MANIFEST | {"website": "https://example.org"}
    assert made(wake_word(), given) == given | {"model": "small.tflite", "micro": made(wake_word())["micro"]}


@pytest.mark.parametrize(
    ("build", "said"),
    [
        (dense_model, "input"),
        (lambda: wake_word(features=41), "input"),
        (lambda: wake_word(output=DType.INT8), "output"),
        (lambda: wake_word(keeps_state=False), "state"),
        (lambda: wake_word(kind="RELU"), "RELU"),
    ],
)
def test_a_model_that_esphome_cannot_run_is_refused(build: Callable[[], Model], said: str) -> None:
    with raises(UnsupportedModelError, ErrorKind.FORM, said):
        made(build())


@pytest.mark.parametrize(
    ("manifest", "said"),
    [
        ([], "version 2"),
        (MANIFEST | {"version": 1}, "version 2"),
        (MANIFEST | {"type": "macro"}, "version 2"),
        (MANIFEST | {"author": None}, "'author'"),
        (MANIFEST | {"micro": {"feature_step_size": 10}}, "'probability_cutoff'"),
        (MANIFEST | {"micro": MICRO | {"feature_step_size": True}}, "'feature_step_size'"),
        (MANIFEST | {"micro": 1}, "'micro'"),
    ],
)
def test_a_manifest_that_esphome_would_refuse_is_refused(manifest: object, said: str) -> None:
    with raises(ModelFormatError, ErrorKind.FORMAT, said):
        made(wake_word(), manifest)


@pytest.mark.parametrize("target", [None, "cortex-m7"])
def test_the_kernels_must_be_those_of_a_chip(target: str | None) -> None:
    with raises(UsageError, ErrorKind.NO_TARGET, "esp32"):
        made(wake_word(), target=target)


def test_from_the_command_line(tmp_path: Path) -> None:
    source, manifest, folder = tmp_path / "w.tflite", tmp_path / "w.json", tmp_path / "out"
    source.write_bytes(write_model(wake_word()))
    manifest.write_text(json.dumps(MANIFEST))
    words = ["codegen", str(source), "-o", str(folder), "--target", "esp32s3", "--esphome", str(manifest)]
    done = CliRunner().invoke(cli, words)
    assert done.exit_code == 0, done.output
    written = json.loads((folder / "esphome" / "w.json").read_text())
    assert (folder / "esphome" / written["model"]).read_bytes() == source.read_bytes()
    manifest.write_text("{")
    done = CliRunner().invoke(cli, [*words, "--force"])
    assert isinstance(done.exception, MemoptError)
    assert done.exception.kind is ErrorKind.FORMAT
