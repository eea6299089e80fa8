"""Two corrections to the Python flatbuffers runtime: reads that check their bounds, and 16-byte buffers."""

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
    """A builder that starts every byte vector on a multiple of 16, since Python ignores ``force_align``."""

    def StartVector(self, elemSize: int, numElems: int, alignment: int) -> Any:  # noqa: N802, N803
        if elemSize == 1:
            alignment = max(alignment, BUFFER_ALIGNMENT)
        return super().StartVector(elemSize, numElems, alignment)
