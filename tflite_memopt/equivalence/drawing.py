"""Inputs drawn until they exercise the model, or until more of them wake nothing.

The families come first. Then candidates are made of the inputs that woke something before, as a fuzzer does: mixed,
inverted, made fainter, shifted. Those that wake a channel are kept; where that is much to run, few of them, which wake
all that any of them does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ..analysis.macs import model_macs
from ..ir.model import Model
from .coverage import Exercise, Woken
from .covering import few_that_cover
from .inputs import Array, Sample, has_state, seeded_inputs
from .ranges import InputRange, range_of
from .stream import Stream
from .trace import Trace

Tracer = Callable[[list[Sample]], Trace | None]
"""Runs the original over samples; None when it fails."""
_ROUNDS = 4
"""Of the search, at most; it ends after two in a row that wake nothing."""
_PATIENCE = 2
_CHEAP = 1_000_000_000
"""Multiply-accumulates of all inputs that wake something, up to which all are kept: more inputs show more."""
_SEARCH_KEY = 977
"""Sets the search's random numbers apart from those of the families."""


class Drawn:
    """Samples, what the original made of them, and what they exercised."""

    def __init__(self, model: Model) -> None:
        self.samples: list[Sample] = []
        self.trace = Trace()
        self.exercise = Exercise(model.main)

    def add(self, samples: list[Sample], trace: Trace) -> None:
        """Keep samples with their trace."""
        self.samples += samples
        self.trace.extend(trace)
        self.exercise.add(trace)


def draw(model: Model, count: int, seed: int, given: list[Sample] | None, run: Tracer) -> Drawn | None:
    """At least ``count`` samples, or exactly the ``given`` ones; None when the original does not run.

    A model with state gets one sequence and no search: what it does depends on all inputs before.
    """
    drawn = Drawn(model)
    first = seeded_inputs(model, count, seed) if given is None else given
    trace = run(first)
    if trace is None:
        return None
    drawn.add(first, trace)
    if given is None and model.main.inputs and not has_state(model.main):
        _search(drawn, model, count, seed, run)
    return drawn


@dataclass(frozen=True)
class _Waking:
    """A sample that wakes a channel, its trace, and all that it wakes of what the first samples left asleep."""

    sample: Sample
    trace: Trace
    woken: frozenset[Woken]


def _search(drawn: Drawn, model: Model, count: int, seed: int, run: Tracer) -> None:
    """Add candidates that wake all that any does. The work is limited in runs, at most ``_ROUNDS * count``."""
    ranges = [range_of(tensor) for tensor in model.main.inputs]
    asleep = drawn.exercise.summary().constant_channels
    found: list[_Waking] = []
    awake: set[Woken] = set()
    idle = 0
    for number in range(_ROUNDS):
        if idle == _PATIENCE or len(awake) == asleep:
            break
        stream, parents = Stream(seed, _SEARCH_KEY, number), [*drawn.samples, *(each.sample for each in found)]
        samples = [_made_of(parents, ranges, stream) for _ in range(count)]
        trace = run(samples)
        if trace is None:
            break
        kept = len(found)
        for at, sample in enumerate(samples):
            single = trace.sample(at)
            woken = drawn.exercise.woken(single)
            channels = {each for each in woken if each[1] is not None}
            if channels - awake:
                found.append(_Waking(sample, single, woken))
                awake |= channels
        idle = 0 if len(found) > kept else idle + 1
    is_cheap = model_macs(model) * len(found) <= _CHEAP
    for at in range(len(found)) if is_cheap else few_that_cover([each.woken for each in found]):
        drawn.add([found[at].sample], found[at].trace)


def _made_of(parents: Sequence[Sample], ranges: Sequence[InputRange], stream: Stream) -> Sample:
    """A new sample of one or two old ones, in whole steps of the inputs' ranges."""
    one, other = (parents[stream.integer(0, len(parents) - 1)] for _ in range(2))
    change = _CHANGES[stream.integer(0, len(_CHANGES) - 1)]
    return [change(a, b, each, stream) for a, b, each in zip(one, other, ranges, strict=True)]


def _mixed(a: Array, b: Array, found: InputRange, stream: Stream) -> Array:
    share = stream.integer(1, 7) / 8
    return _within(a.astype(np.float64) * share + b.astype(np.float64) * (1 - share), a, found)


def _inverted(a: Array, b: Array, found: InputRange, stream: Stream) -> Array:
    return _within(found.low + found.high - a.astype(np.float64), a, found)


def _scaled(a: Array, b: Array, found: InputRange, stream: Stream) -> Array:
    factor = 2.0 ** stream.integer(-4, 2)
    return _within((a.astype(np.float64) - found.zero) * factor + found.zero, a, found)


def _shifted(a: Array, b: Array, found: InputRange, stream: Stream) -> Array:
    offset = (found.high - found.low) * stream.integer(-8, 8) / 16
    return _within(a.astype(np.float64) + offset, a, found)


def _halved(a: Array, b: Array, found: InputRange, stream: Stream) -> Array:
    """One half of each, cut at a random place."""
    flat = a.reshape(-1).copy()
    cut = stream.integer(0, flat.size)
    flat[cut:] = b.reshape(-1)[cut:]
    halved: Array = flat.reshape(a.shape)
    return halved


_CHANGES = (_mixed, _inverted, _scaled, _shifted, _halved)


def _within(values: Array, like: Array, found: InputRange) -> Array:
    """Back in the input's range and type."""
    if like.dtype.kind in "iub":
        values = np.floor(values + 0.5)
    kept: Array = (np.clip(values, found.low, found.high) if found.is_known else values).astype(like.dtype)
    return kept
