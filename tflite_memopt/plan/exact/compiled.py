"""Typed access to numba, which is optional and has no types of its own. Import only where numba is present."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

import numba

F = TypeVar("F", bound=Callable[..., object])


def compiled(function: F) -> F:
    """The function as machine code, made on its first call and kept on disk for later runs."""
    return cast(F, numba.njit(cache=True)(function))
