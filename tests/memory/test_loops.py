"""Loops in the memory model: the plan that is predicted is what TFLM does, to the byte, and computes the same."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cascade.forms import LOOPS, Loop
from tests.cascade.networks import TYPES, random_network, regions
from tests.cascade.test_loop_lower import as_loop
from tests.memory.loops import assert_plan_proved, looped, placement_of, plain
from tests.models import while_model
from tests.profiles import examples
from tests.tflm import run_tflm
from tflite_memopt.evidence.equivalence import litert
from tflite_memopt.evidence.equivalence.adapter import RunJob
from tflite_memopt.evidence.equivalence.inputs import seeded_inputs
from tflite_memopt.model.analysis.loops import box_of, bytes_of, loops_of
from tflite_memopt.model.io import offline_plan
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.model.ir.model import DType, Model
from tflite_memopt.search.cascade.loop import LoopForm
from tflite_memopt.solvers.graph.limits import SearchLimit
from tflite_memopt.solvers.plan.problem import Item, PlanProblem, Relation
from tflite_memopt.solvers.plan.together import join, solve_together

ARENA = 4 << 20
FORMS: tuple[LoopForm, ...] = ("clamped", "masked")


def assert_planned_right(model: Model, looped: Model, kernels: str) -> None:
    """The loop under its plan computes the same on TFLM, which needs what the plan and the cost model say."""
    samples = seeded_inputs(model, 3, 0)
    expected = run_tflm(RunJob(write_model(model), samples, ARENA)).arrays
    placement = placement_of(looped, kernels)
    assert_plan_proved(looped, placement, kernels)
    offline_plan.attach(looped, placement.offsets)
    written = write_model(looped)
    found = run_tflm(RunJob(written, samples, ARENA))
    assert all(found.arrays[key].tobytes() == array.tobytes() for key, array in expected.items())
    assert found.facts["head"] == placement.memory.arena_bytes
    assert found.facts["tail"] == placement.memory.tail_bytes[str(found.facts.get("pointer_bits", 64))]


@pytest.mark.slow
@examples(40)
@given(
    seed=st.integers(0, 10**6),
    dtype=st.sampled_from(TYPES),
    layers=st.integers(1, 7),
    rows=st.integers(1, 3),
    form=st.sampled_from(LOOPS),
    kernels=st.sampled_from(("portable", "reference")),
)
def test_any_loop_under_its_plan_is_right_and_needs_what_is_predicted(
    seed: int, dtype: DType, layers: int, rows: int, form: Loop, kernels: str
) -> None:
    model = random_network(seed, dtype, layers, height=24)
    found = sorted(regions(model), key=lambda region: -len(region.operators))
    for region in found[:1]:
        loop = as_loop(model, region, rows, form)
        if isinstance(loop, Model):
            assert_planned_right(model, loop, kernels)


@pytest.mark.parametrize("form", FORMS)
def test_a_loop_lies_over_its_image_and_needs_less_than_both(form: LoopForm) -> None:
    model = looped(form)
    placement = placement_of(model)
    image, result = model.main.inputs[0], model.main.outputs[0]
    offsets = placement.offsets
    assert offsets[image] < offsets[result] + result.nbytes
    assert offsets[result] < offsets[image] + image.nbytes
    assert placement.memory.arena_bytes < placement_of(plain()).memory.arena_bytes


@pytest.mark.parametrize("form", FORMS)
def test_the_bytes_of_all_iterations_are_those_of_each(form: LoopForm) -> None:
    (loop,) = loops_of(looped(form))
    kinds = {operator.name for operator in loop.begins}
    assert kinds == {"SLICE", "DYNAMIC_UPDATE_SLICE"}
    for operator, begins in loop.begins.items():
        whole, parts = operator.inputs[0], loop.parts[operator]
        assert whole is not None
        assert parts is not None
        each = [box and bytes_of(box, whole) for box in (box_of(operator, begin) for begin in begins)]
        assert [tuple(pair) for pair in zip(*(ends.tolist() for ends in parts), strict=True)] == each


@pytest.mark.parametrize("form", FORMS)
def test_everything_that_is_carried_lies_at_one_offset(form: LoopForm) -> None:
    model = looped(form)
    placement = placement_of(model)
    (loop,) = loops_of(model)
    slots = zip(loop.operator.inputs, loop.operator.outputs, loop.condition.inputs, loop.body.inputs, strict=True)
    for given_, *rest in slots:
        planned = [placement.offsets[t] for t in (given_, *rest) if t is not None and t in placement.offsets]
        assert all(a == b for a, b in pairwise(planned))


def test_the_same_loop_on_litert_several_times_in_a_row() -> None:
    # The result's placeholder is a variable: what an invocation leaves there must not matter to the next.
    model = plain()
    samples = seeded_inputs(model, 4, 0)
    expected = litert.run_litert(RunJob(write_model(model), samples, ARENA)).arrays
    for form in FORMS:
        found = litert.run_litert(RunJob(write_model(looped(form)), samples, ARENA)).arrays
        assert all(found[key].tobytes() == array.tobytes() for key, array in expected.items())


def test_turns_are_followed_where_constants_decide_and_not_where_data_does() -> None:
    (loop,) = loops_of(looped("clamped", rows=5))
    assert loop.iterations == 3
    (update,) = [op for op in loop.begins if op.name == "DYNAMIC_UPDATE_SLICE"]
    assert loop.begins[update] == ((0, 0, 0, 0), (0, 5, 0, 0), (0, 7, 0, 0))
    (foreign,) = loops_of(while_model())
    assert foreign.iterations is None
    assert foreign.begins == {}


def test_a_model_with_a_loop_of_its_own_is_planned_and_right() -> None:
    assert_planned_right(while_model(), while_model(), "reference")


def test_items_at_one_offset_are_one_to_the_planner() -> None:
    items = (Item(32, 0, 3), Item(32, 2, 5), Item(48, 4, 6), Item(16, 1, 3))
    same = Relation(0, 1, 0, exact=True)
    joined = join(PlanProblem(items, (same, Relation(2, 1, 16))), [(0, 1)])
    assert joined.item_of == (0, 0, 1, 2)
    assert joined.problem.items == (Item(32, 0, 5), Item(48, 4, 6), Item(16, 1, 3))
    assert joined.problem.relations == (Relation(1, 0, 16),)
    plan = solve_together(joined, "greedy_by_size", SearchLimit())
    assert plan.offsets[0] == plan.offsets[1]


def test_joined_items_may_share_only_what_all_members_that_meet_may() -> None:
    items = (Item(32, 0, 3), Item(32, 2, 5), Item(48, 0, 5))
    same = Relation(0, 1, 0, exact=True)
    one = join(PlanProblem(items, (same, Relation(2, 1, 16))), [(0, 1)])
    assert one.problem.relations == ()
    both = join(PlanProblem(items, (same, Relation(2, 1, 16), Relation(2, 0, 32))), [(0, 1)])
    assert both.problem.relations == (Relation(1, 0, 32),)
    exact = join(PlanProblem(items, (same, Relation(2, 1, 16), Relation(2, 0, 32, exact=True))), [(0, 1)])
    assert exact.problem.relations == (Relation(1, 0, 32, exact=True),)
