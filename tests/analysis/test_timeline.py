"""Lifetimes, working sets, MACs, side effects and schedules, against hand counts and slow definitions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.faults import raises
from tests.model_builder import ModelBuilder
from tests.models import (
    ALL,
    branches,
    dead_model,
    dense_model,
    if_model,
    mobile_chain,
    streaming_model,
    transpose_conv_model,
    while_model,
)
from tests.profiles import examples
from tflite_memopt.errors import ErrorKind, InfeasibleError, UnsupportedModelError, UsageError
from tflite_memopt.kernels.profiles import PORTABLE, profile_named
from tflite_memopt.memory.layout import memory_layout
from tflite_memopt.memory.problems import schedule_problem
from tflite_memopt.memory.reserve import reserve
from tflite_memopt.model.analysis.lifetimes import compute_timeline, io_lower_bound, peak, working_sets
from tflite_memopt.model.analysis.macs import model_macs
from tflite_memopt.model.analysis.side_effects import side_effect_order
from tflite_memopt.model.ir.check import check_model
from tflite_memopt.model.ir.model import Model
from tflite_memopt.operators.requests import ILP32, WHEEL
from tflite_memopt.operators.table import operator_macs
from tflite_memopt.solvers.graph.alignment import aligned
from tflite_memopt.solvers.graph.limits import SearchLimit
from tflite_memopt.solvers.schedule.check import check_order, peak_of
from tflite_memopt.solvers.schedule.methods import solve
from tflite_memopt.solvers.schedule.problem import ScheduleProblem, Step, schedule_lower_bound


def lifetimes(model: Model) -> dict[str, tuple[int, int]]:
    return {tensor.name: (life.start, life.end) for tensor, life in compute_timeline(model).tensors.items()}


def test_branches_by_hand() -> None:
    assert lifetimes(branches()) == {
        "x": (0, 3),  # read by the operators of steps 0 and 1, which run in scopes 1 and 2
        "conv0": (1, 5),
        "conv1": (2, 4),
        "depthwise2": (3, 5),
        "add3": (4, 5),
    }


def test_an_unused_input_lives_before_the_first_operator_and_an_output_to_the_end() -> None:
    b = ModelBuilder()
    x, _ = b.input("x", (1, 8, 8, 4)), b.input("unused", (1, 16))
    early = b.conv(x, 4)
    found = lifetimes(b.finish(b.conv(b.conv(early, 4), 4), early))
    assert found["unused"] == (0, 1)
    assert found["conv0"] == (1, 4)


def test_unborn_tensors_take_their_own_scope() -> None:
    assert lifetimes(dead_model())["dead"] == (-1, 0)


def test_if_lays_out_its_subgraphs_inside_the_calling_step() -> None:
    found = lifetimes(if_model())
    assert found["y"] == (1, 8)  # IF is scope 1; then: 2 to 5; else: 6 and 7
    assert found["x"] == (0, 8)
    assert found["then_x"] == (2, 4)
    assert found["else_x"] == (6, 8)


def test_while_and_call_once_by_hand() -> None:
    found = lifetimes(while_model())
    assert (found["cond_n"], found["less"]) == ((2, 4), (3, 4))
    assert (found["body_n"], found["body_x"], found["x_out"]) == ((4, 6), (4, 7), (1, 7))
    streaming = lifetimes(streaming_model())
    assert "handle" not in streaming
    assert "zeros" not in streaming
    assert streaming["state"] == (6, 8)  # CALL_ONCE 1, its subgraph 2 to 4, VAR_HANDLE 5, READ 6, ADD 7


def calls_in_a_row(count: int, times: int) -> Model:
    """A chain of subgraphs, each of which calls the next one ``times`` times."""
    b = ModelBuilder()
    for index in range(count):
        if index:
            b.new_graph(f"level{index}")
        for _ in range(times if index + 1 < count else 0):
            b.operator("CALL_ONCE", (), (), "CallOnceOptions", initSubgraphIndex=index + 1)
    return b.model


def test_calls_that_unfold_without_end_are_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tflite_memopt.model.analysis.lifetimes.MAX_SCOPES", 10_000)
    check_model(calls_in_a_row(60, 1))
    with raises(UnsupportedModelError, ErrorKind.RECURSION):
        check_model(calls_in_a_row(2000, 1))
    doubling = calls_in_a_row(50, 2)
    check_model(doubling)
    with raises(UnsupportedModelError, ErrorKind.RECURSION):
        compute_timeline(doubling)


@pytest.mark.parametrize("name", ALL)
def test_working_sets_are_what_is_alive_in_the_operators_scope(name: str) -> None:
    model = ALL[name]()
    layout = memory_layout(model, PORTABLE)
    sets = working_sets(model, layout.timeline, layout.scratch)
    for each in sets:
        scope = layout.timeline.spans[each.operator].start
        alive = {t for t, life in layout.timeline.tensors.items() if life.start <= scope < life.end}
        assert set(each.live) == alive
        assert each.nbytes == sum(aligned(t.nbytes) for t in alive) + layout.scratch.get(each.operator, 0)
    top = peak(sets)
    assert top is not None
    assert top.nbytes == max(each.nbytes for each in sets)
    assert io_lower_bound(model) <= top.nbytes


def test_scratch_is_counted() -> None:
    model = transpose_conv_model()
    layout = memory_layout(model, PORTABLE)
    assert layout.scratch == {model.main.operators[0]: 4 * 8 * 8 * 2}


def test_macs_by_hand() -> None:
    model = mobile_chain(24)
    first, depthwise = model.main.operators[:2]
    assert operator_macs(first) == 12 * 12 * 8 * 3 * 3 * 3
    assert operator_macs(depthwise) == 12 * 12 * 8 * 3 * 3
    assert model_macs(dense_model(8)) == 16 * 8
    assert operator_macs(transpose_conv_model().main.operators[0]) == 4 * 4 * 4 * 3 * 3 * 2
    assert operator_macs(branches().main.operators[3]) == 0


def test_side_effects_stand_in_a_chain() -> None:
    assert side_effect_order(streaming_model().main) == [(0, 1), (1, 2), (2, 4)]


def test_the_schedule_keeps_side_effects_and_data() -> None:
    model = streaming_model()
    problem = schedule_problem(model.main, memory_layout(model, profile_named("portable")))
    check_order(problem, range(5))
    with raises(InfeasibleError, ErrorKind.ORDER, "operator 1", "operator 0"):
        check_order(problem, (1, 0, 2, 3, 4))
    with raises(InfeasibleError, ErrorKind.COUNT, "5"):
        check_order(problem, (0, 1, 2, 3, 3))
    with raises(UsageError, ErrorKind.UNKNOWN, "luck"):
        solve(problem, "luck")


def test_peak_by_hand() -> None:
    steps = (Step((0,), (1,)), Step((0,), (2,), scratch=5), Step((1, 2), (3,)))
    problem = ScheduleProblem((10, 20, 30, 1), steps, (0,), (3,))
    assert peak_of(problem, (0, 1, 2)) == 10 + 20 + 30 + 5
    schedule = solve(problem, "as_is")
    assert (schedule.order, schedule.peak_bytes) == ((0, 1, 2), 65)


@st.composite
def schedule_problems(draw: st.DrawFn) -> ScheduleProblem:
    count = draw(st.integers(1, 8))
    sizes = draw(st.lists(st.integers(0, 50), min_size=count + 1, max_size=count + 1))
    reads = [draw(st.sets(st.integers(0, step), min_size=1, max_size=3)) for step in range(count)]
    steps = tuple(Step(tuple(sorted(read)), (step + 1,)) for step, read in enumerate(reads))
    return ScheduleProblem(tuple(sizes), steps, (0,), (count,))


@given(problem=schedule_problems())
@examples(100)
def test_no_order_goes_below_the_bound(problem: ScheduleProblem) -> None:
    schedule = solve(problem, limit=SearchLimit())
    assert schedule_lower_bound(problem) <= schedule.peak_bytes <= sum(problem.sizes)


@pytest.mark.parametrize("name", ALL)
def test_the_arena_to_reserve_covers_head_and_tail_on_both_words(name: str) -> None:
    model = ALL[name]()
    uses = [reserve(model, 4096, PORTABLE, abi=ILP32), reserve(model, 4096, PORTABLE, abi=WHEEL)]
    for use in uses:
        assert use.exact
        assert use.required % 16 == 0
        assert use.required >= max(use.head + use.tail, use.temporaries)
    assert uses[0].required < uses[1].required


def test_planner_temporaries_can_exceed_the_head() -> None:
    b = ModelBuilder()
    x = b.input("x", (1, 16))
    for _ in range(100):
        x = b.reshape(x, (1, 16))
    model = b.finish(x)
    use = reserve(model, 32, PORTABLE, abi=ILP32)
    tensors = len(model.main.tensors)
    planned = sum(not tensor.is_constant for tensor in model.main.tensors)
    assert use.temporaries > 24 * tensors + 40 * planned > use.head
    assert use.required > use.head + use.tail


def test_element_sizes_are_those_of_the_arena() -> None:
    b = ModelBuilder()
    four_bit = b.tensor("t", (3, 5), b.constant("c", np.zeros(1, np.int8)).dtype.__class__.INT4)
    assert four_bit.nbytes == 15
