"""Random ordering problems that use everything the problem allows, and their optimum by trying every order."""

from __future__ import annotations

from itertools import permutations

from hypothesis import strategies as st

from tflite_memopt.errors import InfeasibleError
from tflite_memopt.solvers.schedule.check import check_order, peak_of
from tflite_memopt.solvers.schedule.problem import Reuse, ScheduleProblem, Step

SIZES = st.integers(0, 40).map(lambda units: 16 * units)


@st.composite
def problems(draw: st.DrawFn, max_steps: int = 6) -> ScheduleProblem:
    """Any valid problem: several inputs and outputs, several results per operator, side-effect order, scratch, reuse.

    Operators are numbered in a random order, so that "as numbered" need not be a schedule.
    """
    sizes = draw(st.lists(SIZES, max_size=3))
    graph_inputs = tuple(range(len(sizes)))
    numbers = draw(st.permutations(range(draw(st.integers(1, max_steps)))))
    steps: dict[int, Step] = {}
    for number in numbers:
        step = _draw_step(draw, sizes, list(steps))
        sizes += [draw(SIZES) for _ in step.outputs]
        steps[number] = _with_reuses(draw, step, sizes)
    graph_outputs = tuple(t for t in range(len(sizes)) if draw(st.integers(0, 4)) == 0)
    return ScheduleProblem(tuple(sizes), tuple(steps[v] for v in sorted(steps)), graph_inputs, graph_outputs)


def _draw_step(draw: st.DrawFn, sizes: list[int], before: list[int]) -> Step:
    """An operator that reads tensors made so far and writes the next numbers."""
    known = range(len(sizes))
    inputs = draw(st.lists(st.sampled_from(known), max_size=3, unique=True)) if known else []
    outputs = range(len(sizes), len(sizes) + draw(st.sampled_from((0, 1, 1, 1, 1, 2, 3))))
    after = draw(st.lists(st.sampled_from(before), max_size=1)) if before and draw(st.integers(0, 3)) == 0 else []
    scratch = draw(st.sampled_from((0, 0, 16, 160)))
    return Step(tuple(inputs), tuple(outputs), scratch, tuple(after))


def _with_reuses(draw: st.DrawFn, step: Step, sizes: list[int]) -> Step:
    """The operator with in-place or overlap savings on some of its inputs."""
    written = sum(sizes[t] for t in step.outputs)
    reuses = tuple(Reuse(t, draw(st.integers(0, min(sizes[t], written)))) for t in step.inputs if draw(st.booleans()))
    return Step(step.inputs, step.outputs, step.scratch, step.after, reuses)


def diamond_beside_a_chain(sizes: tuple[int, ...]) -> ScheduleProblem:
    """A fork, two operators side by side and their join; and, apart from them, two operators in a row.

                    1 -> 3
        tensors  0 <        > 5        6 -> 7 -> 8
                    2 -> 4

    ``sizes``: bytes of the nine tensors.
    """
    links = (((0,), (1, 2)), ((1,), (3,)), ((2,), (4,)), ((3, 4), (5,)), ((6,), (7,)), ((7,), (8,)))
    return ScheduleProblem(sizes, tuple(Step(read, made) for read, made in links), inputs=(0, 6), outputs=(5, 8))


def brute_force(problem: ScheduleProblem) -> int:
    """The smallest peak of any order in bytes, by the independent checker on every permutation: up to 7 operators."""
    return min(
        peak_of(problem, order) for order in permutations(range(len(problem.steps))) if is_schedule(problem, order)
    )


def is_schedule(problem: ScheduleProblem, order: tuple[int, ...]) -> bool:
    """Whether the order passes the independent checker."""
    try:
        check_order(problem, order)
    except InfeasibleError:
        return False
    return True


def optimum(problem: ScheduleProblem) -> int:
    """The smallest peak of any order in bytes, from the definition: the best way to every set of operators that can
    have run, by size. For more operators than ``brute_force`` can take."""
    count = len(problem.steps)
    best = {frozenset[int](): sum(problem.sizes[t] for t in problem.inputs)}
    for _ in range(count):
        longer: dict[frozenset[int], int] = {}
        for done, peak in best.items():
            for v in set(range(count)) - done:
                if _ready(problem, done, v):
                    then = done | {v}
                    reached = max(peak, _working_set(problem, done, v))
                    longer[then] = min(reached, longer.get(then, reached))
        best = longer
    return best[frozenset(range(count))]


def _ready(problem: ScheduleProblem, done: frozenset[int], v: int) -> bool:
    writers = {t: w for w, step in enumerate(problem.steps) for t in step.outputs}
    step = problem.steps[v]
    return {*(writers[t] for t in step.inputs if t in writers), *step.after} <= done


def _working_set(problem: ScheduleProblem, done: frozenset[int], v: int) -> int:
    """Bytes alive while operator v runs after the operators of ``done``, with its scratch and its best reuse."""
    step = problem.steps[v]
    written = {*problem.inputs, *(t for w in done for t in problem.steps[w].outputs)}
    waiting = [w for w in range(len(problem.steps)) if w not in done]
    still_read = {t for w in waiting for t in problem.steps[w].inputs}
    alive = {t for t in written if t in still_read or t in problem.outputs} | set(step.outputs)
    later = {t for w in waiting if w != v for t in problem.steps[w].inputs} | set(problem.outputs)
    saved = max((reuse.saved for reuse in step.reuses if reuse.tensor not in later), default=0)
    return sum(problem.sizes[t] for t in alive) + step.scratch - saved
