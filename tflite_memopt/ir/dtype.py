"""Element types: their names in the TFLite schema and their sizes in TFLM's arena."""

from __future__ import annotations

from enum import Enum


class DType(Enum):
    """An element type. The member's name is its name in the TFLite schema.

    The value is ``(label, arena_bytes, packed_bits)``: bytes of one element in TFLM's arena, and bits of one
    element in a constant buffer. They differ for the types smaller than a byte, which TFLM unpacks.
    ``arena_bytes`` is 0 for the types that TFLM does not place in the arena.
    Source: TFLM memory_helpers.cc, ``TfLiteTypeSizeOf``; a resource is a 4-byte handle.
    """

    FLOAT64 = ("float64", 8, 64)
    FLOAT32 = ("float32", 4, 32)
    FLOAT16 = ("float16", 2, 16)
    BFLOAT16 = ("bfloat16", 2, 16)
    FLOAT8_E4M3FN = ("float8_e4m3fn", 0, 8)
    FLOAT8_E5M2 = ("float8_e5m2", 0, 8)
    INT64 = ("int64", 8, 64)
    INT32 = ("int32", 4, 32)
    INT16 = ("int16", 2, 16)
    INT8 = ("int8", 1, 8)
    INT4 = ("int4", 1, 4)
    INT2 = ("int2", 0, 2)
    UINT64 = ("uint64", 8, 64)
    UINT32 = ("uint32", 4, 32)
    UINT16 = ("uint16", 2, 16)
    UINT8 = ("uint8", 1, 8)
    UINT4 = ("uint4", 0, 4)
    BOOL = ("bool", 1, 8)
    COMPLEX64 = ("complex64", 8, 64)
    COMPLEX128 = ("complex128", 16, 128)
    RESOURCE = ("resource", 4, 32)
    STRING = ("string", 0, 0)
    VARIANT = ("variant", 0, 0)

    @property
    def arena_bytes(self) -> int:
        """Bytes of one element in TFLM's arena; 0 when TFLM cannot hold the type."""
        return int(self.value[1])

    @property
    def packed_bits(self) -> int:
        """Bits of one element in a constant buffer; 0 when elements have no fixed size."""
        return int(self.value[2])

    @property
    def label(self) -> str:
        """Lower-case name for people; equal to numpy's name where numpy has the type."""
        return str(self.value[0])
