"""Sizes of RAM that microcontrollers commonly have, to compare an arena with. 1 KB is 1,024 bytes throughout."""

from __future__ import annotations

_KB = 1024
COMMON_SIZES = tuple(
    _KB * size for size in (8, 16, 32, 48, 64, 96, 128, 192, 256, 320, 384, 512, 640, 768, 1024, 2048, 4096, 8192)
)


def smallest_fitting(nbytes: int) -> int | None:
    """The smallest common size, in bytes, that holds ``nbytes``; None when none does."""
    return next((size for size in COMMON_SIZES if nbytes <= size), None)


def in_words(size: int) -> str:
    """A size in bytes as people write it: ``64 KB``, ``2 MB``; bytes where it is no whole number of KB."""
    if size % _KB:
        return f"{size:,} bytes"
    return f"{size // _KB**2} MB" if size % _KB**2 == 0 else f"{size // _KB} KB"
