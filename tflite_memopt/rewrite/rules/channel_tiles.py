"""An operator that makes many channels makes some of them at a time, and what it has made is joined.

                                              +-- CONV_2D[Wa, Ba] -- a --+
    x -- CONV_2D[W, B] -- y        =>     x --+                          +-- CONCATENATION -- y
                                              +-- CONV_2D[Wb, Bb] -- b --+

CONV_2D, FULLY_CONNECTED, GATHER of a constant table, or DEPTHWISE_CONV_2D of one channel. Exact: see ``fan_out.py``.
By itself this gains nothing. It is for the rules that take a concatenation apart, which go on below it: through
operators that do not mix channels (exact), so that what is joined in the end has few bytes, and down to a convolution
that sums over all channels (partial sums: floats reassociate, integers approximate). So the wide tensor never exists.

This is Fused Depthwise Tiling (Stahl et al. 2023, arXiv 2303.17878, section 3: fan-out, depthwise parts and fan-in).
It needs no rows, repeats no product, and splits weights without copying them.
"""

from __future__ import annotations

from functools import cache

from ...ir.channels import is_per_channel
from ...ir.editor import Editor
from ...ir.model import Operator
from ..concatenation import MAX_PARTS
from ..fan_out import FAN_OUTS, FanOutOperand, fan_out
from ..pattern import Match, Pattern
from ..rule import Rule

_LANES = 4
"""Tiles have a multiple of so many channels where there are enough: kernels with vector instructions take four."""


def tile_sizes(channels: int, count: int) -> tuple[int, ...]:
    """``count`` numbers that add up to ``channels``, as equal as whole vectors allow, or as single channels do.

    >>> tile_sizes(40, 3)
    (16, 12, 12)
    >>> tile_sizes(10, 3)
    (4, 3, 3)
    """
    unit = _LANES if channels % _LANES == 0 and channels >= _LANES * count else 1
    share, more = divmod(channels // unit, count)
    return tuple(unit * (share + (number < more)) for number in range(count))


@cache
def channel_tiles(count: int) -> Rule[FanOutOperand]:
    """The rule that makes ``count`` tiles."""

    def check(match: Match) -> FanOutOperand | str | None:
        readers = [use.operator.name for output in match.anchor.outputs for use in output.uses]
        if readers and set(readers) == {"CONCATENATION"}:
            return None  # It is a tile, or a branch: joined in tiles it would be joined twice.
        found = fan_out(match.anchor)
        if isinstance(found, str):
            return found
        output = found.output
        if match.is_returned(output) or not output.uses:
            return f"'{output.name}' is returned as a whole, or not read"
        if not 2 <= count <= min(MAX_PARTS, output.shape[-1]):
            return f"it cannot be made in {count} tiles: it has {output.shape[-1]} channels, and TFLM joins {MAX_PARTS}"
        sizes = tile_sizes(output.shape[-1], count)
        if 1 in sizes and match.anchor.name == "FULLY_CONNECTED" and _has_several_scales(match.anchor):
            return f"'{output.name}' has a scale for each channel, and one alone is rounded in another way"
        return FanOutOperand(found, sizes)

    return Rule(f"{count} channel_tiles", Pattern("fan-out", FAN_OUTS), check, _rewrite)


def _has_several_scales(dense: Operator) -> bool:
    """Whether its rescaling is computed in float64; that of one scale is in float32.

    Source: tensorflow/lite/micro/kernels/fully_connected_common.cc, and ``GetQuantizedConvolutionMultipler``.
    """
    weights = dense.inputs[1]
    return weights is not None and is_per_channel(weights.quantization)


def _rewrite(found: FanOutOperand, edit: Editor) -> None:
    output = found.whole.output
    edit.join(found.write(edit), output, len(output.shape) - 1)
