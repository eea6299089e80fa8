"""Versions of the operators that the tool writes."""

from __future__ import annotations

import numpy as np
import pytest

from tests.model_builder import ModelBuilder
from tests.models import concat_model
from tflite_memopt.evidence.equivalence.adapter import RunJob
from tflite_memopt.evidence.equivalence.litert import run_litert
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.model.ir.model import DType
from tflite_memopt.operators.editor import Editor
from tflite_memopt.operators.table import version_of


@pytest.mark.parametrize(
    ("name", "dtype", "rank", "version"),
    [
        ("SLICE", DType.INT8, 4, 2),
        ("SLICE", DType.INT16, 4, 4),
        ("SLICE", DType.FLOAT32, 5, 5),
        ("SPLIT", DType.INT16, 4, 4),
        ("SPLIT", DType.INT32, 4, 3),
        ("SPLIT_V", DType.INT16, 4, 1),
        ("PAD", DType.INT16, 4, 3),
        ("RESHAPE", DType.INT8, 4, 1),
        ("FULLY_CONNECTED", DType.INT8, 2, 4),
    ],
)
def test_a_version_is_that_of_its_operator(name: str, dtype: DType, rank: int, version: int) -> None:
    y = ModelBuilder().input("y", (1,) * rank, dtype)
    assert version_of(name, (y,)) == version


@pytest.mark.parametrize("dtype", [DType.INT8, DType.INT16, DType.FLOAT32])
def test_litert_has_the_versions_that_are_written(dtype: DType) -> None:
    b = ModelBuilder()
    x = b.input("x", (1, 4, 4, 2), dtype)
    model = b.model
    edit = Editor(model, model.main, 0)
    cut = edit.activation("cut", (1, 2, 4, 2), x)
    begin, size = (edit.constant(name, np.asarray(v, np.int32)) for name, v in (("b", [0] * 4), ("s", [1, 2, 4, 2])))
    edit.operator("SLICE", (x, begin, size), (cut,), "SliceOptions")
    padded = edit.activation("padded", (1, 4, 4, 2), x)
    amounts = edit.constant("amounts", np.asarray([[0, 0], [1, 1], [0, 0], [0, 0]], np.int32))
    edit.operator("PAD", (cut, amounts), (padded,), "PadOptions")
    parts = [edit.activation(f"part{at}", (1, 4, 4, 1), x) for at in range(2)]
    sizes, axis = edit.constant("sizes", np.asarray([1, 1], np.int32)), edit.constant("axis", np.asarray(3, np.int32))
    edit.operator("SPLIT_V", (padded, sizes, axis), parts, "SplitVOptions", numSplits=2)
    joined = edit.activation("joined", (1, 4, 4, 2), x)
    edit.operator("CONCATENATION", parts, (joined,), "ConcatenationOptions", axis=3)
    data = write_model(b.finish(joined))
    assert run_litert(RunJob(data, [[np.zeros((1, 4, 4, 2), dtype.label)]], 0)).arrays["s0_o0"].shape == (1, 4, 4, 2)


def test_a_version_that_is_there_already_is_enough() -> None:
    model = concat_model()
    before = len(model.opcodes)
    edit = Editor(model, model.main, len(model.main.operators))
    last = model.main.outputs[0]
    edit.operator(
        "CONCATENATION", (last, last), (edit.activation("twice", (2, 6, 6, 4), last),), "ConcatenationOptions"
    )
    assert len(model.opcodes) in (before, before + 1)
