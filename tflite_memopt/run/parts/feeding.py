"""A fed front run as firmware runs it: image after image in calls, some given up, from whatever was there before."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ...errors import EquivalenceError
from ...evidence.equivalence.adapter import Array, RunJob, Sample
from ...evidence.equivalence.baseline import arena_for
from ...evidence.equivalence.runner import ModelRunner
from ...model.io.reader import read_model
from ...model.ir.model import Model
from .files import Feed


def fed_outputs(name: str, data: bytes, feed: Feed, given: Sequence[Sample], runner: ModelRunner) -> list[Sample]:
    """Return the outputs of a front for images in sequence, in one interpreter, with an abandoned image before each.

    ``given``: for each image, all inputs of the model that is fed.

    The result so far is random before the first call. On TFLM the ties are as the plan has them; elsewhere what is tied
    is copied. Raises EquivalenceError where the front does not run.
    """
    model, draw = read_model(data), np.random.default_rng(0)
    samples: list[Sample] = []
    wanted = []
    for sample in given:
        given_up = [np.flip(each) for each in sample]
        samples += list(calls_of(model, feed, given_up, draw))[: (feed.calls + 1) // 2]
        samples += calls_of(model, feed, sample, draw)
        wanted.append(len(samples) - 1)
    job = RunJob(data, samples, arena_for(model), fill=0x5A, carried=carried_by(model, feed), wanted=tuple(wanted))
    run = runner.run(job)
    if not run.ran:
        raise EquivalenceError(f"part 0 does not run on {name}: {run.reason}")
    return [list(row) for row in zip(*(run.outputs[at] for at in sorted(run.outputs)), strict=True)]


def carried_by(front: Model, feed: Feed) -> tuple[tuple[int, int], ...]:
    """Return (output, input) positions of what a front finds in the next call: what is tied, and inputs that stay."""
    inputs, outputs = front.main.inputs, front.main.outputs
    stay = ((outputs.index(inputs[at]), at) for at in feed.others)
    return (*((tie.output, tie.input) for tie in feed.ties), *stay)


def calls_of(model: Model, feed: Feed, given: Sample, draw: np.random.Generator) -> Iterator[Sample]:
    """Yield the inputs of each call for an image of rows; what is tied, or stays, is given for the first one only."""
    image = given[feed.inputs.index(0)].reshape(feed.height, -1)
    others = {place: each for place, each in zip(feed.inputs, given, strict=True) if place}
    behind = feed.calls * feed.rows - feed.lead - feed.height
    padding = _filled(image[:1], feed.padding)
    parts = [np.repeat(padding, feed.lead, 0), image, np.repeat(padding, max(0, behind), 0)]
    rows = np.concatenate(parts, 0)
    for call in range(feed.calls):
        counter = np.asarray([call * feed.step], np.int32)
        sample = [rows[call * feed.rows : (call + 1) * feed.rows].reshape(model.main.inputs[0].shape), counter]
        if call == 0:
            for tie in feed.ties:
                source = model.main.inputs[tie.input]
                like = np.zeros(source.shape, source.dtype.label)
                sample.append(_filled(like, int(draw.integers(256)) if tie.fill is None else tie.fill))
            sample += [others[at].reshape(model.main.inputs[at].shape) for at in sorted(others)]
        yield sample


def _filled(like: Array, byte: int) -> Array:
    """Return an array of the same shape and type, each byte of which is ``byte``."""
    return np.frombuffer(bytes([byte]) * like.nbytes, like.dtype).reshape(like.shape)
