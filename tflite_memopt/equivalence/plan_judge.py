"""TFLM as the judge of a plan: every tensor, at its last use, must be what the graph makes with no memory shared."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass

from ..analysis.placeholders import partial_in
from ..ir.model import Model
from .adapter import RunJob
from .compare import InnerDifference, first_inner_difference
from .correspondence import Link
from .exposure import snapshots
from .inputs import Sample
from .original import FILLS, run_exposed, within_the_arena
from .runner import ModelRunner, Run
from .tolerance import Array
from .trace import Trace, trace_of


@dataclass(frozen=True)
class Planned:
    """A planned model on TFLM. ``run`` is that of the model as it is written.

    ``apart``: the trace with no memory shared; None when nothing could be run, for ``reason``, which is also what TFLM
    has against the plan. ``difference``: the first tensor that the plan spoils.
    """

    run: Run
    outputs: dict[int, list[Array]]
    apart: Trace | None
    reason: str | None = None
    difference: InnerDifference | None = None


def judge_plan(
    interpreter: ModelRunner,
    data: bytes,
    model: Model,
    samples: list[Sample],
    arena_bytes: int,
    required_bytes: int | None,
    other: ModelRunner | None = None,
) -> Planned:
    """Run a model as written, in an arena of exactly ``required_bytes`` where that is known, and judge its plan.

    ``other``: a second runner of the kind, which runs the model with no memory shared meanwhile. ``model`` is what is
    written there; ``arena_bytes`` is enough for anything, or all that a runner has. What a loop has not yet filled, or
    needs no longer, is not judged in the entry graph: what is read of it in the loop is.
    """
    partial = partial_in(model)
    left_out = {index for index, tensor in enumerate(model.main.tensors) if tensor in partial}
    run = interpreter.run(RunJob(data, samples, required_bytes or arena_bytes, fill=FILLS[0], measure=True))
    if not run.ran:
        return Planned(run, {}, None, _refusal(interpreter, data, samples, arena_bytes, required_bytes, run))
    outputs = trace_of(run.arrays, len(samples)).outputs
    head = int(run.facts["head"])
    with ThreadPoolExecutor(max_workers=1) as meanwhile:
        running = meanwhile.submit(run_exposed, other or interpreter, data, samples, arena_bytes)
        if other is None:
            wait([running])
        shown = _snapshots(interpreter, data, samples, arena_bytes, head)
        apart = running.result()
    if isinstance(apart, Run):
        return Planned(run, outputs, None, f"its tensors could not be shown one by one: {apart.missing or apart.error}")
    if isinstance(shown, Run):
        return Planned(run, outputs, None, f"its tensors could not be shown one by one: {shown.missing or shown.error}")
    same = tuple(Link(index, index) for index in shown.tensors if index not in left_out)
    found = first_inner_difference(same, apart, shown, model)
    if found is not None:
        again = run_exposed(interpreter, data, samples, arena_bytes, fill=FILLS[0])
        if isinstance(again, Trace):
            found = first_inner_difference(same, _defined(apart, again, shown), shown, model)
    return Planned(run, outputs, apart, None, found)


def _refusal(
    interpreter: ModelRunner, data: bytes, samples: list[Sample], arena_bytes: int, required: int | None, run: Run
) -> str:
    why = run.missing or run.error or "TFLM gave no reason"
    if required is not None and interpreter.run(RunJob(data, samples[:1], arena_bytes)).ran:
        return f"it does not run in the {required} bytes of arena that the report says are enough: {why}"
    return why


def _snapshots(
    interpreter: ModelRunner, data: bytes, samples: list[Sample], arena_bytes: int, head: int
) -> Trace | Run:
    def attempt(most_bytes: int) -> Trace | Run:
        return _snapshots_of(interpreter, data, samples, arena_bytes, head, most_bytes)

    return within_the_arena(arena_bytes, attempt)


def _snapshots_of(
    interpreter: ModelRunner, data: bytes, samples: list[Sample], arena_bytes: int, head: int, most_bytes: int
) -> Trace | Run:
    found = Trace()
    for exposure in snapshots(data, head, most_bytes):
        run = interpreter.run(RunJob(exposure.model, samples, exposure.arena_in(arena_bytes), fill=FILLS[0]))
        if not run.ran:
            return run
        outputs = trace_of(run.arrays, len(samples)).outputs
        found.tensors.update({exposure.tensors[at]: values for at, values in outputs.items() if at in exposure.tensors})
    return found


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
