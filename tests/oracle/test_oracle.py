"""The RAM oracle: every effort keeps what it guarantees."""

from __future__ import annotations

import pickle
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.models import ALL, concat_model, irregular_model, mobile_chain, split_model
from tests.profiles import examples
from tests.test_random_models import random_model, random_rows
from tflite_memopt import Options, UsageError, analyze, optimize, ram_of
from tflite_memopt.io.writer import write_model
from tflite_memopt.ir.model import Model
from tflite_memopt.memory.arrange import place
from tflite_memopt.memory.layout import memory_layout
from tflite_memopt.memory.schedule_problem import schedule_problem
from tflite_memopt.oracle.description import GraphSketch, OperatorSketch, TensorSketch, sketch_of
from tflite_memopt.oracle.levels import PLAN, SEARCH, RamEffort, RamOracle
from tflite_memopt.published.sram_study import random_order
from tflite_memopt.schedule.memory_graph import memory_graph

from .cells import cell_network

Draw = Callable[[int], Model]
TARGETS = (None, "cortex-m4", "cortex-m55", "esp32s3", "riscv32")
ONE_GRAPH = [name for name in ALL if name not in ("if_model", "while_model", "streaming_model", "transpose_conv_model")]


def promised(data: bytes, target: str | None, **options: Any) -> int:
    return optimize(data, Options(target=target, **options)).report.after.required_for_target


@given(st.integers(0, 10**6), st.sampled_from(TARGETS), st.sampled_from((4, 6, 8)), st.sampled_from((8, 12, 18)))
@examples(8)
def test_plan_is_what_optimize_promises(seed: int, target: str | None, width: int, resolution: int) -> None:
    model = cell_network(seed, width, resolution)
    data, oracle = write_model(model), RamOracle.on(target)
    found = oracle.ram(sketch_of(model), "plan")
    assert found == promised(data, target, **PLAN) == oracle.ram(data, "plan")
    assert found.guarantees == "exact: what optimize gives with rewrite=False and cascade=False"
    assert oracle.ram(data, "bound") <= found


def test_a_search_is_what_optimize_promises() -> None:
    model = mobile_chain()
    found = RamOracle.on("cortex-m4").ram(sketch_of(model), "search")
    assert found == promised(write_model(model), "cortex-m4", **SEARCH)


@given(st.integers(0, 10**6), st.sampled_from(TARGETS))
@examples(24)
def test_no_order_and_no_plan_is_below_the_bound(seed: int, target: str | None) -> None:
    model, oracle = cell_network(seed, resolution=8), RamOracle.on(target)
    bound, plan = oracle.ram(model, "bound"), oracle.ram(model, "plan")
    assert bound <= plan <= oracle.ram(model, "stock")
    assert bound.head <= plan.head
    assert bound.macs == plan.macs == oracle.ram(model, "order").macs


@pytest.mark.parametrize("name", ONE_GRAPH)
def test_the_bound_holds_for_small_models(name: str) -> None:
    for target in TARGETS:
        check_bound(ALL[name](), target)


@given(st.integers(0, 10**6), st.sampled_from(TARGETS), st.sampled_from((random_rows, random_model)))
@examples(36)
def test_the_bound_holds_where_tensors_are_ranges_of_others(seed: int, target: str | None, draw: Draw) -> None:
    check_bound(draw(seed), target)


def check_bound(model: Model, target: str | None) -> None:
    """No plan is below the bound, in the best order or in any other."""
    oracle = RamOracle.on(target)
    bound = oracle.ram(model, "bound")
    assert 0 < bound <= oracle.ram(model, "plan")
    options = Options(target=target)
    for order in orders_of(model):
        found = place(model, order, options.profile, options)
        assert found is not None
        assert bound <= found.memory.required_for_target


def orders_of(model: Model) -> list[tuple[int, ...]]:
    """The model's own order and two random ones."""
    graph = memory_graph(schedule_problem(model.main, memory_layout(model, Options().profile)))
    drawn = (tuple(random_order(graph.needs, graph.feeds, random.Random(seed))) for seed in range(2))
    return [tuple(range(len(model.main.operators))), *drawn]


@given(st.integers(0, 10**6), st.lists(st.tuples(st.integers(1, 40), st.integers(4, 40)), min_size=1, max_size=12))
@examples(25)
def test_a_family_is_as_each_of_its_candidates(seed: int, sizes: list[tuple[int, int]]) -> None:
    for target in (None, "cortex-m4", "cortex-m55"):
        oracle = RamOracle.on(target)
        widths, rows = (np.array(each, np.int64) for each in zip(*sizes, strict=True))
        family = family_of(seed, widths, rows)
        found = oracle.bounds(family)
        for number in range(len(sizes)):
            alone = oracle.ram(family.candidate(number), "bound")
            assert (found.required[number], found.head[number], found.macs[number]) == (alone, alone.head, alone.macs)
            assert alone <= oracle.ram(family.candidate(number), "plan")


def family_of(seed: int, widths: np.ndarray, rows: np.ndarray) -> GraphSketch:
    """Two convolutions side by side, joined by a sum or a concatenation, at several widths and resolutions."""
    kernel, joins = (1, 3)[seed % 2], ("ADD", "CONCATENATION")[seed // 2 % 2]
    conv = {"padding": 0, "strideH": 1, "strideW": 1}
    tensors = {
        "image": TensorSketch((1, rows, rows, 3)),
        "a": TensorSketch((1, rows, rows, widths)),
        "b": TensorSketch((1, rows, rows, widths)),
        "out": TensorSketch((1, rows, rows, widths if joins == "ADD" else 2 * widths)),
    }
    for name in "ab":
        tensors[f"{name}/weights"] = TensorSketch((widths, kernel, kernel, 3), is_constant=True, scales=widths)
        tensors[f"{name}/bias"] = TensorSketch((widths,), "int32", is_constant=True, scales=widths)
    operators = tuple(
        OperatorSketch("CONV_2D", ("image", f"{name}/weights", f"{name}/bias"), (name,), conv) for name in "ab"
    )
    join = OperatorSketch(joins, ("a", "b"), ("out",), {"axis": 3} if joins == "CONCATENATION" else {})
    return GraphSketch(tensors, (*operators, join), ("image",), ("out",))


@pytest.mark.parametrize("model", [irregular_model, concat_model, split_model], ids=lambda each: each.__name__)
def test_every_kind_of_candidate_has_the_same_answer(model: Any, tmp_path: Path) -> None:
    made = model()
    (tmp_path / "m.tflite").write_bytes(write_model(made))
    sketch = sketch_of(made)
    as_fields = {
        "tensors": {name: {**each.__dict__, "shape": list(each.shape)} for name, each in sketch.tensors.items()},
        "operators": [{**each.__dict__, "inputs": list(each.inputs)} for each in sketch.operators],
        "inputs": list(sketch.inputs),
        "outputs": list(sketch.outputs),
    }
    efforts: tuple[RamEffort, ...] = ("stock", "bound", "order", "plan")
    for effort in efforts:
        kinds = (made, sketch, as_fields, str(tmp_path / "m.tflite"), tmp_path / "m.tflite", write_model(made))
        assert len({ram_of(each, "cortex-m4", effort) for each in kinds}) == 1
    assert ram_of(made) == analyze(write_model(made)).memory.required_for_target
    assert ram_of(write_model(made), optimized=True) == promised(write_model(made), None, verify=False)


def test_an_answer_is_a_number_that_says_what_it_is() -> None:
    found = ram_of(irregular_model(), effort="order")
    again = pickle.loads(pickle.dumps(found))
    assert (again, again.effort, again.head, again.macs) == (found, "order", found.head, found.macs)
    assert found < ram_of(irregular_model())
    assert "gaps in a plan come on top" in found.guarantees


def test_wrong_candidates_are_refused() -> None:
    with pytest.raises(UsageError, match="unknown effort 'all'"):
        ram_of(mobile_chain(), effort="all")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="it needs tensors, operators, inputs, outputs"):
        ram_of({"tensors": {}})
    with pytest.raises(UsageError, match="no tensor called y"):
        GraphSketch({}, (), (), ("y",))
    with pytest.raises(UsageError, match="unknown type 'int9'"):
        ram_of(GraphSketch({"x": TensorSketch((4,), "int9")}, (), ("x",), ("x",)))
    with pytest.raises(UsageError, match="one graph and no variables"):
        ram_of(ALL["if_model"](), effort="bound")
    with pytest.raises(UsageError, match="different lengths"):
        RamOracle.on().bounds(family_of(0, np.arange(1, 4), np.arange(1, 3)))
    with pytest.raises(UsageError, match="needs a file"):
        ram_of(mobile_chain(), optimized=True)
