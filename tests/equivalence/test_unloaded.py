"""What is said of a model that TFLM does not run: the operator, its version, and what to do at conversion."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.faults import raises
from tests.model_builder import ModelBuilder
from tflite_memopt import Options, UnsupportedModelError, optimize
from tflite_memopt.errors import ErrorKind
from tflite_memopt.evidence.equivalence.unloaded import explained, is_refusal
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.model.ir.model import DType, Model, OpCode, Operator


def enlarged() -> Model:
    """RESIZE_BILINEAR of int16: TFLM has it for float and int8."""
    b = ModelBuilder()
    x, y = b.input("x", (1, 4, 4, 2), DType.INT16), b.tensor("y", (1, 8, 8, 2), DType.INT16)
    size = b.constant("size", np.asarray((8, 8), np.int32))
    b.operator("RESIZE_BILINEAR", (x, size), (y,), "ResizeBilinearOptions", halfPixelCenters=True).opcode.version = 3
    return b.finish(y)


def multiplied() -> Model:
    """REDUCE_PROD, which TFLM does not have."""
    b = ModelBuilder()
    x, y = b.input("x", (1, 4, 2), DType.FLOAT32), b.tensor("y", (1, 2), DType.FLOAT32)
    axes = b.constant("axes", np.asarray((1,), np.int32))
    b.operator("REDUCE_PROD", (x, axes), (y,), "ReducerOptions", keepDims=False)
    return b.finish(y)


@pytest.mark.parametrize(
    ("make", "wanted"),
    [
        (enlarged, "(operator 0 RESIZE_BILINEAR 'y': int16, int32)"),
        (multiplied, "(operator 0 REDUCE_PROD 'y': float32, int32)"),
    ],
)
def test_the_refusal_says_what_stands_in_the_way(make: Callable[[], Model], wanted: str) -> None:
    with raises(UnsupportedModelError, ErrorKind.NO_KERNEL, wanted):
        optimize(write_model(make()), Options(samples=2))


def one(name: str, custom: str | None = None, *types: DType) -> Model:
    b = ModelBuilder()
    x, y = (b.tensor(f"t{at}", (2,), dtype) for at, dtype in enumerate(types or (DType.FLOAT32, DType.FLOAT32)))
    opcode = OpCode(name, 1, custom)
    b.graph.add_operator(Operator(opcode, (x,), (y,)))
    return b.finish(y)


@pytest.mark.parametrize(
    ("model", "said", "advice"),
    [
        (one("CUSTOM", "FlexErf"), "Failed to get registration from op code CUSTOM", "without SELECT_TF_OPS"),
        (one("CUSTOM", "Mine"), "Failed to get registration from op code CUSTOM", "--runner"),
        (one("CUSTOM", "SignalEnergy"), "Failed to get registration from op code CUSTOM", "tflite-micro wheel has"),
        (one("CUSTOM", "ethos-u"), "Failed to get registration from op code CUSTOM", "it runs on Arm's Ethos-U alone;"),
        (one("ATAN2"), "Failed to get registration from op code ATAN2", "replace the layer"),
        (one("ARG_MAX", None, DType.INT8, DType.INT64), "Node ARG_MAX (number 0) failed", "output_type=tf.int32"),
        (one("CAST", None, DType.FLOAT32, DType.INT8), "Node CAST (number 0) failed", "representative dataset"),
    ],
)
def test_the_advice_depends_on_what_is_missing(model: Model, said: str, advice: str) -> None:
    found = explained(model, said)
    assert advice in found
    assert said in found


def test_words_about_no_operator_of_the_graph_stay_as_they_are() -> None:
    for said in ("out of memory", "Node ADD (number 7) failed", "op code SUB"):
        assert explained(one("CAST"), said) == said


def test_what_the_modules_lack_and_tflm_has_is_no_refusal() -> None:
    said = "Failed to get registration from op code CUSTOM"
    assert not is_refusal(one("CUSTOM", "SignalEnergy"), said)
    assert not is_refusal(one("CUSTOM", "Mine"), said)
    assert not is_refusal(one("CUSTOM", "ethos-u"), said)
    assert is_refusal(one("CUSTOM", "FlexErf"), said)
    assert is_refusal(one("CUSTOM", "SignalEnergy"), "Node CUSTOM (number 0) failed to prepare")
