"""Costs: the full one is what optimize prints, the estimate is a shortest path, and both are kept by structure."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.faults import raises
from tests.model_builder import ModelBuilder
from tflite_memopt import Options, UnsupportedModelError, UsageError, cost, optimize
from tflite_memopt.costs.cost import Depth, cost_under
from tflite_memopt.costs.estimate import Section, least_size
from tflite_memopt.costs.frameworks import file_of
from tflite_memopt.costs.store import Store
from tflite_memopt.costs.structure import as_int8
from tflite_memopt.errors import ErrorKind, OutputError
from tflite_memopt.evidence.equivalence.adapter import RunJob
from tflite_memopt.evidence.equivalence.inputs import verification_inputs
from tflite_memopt.evidence.equivalence.runner import Interpreters, ProcessLimits
from tflite_memopt.model.io.reader import read_model
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.model.ir.model import DType, Model


def network(seed: int = 0) -> bytes:
    b = ModelBuilder()
    x = b.conv(b.input("image", (1, 24, 24, 3)), 8, 3, 2, seed=seed)
    x = b.conv(b.depthwise(x, seed=seed), 24, seed=seed)
    x = b.average_pool(b.conv(x, 8, seed=seed), 12)
    b.finish(b.softmax(b.dense(b.reshape(x, (1, 8)), 4, seed=seed)))
    return write_model(b.model)


@pytest.mark.slow
def test_the_full_cost_is_what_optimize_prints() -> None:
    found = cost(network(), "cortex-m7", cache=None)
    report = optimize(network(), Options(target="cortex-m7", verify=False)).report
    assert found.is_exact
    assert (found.ram, found.optimized) == (report.before.required_for_target, report.after.required_for_target)
    assert found.bound <= found.optimized < found.ram


@pytest.mark.slow
@pytest.mark.parametrize("target", ["cortex-m7", "esp32-s3", None])
def test_the_estimate_is_of_the_same_model(target: str | None) -> None:
    found, full = (cost(network(), target, depth=depth, cache=None) for depth in ("estimate", "full"))
    assert not found.is_exact
    assert (found.ram, found.macs) == (full.ram, full.macs)
    assert found.bound <= found.optimized <= found.ram


@pytest.mark.slow
@pytest.mark.parametrize("depth", ["estimate", "full"])
def test_a_file_that_was_planned_for_a_target_has_a_warning_without_one(depth: Depth) -> None:
    options = Options(target="cortex-m7", effort="quick", verify=False)
    planned = optimize(network(), options).model
    warning = cost_under(planned, replace(options, target=None), depth).warning
    assert warning is not None
    assert warning.startswith("the file was planned with --target cortex-m7")
    assert cost_under(planned, options, depth).warning is None


def test_a_budget_is_met_or_not() -> None:
    found = cost(network(), "cortex-m7", depth="estimate", cache=None)
    for budget in (found.optimized, found.optimized - 1):
        again = cost(network(), "cortex-m7", depth="estimate", budget=budget, cache=None)
        assert again.fits is (budget >= found.optimized)


def test_more_run_time_never_costs_ram() -> None:
    sizes = [cost(network(), "cortex-m7", depth="estimate", limit=x, cache=None).optimized for x in (0, 0.1, 0.5, 1)]
    assert sizes == sorted(sizes, reverse=True)


@st.composite
def sections(draw: st.DrawFn) -> tuple[list[Section], int]:
    end = draw(st.integers(1, 6))
    whole = [Section(at, at + 1, draw(st.integers(1, 30)), 0) for at in range(end)]
    some = [pair for pair in combinations(range(end + 1), 2) if draw(st.booleans())]
    return [*whole, *(Section(*pair, draw(st.integers(1, 30)), draw(st.integers(0, 9))) for pair in some)], end


def ways(every: list[Section], first: int, end: int) -> list[list[Section]]:
    """All paths from one position to the end."""
    if first == end:
        return [[]]
    return [[each, *rest] for each in every if each.first == first for rest in ways(every, each.end, end)]


@given(sections(), st.integers(0, 20))
def test_the_least_size_is_that_of_the_best_of_all_paths(drawn: tuple[list[Section], int], most: int) -> None:
    every, end = drawn
    paths = (path for path in ways(every, 0, end) if sum(each.extra for each in path) <= most)
    assert least_size(every, end, most) == min(max(each.nbytes for each in path) for path in paths)


def as_float(data: bytes) -> Model:
    model = read_model(data)
    for tensor in model.main.tensors:
        if tensor.quantization is not None:
            if tensor.is_constant:
                tensor.buffer = type(tensor.buffer)(np.zeros(4 * tensor.elements, np.uint8))
            tensor.dtype, tensor.quantization = DType.FLOAT32, None
    return model


@pytest.mark.slow
def test_a_float_network_costs_what_its_quantized_one_does() -> None:
    made = as_int8(as_float(network()))
    assert [tensor.dtype for tensor in made.main.tensors] == [
        tensor.dtype for tensor in read_model(network()).main.tensors
    ]
    one, other = (cost(data, "cortex-m7", cache=None) for data in (network(), write_model(made)))
    assert other.optimized - one.optimized == other.ram - one.ram == 32  # its dense layer has four scales, not one
    assert write_model(made) == write_model(as_int8(as_float(network(seed=1))))  # no weight is left in it


def test_litert_runs_a_structure() -> None:
    made = write_model(as_int8(as_float(network())))
    with Interpreters(("litert",), ProcessLimits(60.0, 4 << 30)) as running:
        run = running["litert"].run(RunJob(made, verification_inputs(read_model(made), 1, 0), 1 << 18))
    assert run.ran, run.reason


def test_pools_and_moves_keep_their_scale_in_a_structure() -> None:
    b = ModelBuilder()
    x = b.input("x", (1, 8, 8, 4), DType.FLOAT32)
    y = b.tensor("y", (1, 4, 4, 4), DType.FLOAT32)
    fields = {"padding": 1, "strideH": 2, "strideW": 2, "filterHeight": 2, "filterWidth": 2}
    b.operator("AVERAGE_POOL_2D", (x,), (y,), "Pool2DOptions", **fields)
    b.finish(y)
    made = as_int8(b.model)
    (operator,) = made.main.operators
    assert made.main.inputs[0].quantization is operator.outputs[0].quantization
    assert operator.opcode.version == 2
    assert cost(write_model(made), "cortex-m7", cache=None).optimized > 0


def test_a_float_network_with_a_branch_has_no_structure() -> None:
    model = as_float(network())
    model.graphs.append(as_float(network()).main)
    with raises(UnsupportedModelError, ErrorKind.FORM, "quantize it"):
        as_int8(model)


def test_a_known_cost_is_read_from_the_cache(tmp_path: Path) -> None:
    kept = tmp_path / "a" / "costs.sqlite"
    first = cost(network(), "cortex-m7", depth="estimate", cache=kept)
    with sqlite3.connect(kept) as file:
        file.execute(
            """UPDATE kept SET value =
            CAST(replace(CAST(value AS TEXT), '"is_exact": false', '"is_exact": true') AS BLOB)"""
        )
    file.close()
    again = cost(network(), "cortex-m7", depth="estimate", cache=kept)
    assert again.is_exact
    assert again.optimized == first.optimized
    assert not cost(network(), "cortex-m4", depth="estimate", cache=kept).is_exact


def test_a_cache_that_is_none_is_named(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no database, but long enough to be taken for one" * 9)
    with pytest.raises(OutputError, match="text"):
        cost(network(), cache=tmp_path / "text")


@pytest.mark.slow
def test_costs_under_other_options_of_a_run() -> None:
    plain, every_byte = (cost_under(network(), Options(every_byte=x, effort="quick"), "full") for x in (False, True))
    assert every_byte.optimized <= plain.optimized
    assert cost_under(network(), Options(budget=plain.optimized, effort="quick"), "full").fits


@pytest.mark.tensorflow
@pytest.mark.slow
def test_a_network_of_keras_costs_what_its_converted_file_does(tmp_path: Path) -> None:
    from tests.keras_networks import quantized, separable

    kept = tmp_path / "costs"
    for width in (8, 16):
        model = separable(width)
        whole = cost(quantized(model), "cortex-m7", cache=None)
        assert cost(model, "cortex-m7", cache=kept).optimized == pytest.approx(whole.optimized, abs=64)
    with sqlite3.connect(kept) as file:
        entries = file.execute("SELECT count(*) FROM kept").fetchone()[0]
        cost(separable(8), "cortex-m7", cache=kept)  # the same structure, with other names and weights
        assert file.execute("SELECT count(*) FROM kept").fetchone()[0] == entries
    file.close()


@pytest.mark.torch
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_module_of_pytorch_costs_what_its_structure_does(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    torch, shape, kept = pytest.importorskip("torch"), (1, 3, 32, 32), tmp_path / "costs"
    pytest.importorskip("litert_torch")

    def separable(width: int) -> Any:
        n = torch.nn
        first = n.Conv2d(3, width, 3, stride=2, bias=False), n.BatchNorm2d(width), n.ReLU()
        deep = n.Conv2d(width, width, 3, padding=1, groups=width), n.ReLU(), n.Conv2d(width, 2 * width, 1), n.ReLU()
        return n.Sequential(*first, *deep, n.AdaptiveAvgPool2d(1), n.Flatten(), n.Linear(2 * width, 10), n.Softmax(1))

    module = separable(8)
    found = cost(module, "cortex-m7", shape=shape, cache=kept)
    assert found.bound <= found.optimized < found.ram
    assert module.training
    assert capfd.readouterr().out == ""
    file = file_of(module, shape, Store(kept))
    kinds = [operator.name for operator in read_model(file).main.operators]
    assert kinds == ["TRANSPOSE", *("CONV_2D", "DEPTHWISE_CONV_2D", "CONV_2D"), "MEAN", "FULLY_CONNECTED", "SOFTMAX"]
    with sqlite3.connect(kept) as entries:
        count = entries.execute("SELECT count(*) FROM kept").fetchone()
        assert cost(separable(8), "cortex-m7", shape=shape, cache=kept) == found  # the same structure, other weights
        assert entries.execute("SELECT count(*) FROM kept").fetchone() == count
        assert cost(separable(16), "cortex-m7", depth="estimate", shape=shape, cache=kept).ram > found.ram
    entries.close()
    with raises(UsageError, ErrorKind.COUNT, "shape="):
        cost(module, "cortex-m7", cache=kept)


def test_what_is_no_model_is_refused() -> None:
    with raises(UsageError, ErrorKind.NOT_A_FILE, "missing.tflite"):
        cost("missing.tflite", cache=None)
