"""The Python flatbuffers runtime, corrected: reads that check their bounds, 16-byte buffers, equal vectors once.

Numbers of the schema become names and back by the maintained bindings. Files whose vectors name the same table again
and again are refused. A flatbuffer may refer to one table from many places, and the object API makes a copy for each. A
file of 1,700 bytes unpacks to 40,000 tensors that way, and one of 17,000 to four million. No writer of models shares
tables, each of which takes eight bytes with its reference, so there are never more than the file has room for.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import flatbuffers
from ai_edge_litert import schema_py_generated as schema

from ...errors import ErrorKind, ModelFormatError
from ..ir.model import DType

IDENTIFIER = b"TFL3"
BUFFER_ALIGNMENT = 16
"""Bytes; required by ``force_align: 16`` in schema.fbs, and some cores fault without."""


class BoundedBytes(bytearray):
    """Bytes whose slices raise IndexError past the end, where a plain bytearray silently shortens them.

    The runtime takes strings by slicing, so that a truncated file would otherwise read as a shorter name.
    """

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice) and (key.stop or 0) > len(self):
            raise IndexError(f"bytes {key.start} to {key.stop} of a file of {len(self)}")
        return super().__getitem__(key)


class AligningBuilder(flatbuffers.Builder):  # type: ignore[misc]
    """A builder that starts every byte vector on a multiple of 16, since Python ignores ``force_align``.

    Equal vectors of numbers and equal strings are in the file once: the format lets any table refer to any vector.
    """

    def __init__(self, initial_size: int) -> None:
        super().__init__(initial_size)
        self._vectors: dict[tuple[str, bytes], Any] = {}

    def CreateNumpyVector(self, x: Any) -> Any:  # noqa: N802
        key = (x.dtype.str, x.tobytes())
        if key not in self._vectors:
            self._vectors[key] = super().CreateNumpyVector(x)
        return self._vectors[key]

    def CreateString(self, s: Any, encoding: str = "utf-8", errors: str = "strict") -> Any:  # noqa: N802
        key = ("string", s.encode(encoding, errors) if isinstance(s, str) else bytes(s))
        if key not in self._vectors:
            self._vectors[key] = super().CreateString(s, encoding, errors)
        return self._vectors[key]

    def StartVector(self, elemSize: int, numElems: int, alignment: int) -> Any:  # noqa: N802, N803
        if elemSize == 1:
            alignment = max(alignment, BUFFER_ALIGNMENT)
        return super().StartVector(elemSize, numElems, alignment)


class SharedTable:
    """A table of the object API that is written once, wherever it is referred to."""

    def __init__(self, table: Any) -> None:
        self._table, self._offset = table, None

    def Pack(self, builder: AligningBuilder) -> Any:  # noqa: N802
        if self._offset is None:
            self._offset = self._table.Pack(builder)
        return self._offset


@cache
def _names(enum_class: type) -> dict[int, str]:
    return {value: name for name, value in vars(enum_class).items() if not name.startswith("_")}


def builtin_name(code: int) -> str | None:
    """Schema name of a builtin operator code; None when the bindings do not know the code."""
    return _names(schema.BuiltinOperator).get(code)


def builtin_code(name: str) -> int:
    """Builtin operator code of a schema name."""
    return int(getattr(schema.BuiltinOperator, name))


def dtype_of(code: int) -> DType | None:
    """Element type of a schema TensorType number; None when it is unknown."""
    return DType.__members__.get(_names(schema.TensorType).get(code, ""))


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
                f"the file refers to more tables than its {size} bytes can hold: "
                "it names the same ones again and again",
                ErrorKind.DAMAGED,
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
