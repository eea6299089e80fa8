"""Two models compared for all inputs: both run once on random values; equal outputs are a proof.

The outputs are terms of the inputs: sums and products with constants, and unknown functions of those. Terms that are
equal have equal values. Terms that are not have equal values by an accident of the random functions alone, whose chance
a proof states: Schwartz's and Zippel's argument, element by element.

State is proved by induction. Both models compute the same in the first invocation, and leave the same state; and from
any state that is the same in both, they compute the same and leave the same. Where their states cannot be compared,
some invocations from the first one on are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ...model.ir.model import Model, Tensor
from ...model.ir.tensors import is_channels_last
from .call import CoarseError, any_value, is_float, quantization_of
from .contracts import newly_refused
from .facts import RESCALED
from .moves import conversion
from .outcome import BrokenModelError, Notes, Proof, Status, UndecidedError
from .ring import Floats, Keys, Ring, Value
from .run import Run

INVOCATIONS = 4
"""Number of runs that are compared if states are not."""
_SMALL, _MOST_REPEATED = 1e-6, 16
"""Chance of a false proof, at most: where one run leaves more, it is repeated with other keys."""
Computed = Callable[[Keys, Notes], Sequence[Value]]
"""Whatever computes outputs from the values of :func:`inputs_of`: runs, chains of runs, sequences of invocations."""


def inputs_of(keys: Keys, tensors: Sequence[Tensor], invocation: int = 0) -> list[Ring]:
    """Values that stand for any inputs of these shapes, others in each invocation."""
    return [any_value(keys, tensor, "input", at, invocation) for at, tensor in enumerate(tensors)]


def prove(
    original: Model,
    result: Model,
    *,
    converts: bool = False,
    turns: bool = False,
    invocations: int = INVOCATIONS,
    seed: bytes | None = None,
) -> Proof:
    """Compare two models for all inputs, both as they are read from files, with all options of their operators.

    Shapes are those of the files: an original whose converter left some open is compared as LiteRT infers them. Sizes
    that a SLICE of the original computes are followed; the result must have shapes that hold.
    ``converts``: the result may take and give quantized integers where the original has the numbers that they stand
    for. ``turns``: it may take and give with channels last what the original has with channels first; shapes say
    where. ``invocations``: how many are compared where states cannot be. ``seed``: fixes the random keys, for tests;
    who chooses a model must not know them.
    """
    one, other = original.main, result.main
    reason = differing_side("input", one.inputs, other.inputs, converts=converts, turns=turns)
    reason = reason or differing_side("output", one.outputs, other.outputs, converts=converts, turns=turns)
    if reason is not None:
        return Proof(Status.DIFFERENT, reason=reason)
    refused = not_proved(original, result)
    if refused is not None:
        return refused
    has_floats = any(map(is_float, original.all_tensors))
    return _both_ways(
        lambda keys, notes: _Comparison(original, result, keys, invocations, notes).proof(), Keys(seed), has_floats
    )


def not_proved(original: Model, *results: Model) -> Proof | None:
    """Return a proof that is unknown where LiteRT newly refuses one of the results; None where it refuses none."""
    found = next((reason for each in results if (reason := newly_refused(original, each)) is not None), None)
    return None if found is None else Proof(Status.UNKNOWN, reason=f"outside of its contract: {found}")


def prove_computed(original: Computed, result: Computed) -> Proof:
    """Compare any two computations on random values, such as a model and a chain of its parts.

    Both are called with the keys to draw inputs from (:func:`inputs_of`) and with the notes that their runs share.
    """

    def proof(keys: Keys, notes: Notes) -> Proof:
        wrong = _outcome(keys, lambda: original(keys, notes), lambda: result(keys, notes))
        if isinstance(wrong, Proof):
            return wrong
        status = Status.DIFFERENT if wrong else Status.PROVED
        return _noted(Proof(status, outputs=wrong, reason=_said(wrong)), notes, keys)

    return _both_ways(proof, Keys(), True)


def _both_ways(proof: Callable[[Keys, Notes], Proof], keys: Keys, has_floats: bool) -> Proof:
    """The proof that knows ranges; where there is none, the one without: a graph may hide ranges that another shows."""
    found = _in_floats(lambda each: proof(each, Notes(knows_ranges=True)), keys, has_floats)
    if found.proved or RESCALED not in found.facts:
        return found
    return _in_floats(lambda each: proof(each, Notes()), keys, has_floats)


def _in_floats(proof: Callable[[Keys], Proof], keys: Keys, has_floats: bool) -> Proof:
    """The proof of equal bits of any floats; where there is none, of finite ones, or of sums of real numbers."""
    exact = repeated(proof, keys)
    if exact.proved or not has_floats or (exact.status is Status.UNKNOWN and not exact.outputs):
        return exact
    real = repeated(proof, keys.of(Floats.REAL))
    finite = repeated(proof, keys.of(Floats.FINITE))
    if finite.proved or not real.proved:
        return replace(finite, is_finite=True)
    return replace(real, status=Status.REASSOCIATED, is_finite=True)


def repeated(proof: Callable[[Keys], Proof], keys: Keys) -> Proof:
    """A proof with other keys again and again, until the chance that all of them are false is small."""
    found = proof(keys)
    chance = found.chance
    for _ in range(_MOST_REPEATED):
        if not found.proved or chance <= _SMALL:
            return replace(found, chance=chance)
        keys = keys.next()
        found = proof(keys)
        chance *= found.chance
    return Proof(Status.UNKNOWN, reason=f"the chance of a false proof is only known to be below {chance:.0e}")


def differing_side(
    side: str,
    original: Sequence[Tensor],
    result: Sequence[Tensor],
    *,
    converts: bool = False,
    turns: bool = False,
    parts: Collection[int] = (),
) -> str | None:
    """Return how the inputs, or the outputs, of a result are not those of the original; None where they are.

    ``parts``: positions where the result has some of the elements, in any shape. ``converts``, ``turns``: as of
    :func:`prove`.
    """
    if len(original) != len(result):
        return f"it has {len(result)} {side}s, the original {len(original)}"
    for at, (one, other) in enumerate(zip(original, result, strict=True)):
        is_turned = turns and is_channels_last(other.shape, one.shape)
        if one.shape != other.shape and at not in parts and not is_turned:
            return f"{side} {at} has shape {list(other.shape)}, in the original {list(one.shape)}"
        if not converts and (one.dtype, quantization_of(one)) != (other.dtype, quantization_of(other)):
            return f"{side} {at} has another type or quantization than in the original"
    return None


def _outcome(
    keys: Keys, original: Callable[[], Sequence[Value]], result: Callable[[], Sequence[Value]]
) -> tuple[int, ...] | Proof:
    """Return the outputs that differ. A result that is broken is not equal; a broken original proves nothing."""
    wanted: Sequence[Value] | None = None
    try:
        wanted = original()
        return _differing(keys, wanted, result())
    except BrokenModelError as error:
        if wanted is None:
            return Proof(Status.UNKNOWN, reason=f"the original is broken: {error}")
        return Proof(Status.DIFFERENT, reason=str(error))
    except UndecidedError as error:
        return Proof(Status.UNKNOWN, reason=str(error))


def _differing(keys: Keys, wanted: Sequence[Value], found: Sequence[Value]) -> tuple[int, ...]:
    if len(wanted) != len(found):
        return tuple(range(max(len(wanted), len(found))))
    pairs = zip(map(keys.constant, wanted), map(keys.constant, found), strict=True)
    return tuple(at for at, (one, other) in enumerate(pairs) if not np.array_equal(one, other))


def _said(wrong: Sequence[int]) -> str | None:
    return f"output {', '.join(map(str, wrong))}" if wrong else None


def _noted(proof: Proof, notes: Notes, keys: Keys) -> Proof:
    return replace(proof, facts=tuple(sorted(notes.facts)), chance=keys.chance(notes.lost))


@dataclass
class _Comparison:
    original: Model
    result: Model
    keys: Keys
    invocations: int
    notes: Notes

    def proof(self) -> Proof:
        runs = self._runs()
        found = self._compared(runs, 0)
        if not found.proved:
            return found
        states = [run.state for run in runs]
        if not any(states):
            return found
        if self._alike(runs):
            later = self._runs()
            for run, before in zip(later, states, strict=True):
                run.state = {key: self._any_state(key, value) for key, value in before.items()}
            if self._compared(later, 1).proved and self._alike(later):
                return _noted(replace(found, invocations=None), self.notes, self.keys)
        for invocation in range(1, self.invocations):
            found = self._compared(runs, invocation)
            if not found.proved:
                return found
        return _noted(replace(found, invocations=self.invocations), self.notes, self.keys)

    def _runs(self) -> tuple[Run, Run]:
        return (
            Run(self.original, self.keys, self.notes, "original", infers=True),
            Run(self.result, self.keys, self.notes, "result"),
        )

    def _any_state(self, key: object, value: Value) -> Value:
        """A value that stands for any; that a subgraph was called once stays so."""
        if isinstance(key, tuple) and key[0] == "called":
            return value
        return self.keys.as_float(self.keys.random(value.shape, "before", key))

    def _alike(self, runs: tuple[Run, Run]) -> bool:
        one, other = (run.state for run in runs)
        return one.keys() == other.keys() and all(
            np.array_equal(self.keys.constant(one[key]), self.keys.constant(other[key])) for key in one
        )

    def _compared(self, runs: tuple[Run, Run], invocation: int) -> Proof:
        before, after = runs
        inputs = inputs_of(self.keys, self.original.main.inputs, invocation)
        wrong = _outcome(
            self.keys, lambda: before.invoke(inputs), lambda: self._restored(after.invoke(self._given(inputs)))
        )
        if isinstance(wrong, Proof):
            return wrong
        if not wrong:
            return _noted(Proof(Status.PROVED, coarse=tuple(sorted(set(after.coarse)))), self.notes, self.keys)
        return _noted(self._explained(before, after, wrong), self.notes, self.keys)

    def _given(self, inputs: Sequence[Ring]) -> list[Ring]:
        sides = zip(inputs, self.original.main.inputs, self.result.main.inputs, strict=True)
        given = ((_as(self.keys, "QUANTIZE", value, old, new), old, new) for value, old, new in sides)
        return [np.moveaxis(x, 1, -1) if is_channels_last(new.shape, old.shape) else x for x, old, new in given]

    def _restored(self, outputs: Sequence[Value]) -> list[Ring]:
        """Values of a result as the original has them, in the order of its elements."""
        found = []
        for output, new, old in zip(outputs, self.result.main.outputs, self.original.main.outputs, strict=True):
            value = self.keys.constant(output)
            value = np.moveaxis(value, -1, 1) if is_channels_last(new.shape, old.shape) else value
            found.append(_as(self.keys, "DEQUANTIZE" if is_float(old) else "QUANTIZE", value, new, old))
        return found

    def _explained(self, before: Run, after: Run, wrong: tuple[int, ...]) -> Proof:
        """Tell a real difference from one that a coarse operator may cause."""
        tensor = self._first_difference(before, after)
        label = None if tensor is None or tensor.producer is None else tensor.producer.opcode.label
        one, other = Counter(before.coarse), Counter(after.coarse)
        odd = sorted((one - other) + (other - one))
        name = None if tensor is None else tensor.name
        found = Proof(Status.DIFFERENT, None, _said(wrong), name, label, wrong, coarse=tuple(sorted(other)))
        if self._reads_what_nobody_wrote():
            reason = "the original depends on memory that nothing has written"
            return replace(found, status=Status.UNKNOWN, reason=reason, tensor=None, operator=None)
        if not odd:
            return found
        return replace(found, status=Status.UNKNOWN, reason=f"{', '.join(odd)}: taken as functions of all their inputs")

    def _reads_what_nobody_wrote(self) -> bool:
        """Return whether the original depends on the previous contents of memory."""
        inputs = inputs_of(self.keys, self.original.main.inputs)
        one, other = (
            Run(self.original, self.keys, self.notes, name, infers=True).invoke(inputs) for name in ("one", "other")
        )
        return bool(_differing(self.keys, one, other))

    def _first_difference(self, before: Run, after: Run) -> Tensor | None:
        """The first tensor of the result that the original has by name, and with other values."""
        for operator in self.result.main.operators:
            for tensor in operator.outputs:
                old, new = before.digests.get(tensor.name), after.digests.get(tensor.name)
                if old is not None and new is not None and old[0] == new[0] and old != new:
                    return tensor
        return next((tensor for tensor in self.result.main.outputs if tensor.producer is not None), None)


def _as(keys: Keys, name: str, x: Ring, source: Tensor, target: Tensor) -> Ring:
    """A value of one tensor as the other one has it."""
    if (source.dtype, quantization_of(source)) == (target.dtype, quantization_of(target)):
        return x
    try:
        return conversion(keys, name, x, source, target)
    except CoarseError:
        raise UndecidedError(f"'{target.name}' has several scales") from None


def chained(runs: Sequence[Run], given: Sequence[Value]) -> Sequence[Value]:
    """Run models one after another, each on the first outputs of the one before; return the last one's outputs.

    Raises IndexError where one takes more than the one before gives.
    """
    for run in runs:
        given = run.invoke([given[at].reshape(tensor.shape) for at, tensor in enumerate(run.model.main.inputs)])
    return given
