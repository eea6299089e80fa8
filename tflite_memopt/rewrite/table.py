"""The rules in force, in the order in which they are tried."""

from __future__ import annotations

from .rule import Rule
from .rules.consecutive_reshapes import CONSECUTIVE_RESHAPES
from .rules.constant_folding import CONSTANT_FOLDING
from .rules.dead_operators import DEAD_OPERATORS
from .rules.identity import IDENTITY
from .rules.legal_concatenation import LEGAL_CONCATENATION
from .rules.nested_concatenation import NESTED_CONCATENATION
from .rules.partial_convolution import PARTIAL_CONVOLUTION, PARTIAL_TRANSPOSED_CONVOLUTION
from .rules.slice_of_padding import SLICE_OF_PADDING
from .rules.split_depthwise import SPLIT_DEPTHWISE
from .rules.split_elementwise import SPLIT_ELEMENTWISE
from .rules.split_grouped_convolution import SPLIT_GROUPED_CONVOLUTION
from .rules.split_pad import SPLIT_PAD
from .rules.split_pooling import SPLIT_POOLING
from .rules.split_reshape import SPLIT_RESHAPE
from .rules.split_slice import SPLIT_SLICE
from .rules.split_spatial import SPLIT_SPATIAL
from .rules.subsampled_slice import SUBSAMPLED_SLICE

CLEAN_UP: tuple[Rule, ...] = (
    DEAD_OPERATORS,
    IDENTITY,
    SUBSAMPLED_SLICE,
    SLICE_OF_PADDING,
    CONSECUTIVE_RESHAPES,
    CONSTANT_FOLDING,
    LEGAL_CONCATENATION,
)
"""Always an improvement, or needed for TFLM to load the model: applied everywhere, before the search."""

SPLITS: tuple[Rule, ...] = (
    SPLIT_GROUPED_CONVOLUTION,
    PARTIAL_CONVOLUTION,
    PARTIAL_TRANSPOSED_CONVOLUTION,
    SPLIT_DEPTHWISE,
    SPLIT_POOLING,
    SPLIT_ELEMENTWISE,
    SPLIT_PAD,
    SPLIT_SPATIAL,
    SPLIT_RESHAPE,
    SPLIT_SLICE,
    NESTED_CONCATENATION,
)
"""Take a concatenation apart: applied where the cost falls."""
