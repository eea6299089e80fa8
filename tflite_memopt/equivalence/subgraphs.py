"""The subgraphs that IF and WHILE call: each is judged as a model of its own.

No interpreter shows what is inside a subgraph: LiteRT gives back whatever lies in its memory by then, TFLM outputs.
So each subgraph becomes the entry of a model, its tensors at the offsets of the plan, and runs on the values that the
call gives it: for WHILE those of the first turns. What the plan does between a subgraph and its caller shows in the
caller's tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from ..io.reader import read_model
from ..ir.constants import values
from ..ir.control_flow import called_subgraphs
from ..ir.model import Operator
from ..options import Options
from .adapter import REFERENCE, RunJob
from .inputs import Sample
from .interface import SAME
from .isolation import isolated, reachable
from .judge import Claim
from .original import Original, arena_for, look_at
from .pool import Interpreters
from .trace import Trace, trace_of

_MOST_SAMPLES = 8
"""Of the model's, on which a subgraph is looked at."""
_TURNS = 3
_KEEPS_STATE = frozenset({"CALL_ONCE", "VAR_HANDLE", "READ_VARIABLE", "ASSIGN_VARIABLE"})
RunSubgraph = Callable[[int, list[Sample]], "list[Sample] | None"]
"""The outputs of a subgraph of the original, by its position, for each sample; None where it does not run."""


@dataclass(frozen=True)
class SubgraphClaim:
    """A subgraph of both models to be judged: ``number`` is its position in the file. ``reason``: why it cannot be."""

    number: int
    original: Original | None
    claim: Claim | None
    reason: str | None = None


def subgraph_claims(
    original: Original, claim: Claim, options: Options, interpreters: Interpreters
) -> Iterator[SubgraphClaim]:
    """Every subgraph of the original that IF and WHILE call, once, those that other subgraphs call included."""
    numbers = tuple(range(len(original.model.graphs)))
    yield from _Subgraphs(options, interpreters, set()).below(original, claim, numbers)


@dataclass
class _Subgraphs:
    options: Options
    interpreters: Interpreters
    seen: set[int]

    def below(self, original: Original, claim: Claim, numbers: Sequence[int]) -> Iterator[SubgraphClaim]:
        """``numbers``: by position of a subgraph of the original, its position in the file."""
        trace, run = self._ground(original)
        for operator in original.model.main.operators:
            if operator.name not in ("IF", "WHILE"):
                continue
            given = None if trace is None else _operands(original, operator, trace)
            by_graph = None if given is None else _samples(operator, given, run)
            for index in called_subgraphs(operator):
                if numbers[index] not in self.seen:
                    self.seen.add(numbers[index])
                    samples = None if by_graph is None else by_graph.get(index)
                    yield from self._one(original, claim, index, samples, numbers)

    def _one(
        self, original: Original, claim: Claim, index: int, samples: list[Sample] | None, numbers: Sequence[int]
    ) -> Iterator[SubgraphClaim]:
        number = numbers[index]
        if any(
            operator.name in _KEEPS_STATE
            for at in reachable(original.model, index)
            for operator in original.model.graphs[at].operators
        ):
            yield SubgraphClaim(number, None, None, "it keeps state")
            return
        if not samples:
            yield SubgraphClaim(number, None, None, "no input was seen to reach it")
            return
        data, order = isolated(original.shaped.data, index)
        found = look_at(data, read_model(data), self.options, self.interpreters, samples)
        inner = _claim_of(claim, index, found)
        yield SubgraphClaim(number, found, inner)
        yield from self.below(found, inner, [numbers[at] for at in order])

    def _ground(self, original: Original) -> tuple[Trace | None, RunSubgraph]:
        """The trace of the first runtime that ran the original, and a way to run its subgraphs there."""
        name, ground = next(
            ((name, each) for name, each in original.grounds.items() if each.trace is not None), (None, None)
        )

        def run(index: int, samples: list[Sample]) -> list[Sample] | None:
            if name is None or ground is None:
                return None
            data, _ = isolated(original.shaped.data, index)
            kernels = REFERENCE if name in ("tflm", "runner") else ground.kernels or REFERENCE
            done = self.interpreters[name].run(RunJob(data, samples, arena_for(original.model), kernels=kernels))
            outputs = trace_of(done.arrays, len(samples)).outputs if done.ran else {}
            return [list(row) for row in zip(*outputs.values(), strict=True)] if outputs else None

        return None if ground is None else ground.trace, run


def _claim_of(claim: Claim, index: int, original: Original) -> Claim:
    data, _ = isolated(claim.data, index)
    rewritten = None if claim.rewritten is None else isolated(claim.rewritten, index)[0]
    model = read_model(data)
    return replace(
        claim,
        data=data,
        model=model,
        rewritten=rewritten,
        pieces={},
        interface=SAME,
        samples=original.samples,
        arena_bytes=max(arena_for(original.model), arena_for(model)),
        promises={},
    )


def _operands(original: Original, operator: Operator, trace: Trace) -> list[Sample] | None:
    """What an operator of the entry graph read, for each of the first samples; None where something is not known."""
    positions = {id(tensor): at for at, tensor in enumerate(original.model.main.tensors)}
    count = min(_MOST_SAMPLES, len(original.samples))
    columns = []
    for tensor in operator.present_inputs():
        constant = values(tensor) if tensor.is_constant else None
        column = trace.tensors.get(positions[id(tensor)]) if constant is None else [constant] * count
        if column is None or len(column) < count:
            return None
        columns.append(column[:count])
    return [list(row) for row in zip(*columns, strict=True)]


def _samples(operator: Operator, given: list[Sample], run: RunSubgraph) -> dict[int, list[Sample]]:
    """By position of a subgraph, the samples to look at it on. Both branches of an IF take what either was given."""
    called = called_subgraphs(operator)
    if operator.name == "IF":
        return {index: [row[1:] for row in given] for index in called}
    condition, body = called
    found: dict[int, list[Sample]] = {condition: [], body: []}
    current = given
    for _ in range(_TURNS):
        found[condition] += current
        verdicts = run(condition, current)
        current = [row for row, (goes_on,) in zip(current, verdicts or (), strict=False) if goes_on.any()]
        found[body] += current
        current = (run(body, current) or []) if current else []
        if not current:
            break
    return found
