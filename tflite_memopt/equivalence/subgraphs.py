"""The subgraphs that IF and WHILE call: each is judged as a model of its own.

No interpreter shows what is inside a subgraph: LiteRT gives back whatever lies in its memory by then, TFLM outputs.
So each subgraph becomes the entry of a model, its tensors at the offsets of the plan, and runs on the values that the
call gives it: for WHILE those of the first turns. What the plan does between a subgraph and its caller shows in the
caller's tensors. So does the plan of a body that reads an input in rows: another input may lie on rows that were read
in earlier turns, and an interpreter of the body alone could not be given both. The body is judged without its plan.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ..analysis.loops import partial_in
from ..io import offline_plan
from ..io.reader import read_model
from ..io.writer import write_model
from ..ir.check import called_subgraphs, reachable, renumber_subgraphs
from ..ir.model import Operator
from ..ir.tensors import values
from ..options import Options
from .adapter import REFERENCE, Run, RunJob, Sample
from .baseline import GRAPH_RUNTIMES, Baseline, arena_for, measure_baseline
from .interface import SAME
from .judge import Candidate
from .pool import Interpreters

_MOST_SAMPLES = 8
"""Of the model's, on which a subgraph is looked at."""
_TURNS = 3
_KEEPS_STATE = frozenset({"CALL_ONCE", "VAR_HANDLE", "READ_VARIABLE", "ASSIGN_VARIABLE"})


@dataclass(frozen=True)
class SubgraphPair:
    """A subgraph of both models to be judged: ``number`` is its position in the file. ``reason``: why it cannot be."""

    number: int
    baseline: Baseline | None
    candidate: Candidate | None
    reason: str | None = None


def subgraph_pairs(
    baseline: Baseline, candidate: Candidate, options: Options, interpreters: Interpreters
) -> Iterator[SubgraphPair]:
    """Every subgraph of the original that IF and WHILE call, once, those that other subgraphs call included."""
    numbers = tuple(range(len(baseline.model.graphs)))
    yield from _Subgraphs(options, interpreters, set()).below(baseline, candidate, numbers)


@dataclass
class _Subgraphs:
    options: Options
    interpreters: Interpreters
    seen: set[int]

    def below(self, baseline: Baseline, candidate: Candidate, numbers: Sequence[int]) -> Iterator[SubgraphPair]:
        """``numbers``: by position of a subgraph of the original, its position in the file."""
        for operator in baseline.model.main.operators:
            if operator.name not in ("IF", "WHILE"):
                continue
            samples = self._samples(baseline, operator)
            for index in called_subgraphs(operator):
                if numbers[index] not in self.seen:
                    self.seen.add(numbers[index])
                    yield from self._pair(baseline, candidate, index, samples.get(index), numbers)

    def _pair(
        self,
        baseline: Baseline,
        candidate: Candidate,
        index: int,
        samples: list[Sample] | None,
        numbers: Sequence[int],
    ) -> Iterator[SubgraphPair]:
        number, model = numbers[index], baseline.model
        operators = (operator for at in reachable(model, index) for operator in model.graphs[at].operators)
        if any(operator.name in _KEEPS_STATE for operator in operators):
            yield SubgraphPair(number, None, None, "it keeps state")
            return
        if not samples:
            yield SubgraphPair(number, None, None, "no input was seen to reach it")
            return
        data, order = isolated(baseline.shaped.data, index)
        found = measure_baseline(data, read_model(data), self.options, self.interpreters, samples)
        inner = _candidate_of(candidate, index, found)
        yield SubgraphPair(number, found, inner)
        yield from self.below(found, inner, [numbers[at] for at in order])

    def _samples(self, baseline: Baseline, operator: Operator) -> dict[int, list[Sample]]:
        """By position of a subgraph, the samples to look at it on, from the first runtime that runs the whole.

        Both branches of an IF take what either was given.
        """
        name = next((name for name, each in baseline.runs.items() if each.run is not None), None)
        given = None if name is None else _operands(baseline, operator, baseline.runs[name].run)
        if name is None or given is None:
            return {}
        if operator.name == "IF":
            return {index: [row[1:] for row in given] for index in called_subgraphs(operator)}
        condition, body = called_subgraphs(operator)
        found: dict[int, list[Sample]] = {condition: [], body: []}
        current = given
        for _ in range(_TURNS):
            found[condition] += current
            verdicts = self._outputs(baseline, name, condition, current)
            current = [row for row, (goes_on,) in zip(current, verdicts, strict=False) if goes_on.any()]
            found[body] += current
            current = self._outputs(baseline, name, body, current) if current else []
            if not current:
                break
        return found

    def _outputs(self, baseline: Baseline, name: str, index: int, samples: list[Sample]) -> list[Sample]:
        """What a runtime makes of a subgraph of the original, for each sample; nothing where it does not run."""
        kernels = baseline.runs[name].kernels if name in GRAPH_RUNTIMES else None
        data, _ = isolated(baseline.shaped.data, index)
        job = RunJob(data, samples, arena_for(baseline.model), kernels=kernels or REFERENCE)
        outputs = self.interpreters[name].run(job).outputs
        return [list(row) for row in zip(*outputs.values(), strict=True)]


def _candidate_of(candidate: Candidate, index: int, baseline: Baseline) -> Candidate:
    subject = candidate.subject
    rewritten, optimized = (isolated(data, index)[0] for data in (subject.rewritten, subject.optimized))
    subject = replace(subject, rewritten=rewritten, optimized=optimized, pieces={})
    model = read_model(optimized)
    arena = max(arena_for(baseline.model), arena_for(model))
    return Candidate(subject, model, SAME, baseline.samples, arena, least_decibels=candidate.least_decibels)


def _operands(baseline: Baseline, operator: Operator, run: Run | None) -> list[Sample] | None:
    """What an operator of the entry graph read, for each of the first samples; None where something is not known."""
    positions = {tensor: at for at, tensor in enumerate(baseline.model.main.tensors)}
    count = min(_MOST_SAMPLES, len(baseline.samples))
    columns = []
    for tensor in operator.present_inputs():
        constant = values(tensor) if tensor.is_constant else None
        known = [] if run is None else run.tensors.get(positions[tensor], [])
        column = known if constant is None else [constant] * count
        if len(column) < count:
            return None
        columns.append(column[:count])
    return [list(row) for row in zip(*columns, strict=True)]


def isolated(data: bytes, index: int) -> tuple[bytes, tuple[int, ...]]:
    """A model with subgraph ``index`` as its entry, planned as it is in ``data``; and by position, the old position.

    It has no plan where a loop reads one of its inputs in rows.
    """
    model = read_model(data)
    planned = None if partial_in(model) & set(model.graphs[index].inputs) else offline_plan.decode(model)
    order = (index, *sorted(reachable(model, index) - {index}))
    positions = {old: new for new, old in enumerate(order)}
    model.graphs = [model.graphs[at] for at in order]
    model.signatures = None
    kept = {id(tensor) for graph in model.graphs for tensor in graph.tensors}
    for operator in (operator for graph in model.graphs for operator in graph.operators):
        renumber_subgraphs(operator, positions)
    if planned:
        offline_plan.attach(model, {tensor: offset for tensor, offset in planned.items() if id(tensor) in kept})
    else:
        offline_plan.detach(model)
    return write_model(model), order
