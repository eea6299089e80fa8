"""Consecutive invocations of a model with ties: an output becomes the input at its place."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ...model.io.reader import read_model
from ...model.ir.model import DType, Model, Tensor
from ...model.ir.tensors import zero_of
from ..proof import Streamed
from .adapter import LARGEST_ARENA, Array, ModelRun, RunJob, Sample
from .baseline import arena_for
from .compare import Tolerance, first_output_difference
from .external_runner import RUNNER
from .runner import ModelRunner


def difference_in_sequence(
    name: str,
    models: tuple[bytes, bytes],
    ties: tuple[tuple[int, int], ...],
    samples: Sequence[Sample],
    tolerance: Tolerance,
    runner: ModelRunner,
) -> str | None:
    """Return how the second model, with ``ties``, differs from the first one on a runtime; None where it does not.

    The first sample says all inputs, the others all but the tied ones: there TFLM, a runner's too, finds what the
    invocation before has left, and other runtimes get a copy. The first model is always given a copy.
    """
    original, optimized = (read_model(data) for data in models)
    carried = {source: output for output, source in ties}
    untied = [[array for at, array in enumerate(each) if at not in carried] for each in samples[1:]]
    arenas = [LARGEST_ARENA if name == RUNNER else arena_for(model) for model in (original, optimized)]
    job = RunJob(models[1], [samples[0], *untied], arenas[1], fill=0x5A, carried=ties)
    found = runner.run(job)
    if not found.ran:
        return f"it does not run in a sequence: {found.reason}"
    copied = [
        [found.outputs[carried[at]][before] if at in carried else array for at, array in enumerate(each)]
        for before, each in enumerate(samples[1:])
    ]
    wanted = runner.run(RunJob(models[0], [samples[0], *copied], arenas[0]))
    difference = first_output_difference(wanted.outputs, found.outputs, tolerance)
    if difference is None:
        return None
    return (
        f"output {difference.output} of invocation {difference.sample} in a sequence, its states tied, is off by up to "
        f"{difference.max_abs_diff:g}"
    )


def windows_of(samples: Sequence[Sample], at: int, hop: int, count: int) -> list[Sample]:
    """``count`` windows of one signal, each ``hop`` elements after the one before.

    The signal is input ``at`` of all samples in order, and begins again where it ends; the other inputs of a window are
    those of one of the samples.
    """
    signal, size = np.concatenate([sample[at].reshape(-1) for sample in samples]), samples[0][at].size
    found = []
    for number in range(count):
        rows = np.take(signal, np.arange(number * hop, number * hop + size), mode="wrap")
        sample = samples[number % len(samples)]
        found.append([*sample[:at], rows.reshape(sample[at].shape), *sample[at + 1 :]])
    return found


def run_streamed(
    runner: ModelRunner, data: bytes, stream: Streamed, samples: Sequence[Sample], like: Sequence[Tensor], arena: int
) -> ModelRun:
    """Run a model that is called again and again; its outputs are those of the whole, ``like``, for each sample.

    ``samples``: of the whole; windows of one signal, one hop after the other, where it is a hop. Before each image that
    comes in rows a part of another one is given and abandoned. What is anything before the first call is random. Then
    TFLM, a runner's too, finds what the call before has left, and other runtimes get a copy.
    """
    model, draw = read_model(data), np.random.default_rng(0)
    outputs: dict[int, list[Array]] = {at: [] for at in range(len(like))}
    for inputs, wanted in _sequences(model, stream, samples, draw):
        run = runner.run(RunJob(data, inputs, arena, fill=0x5A, carried=stream.ties, wanted=wanted))
        if not run.ran:
            return run
        for at, tensor in enumerate(like):
            made = run.outputs[at]
            if stream.kind == "step":
                made = made[-1:] if made[-1].size == tensor.elements else [np.stack(made)]
            outputs[at] += [each.reshape(tensor.shape) for each in made]
    return ModelRun(outputs)


def _sequences(
    model: Model, stream: Streamed, samples: Sequence[Sample], draw: np.random.Generator
) -> Iterator[tuple[list[Sample], tuple[int, ...] | None]]:
    """Yield the inputs of calls one after another, and those of which outputs are wanted; None: of all."""
    if stream.kind == "step":
        for sample in samples:
            yield list(calls_of(model, stream, sample, draw)), None
        return
    inputs, wanted = list[Sample](), list[int]()
    for number, sample in enumerate(samples):
        if stream.kind == "rows":
            abandoned = list(calls_of(model, stream, [np.flip(each) for each in sample], draw))
            inputs += abandoned[: (stream.count + 1) // 2]
        calls = list(calls_of(model, stream, sample, draw))
        inputs += calls if stream.kind == "rows" or number == 0 else calls[-1:]
        wanted.append(len(inputs) - 1)
    yield inputs, tuple(wanted)


def calls_of(model: Model, stream: Streamed, sample: Sample, draw: np.random.Generator) -> Iterator[Sample]:
    """Yield the inputs of each call for inputs of the whole; what is tied is given for the first one only."""
    inputs, kept = model.main.inputs, [source for _, source in stream.ties]
    part, image = inputs[stream.at], sample[stream.image].reshape(-1)
    padding = np.full(stream.count * part.elements - image.size, stream.padding, image.dtype)
    before = np.resize(image, stream.lead) if stream.kind == "hop" else padding[: stream.lead]
    signal = np.concatenate([before, image, padding[stream.lead :]])
    for call, rows in enumerate(signal.reshape(stream.count, *part.shape)):
        arrays = dict(zip(stream.places, sample, strict=True))
        if call == 0:
            starts = zip(kept, stream.starts, strict=False)
            arrays |= {source: _started(inputs[source], start, draw) for source, start in starts}
        if stream.kind == "rows":
            arrays[1] = np.full(inputs[1].shape, call * stream.step, np.int32)
        arrays[stream.at] = rows
        yield [arrays[at].reshape(inputs[at].shape) for at in sorted(arrays) if call == 0 or at not in kept]


def _started(tensor: Tensor, element: Any, draw: np.random.Generator) -> Array:
    """Return a state before the first call; one that nobody chose has numbers as floats."""
    if element is not None:
        return np.full(tensor.shape, element, tensor.dtype.label)
    levels = draw.integers(-100, 100, tensor.shape)
    return (levels > 0 if tensor.dtype is DType.BOOL else levels).astype(tensor.dtype.label)


def zeros_of(tensor: Tensor) -> Array:
    """A value of a tensor that stands for zeros."""
    return np.full(tensor.shape, zero_of(tensor), tensor.dtype.label)
