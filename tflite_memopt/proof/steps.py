"""A model of one step proved equal to the model of the whole sequence: it is called once for each frame."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..ir.model import Model
from .call import zero_point
from .equality import inputs_of, prove_computed
from .outcome import Notes, Proof
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


def _zeros(keys: Keys, step: Model, at: int) -> Value:
    tensor = step.main.inputs[at]
    return keys.constant(np.full(tensor.shape, zero_point(tensor), tensor.dtype.label))
