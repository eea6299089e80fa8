"""A model that is called again and again, with one step or one hop, proved equal to the model of the whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ...model.ir.model import Model
from .call import zero_point
from .equality import differing_side, inputs_of, not_proved, prove_computed
from .outcome import Notes, Proof, Status
from .ring import Keys, Value
from .run import Run


def is_step_of(step: Model, original: Model) -> bool:
    """Tell whether a model takes one of the frames of another one, and gives its outputs or a frame of each."""
    if len(original.main.inputs) != 1 or len(step.main.outputs) < len(original.main.outputs) or not step.main.inputs:
        return False
    sides = [(step.main.inputs[0], original.main.inputs[0])]
    sides += zip(step.main.outputs, original.main.outputs, strict=False)
    calls = {1, sides[0][1].elements // max(1, sides[0][0].elements)}
    return all(one.dtype is all_.dtype and all_.elements in {one.elements * n for n in calls} for one, all_ in sides)


def prove_steps(original: Model, step: Model, ties: Sequence[tuple[int, int]]) -> Proof:
    """Compare a model with as many calls of ``step`` as it has frames; the states are zeros before the first one.

    The first input of ``step`` is a frame, the others are the inputs of ``ties``. Its first outputs stand for those of
    ``original``: one as large is that of the last call, a smaller one is the frame that each call adds.
    """
    reason = _interface(original, step, ties, 0) if is_step_of(step, original) else "it is a step of another model"
    if reason is not None:
        return Proof(Status.DIFFERENT, reason=reason)
    refused = not_proved(original, step)
    if refused is not None:
        return refused
    frame, wanted = step.main.inputs[0], original.main.outputs
    calls = original.main.inputs[0].elements // max(1, frame.elements)

    def whole(keys: Keys, notes: Notes) -> Sequence[Value]:
        return Run(original, keys, notes, "original", infers=True).invoke(inputs_of(keys, original.main.inputs))

    def in_steps(keys: Keys, notes: Notes) -> Sequence[Value]:
        run = Run(step, keys, notes, "step")
        (sequence,) = inputs_of(keys, original.main.inputs)
        carried: dict[int, Value] = {at: _zeros(keys, step, at) for _, at in ties}
        made: list[Sequence[Value]] = []
        for taken in sequence.reshape(calls, *frame.shape):
            made.append(run.invoke([taken, *(carried[at] for at in sorted(carried))]))
            carried = {at: made[-1][output] for output, at in ties}
        return [
            made[-1][at]
            if step.main.outputs[at].elements == like.elements
            else np.stack([keys.constant(outputs[at]) for outputs in made]).reshape(like.shape)
            for at, like in enumerate(wanted)
        ]

    return prove_computed(whole, in_steps)


def prove_slide(original: Model, slide: Model, ties: Sequence[tuple[int, int]]) -> Proof:
    """Compare a model with the last of as many calls of ``slide`` as give all rows of its window, from any state.

    The input of ``slide`` that is smaller than that of ``original`` takes the rows of a hop; those of ``ties`` come
    last. Since no window's state matters for the outputs of one that shares no rows with it, this is all windows of
    all signals: of each the calls that give its rows are such calls. The other inputs are those of the last call.
    """
    at, calls = hops_of(slide, original)
    reason = _interface(original, slide, ties, at) if calls else "it is a hop of another model"
    if reason is not None:
        return Proof(Status.DIFFERENT, reason=reason)
    refused = not_proved(original, slide)
    if refused is not None:
        return refused

    def whole(keys: Keys, notes: Notes) -> Sequence[Value]:
        return Run(original, keys, notes, "original", infers=True).invoke(inputs_of(keys, original.main.inputs))

    def in_hops(keys: Keys, notes: Notes) -> Sequence[Value]:
        run, new = Run(slide, keys, notes, "slide"), slide.main.inputs[at]
        last = inputs_of(keys, original.main.inputs)
        before = calls * new.elements - last[at].size
        # What came before the window, what is given with it, and what is kept of it is anything.
        earlier = inputs_of(keys, (replace(new, shape=(before,)), *slide.main.inputs), 1)
        signal = np.concatenate([earlier[0].reshape(-1), last[at].reshape(-1)]).reshape(calls, *new.shape)
        carried, made = {source: earlier[source + 1] for _, source in ties}, list[Value]()
        for call, rows in enumerate(signal):
            is_last = call == calls - 1
            others = last if is_last else earlier[1:]
            given = [carried[n] if n in carried else others[n] for n in range(len(slide.main.inputs))]
            made = run.invoke(
                [*given[:at], rows, *given[at + 1 :]], None if is_last else [output for output, _ in ties]
            )
            carried = {source: made[output] for output, source in ties}
        return made[: len(original.main.outputs)]

    return prove_computed(whole, in_hops)


def hops_of(slide: Model, original: Model) -> tuple[int, int]:
    """Return which input takes the rows of a hop, and the calls that give all rows of a window.

    ``calls`` is 0 where no input does, so that it is another model's.
    """
    sides = list(zip(slide.main.inputs, original.main.inputs, strict=False))
    found = [at for at, (new, whole) in enumerate(sides) if 0 < new.elements < whole.elements]
    if len(found) != 1 or len(sides) < len(original.main.inputs):
        return 0, 0
    new, whole = sides[found[0]]
    others = [each for each in sides if each[0] is not new]
    others += zip(slide.main.outputs, original.main.outputs, strict=False)
    is_alike = all(a.dtype is b.dtype and a.elements == b.elements for a, b in others) and new.dtype is whole.dtype
    is_whole = len(slide.main.outputs) >= len(original.main.outputs)
    return found[0], -(-whole.elements // new.elements) if is_alike and is_whole else 0


def _interface(original: Model, step: Model, ties: Sequence[tuple[int, int]], at: int) -> str | None:
    """Return how a step differs from its original at the interface; input ``at`` is a part, as outputs of a step are.

    What it has besides is tied, each input once, to an output like it.
    """
    inputs, outputs = original.main.inputs, original.main.outputs
    taken, made = step.main.inputs, step.main.outputs
    if sorted(source for _, source in ties) != [*range(len(inputs), len(taken))]:
        return f"the ties are not of its inputs from {len(inputs)} on, each once"
    if not {*range(len(outputs), len(made))} <= {output for output, _ in ties}:
        return f"an output from {len(outputs)} on is in no tie"
    frames = [n for n, (one, other) in enumerate(zip(outputs, made, strict=False)) if one.elements != other.elements]
    return (
        differing_side("input", inputs, taken[: len(inputs)], parts=(at,))
        or differing_side("output", outputs, made[: len(outputs)], parts=frames)
        or differing_side("state", [made[n] for n, _ in ties], [taken[n] for _, n in ties])
    )


def _zeros(keys: Keys, step: Model, at: int) -> Value:
    tensor = step.main.inputs[at]
    return keys.constant(np.full(tensor.shape, zero_point(tensor), tensor.dtype.label))
