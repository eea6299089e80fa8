"""Which mutants the verification catches, and by what."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from scripts.mutation.graph_mutants import graph_mutants
from scripts.mutation.mutant import Mutant
from scripts.mutation.plan_mutants import plan_mutants
from scripts.mutation.reference import LongRun
from tflite_memopt.equivalence.baseline import Baseline, arena_for, measure_baseline
from tflite_memopt.equivalence.failure import Subject
from tflite_memopt.equivalence.interface import SAME
from tflite_memopt.equivalence.judge import Candidate, judge_on_all
from tflite_memopt.equivalence.pool import Interpreters
from tflite_memopt.equivalence.static_diff import first_stored_difference
from tflite_memopt.errors import MemoptError
from tflite_memopt.io.reader import read_model
from tflite_memopt.ir.check import check_model
from tflite_memopt.options import Options
from tflite_memopt.pipeline import optimize


@dataclass
class Score:
    """Of one model and one kind: mutants ``tried``; ``visible`` in the long run or to the verification, ``caught``.

    ``by_values``: of the visible ones, those that LiteRT's or TFLM's values alone give away. ``missed`` names the rest.
    """

    model: str
    kind: str
    tried: int = 0
    visible: int = 0
    caught: int = 0
    by_values: int = 0
    missed: list[str] = field(default_factory=list)


def graph_scores(
    name: str, data: bytes, per_kind: int, samples: int, interpreters: Interpreters, seed: int
) -> Iterator[Score]:
    """Scores of the mutants of a graph, each judged by the verification at its default number of samples."""
    original = measure_baseline(data, read_model(data), Options(), interpreters)
    if original.runs["tflm"].run is None:
        return
    long_run = LongRun(data, samples, interpreters)
    scores: dict[str, Score] = {}
    for mutant in graph_mutants(data, per_kind, seed):
        score = scores.setdefault(mutant.kind, Score(name, mutant.kind))
        score.tried += 1
        in_file, in_values = (
            _is_stored_differently(original, mutant),
            _computes_otherwise(original, mutant, interpreters),
        )
        if in_values or long_run.shows(mutant):
            score.visible += 1
            score.caught += in_file or in_values
            score.by_values += in_values
            if not (in_file or in_values):
                score.missed.append(mutant.where)
    yield from scores.values()


def plan_scores(
    name: str, data: bytes, kernels: str, per_kind: int, samples: int, interpreters: Interpreters, seed: int
) -> Iterator[Score]:
    """Scores of the mutants of a plan, made for the kernels of a profile."""
    original = measure_baseline(data, read_model(data), Options(), interpreters)
    if original.runs["tflm"].run is None:
        return
    planned = optimize(data, Options(kernels=kernels, verify=False, time_limit=600)).model
    long = measure_baseline(planned, read_model(planned), Options(samples=samples, seed=1), interpreters)
    scores: dict[str, Score] = {}
    for mutant in plan_mutants(planned, per_kind, seed):
        score = scores.setdefault(mutant.kind, Score(name, f"{mutant.kind}, {kernels}"))
        score.tried += 1
        if _spoils(original, mutant, interpreters):
            score.visible += 1
            score.caught += 1
            score.by_values += 1
        elif _spoils(long, mutant, interpreters):
            score.visible += 1
            score.missed.append(mutant.where)
    yield from scores.values()


def _is_stored_differently(original: Baseline, mutant: Mutant) -> bool:
    return first_stored_difference(original.model, read_model(mutant.data), {}) is not None


def _computes_otherwise(original: Baseline, mutant: Mutant, interpreters: Interpreters) -> bool:
    """As ``verify`` judges it."""
    try:
        candidate = _candidate(original, mutant)
    except MemoptError:
        return True
    results = judge_on_all(original, candidate, interpreters)
    return any(each.verdict.equal is False for each in results.values())


def _spoils(original: Baseline, mutant: Mutant, interpreters: Interpreters) -> bool:
    """Whether TFLM, as the judge of the plan, finds anything."""
    try:
        candidate = _candidate(original, mutant)
    except MemoptError:
        return True
    judged = judge_on_all(original, candidate, interpreters)["tflm"]
    return judged.reason is not None or not judged.verdict.equal


def _candidate(original: Baseline, mutant: Mutant) -> Candidate:
    """Raises MemoptError where the tool refuses the model."""
    model = read_model(mutant.data)
    check_model(model)
    arena = 2 * max(arena_for(original.model), arena_for(model))
    return Candidate(Subject(original.data, mutant.data, mutant.data), model, SAME, original.samples, arena)
