"""Consecutive invocations of a model with ties: an output becomes the input at its place."""

from __future__ import annotations

from collections.abc import Sequence

from ..io.reader import read_model
from .adapter import LARGEST_ARENA, RunJob, Sample
from .baseline import arena_for
from .compare import Tolerance, first_output_difference
from .external_runner import RUNNER
from .runner import Interpreters


def difference_in_sequence(
    name: str,
    models: tuple[bytes, bytes],
    ties: tuple[tuple[int, int], ...],
    samples: Sequence[Sample],
    tolerance: Tolerance,
    interpreters: Interpreters,
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
    found = interpreters[name].run(job)
    if not found.ran:
        return f"it does not run in a sequence: {found.reason}"
    copied = [
        [found.outputs[carried[at]][before] if at in carried else array for at, array in enumerate(each)]
        for before, each in enumerate(samples[1:])
    ]
    wanted = interpreters[name].run(RunJob(models[0], [samples[0], *copied], arenas[0]))
    difference = first_output_difference(wanted.outputs, found.outputs, tolerance)
    if difference is None:
        return None
    return (
        f"output {difference.output} of invocation {difference.sample} in a sequence, its states tied, is off by up to "
        f"{difference.max_abs_diff:g}"
    )
