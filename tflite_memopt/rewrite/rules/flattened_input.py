"""A reshape in front of FULLY_CONNECTED is left out: the kernel flattens its input by itself.

    x (1, 4, 4, 8) -- RESHAPE (1, 128) -- FULLY_CONNECTED        =>        x (1, 4, 4, 8) -- FULLY_CONNECTED

Every network that goes from an image to scores has such a pair. Exact: rows and their length come from the output and
from the weights, in LiteRT (kernels/fully_connected.cc, ``PrepareImpl``) and in TFLM with its own kernels, CMSIS-NN's
and esp-nn's (micro/kernels/fully_connected.cc, cmsis_nn/fully_connected.cc, esp_nn/fully_connected.cc: the number of
rows is that of the output). The reshape takes some 90 bytes of the tail on 32 bits.
"""

from __future__ import annotations

from ...kernels.relations import RESHAPES
from ..copies import CopyReader, is_shape_computed, source_for_one_reader
from ..pattern import Match, Pattern
from ..rule import Rule


def _check(match: Match) -> CopyReader | str | None:
    dense, reshape = match.anchor, match["reshape"]
    weights, output = dense.inputs[1], dense.outputs[0]
    if dense.option("keepNumDims", False) or len(output.shape) != 2:
        return "it keeps the dimensions of its input"
    if weights is None or dense.option("weightsFormat", 0):
        return "its weights are shuffled"
    if is_shape_computed(reshape):
        return "a shape is computed"
    source = source_for_one_reader(match, reshape)
    if isinstance(source, str):
        return source
    if source.elements != output.shape[0] * weights.shape[-1]:
        return "its input has more than the rows that it multiplies"
    return CopyReader(dense, source)


FLATTENED_INPUT = Rule(
    "flattened_input",
    Pattern("dense", ("FULLY_CONNECTED",), {0: Pattern("reshape", RESHAPES)}),
    _check,
    CopyReader.read_source,
)
