"""The rules in force, in the order in which they are tried."""

from __future__ import annotations

from .rule import AnyRule
from .rules.adjoint_matmul import ADJOINT_MATMUL
from .rules.consecutive_reshapes import CONSECUTIVE_RESHAPES
from .rules.constant_folding import CONSTANT_FOLDING
from .rules.dead_operators import DEAD_OPERATORS
from .rules.dense_pixels import DENSE_PIXELS
from .rules.flattened_input import FLATTENED_INPUT
from .rules.folded_bias import FOLDED_BIAS
from .rules.folded_shapes import FOLDED_SHAPES
from .rules.identity import IDENTITY
from .rules.joined_padding import JOINED_PADDING
from .rules.lean_reshape import LEAN_RESHAPE
from .rules.legal_concatenation import LEGAL_CONCATENATION
from .rules.nested_concatenation import NESTED_CONCATENATION
from .rules.partial_convolution import PARTIAL_CONVOLUTION, PARTIAL_TRANSPOSED_CONVOLUTION
from .rules.plain_slice import PLAIN_SLICE
from .rules.reduced_reshape import REDUCED_RESHAPE
from .rules.repeated_pixels import REPEATED_PIXELS
from .rules.restored_dilation import RESTORED_DILATION
from .rules.same_padding import SAME_PADDING
from .rules.skipping_convolution import SKIPPING_CONVOLUTION
from .rules.slice_of_padding import SLICE_OF_PADDING
from .rules.split_channelwise import SPLIT_CHANNELWISE
from .rules.split_depthwise import SPLIT_DEPTHWISE
from .rules.split_grouped_convolution import SPLIT_GROUPED_CONVOLUTION
from .rules.subsampled_slice import SUBSAMPLED_SLICE
from .rules.undone_reshapes import UNDONE_RESHAPES

CLEAN_UP: tuple[AnyRule, ...] = (
    DEAD_OPERATORS,
    FOLDED_SHAPES,
    IDENTITY,
    SUBSAMPLED_SLICE,
    SLICE_OF_PADDING,
    CONSECUTIVE_RESHAPES,
    CONSTANT_FOLDING,
    *RESTORED_DILATION,
    *FOLDED_BIAS,
    SAME_PADDING,
    UNDONE_RESHAPES,
    *ADJOINT_MATMUL,
    *REPEATED_PIXELS,
    LEGAL_CONCATENATION,
)
"""Always an improvement, or needed for TFLM to load the model: applied everywhere, before the search."""

SPLITS: tuple[AnyRule, ...] = (
    SPLIT_GROUPED_CONVOLUTION,
    PARTIAL_CONVOLUTION,
    PARTIAL_TRANSPOSED_CONVOLUTION,
    SPLIT_DEPTHWISE,
    *SPLIT_CHANNELWISE,
    NESTED_CONCATENATION,
)
"""Take a concatenation apart: applied where the cost falls."""

AFTER_STRIPES: tuple[tuple[AnyRule, ...], ...] = (
    (SKIPPING_CONVOLUTION,),
    (JOINED_PADDING,),
    (FLATTENED_INPUT, LEAN_RESHAPE, PLAIN_SLICE, REDUCED_RESHAPE),
    (DENSE_PIXELS,),
)
"""For the model in stripes: rules that take operators out at the price of products; that make copies views; that leave
less in the tail. Each group is tried on what the one before has made, and kept where that needs less."""
