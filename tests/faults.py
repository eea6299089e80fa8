"""Errors by what is wrong and what they name, not by how they say it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tflite_memopt.errors import ErrorKind, MemoptError
from tflite_memopt.evidence.equivalence.subject import FailedVerificationError


@contextmanager
def raises(error: type[MemoptError], kind: ErrorKind, *names: str) -> Iterator[None]:
    """Expect an error of a kind; ``names``: places, tensors, and figures that its message must have."""
    with pytest.raises(error) as caught:
        yield
    assert caught.value.kind is kind, caught.value
    assert [name for name in names if name not in str(caught.value)] == [], caught.value


@contextmanager
def differs_on(runtime: str, *names: str) -> Iterator[None]:
    """Expect that a result differs from its original where ``runtime`` runs both."""
    with pytest.raises(FailedVerificationError) as caught:
        yield
    assert caught.value.runtime == runtime, caught.value
    assert [name for name in names if name not in str(caught.value)] == [], caught.value
