"""What is written is checked as TFLM completes it: with scratch, and with the tensors that no plan reaches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from tests.faults import raises
from tests.model_builder import ModelBuilder
from tests.models import irregular_model, mobile_chain, split_model, streaming_model, transpose_conv_model
from tflite_memopt.errors import ErrorKind, InfeasibleError
from tflite_memopt.kernels.profiles import PORTABLE, REFERENCE
from tflite_memopt.memory.arrange import arrange
from tflite_memopt.memory.layout import (
    MemoryLayout,
    head_in_force,
    memory_layout,
    offsets_in_force,
    offsets_to_write,
    unplannable_tensors,
)
from tflite_memopt.model.ir.model import DType, Model, Tensor
from tflite_memopt.model.ir.tensors import per_tensor
from tflite_memopt.options import Options
from tflite_memopt.solvers.graph.interval import intersect
from tflite_memopt.solvers.graph.limits import SearchLimit
from tflite_memopt.solvers.plan.check import check_in_force, check_plan
from tflite_memopt.solvers.plan.heuristics import tflm_greedy
from tflite_memopt.solvers.plan.methods import solve
from tflite_memopt.solvers.plan.problem import Item, PlanProblem, Solution

TWO = PlanProblem((Item(64, 0, 2), Item(32, 1, 3)))


def partly_plannable() -> Model:
    """A stateful model in which the place of ``y`` is TFLM's to choose: a variable of another subgraph shadows it."""
    model = streaming_model()
    at = next(index for index, tensor in enumerate(model.main.tensors) if tensor is model.main.outputs[0])
    inner = model.graphs[1].tensors
    inner.extend(Tensor(f"filler{i}", (0,), DType.INT8, model.buffers[0]) for i in range(at - len(inner)))
    inner.insert(at, Tensor("variable", (1, 8), DType.INT8, model.buffers[0], per_tensor(0.05, 0), is_variable=True))
    return model


def test_the_error_says_that_the_runtime_completed_the_plan() -> None:
    check_in_force(TWO, (0, 64))
    with raises(InfeasibleError, ErrorKind.OVERLAP, "runtime", "items 0 and 1"):
        check_in_force(TWO, (0, 32))


@pytest.mark.parametrize(
    "build", [mobile_chain, irregular_model, split_model, transpose_conv_model, streaming_model, partly_plannable]
)
def test_tflm_keeps_what_is_written_and_its_own_part_breaks_no_rule(build: Callable[[], Model]) -> None:
    model = build()
    layout = memory_layout(model, REFERENCE)
    plan = solve(layout.problem)
    written = offsets_to_write(model, layout, plan.offsets)
    assert not written.keys() & unplannable_tensors(model)
    ended = offsets_in_force(layout, written)
    check_plan(layout.problem, ended)
    assert all(ended[layout.tensors.index(tensor)] == offset for tensor, offset in written.items())
    assert head_in_force(layout, written) <= head_in_force(layout, {})


def test_scratch_and_an_unplannable_tensor_are_left_to_tflm() -> None:
    model = partly_plannable()
    layout = memory_layout(model, REFERENCE)
    (kept_back,) = unplannable_tensors(model)
    assert kept_back in layout.tensors
    assert kept_back not in _everything_planned(model, layout)
    layout = memory_layout(transpose_conv_model(), REFERENCE)
    assert len(layout.items) == len(layout.tensors) + 1


@pytest.mark.parametrize("build", [transpose_conv_model, partly_plannable])
def test_what_tflm_places_wrongly_is_never_written(build: Callable[[], Model], monkeypatch: pytest.MonkeyPatch) -> None:
    """The plan keeps every rule; only what comes of it once the rest is placed does not."""
    model = build()
    layout = memory_layout(model, PORTABLE)
    plan = solve(layout.problem)
    check_plan(layout.problem, plan.offsets)

    def onto_another(problem: PlanProblem, limit: SearchLimit) -> Solution:
        offsets = list(tflm_greedy(problem, limit).offsets)
        item = next(index for index, item in enumerate(problem.items) if item.offset is None)
        offsets[item] = offsets[_stranger_of(layout, item)]
        return Solution(tuple(offsets))

    offsets_to_write(model, layout, plan.offsets)
    monkeypatch.setattr("tflite_memopt.memory.layout.tflm_greedy", onto_another)
    with raises(InfeasibleError, ErrorKind.OVERLAP, "runtime"):
        offsets_to_write(model, layout, plan.offsets)


def test_a_plan_that_breaks_a_rule_is_never_written() -> None:
    model = irregular_model()
    layout = memory_layout(model, REFERENCE)
    with raises(InfeasibleError, ErrorKind.OVERLAP, "runtime"):
        offsets_to_write(model, layout, (0,) * len(layout.items))


def test_nothing_is_written_where_tflm_does_better_by_itself() -> None:
    model = irregular_model()
    layout = memory_layout(model, REFERENCE)
    wasteful = solve(layout.problem, "naive").offsets
    assert offsets_to_write(model, layout, wasteful) == {}
    pinned = replace(layout, items=(replace(layout.items[0], offset=wasteful[0]), *layout.items[1:]))
    assert offsets_to_write(model, pinned, wasteful) == dict(zip(layout.tensors, wasteful, strict=True))
    model.ties = ((0, 0),)
    assert offsets_to_write(model, layout, wasteful) == dict(zip(layout.tensors, wasteful, strict=True))


def _everything_planned(model: Model, layout: MemoryLayout) -> dict[Tensor, int]:
    items = (replace(layout.items[0], offset=0), *layout.items[1:])
    pinned = replace(layout, items=items)
    return offsets_to_write(model, pinned, solve(pinned.problem).offsets)


def _stranger_of(layout: MemoryLayout, item: int) -> int:
    """An item that is alive with this one and has no relation to it."""
    problem = layout.problem
    return next(
        other
        for other, each in enumerate(problem.items)
        if other != item
        and each.size
        and intersect(each, problem.items[item])
        and not any({item, other} == {relation.first, relation.second} for relation in problem.relations)
    )


def with_placeholder() -> Model:
    """A TRANSPOSE_CONV, which asks for scratch, and a sum of its output and a tensor that is not set before."""
    b = ModelBuilder()
    x, y, unset = b.input("x", (1, 8, 8, 4)), b.tensor("y", (1, 8, 8, 4)), b.tensor("unset", (1, 8, 8, 4))
    unset.is_variable = unset.is_placeholder = True
    shape = b.constant("shape", np.asarray(y.shape, np.int32))
    weights = b.constant("weights", np.ones((4, 1, 1, 4), np.int8), per_tensor(0.01, 0))
    fields = {"padding": 0, "strideH": 1, "strideW": 1}
    b.operator("TRANSPOSE_CONV", (shape, weights, b.add(x, x)), (y,), "TransposeConvOptions", **fields)
    return b.finish(b.add(y, unset))


def test_another_plan_is_taken_where_tflm_makes_more_of_the_best_one() -> None:
    """TFLM counts what is not set as alive from the start: scratch that was planned on its bytes goes elsewhere."""
    model = with_placeholder()
    layout, options = memory_layout(model, REFERENCE), Options()
    best = solve(layout.problem)
    assert head_in_force(layout, offsets_to_write(model, layout, best.offsets)) == 9 * 256
    placed = arrange(model, REFERENCE, options.search).placement
    assert best.arena_bytes == 5 * 256
    assert placed.memory.arena_bytes == 6 * 256
