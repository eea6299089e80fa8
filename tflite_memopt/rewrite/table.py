"""The rules in force, in the order in which they are tried."""

from __future__ import annotations

from .rule import Rule
from .rules.partial_convolution import PARTIAL_CONVOLUTION, PARTIAL_TRANSPOSED_CONVOLUTION
from .rules.split_grouped_convolution import SPLIT_GROUPED_CONVOLUTION

CLEAN_UP: tuple[Rule, ...] = ()
"""Always an improvement, or needed for TFLM to load the model: applied everywhere, before the search."""

SPLITS: tuple[Rule, ...] = (SPLIT_GROUPED_CONVOLUTION, PARTIAL_CONVOLUTION, PARTIAL_TRANSPOSED_CONVOLUTION)
"""Take a channel concatenation apart: applied where the cost falls."""
