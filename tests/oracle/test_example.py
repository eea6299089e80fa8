"""The example of a search with Optuna: what it finds fits both budgets, and TFLM takes the arena that was said."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tflite_memopt import Options, RamOracle, optimize
from tflite_memopt.io.writer import write_model
from tflite_memopt.ir.model import Buffer, Model
from tflite_memopt.oracle.description import GraphSketch, model_of

optuna = pytest.importorskip("optuna")
FOLDER = Path(__file__).parent.parent.parent / "docs" / "examples"


@pytest.fixture(scope="module")
def example() -> Any:
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    sys.path.insert(0, str(FOLDER))
    try:
        return importlib.import_module("architecture_search")
    finally:
        sys.path.remove(str(FOLDER))


@pytest.fixture(scope="module")
def found(example: Any) -> Any:
    return example.search(trials=60)


def with_random_weights(sketch: GraphSketch) -> Model:
    """The sketch as a model that can be written and run."""
    model, draw = model_of(sketch), np.random.default_rng(0)
    for tensor in model.main.tensors:
        if tensor.is_constant and sketch.tensors[tensor.name].values is None:
            kind = np.dtype(tensor.dtype.label)
            drawn = draw.normal(size=tensor.shape) if kind.kind == "f" else draw.integers(-100, 100, tensor.shape)
            tensor.buffer = Buffer(np.frombuffer(drawn.astype(kind).tobytes(), np.uint8))
            model.buffers.append(tensor.buffer)
        elif tensor.is_constant:
            model.buffers.append(tensor.buffer)
    return model


def test_it_stays_within_both_budgets(example: Any, found: Any) -> None:
    assert example.RAM_BUDGET // 2 < found.ram <= example.RAM_BUDGET
    assert found.ram.macs <= example.MAC_BUDGET
    assert found.turned_away["bound"] > 0
    assert found.turned_away["MACs"] > 0


def test_the_answer_is_the_head_that_tflm_measures(found: Any) -> None:
    data = write_model(with_random_weights(found.graph))
    report = optimize(data, Options(kernels="reference", samples=1, rewrite=False, cascade=False)).report
    assert report.equivalence["tflm"].equal
    assert RamOracle.on(kernels="reference").ram(found.graph, "plan").head == report.after.tflm["head"]
