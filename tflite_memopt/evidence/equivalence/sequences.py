"""Consecutive invocations of a model with ties: an output becomes the input at its place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ...model.io.reader import read_model
from ...model.ir.model import DType, Model, Tensor
from ...model.ir.tensors import zero_of
from ..proof import hops_of
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
    given = [[array for at, array in enumerate(each) if at not in carried] for each in samples[1:]]
    arenas = [LARGEST_ARENA if name == RUNNER else arena_for(model) for model in (original, optimized)]
    job = RunJob(models[1], [samples[0], *given], arenas[1], fill=0x5A, carried=ties)
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


def run_in_steps(
    runner: ModelRunner,
    data: bytes,
    ties: tuple[tuple[int, int], ...],
    samples: Sequence[Sample],
    like: Model,
    arena: int,
) -> ModelRun:
    """Run a model of one step (``rewrite/one_step.py``) over sequences; its outputs are those of ``like``, the whole.

    The states are zeros before the first call. Then TFLM, a runner's too, finds what the call before has left, and
    other runtimes get a copy. An output as large as that of ``like`` is the last call's.
    """
    frame, *states = read_model(data).main.inputs
    outputs: dict[int, list[Array]] = {at: [] for at in range(len(like.main.outputs))}
    for (sequence,) in samples:
        first, *others = sequence.reshape(-1, *frame.shape)
        given = [[first, *map(zeros_of, states)], *([each] for each in others)]
        run = runner.run(RunJob(data, given, arena, fill=0x5A, carried=ties))
        if not run.ran:
            return run
        for at, output in enumerate(like.main.outputs):
            made = np.stack(run.outputs[at])
            outputs[at].append(made[-1] if made[-1].size == output.elements else made.reshape(output.shape))
    return ModelRun(outputs)


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


def run_in_hops(
    runner: ModelRunner,
    data: bytes,
    ties: tuple[tuple[int, int], ...],
    windows: Sequence[Sample],
    like: Model,
    arena: int,
) -> ModelRun:
    """Run a model of one hop (``cascade/slide.py``) along the signal of ``windows``; outputs are those of ``like``.

    What is kept is random before the first call. Then as ``run_in_steps``.
    """
    slide, draw = read_model(data), np.random.default_rng(0)
    at, calls = hops_of(slide, like)
    new, states = slide.main.inputs[at], sorted(source for _, source in ties)
    size, first = new.elements, windows[0][at].reshape(-1)
    before = np.resize(first, calls * size - first.size)  # rows that no window has
    hops = [
        *np.concatenate([before, first]).reshape(calls, size),
        *(each[at].reshape(-1)[-size:] for each in windows[1:]),
    ]
    given: list[Sample] = []
    for call, rows in enumerate(hops):
        others = windows[max(0, call - calls + 1)]
        arrays = zip([*others[:at], rows, *others[at + 1 :]], slide.main.inputs, strict=False)
        given.append([array.reshape(tensor.shape) for array, tensor in arrays])
    given[0] += [_any(slide.main.inputs[source], draw) for source in states]
    wanted = tuple(range(calls - 1, len(given)))
    run = runner.run(RunJob(data, given, arena, fill=0x5A, carried=ties, wanted=wanted))
    if not run.ran:
        return run
    shaped = {n: [each.reshape(t.shape) for each in run.outputs[n]] for n, t in enumerate(like.main.outputs)}
    return replace(run, outputs=shaped)


def _any(tensor: Tensor, draw: np.random.Generator) -> Array:
    """A value of a tensor that nobody chose; floats are numbers."""
    levels = draw.integers(-100, 100, tensor.shape)
    return (levels > 0 if tensor.dtype is DType.BOOL else levels).astype(tensor.dtype.label)


def zeros_of(tensor: Tensor) -> Array:
    """A value of a tensor that stands for zeros."""
    return np.full(tensor.shape, zero_of(tensor), tensor.dtype.label)
