"""The models to verify, and the error that says that they are not equal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ...errors import EquivalenceError
from ...model.ir.change import Exactness


@dataclass(frozen=True)
class Promise:
    """The promised memory for TFLM: ``required_bytes`` of arena, of which the plan takes ``head`` bytes.

    None where nothing is said. A runner of the user's must keep to it. The wheel may be of a version that was not
    measured: where it takes more, the report notes it.
    """

    required_bytes: int | None = None
    head: int | None = None


@dataclass(frozen=True)
class Subject:
    """The bytes of two models to compare, and how far the rewriting may have changed values.

    ``promises``: the memory that the result is said to need, by the name of the TFLM: "tflm", that of the wheel, or
    "runner", that of the user's runner. ``ties``: as of a ``Model``.
    """

    original: bytes
    optimized: bytes
    exactness: Exactness = "exact"
    promises: Mapping[str, Promise] = field(default_factory=dict)
    ties: tuple[tuple[int, int], ...] = ()


class FailedVerificationError(EquivalenceError):
    """The optimized model computes other outputs than the original. ``runtime`` or ``proof``: what found it."""

    def __init__(self, message: str, runtime: str | None = None, proof: str | None = None) -> None:
        super().__init__(message)
        self.runtime, self.proof = runtime, proof
