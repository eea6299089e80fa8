"""The answers that a proof gives, and the two errors that end one early."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from ...errors import MemoptError
from ...model.ir.check import describe
from ...model.ir.model import Operator

_MOST_OF_INTEGERS = 31
"""Bits that a chain of sums of 32-bit integers can lose: where more are lost, the kernels' own numbers are equal."""
FINITE_ONLY = ", for finite values that do not overflow"


class Status(Enum):
    """The degree to which two models are proved equal.

    DIFFERENT: both were followed to the end and are other terms of the inputs, or the result is broken. That does harm,
    unless an identity between numbers that no fact states makes up for it; samples tell. UNKNOWN: something was not
    followed.
    """

    PROVED = "proved for all inputs"
    REASSOCIATED = "proved for all inputs as real polynomials: float sums are taken in another order"
    DIFFERENT = "different"
    UNKNOWN = "not proved"


@dataclass(frozen=True)
class Proof:
    """The outcome of one comparison of two models.

    ``invocations``: of models with state, the length of the sequences from the first invocation on that it holds for;
    None: any. ``reason``: why it is not proved. ``tensor``, ``operator``: the first tensor of the result, by name, that
    differs, and its writer. ``outputs``: positions of outputs that differ. ``facts``: names of the facts about
    kernels that the runs leaned on (``facts.py``). ``chance``: upper bound on the probability that the models differ
    although they are proved equal, over the random keys: ``ring.py`` derives it. ``coarse``: kinds of operators
    that were taken as functions of all elements of all their inputs. ``is_finite``: it holds where all floats are
    finite, those on the way too.
    """

    status: Status
    invocations: int | None = None
    reason: str | None = None
    tensor: str | None = None
    operator: str | None = None
    outputs: tuple[int, ...] = ()
    facts: tuple[str, ...] = ()
    chance: float = 0.0
    coarse: tuple[str, ...] = ()
    is_finite: bool = False

    @property
    def proved(self) -> bool:
        """Return whether the models compute the same, bit by bit or as real polynomials."""
        return self.status in (Status.PROVED, Status.REASSOCIATED)

    def __str__(self) -> str:
        limits = "" if self.invocations is None else f", in sequences of up to {self.invocations} invocations"
        limits += FINITE_ONLY if self.is_finite else ""
        if self.proved:
            how = self.status.value.removeprefix(Status.PROVED.value)
            return f"{Status.PROVED.value}{limits}{how}"
        where = "" if self.tensor is None else f"; the first tensor that differs is '{self.tensor}' ({self.operator})"
        return self.status.value + ("" if self.reason is None else f": {self.reason}") + where


@dataclass
class Notes:
    """Notes of the runs: facts that they use, and bits that chains of sums of integers may lose.

    ``knows_ranges``: sums leave out channels that are the zero point for all inputs.
    """

    knows_ranges: bool = False
    facts: set[str] = field(default_factory=set)
    integer_bits: float = 0.0

    @property
    def lost(self) -> float:
        """Return the bits that any difference may lose."""
        return min(_MOST_OF_INTEGERS, self.integer_bits)


class _StoppedError(MemoptError):
    """Stops a run; ``is_named``: the message names the operator."""

    is_named = False

    def at(self, graph: int, position: int, operator: Operator) -> _StoppedError:
        """Return the same, naming the operator; an inner one is kept."""
        if self.is_named:
            return self
        found = type(self)(f"{describe(graph, position, operator)}: {self}")
        found.is_named = True
        return found


class BrokenModelError(_StoppedError):
    """An operator reads or writes outside of a tensor, or its operands contradict its output's shape."""


class UndecidedError(_StoppedError):
    """A model holds something that a proof cannot follow."""
