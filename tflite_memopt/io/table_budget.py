"""Refuses files whose vectors name the same table again and again.

A flatbuffer may refer to one table from many places, and the object API makes a copy for each. A file of 1,700 bytes
unpacks to 40,000 tensors that way, and one of 17,000 to four million. No writer of models shares tables, each of which
takes eight bytes with its reference, so there are never more than the file has room for.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..errors import ModelFormatError

_BYTES_A_TABLE = 4
"""A table without fields takes as much, and its reference again as much: twice what is asked for here."""
_TOP = ("OperatorCodes", "Buffers", "Metadata")
_INNER = {"Subgraphs": ("Tensors", "Operators"), "SignatureDefs": ("Inputs", "Outputs")}


def check_table_budget(root: Any, size: int) -> None:
    """Raise ModelFormatError when the tables of a model are more than ``size`` bytes can hold.

    ``root`` is the schema's accessor of the model; nothing is unpacked. Lengths are added up until the budget is spent,
    so that it takes no longer than reading a well-formed file of that size.
    """
    left = size // _BYTES_A_TABLE
    for length in _lengths(root):
        left -= length
        if left < 0:
            raise ModelFormatError(
                f"the file refers to more tables than its {size} bytes can hold: it names the same ones again and again"
            )


def _lengths(root: Any) -> Iterator[int]:
    """Lengths of the vectors of tables, outer ones first."""
    for name in _TOP:
        yield getattr(root, f"{name}Length")()
    for kind, names in _INNER.items():
        for table in _tables(root, kind):
            if table is None:
                continue
            yield 1
            for name in names:
                yield getattr(table, f"{name}Length")()


def _tables(parent: Any, name: str) -> Iterator[Any]:
    element = getattr(parent, name)
    return (element(index) for index in range(getattr(parent, f"{name}Length")()))
