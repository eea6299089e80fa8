"""The forms of a loop over rows, without their numbers of rows."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from tflite_memopt.cascade.space import UNROLLED
from tflite_memopt.cascade.tiling import ClampedLoop, MaskedLoop, PeeledLoop, RowLoop

Loop = Callable[[int], RowLoop]
"""A form of loop, which is given rows per iteration."""
LOOPS: tuple[Loop, ...] = (
    ClampedLoop,
    MaskedLoop,
    *(partial(PeeledLoop, halo=halo, edges=edges) for halo, edges in UNROLLED),
)
