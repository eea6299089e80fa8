"""TFLM as the judge of a plan: every tensor, at its last use, must be what the graph makes with no memory shared."""

from __future__ import annotations

from dataclasses import dataclass

from ..analysis.loops import partial_in
from ..ir.model import Model
from .adapter import Array, Run, RunJob, Sample, Values
from .baseline import for_a_second_look
from .compare import InnerDifference, first_inner_difference
from .correspondence import Link
from .exposure import FILLS, run_exposed, run_snapshots
from .runner import ModelRunner


@dataclass(frozen=True)
class PlanJob:
    """A planned model, as ``data`` and as the ``model`` that is written there, and what to judge its plan on.

    ``arena_bytes`` is enough for anything, or all that a runner has. ``required_bytes``: what the model as written
    must run in, where that is known. ``may_take_more``: where those bytes are refused it runs in ``arena_bytes``.
    """

    runner: ModelRunner
    data: bytes
    model: Model
    samples: list[Sample]
    arena_bytes: int
    required_bytes: int | None = None
    may_take_more: bool = False


@dataclass(frozen=True)
class PlannedRun:
    """A planned model on TFLM. ``run`` is that of the model as it is written, ``outputs`` are those of all samples.

    ``apart``: the run with no memory shared; None when there is none, for ``reason``, which is also what TFLM has
    against the plan. ``difference``: the first tensor that the plan spoils. ``took_more``: the arena that is said to be
    enough was refused, and a larger one was not.
    """

    run: Run
    outputs: Values
    apart: Run | None
    reason: str | None = None
    difference: InnerDifference | None = None
    took_more: bool = False


def judge_plan(job: PlanJob) -> PlannedRun:
    """Run a model as written, in an arena of exactly ``required_bytes`` where that is known, and judge its plan.

    What a loop has not yet filled, or needs no longer, is not judged in the entry graph: what is read of it in the
    loop is.
    """
    run, took_more = _run_as_promised(job)
    if not run.ran:
        return PlannedRun(run, {}, None, _refusal(job, run))
    all_samples = RunJob(job.data, job.samples, job.arena_bytes, fill=FILLS[1])
    shown = run_snapshots(job.runner, all_samples, int(run.facts["head"]))
    apart = run_exposed(job.runner, job.data, job.samples, job.arena_bytes) if shown.ran else shown
    # The model as written has run over the first samples, over other memory.
    outputs = {at: [*values, *shown.outputs.get(at, ())[len(values) :]] for at, values in run.outputs.items()}
    if not apart.ran:
        reason = f"its tensors could not be shown one by one: {apart.reason}"
        return PlannedRun(run, outputs, None, reason, took_more=took_more)
    return PlannedRun(run, outputs, apart, None, _spoilt(job, shown, apart), took_more)


def _run_as_promised(job: PlanJob) -> tuple[Run, bool]:
    """The run of the model as written, and whether it took more than the arena that is said to be enough."""
    run = _run_as_written(job, job.required_bytes or job.arena_bytes)
    if run.ran or not job.may_take_more or job.required_bytes is None:
        return run, False
    run = _run_as_written(job, job.arena_bytes)
    return run, run.ran


def _run_as_written(job: PlanJob, arena_bytes: int) -> Run:
    samples = for_a_second_look(job.runner, job.samples)
    return job.runner.run(RunJob(job.data, samples, arena_bytes, fill=FILLS[0], measure=True))


def _refusal(job: PlanJob, run: Run) -> str:
    required = None if job.may_take_more else job.required_bytes
    if required is not None and job.runner.run(RunJob(job.data, job.samples[:1], job.arena_bytes)).ran:
        return f"it does not run in the {required} bytes of arena that the report says are enough: {run.reason}"
    return run.reason


def _spoilt(job: PlanJob, shown: Run, apart: Run) -> InnerDifference | None:
    """The first tensor that the plan spoils."""
    partial = partial_in(job.model)
    left_out = {index for index, tensor in enumerate(job.model.main.tensors) if tensor in partial}
    same = tuple(Link(index, index) for index in shown.tensors if index not in left_out)
    found = first_inner_difference(same, apart, shown, job.model)
    if found is None:
        return None
    again = run_exposed(job.runner, job.data, job.samples, job.arena_bytes, FILLS[0])
    return first_inner_difference(same, _defined(apart, again, shown), shown, job.model) if again.ran else found


def _defined(one: Run, other: Run, shown: Run) -> Run:
    """The first run, with what nobody writes taken from ``shown``: bytes that depend on what the arena held before.

    Some operators leave a part of their output as it is, and others never read that part.
    """
    merged = dict(one.tensors)
    for index in shown.tensors.keys() & one.tensors.keys() & other.tensors.keys():
        merged[index] = list(map(_where_same, one.tensors[index], other.tensors[index], shown.tensors[index]))
    return Run(one.outputs, merged)


def _where_same(a: Array, b: Array, otherwise: Array) -> Array:
    same = a.view(f"u{a.itemsize}") == b.view(f"u{b.itemsize}") if a.dtype.kind == "f" else a == b
    kept: Array = a.copy()
    kept[~same] = otherwise[~same]
    return kept
