"""The forms of a loop over rows, without their numbers of rows."""

from __future__ import annotations

from collections.abc import Callable

from tflite_memopt.search.cascade.tiling import ClampedLoop, CutLoop, MaskedLoop, RowLoop

Loop = Callable[[int], RowLoop]
"""A form of loop, which is given rows per iteration."""
LOOPS: tuple[Loop, ...] = (ClampedLoop, MaskedLoop, CutLoop)
