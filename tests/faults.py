"""Errors by what is wrong and what they name, not by how they say it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

import pytest

from tflite_memopt.errors import ErrorKind, MemoptError, OptionError
from tflite_memopt.evidence.equivalence.subject import FailedVerificationError


@contextmanager
def raises(error: type[MemoptError], kind: ErrorKind | None, *names: str) -> Iterator[None]:
    """Expect an error of a kind, on one line; ``names``: places, tensors, and figures that its message must have."""
    with pytest.raises(error) as caught:
        yield
    assert caught.value.kind is kind, caught.value
    _check_names(caught.value, names)


@contextmanager
def wrong_option(field: str) -> Iterator[None]:
    """Expect that an option is refused: its field has no such value."""
    with pytest.raises(OptionError) as caught:
        yield
    assert caught.value.field == field, caught.value
    _check_names(caught.value, (field,))


def differs_on(runtime: str, *names: str) -> AbstractContextManager[None]:
    """Expect that a result differs from its original where ``runtime`` runs both."""
    return _fails("runtime", runtime, names)


def refuted(proof: str, *names: str) -> AbstractContextManager[None]:
    """Expect that a proof ends with a difference; ``proof``: its name in a report."""
    return _fails("proof", proof, names)


@contextmanager
def _fails(field: str, value: str, names: tuple[str, ...]) -> Iterator[None]:
    with pytest.raises(FailedVerificationError) as caught:
        yield
    assert getattr(caught.value, field) == value, caught.value
    _check_names(caught.value, names)


def _check_names(error: MemoptError, names: tuple[str, ...]) -> None:
    said = str(error)
    assert "\n" not in said, said
    assert [name for name in names if name not in said] == [], said
