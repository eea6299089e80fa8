r"""Rewrite what TFLM cannot load, or does not read, into what it can: exact, always on, and before all measurements.

A model that TFLM does not load has no RAM to compare with. So the run begins with the model that these rules make of
it, once that is proved equal; the report says that the file could not be loaded before.

Weights behind the flatbuffer (``Buffer.offset``), where TFLM does not look, are written inline. The graph is the same:

    [tables | w behind them]        =>        [tables with w]

Beyond the rules of this file, by their names: ``broadcast``, ``repeated_pixels``, ``folded_shapes``,
``slice_of_concatenation``, ``legal_concatenation``, ``static_lists``, ``widened_constant``, ``later_dequantize``,
``integer_clamp``. A subgraph that nothing calls, usually another signature, is dropped: TFLM runs subgraph 0 alone, and
crashes on the tensors of the others, which it never places (micro_allocation_info.cc).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from math import prod

import numpy as np

from ...kernels.as_it_came import RUNS_AS_IT_CAME, AsItCame, as_it_came
from ...kernels.since import PRESENT, TflmBuild, lacking
from ...kernels.support import RUNS, TflmSupport, support_of
from ...model.io import plan_label
from ...model.ir.change import EXACTNESS, WEIGHTS_INLINE, Changed, changed
from ...model.ir.copying import drop_dead_tensors, drop_uncalled_signatures
from ...model.ir.editor import positions_in
from ...model.ir.model import Buffer, DType, Model, Operator, Tensor
from ...model.ir.tensors import has_several_scales, integers, quantized_alike, values
from ...operators.boxes import operands
from ...operators.editor import Editor
from ...operators.table import OPERATORS
from .channels import LEGAL_CONCATENATION
from .engine import Answer, Driver, Match, Pattern, Proposal, Rule
from .folding import FOLDED_SHAPES, NEEDED_WIDENING
from .islands import INTEGER_CLAMP, LATER_DEQUANTIZE
from .pixels import BROADCAST, REPEATED_PIXELS
from .slices import SLICE_OF_LONG_CONCATENATION
from .static_lists import make_lists_static

_MOST_AXES = 5
"""Of a tensor that TFLM's BROADCAST_TO makes: ``kMaxDims`` of micro/kernels/broadcast_to.cc."""


@dataclass(frozen=True)
class Mended(Changed):
    """What TFLM made of a model before, and what still keeps TFLM from loading it: both name operators of the file."""

    before: AsItCame = RUNS_AS_IT_CAME
    after: TflmSupport = RUNS


def mended(model: Model, build: TflmBuild = PRESENT) -> Mended:
    """Write otherwise what TFLM does not load, or does not read.

    ``build``: the firmware's TFLM, which may lack what the present one has. An operator that TFLM computes wrongly is
    written otherwise by the search, which knows the memory that it takes (``folding.NEEDED_WIDENING``,
    ``kernels/mend.py``).
    """
    before, places = as_it_came(model, build=build), positions_in(model)
    done = changed(model, WEIGHTS_INLINE, model.constants_behind)
    model.constants_behind = ()
    if before.support.runs:
        return Mended(model, done.uses, before=before, after=before.support)
    done = done.then(drop_uncalled_signatures(model), make_lists_static(model))
    driver = Driver(model)
    for rules in (*_RULES[:1], (*_RULES[1], *_rules_of_types(build)), *_RULES[2:]):
        driver.apply_everywhere(rules)
    drop_dead_tensors(model)
    uses = (*done.uses, *driver.uses())
    if uses:
        plan_label.detach(model)  # its offsets are for other tensors
    after = support_of(model, build)
    reasons = (replace(each, index=places.get((each.subgraph, each.output), each.index)) for each in after.reasons)
    return Mended(model, uses, before=before, after=replace(after, reasons=tuple(reasons)))


def _tiles(match: Match) -> Answer:
    tile = match.anchor
    source, chosen = operands(tile, 2)
    times, output = integers(chosen), tile.outputs[0]
    if source is None or times is None or times.size != len(source.shape) or times.min(initial=1) < 1:
        return "it repeats a number of times that is computed"
    if not quantized_alike(source.quantization, output.quantization):
        return f"'{output.name}' is quantized otherwise than '{source.name}'"
    axes: list[tuple[int, int]] = []
    for size, count in zip(source.shape, times.tolist(), strict=True):
        axes += [(size, size)] if count == 1 else [(1, count), (size, size)]
    joined: list[tuple[int, int]] = []
    for axis in axes:
        # Axes that stay, and those that are repeated, are one axis where they are neighbors of their own sort.
        is_alike = joined and (axis[0] == axis[1]) == (joined[-1][0] == joined[-1][1])
        if axis == (1, 1):
            continue
        joined = (
            [*joined[:-1], (prod((joined[-1][0], axis[0])), prod((joined[-1][1], axis[1])))]
            if is_alike
            else [*joined, axis]
        )
    if len(joined) > _MOST_AXES:
        return f"it takes more than the {_MOST_AXES} dimensions of TFLM's BROADCAST_TO"
    few, many = (tuple(axis[at] for axis in joined) or (1,) for at in (0, 1))

    def write(edit: Editor) -> None:
        narrow = edit.activation(f"{output.name}/narrow", few, source)
        wide = edit.activation(f"{output.name}/wide", many, output)
        edit.reshape(source, narrow)
        shape = edit.constant(f"{output.name}/shape", np.asarray(many, np.int32))
        edit.operator("BROADCAST_TO", (narrow, shape), (wide,), "BroadcastToOptions")
        edit.reshape(wide, output)

    return Proposal(write)


TILES = Rule("tiles", Pattern("tile", ("TILE",)), _tiles)
"""Replace a TILE by a BROADCAST_TO of at most five dimensions.

    x (2, 3) -- TILE (2, 1) -- y (4, 3)    =>    x -- RESHAPE (1, 6) -- BROADCAST_TO (2, 6) -- RESHAPE (4, 3) -- y

Exact: both copy the same elements.
"""


def _shifted(match: Match) -> Answer:
    select, add = match.anchor, match["add"]
    condition, _, x = operands(select, 3)
    output = select.outputs[0]
    if condition is None or x is None or x.dtype is not DType.INT32:
        return None
    by = next((each for each in add.present_inputs() if each is not x), None)
    shapes = {condition.shape, x.shape, output.shape}
    if x not in add.inputs or by is None or not by.is_constant or by.elements != 1 or len(shapes) > 1:
        return "it does not choose between a tensor and the same tensor moved by a constant"
    if add.option("fusedActivationFunction", 0):
        return "the sum has an activation"

    def write(edit: Editor) -> None:
        is_moved, distance = (edit.integers(f"{output.name}/{name}", output.shape) for name in ("is_moved", "distance"))
        edit.operator("CAST", (condition,), (is_moved,), "CastOptions", inDataType=_BOOL, outDataType=_INT32)
        edit.operator("MUL", (is_moved, by), (distance,), "MulOptions")
        edit.operator("ADD", (x, distance), (output,), "AddOptions")

    return Proposal(write)


_BOOL, _INT32 = 6, 2
"""Types as the schema numbers them."""
SHIFTED = Rule("shifted_positions", Pattern("select", ("SELECT", "SELECT_V2"), {1: Pattern("add", ("ADD",))}), _shifted)
"""Replace the SELECT between positions and positions from the end (Embedding of Keras 3) by a sum.

    x -- LESS 0 -- c,    SELECT(c, x + n, x)        =>        x + n * CAST(c)

Exact: c is 0 or 1. TFLM has no SELECT, and no SELECT_V2 of integers of 32 bits.
"""


def _chosen(match: Match) -> Answer:
    select = match.anchor
    condition, *chosen = operands(select, 3)
    output = select.outputs[0]
    if any(each is None or each.shape != output.shape for each in (condition, *chosen)):
        return "its operands have several shapes"
    if not OPERATORS["SELECT_V2"].tflm.takes(output.dtype):
        return f"TFLM has no SELECT_V2 of {output.dtype.label} either"
    alike = (each is not None and quantized_alike(each.quantization, output.quantization) for each in chosen)
    if not all(alike):
        return f"'{output.name}' is quantized otherwise than what it chooses from"
    return Proposal(lambda edit: edit.operator("SELECT_V2", (condition, *chosen), (output,), "SelectV2Options"))


CHOSEN = Rule("chosen", Pattern("select", ("SELECT",)), _chosen)
"""A SELECT of operands of one shape, as of Keras's selu, is a SELECT_V2, which TFLM has.

    SELECT(c, x, y)        =>        SELECT_V2(c, x, y)

Exact: without broadcasting both are the same.
"""


def _has_kernel(operator: Operator, source: Tensor, build: TflmBuild) -> bool:
    return OPERATORS[operator.name].tflm.takes(source.dtype) and lacking(operator, build) is None


def _added_axis(build: TflmBuild, match: Match) -> Answer:
    source, output = match.anchor.inputs[0], match.anchor.outputs[0]
    if source is None or _has_kernel(match.anchor, source, build):
        return None
    return Proposal(lambda edit: edit.reshape(source, output))


ADDED_AXIS = Rule("added_axis", Pattern("expand", ("EXPAND_DIMS",)), partial(_added_axis, PRESENT))
"""Replace an EXPAND_DIMS of a type that TFLM does not support, such as positions or masks, by a RESHAPE.

    x (1, 6) int32 -- EXPAND_DIMS -- y (1, 6, 1)        =>        x -- RESHAPE -- y

Exact: both copy the same bytes, whatever they mean.
"""


def _unpacked(build: TflmBuild, match: Match) -> Answer:
    unpack = match.anchor
    source = unpack.inputs[0]
    if source is None or _has_kernel(unpack, source, build):
        return None
    if not OPERATORS["SLICE"].tflm.takes(source.dtype):
        return f"TFLM has no SLICE of {source.dtype.label} either"
    axis = int(unpack.option("axis", 0)) % len(source.shape)
    size = tuple(1 if at == axis else length for at, length in enumerate(source.shape))

    def write(edit: Editor) -> None:
        for number, output in enumerate(unpack.outputs):
            begin = [number if at == axis else 0 for at in range(len(size))]
            cut = edit.activation(f"{output.name}/cut", size, source)
            edit.slice(source, begin, size, cut)
            edit.reshape(cut, output)

    return Proposal(write)


UNPACKED = Rule("unpacked", Pattern("unpack", ("UNPACK",)), partial(_unpacked, PRESENT))
"""Replace an UNPACK of a type that TFLM does not support, such as a mask, by a SLICE and a RESHAPE per output.

    x (1, 6) bool -- UNPACK -- six of (1)        =>        x -- SLICE (1, 1) -- RESHAPE (1), six times

Exact: both copy the same bytes.
"""


def _dense_product(are_real: bool, match: Match) -> Answer:
    product = match.anchor
    x, weights = operands(product, 2)
    found = None if weights is None else weights.quantization
    if x is None or weights is None or found is None or not has_several_scales(found):
        return None
    stored, rank = values(weights), len(weights.shape)
    is_turned = bool(product.option("adjY", False))
    if stored is None or {x.dtype, weights.dtype} != {DType.INT8} or product.option("adjX", False):
        return "its sides are not int8 activations and an int8 constant, as FULLY_CONNECTED takes them"
    if prod(weights.shape[:-2]) != 1 or found.axis != rank - (2 if is_turned else 1) or found.zero_point.any():
        return "its constant is several matrices, or has no scale per column and zero points of 0"
    rows, output = stored.reshape(weights.shape[-2:]), product.outputs[0]
    by_unit, scales = np.ascontiguousarray(rows if is_turned else rows.T), replace(found, axis=0)

    def write(edit: Editor) -> None:
        dense = edit.constant(f"{output.name}/weights", by_unit, scales)
        edit.operator("FULLY_CONNECTED", (x, dense, None), (output,), "FullyConnectedOptions", keepNumDims=True)

    def write_in_real_numbers(edit: Editor) -> None:
        real, made = (
            edit.graph.add_tensor(Tensor(edit.unique(f"{each.name}/real"), each.shape, DType.FLOAT32, Buffer()))
            for each in (x, output)
        )
        values_of_units = (scales.scale[:, None] * by_unit).astype(np.float32)
        edit.operator("DEQUANTIZE", (x,), (real,), "DequantizeOptions")
        inputs = (real, edit.constant(f"{output.name}/real/weights", values_of_units))
        edit.twin(product, inputs, (made,), adjY=True)
        edit.operator("QUANTIZE", (made,), (output,), "QuantizeOptions")

    return Proposal(write_in_real_numbers if are_real else write, "approximates")


DENSE_PRODUCT = Rule("dense_product", Pattern("product", ("BATCH_MATMUL",)), partial(_dense_product, False))
"""Write a BATCH_MATMUL of int8 by a constant with a scale per column as a FULLY_CONNECTED, which has these.

    BATCH_MATMUL(x, w (depth, units))        =>        FULLY_CONNECTED(x, w (units, depth)), keepNumDims

Not exact: LiteRT and TFLM take the first scale for all columns, so that nothing runs what the file says. What it says,
in floats, is what the result is held against; outputs are rounded once.
"""


def with_dense_products(model: Model, are_real: bool = False) -> Changed:
    """Write the products that no runtime computes as the file says otherwise.

    ``are_real``: as products of floats, which are what the file says.
    """
    driver = Driver(model, EXACTNESS)
    driver.apply_everywhere((replace(DENSE_PRODUCT, check=partial(_dense_product, are_real)),))
    if driver.applied:
        drop_dead_tensors(model)
        plan_label.detach(model)
    return Changed(model, driver.uses())


_RULES: tuple[tuple[Rule, ...], ...] = (
    BROADCAST,
    (
        FOLDED_SHAPES,
        NEEDED_WIDENING,
        LATER_DEQUANTIZE,
        INTEGER_CLAMP,
        SHIFTED,
        CHOSEN,
        *REPEATED_PIXELS,
        SLICE_OF_LONG_CONCATENATION,
    ),
    (LEGAL_CONCATENATION,),
    (TILES,),
)
"""In this order: copies and joins that nobody needs are not made at all. With the second ones go the rules of types."""


def _rules_of_types(build: TflmBuild) -> tuple[Rule, ...]:
    """Return the rules for operators of types that a build of TFLM lacks."""
    return (replace(ADDED_AXIS, check=partial(_added_axis, build)), replace(UNPACKED, check=partial(_unpacked, build)))
