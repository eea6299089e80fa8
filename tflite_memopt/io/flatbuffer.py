"""The Python flatbuffers runtime, corrected: reads that check their bounds, 16-byte buffers, equal vectors once."""

from __future__ import annotations

from typing import Any

import flatbuffers

IDENTIFIER = b"TFL3"
BUFFER_ALIGNMENT = 16
"""Bytes; what schema.fbs asks for by ``force_align: 16`` and some cores fault without."""


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
