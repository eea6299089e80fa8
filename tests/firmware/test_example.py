"""The example of a firmware computes what TFLM gives in Python for the same real values."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.firmware.compiled import HOST, check_against_the_interface, run_on_tflm
from tests.firmware.generated import generate
from tests.firmware.test_self_test import floats
from tests.model_builder import ModelBuilder
from tests.models import dense_model, mobile_chain, streaming_model
from tests.tflm import needs_wheel, run_models
from tflite_memopt import Options, optimize
from tflite_memopt.model.io.files import write_folder
from tflite_memopt.model.io.reader import read_model
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.model.ir.model import AssociatedFile, DType, Model, Tensor
from tflite_memopt.model.ir.tensors import affine_of

BODY = "  static_cast<void>(input);\n  static_cast<void>(at);\n  return 0.0f;\n"
RAMP = "  return static_cast<float>((3 * at + 5 * input) % 11 - 5) * 0.25f;\n"


def wide() -> Model:
    """Types that are not quantized to a byte, and two outputs."""
    b = ModelBuilder()
    x, z = b.input("x", (1, 6), DType.INT16), b.input("z", (1, 6), DType.FLOAT32)
    y, w = b.tensor("y", (1, 6), DType.INT16), b.tensor("w", (1, 6), DType.FLOAT32)
    b.operator("ADD", (x, x), (y,), "AddOptions", potScaleInt16=False)
    b.operator("NEG", (z,), (w,), "NegOptions")
    return b.finish(y, w)


MODELS = {"image": mobile_chain, "floats": floats, "state": streaming_model, "dense": dense_model, "wide": wide}


def given(number: int, tensor: Tensor) -> Any:
    values = ((3 * np.arange(tensor.elements) + 5 * number) % 11 - 5).astype(np.float32) * np.float32(0.25)
    affine, kind = affine_of(tensor), np.dtype(tensor.dtype.label)
    if affine is not None and kind.kind != "f":
        steps = values / np.float32(affine.scale)
        rounded = np.sign(steps) * np.floor(np.abs(steps) + np.float32(0.5)) + affine.zero_point  # away from zero
        values = np.clip(rounded, np.iinfo(kind).min, np.iinfo(kind).max)
    return values.astype(kind).reshape(tensor.shape)


def lines(data: bytes, labels: list[str]) -> list[str]:
    model = read_model(data)
    sample = [given(number, tensor) for number, tensor in enumerate(model.main.inputs)]
    run = run_models("tflm", {"it": data}, {"it": [sample]}, 1 << 18)["it"]
    assert run.ran, run.error
    found = []
    for number, tensor in enumerate(model.main.outputs):
        values, affine = run.outputs[number][0].reshape(-1), affine_of(tensor)
        largest = int(np.argmax(values))
        real = float(values[largest])
        if affine is not None:
            real = float(np.float32(affine.scale) * np.float32(int(values[largest]) - affine.zero_point))
        label = f" {labels[largest]}" if labels else ""
        thousandths = int(np.sign(real) * np.floor(abs(float(np.float32(real) * np.float32(1000))) + 0.5))
        found.append(f"{tensor.name}: largest is element {largest}{label}, {thousandths} thousandths")
    return found


@pytest.mark.slow
@needs_wheel
@pytest.mark.parametrize("name", MODELS)
def test_it_reads_what_tflm_gives(name: str, tmp_path: Path) -> None:
    data = optimize(write_model(MODELS[name]()), Options(verify=False, effort="quick", target=HOST)).model
    write_folder(tmp_path, generate(data, HOST), (), force=True)
    assert check_against_the_interface(tmp_path, mains=("example.cc",)) == ""
    text = (tmp_path / "example.cc").read_text()
    assert BODY in text
    (tmp_path / "example.cc").write_text(text.replace(BODY, RAMP))
    code, said = run_on_tflm(tmp_path, "example.cc")
    assert code == 0, said
    assert [line for line in said.splitlines() if "largest" in line] == lines(data, [])


@needs_wheel
def test_labels_of_the_model_are_printed(tmp_path: Path) -> None:
    model, labels = mobile_chain(), ["cat", 'a "dog"', "bird??/", "fish"]
    model.associated_files = (AssociatedFile("labels.txt", "\n".join([*labels, ""]).encode()),)
    data = write_model(model)
    write_folder(tmp_path, generate(data, HOST), (), force=True)
    code, said = run_on_tflm(tmp_path, "example.cc")
    assert code == 0, said
    found = re.search(r"largest is element (\d) (.*), ", said)
    assert found is not None
    assert found[2] == labels[int(found[1])]


@pytest.mark.parametrize("content", [b"cat\ndog\n", b"a\n\nb\nc\n", b""])
def test_a_list_of_another_length_is_no_list_of_labels(content: bytes) -> None:
    model = mobile_chain()
    model.associated_files = (AssociatedFile("labels.txt", content),)
    assert b"kLabels" not in generate(write_model(model), HOST)["example.cc"]
