"""A model that is called again and again, proved equal to the model of the whole.

              a call takes            before the first call               outputs
    step      a frame of a sequence   zeros are kept                      of the last call, or one part of each call
    hop       rows of a window        anything is kept: other windows     of the last call
    rows      rows of an image        a byte is kept, or anything         of the last call

What a call keeps for the next one are outputs that are *tied* to inputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from ...model.ir.model import Model, Tensor
from .call import any_value, quantization_of
from .equality import differing_side, inputs_of, not_proved, prove_computed
from .outcome import Notes, Proof, Status
from .ring import Keys, Value
from .run import Run

Kind = Literal["step", "hop", "rows"]


@dataclass(frozen=True)
class Streamed:
    """How ``count`` calls of a model compute what the whole does.

    Input k of the whole is number ``places[k]`` of the model; that at ``image`` comes in parts. ``lead``: elements
    before it in the first calls; these, and those behind it, are ``padding`` each, of hops anything.
    ``ties``: (output, input) by position; each element of tie k is ``starts[k]`` before the first call, None: anything.
    Inputs of the whole that are tied are given to the first call, other ones to all. Input 1 of rows is ``step`` times
    the number of the call.
    """

    kind: Kind
    image: int
    places: tuple[int, ...]
    count: int
    ties: tuple[tuple[int, int], ...]
    starts: tuple[Any, ...]
    lead: int = 0
    padding: Any = 0
    step: int = 0

    @property
    def at(self) -> int:
        """The input of the model that takes the parts."""
        return self.places[self.image]


def stream_of(kind: Kind, model: Model, original: Model, ties: Sequence[tuple[int, int]] = ()) -> Streamed | None:
    """Return how a model of one step or hop computes ``original``; None for one of another model."""
    sides = list(zip(model.main.inputs, original.main.inputs, strict=False))
    outputs = list(zip(model.main.outputs, original.main.outputs, strict=False))
    moving = [at for at, (part, image) in enumerate(sides) if kind == "step" or 0 < part.elements < image.elements]
    is_whole = len(sides) == len(original.main.inputs) and len(outputs) == len(original.main.outputs)
    if not is_whole or len(moving) != 1:
        return None
    (at,) = moving
    part, image = sides[at]
    count = -(-image.elements // max(1, part.elements))
    lead, counts = count * part.elements - image.elements, {1, count} if kind == "step" else {1}
    others = [*sides[:at], *sides[at + 1 :], *outputs]
    is_alike = part.dtype is image.dtype and all(
        a.dtype is b.dtype and b.elements in {a.elements * n for n in counts} for a, b in others
    )
    zeros = [quantization_of(model.main.inputs[source])[1] or (0,) for _, source in ties]
    has_start = kind == "hop" or not (lead or any(len(each) > 1 for each in zeros))
    if not is_alike or not part.elements or not has_start:
        return None
    starts = tuple(None if kind == "hop" else each[0] for each in zeros)
    return Streamed(kind, at, tuple(range(len(sides))), count, tuple(ties), starts, lead)


def prove_streamed(kind: Kind, original: Model, model: Model, ties: Sequence[tuple[int, int]]) -> Proof:
    """Compare a model with calls of one of its step, or of its hop.

    A hop is compared from any state and behind any rows. Since no window's state matters for the outputs of one that
    shares no rows with it, this is all windows of all signals: of each the calls that give its rows are such calls. The
    other inputs are those of the last call.
    """
    stream = stream_of(kind, model, original, ties)
    reason = f"it is a {kind} of another model" if stream is None else _interface(original, model, stream)
    if stream is None or reason is not None:
        return Proof(Status.DIFFERENT, reason=reason)
    refused = not_proved(original, model)
    if refused is not None:
        return refused

    def whole(keys: Keys, notes: Notes) -> Sequence[Value]:
        return Run(original, keys, notes, "original", infers=True).invoke(inputs_of(keys, original.main.inputs))

    def in_calls(keys: Keys, notes: Notes) -> Sequence[Value]:
        given = inputs_of(keys, original.main.inputs)
        return outputs_of_calls(Run(model, keys, notes, kind), stream, given, original.main.outputs)

    return prove_computed(whole, in_calls)


def outputs_of_calls(run: Run, stream: Streamed, given: Sequence[Value], like: Sequence[Tensor]) -> list[Value]:
    """Return what the calls make of inputs of the whole: the first outputs, in the shapes of ``like``."""
    keys, inputs, steps = run.keys, run.model.main.inputs, stream.kind == "step"
    anything = stream.kind == "hop"
    image, part = keys.constant(given[stream.image]).reshape(-1), inputs[stream.at]
    sizes = stream.lead, stream.count * part.elements - stream.lead - image.size
    before, behind = (
        _filled(keys, replace(part, shape=(size,)), None if anything else stream.padding, at)
        for at, size in enumerate(sizes)
    )
    parts = np.concatenate([before, image, behind]).reshape(stream.count, *part.shape)
    others = {at: x.reshape(inputs[at].shape) for at, x in zip(stream.places, given, strict=True) if at != stream.at}
    earlier = {at: _filled(keys, inputs[at], None, "earlier", at) for at in others} if anything else others
    kept = {
        source: _filled(keys, inputs[source], start, "kept", source)
        for (_, source), start in zip(stream.ties, stream.starts, strict=False)
    }
    made: list[list[Value]] = []
    for call, rows in enumerate(parts):
        is_last = call == stream.count - 1
        taken = {**(others if is_last else earlier), **kept, stream.at: rows}
        if stream.kind == "rows":
            taken[1] = np.full(inputs[1].shape, call * stream.step, np.int32)
        wanted = None if steps or is_last else [output for output, _ in stream.ties]
        outputs = run.invoke([taken[at] for at in range(len(inputs))], wanted)
        kept = {source: outputs[output] for output, source in stream.ties}
        made = [*(made if steps else ()), outputs]
    found = []
    for at, tensor in enumerate(like):
        is_whole = made[-1][at].size == tensor.elements
        value = made[-1][at] if is_whole else np.stack([keys.constant(outputs[at]) for outputs in made])
        found.append(value.reshape(tensor.shape))
    return found


def _filled(keys: Keys, tensor: Tensor, element: Any, *name: object) -> Value:
    """Return a value of a tensor that consists of one element; None: any value, by a name."""
    if element is None:
        return any_value(keys, tensor, "before", *name)
    return np.full(tensor.shape, keys.constant(np.full(1, element, tensor.dtype.label)))


def _interface(original: Model, model: Model, stream: Streamed) -> str | None:
    """Return how a model differs from its original at the interface, of which outputs of a step may be parts.

    What it has besides is tied, each input once, to an output like it.
    """
    inputs, outputs = original.main.inputs, original.main.outputs
    taken, made = model.main.inputs, model.main.outputs
    if sorted(source for _, source in stream.ties) != [*range(len(inputs), len(taken))]:
        return f"the ties are not of its inputs from {len(inputs)} on, each once"
    if not {*range(len(outputs), len(made))} <= {output for output, _ in stream.ties}:
        return f"an output from {len(outputs)} on is in no tie"
    parts = [at for at, (one, other) in enumerate(zip(outputs, made, strict=False)) if one.elements != other.elements]
    return (
        differing_side("input", inputs, taken[: len(inputs)], parts=(stream.at,))
        or differing_side("output", outputs, made[: len(outputs)], parts=parts)
        or differing_side("state", [made[n] for n, _ in stream.ties], [taken[n] for _, n in stream.ties])
    )
