"""A convolution or pooling in the terms in which kernel libraries compute their scratch and choose their path."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

from ..model.ir.model import Operator
from ..model.ir.tensors import same_padding

_VALID = 1


@dataclass(frozen=True)
class KernelWindow:
    """Sizes in pixels and channels; ``pad`` is what goes before the first row and column.

    ``taps_depth`` is the depth of the filter: less than ``in_depth`` where a convolution has groups.
    """

    batches: int
    in_height: int
    in_width: int
    in_depth: int
    out_height: int
    out_width: int
    out_depth: int
    taps_high: int
    taps_wide: int
    taps_depth: int
    stride_high: int
    stride_wide: int
    dilation_high: int
    dilation_wide: int
    pad_high: int
    pad_wide: int

    @property
    def taps(self) -> int:
        """Pixels that the filter covers."""
        return self.taps_high * self.taps_wide

    @property
    def is_dilated(self) -> bool:
        """Tell whether the taps lie apart in either direction."""
        return (self.dilation_high, self.dilation_wide) != (1, 1)

    @property
    def transposed(self) -> KernelWindow:
        """Return the window with rows and columns swapped."""
        high = {name: value for name, value in vars(self).items() if name.endswith(("height", "_high"))}
        wide = {name: value for name, value in vars(self).items() if name.endswith(("width", "_wide"))}
        pairs = list(zip(high, wide, strict=True))
        return replace(self, **{a: wide[b] for a, b in pairs}, **{b: high[a] for a, b in pairs})

    @property
    def missing_high(self) -> int:
        """Rows that the windows reach below the input."""
        return self.out_height * self.stride_high + self.taps_high - 1 - self.in_height

    @property
    def missing_wide(self) -> int:
        """Columns that the windows reach beyond the input."""
        return self.out_width * self.stride_wide + self.taps_wide - 1 - self.in_width

    @property
    def trailing(self) -> tuple[int, int]:
        """Rows and columns of padding behind the input that the last windows reach into."""
        high = (self.out_height - 1) * self.stride_high + (self.taps_high - 1) * self.dilation_high + 1
        wide = (self.out_width - 1) * self.stride_wide + (self.taps_wide - 1) * self.dilation_wide + 1
        return max(0, high - self.pad_high - self.in_height), max(0, wide - self.pad_wide - self.in_width)


def window_of(operator: Operator) -> KernelWindow:
    """The window of a CONV_2D or DEPTHWISE_CONV_2D. Raises IndexError for a tensor that has not four dimensions."""
    source, filters, output = operator.required(0), operator.required(1), operator.outputs[0]
    dilations = int(operator.option("dilationHFactor", 1)), int(operator.option("dilationWFactor", 1))
    is_padded = operator.option("padding", 0) != _VALID
    return window_between(source.shape, filters.shape, output.shape, strides_of(operator), dilations, is_padded)


def strides_of(operator: Operator) -> tuple[int, int]:
    """Return the strides along height and width."""
    return int(operator.option("strideH", 1)), int(operator.option("strideW", 1))


@lru_cache(maxsize=1 << 14)  # searches ask for the same stripes many thousand times
def window_between(
    source: tuple[int, ...],
    filters: tuple[int, ...],
    output: tuple[int, ...],
    strides: tuple[int, int],
    dilations: tuple[int, int] = (1, 1),
    is_padded: bool = False,
) -> KernelWindow:
    """Return a window by the shapes of its tensors; pairs are of height and width.

    Raises IndexError as ``window_of``.
    """
    pads = [
        same_padding(source[axis], output[axis], stride, (filters[axis] - 1) * dilation + 1)[0]
        for axis, stride, dilation in zip((1, 2), strides, dilations, strict=True)
    ]
    return KernelWindow(
        batches=source[0],
        in_height=source[1],
        in_width=source[2],
        in_depth=source[3],
        out_height=output[1],
        out_width=output[2],
        out_depth=output[3],
        taps_high=filters[1],
        taps_wide=filters[2],
        taps_depth=filters[3],
        stride_high=strides[0],
        stride_wide=strides[1],
        dilation_high=dilations[0],
        dilation_wide=dilations[1],
        pad_high=pads[0] if is_padded else 0,
        pad_wide=pads[1] if is_padded else 0,
    )
