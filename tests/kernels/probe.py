"""Run TFLM with an operator's output at every distance from its input, and compare the outcome with the rules.

For each operator of a grid the output is placed at ever smaller distances ``offset(input) - offset(output)``, from
apart downwards, until TFLM computes a wrong byte. The rule of a profile must never be below the last that was right.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from scripts.makers.runs import run_models
from tests.model_builder import ModelBuilder
from tflite_memopt.evidence.equivalence.adapter import ModelRun, Sample
from tflite_memopt.evidence.equivalence.inputs import seeded_inputs
from tflite_memopt.model.io import offline_plan
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.model.ir.model import Model, Operator, Tensor
from tflite_memopt.operators.reuse import KernelReuse, ReuseRule
from tflite_memopt.operators.table import relations_of
from tflite_memopt.solvers.graph.alignment import aligned

SAMPLES = 3
ARENA = 1 << 20
STEP = 16
"""Plans place tensors at multiples of this."""
_APART = "apart"
Build = Callable[[ModelBuilder], tuple[Tensor, ...]]


@dataclass(frozen=True)
class Case:
    """One operator: what it is, how to build it on a fresh model, and the group in which a summary counts it.

    The last operator that ``build`` adds is the one to probe.
    """

    label: str
    build: Build
    group: str = ""

    def model(self) -> Model:
        """A model of this operator alone."""
        b = ModelBuilder()
        outputs = self.build(b)
        return b.finish(*outputs)


@dataclass(frozen=True)
class Probe:
    """``rule`` and ``found`` are distances in bytes, multiples of the step; ``row`` and ``pixel`` are of the input.

    ``rule`` is None where the profile permits nothing, ``found`` where no distance that was tried is safe.
    ``reference`` is the reference profile's rule. ``exercised`` is whether different inputs gave different outputs;
    ``error`` says why the operator did not run.
    """

    label: str
    group: str
    kind: str
    reference: int
    rule: int | None
    found: int | None
    row: int
    pixel: int
    exercised: bool = True
    error: str = ""

    @property
    def is_safe(self) -> bool:
        """Whether TFLM computes the right bytes at the rule's distance and at all larger ones."""
        return self.rule is None or (self.found is not None and self.found <= self.rule)

    @property
    def is_close(self) -> bool:
        """Whether the rule is within a row of what TFLM needs."""
        if self.rule is None or self.found is None:
            return False
        return self.is_safe and self.rule - self.found <= aligned(self.row)


def on_wheel(models: Mapping[str, bytes], samples: list[Sample]) -> Mapping[str, ModelRun]:
    """Run the models on the tflite-micro wheel."""
    return run_models("tflm", models, samples, ARENA)


def probe(case: Case, relations: ReuseRule = relations_of, step: int = STEP) -> Iterator[Probe]:
    """Every pair of tensors that ``relations`` or the reference profile let share bytes, at all multiples of ``step``.

    ``step`` is in bytes. Below 16 it shows more than plans can use, and operators of wider types may fault.
    """
    operator = case.model().main.operators[-1]
    for pair in _pairs(operator, relations, step):
        yield _probe_pair(case, pair, step)


@dataclass(frozen=True)
class _Pair:
    """An input and an output by their slots. ``rule`` is the profile's distance, ``start`` the one to look around."""

    input: int
    output: int
    kind: str
    exact: bool
    rule: int | None
    start: int


def _pairs(operator: Operator, relations: ReuseRule, step: int) -> list[_Pair]:
    permitted = {_slots(operator, reuse): reuse for reuse in relations(operator)}
    reference = {_slots(operator, reuse): reuse for reuse in relations_of(operator)}
    found = []
    for slots, reuse in (permitted | reference).items():
        rule = _distance(permitted[slots], step) if slots in permitted else None
        found.append(_Pair(*slots, reuse.kind, reuse.exact, rule, _distance(reuse, step)))
    return found


def _slots(operator: Operator, reuse: KernelReuse) -> tuple[int, int]:
    return operator.inputs.index(reuse.input), operator.outputs.index(reuse.output)


def _distance(reuse: KernelReuse, step: int) -> int:
    return reuse.distance if reuse.exact else _up(reuse.distance, step)


def _up(number: int, step: int) -> int:
    """The next multiple of the step."""
    return -(-number // step) * step


def _tensors(operator: Operator, pair: _Pair) -> tuple[Tensor, Tensor]:
    source = operator.inputs[pair.input]
    assert source is not None  # a share has two tensors
    return source, operator.outputs[pair.output]


def _probe_pair(case: Case, pair: _Pair, step: int) -> Probe:
    model = case.model()
    source, output = _tensors(model.main.operators[-1], pair)
    row = source.nbytes // max(source.shape[1] if len(source.shape) > 2 else 1, 1)
    pixel = source.shape[-1] * source.dtype.arena_bytes if source.shape else 1
    distances = _distances(pair, row, output.nbytes, step)
    runs = on_wheel(dict(_placed(model, pair, distances)), seeded_inputs(model, SAMPLES, 0))
    apart = runs[_APART]
    tell = partial(Probe, case.label, case.group, pair.kind, pair.start, pair.rule)
    if not apart.ran:
        return tell(None, row, pixel, False, apart.error or "missing")
    found = None
    for distance in distances:
        if not _equal(apart, runs[f"d{distance}"]):
            break
        found = distance
    return tell(found, row, pixel, _varies(apart))


def _distances(pair: _Pair, row: int, output_bytes: int, step: int) -> range:
    """From apart down to a row and some below the lower of the rules; a view or in-place has one distance."""
    if pair.exact:
        return range(pair.start, pair.start - 1, -1)
    rules = [pair.start] if pair.rule is None else [pair.start, pair.rule]
    lowest = min(rules) - _up(row, step) - 3 * step
    return range(max(*rules, _up(output_bytes, step)), lowest - 1, -step)


def _placed(model: Model, pair: _Pair, distances: Sequence[int]) -> Iterator[tuple[str, bytes]]:
    """The model with the pair at each distance, and apart; all other tensors after both."""
    operator = model.main.operators[-1]
    source, output = _tensors(operator, pair)
    first = _offsets(model, source, output, aligned(output.nbytes))
    offline_plan.attach(model, first)
    planned, old = write_model(model), offline_plan.encode(model, first)
    if planned.count(old) != 1:
        raise RuntimeError("the plan's bytes occur elsewhere in the model, too")
    yield _APART, planned
    for distance in distances:
        new = offline_plan.encode(model, _offsets(model, source, output, distance))
        yield f"d{distance}", planned.replace(old, new)


def _offsets(model: Model, source: Tensor, output: Tensor, distance: int) -> dict[Tensor, int]:
    offsets = {output: max(0, -distance), source: max(0, distance)}
    end = max(offset + aligned(tensor.nbytes) for tensor, offset in offsets.items())
    for tensor in model.main.tensors:
        if tensor not in offsets and not tensor.is_constant:
            offsets[tensor] = end
            end += aligned(tensor.nbytes)
    return offsets


def _equal(first: ModelRun, second: ModelRun) -> bool:
    if not second.ran:
        raise RuntimeError(f"TFLM does not run the probe: {second.error}")
    return all(np.array_equal(first.arrays[name], second.arrays[name]) for name in first.arrays)


def _varies(run: ModelRun) -> bool:
    """Whether the samples gave different outputs: a kernel that writes nothing would be right at every distance."""
    return len({array.tobytes() for name, array in run.arrays.items() if name.endswith("_o0")}) > 1
