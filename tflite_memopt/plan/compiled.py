"""Code that runs as plain Python, or compiled from the same source where the package was built with Cython.

``setup.py`` builds its ``SOURCES`` under the same name with an underscore in front. Both do the same steps
in the same order, so that the choice between them never changes an answer.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping
from functools import cache
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

Tables = dict[str, list[int]]
"""Lists of integers by the names of the fields that take them."""


def code_for(
    source: ModuleType, compiles: bool = True
) -> tuple[Any, Callable[[Mapping[str, list[int]]], dict[str, Any]]]:
    """The compiled copy of a module and what makes arrays of tables; else the module itself, which takes lists."""
    compiled = compiled_copy(source.__name__, source.__file__ or "") if compiles else None
    return (source, dict) if compiled is None else (compiled, _as_arrays)


@cache
def compiled_copy(name: str, path: str) -> Any:
    """The compiled copy of a module; None where it is missing or was made from another version of the source."""
    package, _, own = name.rpartition(".")
    try:
        module = import_module(f"{package}._{own}")
    except ImportError:
        return None
    source = Path(path)
    # Without the source, as in an archive, there is no newer one either.
    is_current = not source.exists() or sha256(source.read_bytes()).hexdigest() == module.SOURCE_DIGEST
    return module if is_current else None


def zeros(lengths: Mapping[str, int], is_compiled: bool) -> dict[str, Any]:
    """A table of so many zeros under each name, of the kind that the code takes: made once for every run."""
    return {name: array("q", bytes(8 * length)) if is_compiled else [0] * length for name, length in lengths.items()}


def _as_arrays(tables: Mapping[str, list[int]]) -> dict[str, Any]:
    return {name: array("q", values) for name, values in tables.items()}
