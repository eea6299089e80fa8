"""TFLM as the judge of a plan: every tensor, at its last use, must be what the graph makes with no memory shared."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace

from ..analysis.placeholders import partial_in
from ..graph.alignment import aligned
from ..ir.model import Model
from .adapter import RunJob
from .compare import InnerDifference, first_inner_difference, first_output_difference
from .correspondence import Link
from .exposure import MOST_BYTES, Exposure, snapshots
from .inputs import Sample
from .original import FILLS, for_a_second_look, outputs_of, run_exposed, run_shown, within_the_arena
from .runner import ModelRunner, Run
from .tolerance import Array
from .trace import Trace, trace_of

Vouches = Callable[[Trace], bool]
"""Whether each of these values, outputs too, is known to be what the graph makes with no memory shared."""


@dataclass(frozen=True)
class Planned:
    """A planned model on TFLM. ``run`` is that of the model as it is written.

    ``apart``: the trace with no memory shared; None when nothing could be run, for ``reason``, which is also what TFLM
    has against the plan. ``difference``: the first tensor that the plan spoils. ``is_vouched``: nothing was run with
    no memory shared, and ``apart`` is the planned model's own trace, which was vouched for. ``took_more``: the arena
    that is said to be enough was refused, and a larger one was not.
    """

    run: Run
    outputs: dict[int, list[Array]]
    apart: Trace | None
    reason: str | None = None
    difference: InnerDifference | None = None
    is_vouched: bool = False
    took_more: bool = False


@dataclass(frozen=True)
class PlanJob:
    """A planned model, as ``data`` and as the ``model`` that is written there, and what to judge its plan on.

    ``arena_bytes`` is enough for anything, or all that a runner has. ``required_bytes``: what the model as written
    must run in, and ``head``: what it is said to need of it, both where that is known. ``may_take_more``: where those
    bytes are refused it runs in ``arena_bytes``. ``other``: a second runner of the kind, for what can run meanwhile.
    """

    interpreter: ModelRunner
    data: bytes
    model: Model
    samples: list[Sample]
    arena_bytes: int
    required_bytes: int | None = None
    head: int | None = None
    may_take_more: bool = False
    other: ModelRunner | None = None


def judge_plan(job: PlanJob, vouches: Vouches | None = None) -> Planned:
    """Run a model as written, in an arena of exactly ``required_bytes`` where that is known, and judge its plan.

    What ``vouches`` has a word for needs no run with no memory shared. What a loop has not yet filled, or needs no
    longer, is not judged in the entry graph: what is read of it in the loop is.
    """
    run, shown, apart = _runs(job, vouches is None)
    if not run.ran and job.may_take_more and job.required_bytes is not None:
        return replace(judge_plan(replace(job, required_bytes=None), vouches), took_more=True)
    if not run.ran:
        return Planned(run, {}, None, _refusal(job, run))
    outputs = outputs_of(run, shown if isinstance(shown, Trace) else None)
    if isinstance(shown, Run):
        return Planned(run, outputs, None, _unshown(shown))
    partial = partial_in(job.model)
    left_out = {index for index, tensor in enumerate(job.model.main.tensors) if tensor in partial}
    judged = Trace(shown.outputs, {at: values for at, values in shown.tensors.items() if at not in left_out})
    if vouches is not None and first_output_difference(outputs, shown.outputs) is None and vouches(judged):
        return Planned(run, outputs, judged, is_vouched=True)
    apart = apart or _apart(job, job.interpreter)
    if isinstance(apart, Run):
        return Planned(run, outputs, None, _unshown(apart))
    return Planned(run, outputs, apart, None, _spoilt(job, judged, apart))


def _runs(job: PlanJob, needs_apart: bool) -> tuple[Run, Trace | Run, Trace | Run | None]:
    """The model as written, with its tensors shown, and with no memory shared: at once, as far as there is a runner.

    The last one is None where there is no second runner, or no need. Where the head is known beforehand, what shows the
    tensors is made while the model runs.
    """
    head, other = job.head, job.other
    with ThreadPoolExecutor(max_workers=2) as pool:
        apart = pool.submit(_apart, job, other) if other is not None and needs_apart else None
        early, made = None, None
        if other is not None and head is not None and not needs_apart:
            early = pool.submit(_snapshots, job, other, head)
        elif head is not None and not job.interpreter.shows_tensors:
            made = pool.submit(snapshots, job.data, head)
        required = job.required_bytes or job.arena_bytes
        samples = for_a_second_look(job.interpreter, job.samples)
        run = job.interpreter.run(RunJob(job.data, samples, required, fill=FILLS[0], measure=True))
        if not run.ran:
            return run, run, None
        if early is not None:
            shown = early.result()
        else:
            measured = int(run.facts["head"])
            is_as_said = head is not None and aligned(head) == aligned(measured)
            shown = _snapshots(job, job.interpreter, measured, made if is_as_said else None)
        return run, shown, None if apart is None else apart.result()


def _apart(job: PlanJob, runner: ModelRunner, fill: int = FILLS[1]) -> Trace | Run:
    return run_exposed(runner, job.data, job.samples, job.arena_bytes, fill=fill)


def _spoilt(job: PlanJob, shown: Trace, apart: Trace) -> InnerDifference | None:
    """The first tensor that the plan spoils."""
    same = tuple(Link(index, index) for index in shown.tensors)
    found = first_inner_difference(same, apart, shown, job.model)
    if found is None:
        return None
    again = _apart(job, job.interpreter, FILLS[0])
    if isinstance(again, Run):
        return found
    return first_inner_difference(same, _defined(apart, again, shown), shown, job.model)


def _unshown(run: Run) -> str:
    return f"its tensors could not be shown one by one: {run.missing or run.error}"


def _refusal(job: PlanJob, run: Run) -> str:
    why, required = run.missing or run.error or "TFLM gave no reason", job.required_bytes
    if required is not None and job.interpreter.run(RunJob(job.data, job.samples[:1], job.arena_bytes)).ran:
        return f"it does not run in the {required} bytes of arena that the report says are enough: {why}"
    return why


def _snapshots(job: PlanJob, runner: ModelRunner, head: int, made: Future[list[Exposure]] | None = None) -> Trace | Run:
    """The trace of the model with its plan, of each tensor at its last use; the failed run where one fails.

    A runner that shows tensors needs no other model for that, and no larger arena. ``made``: what is to run for this
    head, as far as it is being made already.
    """
    if runner.shows_tensors:
        return run_shown(runner, job.data, job.samples, job.required_bytes or job.arena_bytes, FILLS[1])

    def attempt(most_bytes: int) -> Trace | Run:
        found = Trace()
        early = made.result() if made is not None and most_bytes == MOST_BYTES else None
        for exposure in early or snapshots(job.data, head, most_bytes):
            arena = exposure.arena_in(job.arena_bytes)
            run = runner.run(RunJob(exposure.model, job.samples, arena, fill=FILLS[1]))
            if not run.ran:
                return run
            outputs, shown = trace_of(run.arrays, len(job.samples)).outputs, exposure.tensors
            found.tensors.update({shown[at]: values for at, values in outputs.items() if at in shown})
            found.outputs = {at: values for at, values in outputs.items() if at < exposure.outputs}
        return found

    return within_the_arena(job.arena_bytes, attempt)


def _defined(one: Trace, other: Trace, shown: Trace) -> Trace:
    """The first trace, with what nobody writes taken from ``shown``: bytes that depend on what the arena held before.

    Some operators leave a part of their output as it is, and others never read that part.
    """
    merged = Trace(one.outputs, dict(one.tensors))
    for index, values in one.tensors.items():
        again, spoilt = other.tensors.get(index), shown.tensors.get(index)
        if again is None or spoilt is None:
            continue
        merged.tensors[index] = [_where_same(*each) for each in zip(values, again, spoilt, strict=True)]
    return merged


def _where_same(a: Array, b: Array, otherwise: Array) -> Array:
    same = a.view(f"u{a.itemsize}") == b.view(f"u{b.itemsize}") if a.dtype.kind == "f" else a == b
    kept: Array = a.copy()
    kept[~same] = otherwise[~same]
    return kept
