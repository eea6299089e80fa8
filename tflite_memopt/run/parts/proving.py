"""A program proved equal to the model for all inputs: its parts one after another, the first one fed in rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from ...evidence.proof import (
    Keys,
    Notes,
    Proof,
    Run,
    Status,
    Streamed,
    chained,
    differing_side,
    inputs_of,
    not_proved,
    outputs_of_calls,
    prove_computed,
    prove_plan,
)
from ...evidence.proof.ring import Value
from ...firmware.description import Feed
from ...memory.file import label_in_force, places_in_force, profile_of, read_planned
from ...model.ir.model import Model, Tensor
from .fronts import with_ties


def prove_program(original: Model, parts: Sequence[Model], feed: Feed | None = None) -> Proof:
    """Compare a model with its parts, each of which takes the outputs of the one before.

    Carried tensors without a first value are arbitrary: so an image that was discarded before does
    not matter.
    """
    reason = differing_ends(original, parts, feed)
    if reason is not None:
        return Proof(Status.DIFFERENT, reason=reason)
    refused = not_proved(original, *parts)
    if refused is not None:
        return refused

    def whole(keys: Keys, notes: Notes) -> Sequence[Value]:
        return Run(original, keys, notes).invoke(inputs_of(keys, original.main.inputs))

    def in_parts(keys: Keys, notes: Notes) -> Sequence[Value]:
        given: Sequence[Value] = inputs_of(keys, original.main.inputs)
        runs = [Run(part, keys, notes, f"part {number}") for number, part in enumerate(parts)]
        if feed is not None:
            like = parts[1].main.inputs if len(parts) > 1 else original.main.outputs
            given = outputs_of_calls(runs.pop(0), streamed_by(feed, parts[0]), given, like)
        sides = zip(chained(runs, given), original.main.outputs, strict=False)
        return [value.reshape(like.shape) for value, like in sides]

    return prove_computed(whole, in_parts)


def prove_plans(parts: Sequence[bytes], feed: Feed | None = None) -> list[Proof]:
    """Prove the memory plan in each part's file, for the kernels that it was made for; a file without one has none."""
    proofs = []
    for number, data in enumerate(parts):
        model = read_planned(data)
        label = label_in_force(model)
        if feed is not None and number == 0:
            with_ties(model, feed)
        if label is not None:
            proofs.append(prove_plan(model, places_in_force(model, profile_of(label))))
    return proofs


def differing_ends(
    original: Model, parts: Sequence[Model], feed: Feed | None = None, *, converts: bool = False
) -> str | None:
    """Return how the ends of parts are not those of the original, or of the parts beside them; None where they are.

    Rows, and what a front that is all of a program gives, come in any shape. ``converts``: as of ``prove``.
    """
    inputs, outputs = parts[0].main.inputs, parts[-1].main.outputs
    sides = [("input", original.main.inputs, inputs, False), ("output", original.main.outputs, outputs, False)]
    if feed is not None:
        if feed.inputs.count(0) != 1 or not all(0 <= at < len(inputs) for at in feed.inputs):
            return f"the feed takes inputs {list(feed.inputs)} of {len(inputs)}"
        if not {inputs[at] for at in feed.others} <= {*parts[0].main.outputs}:
            return "an input beside the image is no output, and would not stay"
        image = original.main.inputs[feed.inputs.index(0)]
        if feed.height * feed.row_bytes != image.nbytes or feed.rows * feed.row_bytes != inputs[0].nbytes:
            return f"'{image.name}' has {image.nbytes} bytes, not {feed.height} rows of {feed.row_bytes}"
        rows = replace(inputs[0], shape=image.shape)
        sides[0] = ("input", original.main.inputs, tuple(inputs[at] if at else rows for at in feed.inputs), True)
        if len(parts) == 1:
            sides[1] = ("output", original.main.outputs, outputs[: len(original.main.outputs)], True)
    for number, (before, after) in enumerate(pairwise(parts)):
        taken = after.main.inputs
        is_fed = feed is not None and number == 0
        given = before.main.outputs[: len(taken)] if is_fed else before.main.outputs
        sides.append((f"part {number + 1}'s input", given, taken, is_fed))
    found = (
        differing_side(name, old, new, converts=converts and number < 2, parts=range(len(old)) if is_any else ())
        or _resized(name, old, new)
        for number, (name, old, new, is_any) in enumerate(sides)
    )
    return next((reason for reason in found if reason is not None), None)


def _resized(name: str, old: Sequence[Tensor], new: Sequence[Tensor]) -> str | None:
    sizes = [(one.elements, other.elements) for one, other in zip(old, new, strict=True)]
    wrong = next((at for at, (one, other) in enumerate(sizes) if one != other), None)
    return None if wrong is None else f"{name} {wrong} has {sizes[wrong][1]} elements, not {sizes[wrong][0]}"


def streamed_by(feed: Feed, front: Model) -> Streamed:
    """Return how calls of a first part that is fed compute what it makes of an image.

    Inputs beside the image are outputs as well, and stay.
    """
    inputs, outputs = front.main.inputs, front.main.outputs
    ties = (*((tie.output, tie.input) for tie in feed.ties), *((outputs.index(inputs[at]), at) for at in feed.others))
    starts = tuple(None if tie.fill is None else _element(inputs[tie.input], tie.fill) for tie in feed.ties)
    lead, padding = feed.lead * inputs[0].elements // feed.rows, _element(inputs[0], feed.padding)
    return Streamed("rows", feed.inputs.index(0), feed.inputs, feed.calls, ties, starts, lead, padding, feed.step)


def _element(tensor: Tensor, byte: int) -> Any:
    """Return the element of a tensor each byte of which is ``byte``."""
    return np.frombuffer(bytes([byte]) * tensor.dtype.arena_bytes, tensor.dtype.label)[0]
