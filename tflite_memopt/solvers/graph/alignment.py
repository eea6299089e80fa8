"""TFLM's arena alignment."""

from __future__ import annotations

ARENA_ALIGNMENT = 16
"""Bytes; ``MicroArenaBufferAlignment`` in TFLM micro_arena_constants.h."""


def aligned(size: int, alignment: int = ARENA_ALIGNMENT) -> int:
    """``size`` rounded up to a multiple of ``alignment``, both in bytes."""
    return -(-size // alignment) * alignment
