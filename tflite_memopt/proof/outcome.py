"""The answers that a proof gives, and the two errors that end one early."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from ..errors import MemoptError
from ..ir.check import describe
from ..ir.model import Operator

BITS_LOST = 9
"""Bits that the least power of two in a difference of two weights can cost: those of int8 differ by less than 2**9."""


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
    kernels that the runs leaned on (``facts.py``). ``elements``: ring elements that both runs computed; each may
    collide. ``coarse``: kinds of operators that were taken as functions of all elements of all their inputs.
    """

    status: Status
    invocations: int | None = None
    reason: str | None = None
    tensor: str | None = None
    operator: str | None = None
    outputs: tuple[int, ...] = ()
    facts: tuple[str, ...] = ()
    elements: int = 0
    coarse: tuple[str, ...] = ()

    @property
    def proved(self) -> bool:
        """Return whether the models compute the same, bit by bit or as real polynomials."""
        return self.status in (Status.PROVED, Status.REASSOCIATED)

    @property
    def chance(self) -> float:
        """Upper bound on the probability that the models differ although they are proved equal, over the random keys.

        Two different terms agree with a chance of at most ``2**(BITS_LOST - 64)``, once for each element that is
        computed.
        """
        return min(1.0, self.elements * 2.0 ** (BITS_LOST - 64))

    def __str__(self) -> str:
        if self.status is Status.PROVED and self.invocations is not None:
            return f"proved for all inputs, in sequences of up to {self.invocations} invocations"
        where = "" if self.tensor is None else f"; the first tensor that differs is '{self.tensor}' ({self.operator})"
        return self.status.value + ("" if self.reason is None else f": {self.reason}") + where


@dataclass
class Notes:
    """Notes of the runs: facts that they use, number of computed elements, coarse kinds of each run."""

    facts: set[str] = field(default_factory=set)
    elements: int = 0


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
