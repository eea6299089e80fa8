"""Where may an operator's output really lie on its input? TFLM is run at every distance, and compared with the rules.

For each operator of a grid the output is placed at ever smaller distances ``offset(input) - offset(output)``, in steps
of 16 bytes, until TFLM computes a wrong byte. The rule of the ``reference`` profile must never be below that; above
it by no more than a pixel or a row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from tflite_memopt.equivalence.inputs import seeded_inputs
from tflite_memopt.equivalence.runner import Run, run_models
from tflite_memopt.graph.alignment import aligned
from tflite_memopt.io import offline_plan
from tflite_memopt.io.reader import read_model
from tflite_memopt.io.writer import write_model
from tflite_memopt.ir.builder import ModelBuilder
from tflite_memopt.ir.model import Model, Tensor
from tflite_memopt.kernels.reference import reference_relations
from tflite_memopt.kernels.relations.model import KernelReuse

SAMPLES = 3
ARENA = 1 << 20
_STEP = 16
Build = Callable[[ModelBuilder], tuple[Tensor, ...]]


@dataclass(frozen=True)
class Case:
    """One operator: what it is, and how to build it on a fresh model; the last operator is the one to probe."""

    label: str
    build: Build

    def model(self) -> Model:
        """A model of this operator alone."""
        b = ModelBuilder()
        outputs = self.build(b)
        return b.finish(*outputs)


@dataclass(frozen=True)
class Probe:
    """``rule`` and ``found`` are distances in bytes, multiples of 16; ``row`` and ``pixel`` are of the input."""

    label: str
    kind: str
    rule: int
    found: int | None
    row: int
    pixel: int

    @property
    def is_safe(self) -> bool:
        """Whether TFLM computes the right bytes at the rule's distance."""
        return self.found is not None and self.found <= self.rule

    @property
    def is_close(self) -> bool:
        """Whether the rule is within a row of what TFLM needs."""
        return self.is_safe and self.found is not None and self.rule - self.found <= aligned(self.row)


def probe(case: Case) -> Iterator[Probe]:
    """Every reuse that the profile permits to the case's last operator."""
    for position, reuse in enumerate(reference_relations(case.model().main.operators[-1])):
        yield _probe_reuse(case, position, reuse)


def _probe_reuse(case: Case, position: int, reuse: KernelReuse) -> Probe:
    rule = reuse.distance if reuse.exact else aligned(reuse.distance)
    row = reuse.input.nbytes // max(reuse.input.shape[1] if len(reuse.input.shape) > 2 else 1, 1)
    pixel = reuse.input.shape[-1] * reuse.input.dtype.arena_bytes if reuse.input.shape else 1
    lowest = rule if reuse.exact else rule - aligned(row) - 3 * _STEP
    distances = list(range(rule, lowest - 1, -_STEP))
    models = {"apart": _placed(case, position, None)}
    models |= {f"d{number}": _placed(case, position, distance) for number, distance in enumerate(distances)}
    runs = run_models("tflm", models, seeded_inputs(read_model(models["apart"]), SAMPLES, 0), ARENA)
    found = None
    for number, distance in enumerate(distances):
        if not _equal(runs["apart"], runs[f"d{number}"]):
            break
        found = distance
    return Probe(case.label, reuse.kind, rule, found, row, pixel)


def _placed(case: Case, position: int, distance: int | None) -> bytes:
    """The model with the reuse's two tensors at this distance, or apart; all others after both."""
    model = case.model()
    reuse = reference_relations(model.main.operators[-1])[position]
    apart = aligned(reuse.output.nbytes)
    distance = apart if distance is None else distance
    offsets = {reuse.output: max(0, -distance), reuse.input: max(0, distance)}
    end = max(offset + aligned(tensor.nbytes) for tensor, offset in offsets.items())
    for tensor in model.main.tensors:
        if tensor not in offsets and not tensor.is_constant:
            offsets[tensor] = end
            end += aligned(tensor.nbytes)
    offline_plan.attach(model, offsets)
    return write_model(model)


def _equal(first: Run, second: Run) -> bool:
    if not (first.ran and second.ran):
        raise RuntimeError(f"TFLM does not run the probe: {first.error or second.error}")
    return all(np.array_equal(first.arrays[name], second.arrays[name]) for name in first.arrays)
