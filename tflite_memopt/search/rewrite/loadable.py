r"""Rewrite what TFLM cannot load into what it can: exact, always on, and done before anything is measured.

A model that TFLM does not load has no RAM to compare with. So the run begins with the model that these rules make of
it, once that is proved equal; the report says that the file could not be loaded before.

Beyond the rules of this file, by their names: ``broadcast``, ``repeated_pixels``, ``folded_shapes``,
``legal_concatenation``, ``static_lists``. A subgraph that nothing calls, usually another signature, is dropped: TFLM
runs subgraph 0 alone, and crashes on the tensors of the others, which it never places (micro_allocation_info.cc).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from math import prod

import numpy as np

from ...model.io import offline_plan, plan_label
from ...model.ir.change import STATIC_LISTS, UNCALLED, RewriteUse
from ...model.ir.copying import copy_model, drop_dead_tensors, drop_uncalled
from ...model.ir.editor import Editor
from ...model.ir.model import DType, Model, Operator, Tensor
from ...model.ir.tensors import integers, quantized_alike
from ...target.kernels.relations import operands
from ...target.kernels.since import PRESENT, TflmBuild, lacking
from ...target.kernels.support import TflmSupport, support_of
from ...target.operators.table import OPERATORS
from .channels import LEGAL_CONCATENATION
from .engine import AnyRule, Driver, Match, Pattern, Rule
from .folding import FOLDED_SHAPES, Folded, fold
from .pixels import BROADCAST, REPEATED_PIXELS
from .static_lists import make_lists_static

_MOST_AXES = 5
"""Of a tensor that TFLM's BROADCAST_TO makes: ``kMaxDims`` of micro/kernels/broadcast_to.cc."""


@dataclass(frozen=True)
class Mended:
    """A model, what was done to it, and what kept TFLM from loading it before and still does: operators of the file."""

    model: Model
    uses: tuple[RewriteUse, ...]
    before: TflmSupport
    after: TflmSupport


def mended(model: Model, build: TflmBuild = PRESENT) -> Mended | None:
    """Return a copy that TFLM has fewer reasons not to load; None where there is none, or nothing to mend.

    ``build``: the firmware's TFLM, which may lack what the present one has.
    """
    before = support_of(model, build)
    if before.runs:
        return None
    copied = copy_model(model)
    signatures = copied.signatures or []
    graphs = drop_uncalled(copied)
    dropped = [each.key for each in signatures if each.graph in graphs] or [graph.name for graph in graphs]
    lists = make_lists_static(copied)
    driver = Driver(copied)
    for rules in (*_RULES[:1], (*_RULES[1], *_rules_of_types(build)), *_RULES[2:]):
        driver.apply_everywhere(rules)
    drop_dead_tensors(copied)
    if not dropped and not lists and not driver.applied:
        return None
    # Its offsets are for other tensors.
    offline_plan.detach(copied)
    plan_label.detach(copied)
    found: dict[str, list[str]] = {UNCALLED: dropped} if dropped else {}
    if lists:
        found[STATIC_LISTS] = list(lists)
    for each in driver.applied:
        found.setdefault(each.rule, []).append(each.operator)
    uses = tuple(RewriteUse(rule, tuple(names), "exact", 0) for rule, names in found.items())
    return Mended(copied, uses, before, _as_in_the_file(support_of(copied, build), model))


def _as_in_the_file(support: TflmSupport, model: Model) -> TflmSupport:
    """What still keeps TFLM from loading a model, by the operators' positions before the rewrites, where known."""
    places = {
        (number, operator.opcode.label, output.name): position
        for number, graph in enumerate(model.graphs)
        for position, operator in enumerate(graph.operators)
        for output in operator.outputs[:1]
    }
    reasons = (
        replace(each, index=places.get((each.subgraph, each.operator, each.output), each.index))
        for each in support.reasons
    )
    return replace(support, reasons=tuple(reasons))


def _check_widened_constant(match: Match) -> Folded | str | None:
    source, output = match.anchor.inputs[0], match.anchor.outputs[0]
    if source is None or source.dtype is not DType.FLOAT16 or output.dtype is not DType.FLOAT32:
        return None
    data = source.buffer.data
    if data is None or data.size != 2 * source.elements:
        return "its numbers are computed"
    if match.is_returned(output):
        return f"it writes '{output.name}', which the graph returns"
    return Folded(((output, np.ascontiguousarray(data).view("<f2").reshape(source.shape).astype(np.float32)),))


WIDENED_CONSTANT = Rule("widened_constant", Pattern("widen", ("DEQUANTIZE",)), _check_widened_constant, fold)
"""Store a float16 constant in float32, as its DEQUANTIZE returns it; the file grows.

    w (float16) -- DEQUANTIZE -- CONV_2D        =>        w (float32) -- CONV_2D

Exact: every float16 is a float32. It takes twice the flash; TFLM has no float16 at all.
"""


@dataclass(frozen=True)
class Tiles:
    """A TILE as BROADCAST_TO: its input with an axis of size 1 before each that is repeated, and what is made of it."""

    tile: Operator
    source: Tensor
    narrow: tuple[int, ...]
    wide: tuple[int, ...]


def _check_tiles(match: Match) -> Tiles | str:
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
    narrow, wide = (tuple(axis[at] for axis in joined) or (1,) for at in (0, 1))
    return Tiles(tile, source, narrow, wide)


def _rewrite_tiles(found: Tiles, edit: Editor) -> None:
    source, output = found.source, found.tile.outputs[0]
    narrow = edit.activation(f"{output.name}/narrow", found.narrow, source)
    wide = edit.activation(f"{output.name}/wide", found.wide, output)
    edit.reshape(source, narrow)
    shape = edit.constant(f"{output.name}/shape", np.asarray(found.wide, np.int32))
    edit.operator("BROADCAST_TO", (narrow, shape), (wide,), "BroadcastToOptions")
    edit.reshape(wide, output)


TILES = Rule("tiles", Pattern("tile", ("TILE",)), _check_tiles, _rewrite_tiles)
"""Replace a TILE by a BROADCAST_TO of at most five dimensions.

    x (2, 3) -- TILE (2, 1) -- y (4, 3)    =>    x -- RESHAPE (1, 6) -- BROADCAST_TO (2, 6) -- RESHAPE (4, 3) -- y

Exact: both copy the same elements.
"""


@dataclass(frozen=True)
class Shifted:
    """A SELECT between ``x + by``, where ``condition`` holds, and ``x``."""

    select: Operator
    condition: Tensor
    x: Tensor
    by: Tensor


def _check_shifted(match: Match) -> Shifted | str | None:
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
    return Shifted(select, condition, x, by)


def _rewrite_shifted(found: Shifted, edit: Editor) -> None:
    output = found.select.outputs[0]
    is_moved, distance = (edit.integers(f"{output.name}/{name}", output.shape) for name in ("is_moved", "distance"))
    types = {"inDataType": _BOOL, "outDataType": _INT32}
    edit.operator("CAST", (found.condition,), (is_moved,), "CastOptions", **types)
    edit.operator("MUL", (is_moved, found.by), (distance,), "MulOptions")
    edit.operator("ADD", (found.x, distance), (output,), "AddOptions")


_BOOL, _INT32 = 6, 2
"""Types as the schema numbers them."""
SHIFTED = Rule(
    "shifted_positions",
    Pattern("select", ("SELECT", "SELECT_V2"), {1: Pattern("add", ("ADD",))}),
    _check_shifted,
    _rewrite_shifted,
)
"""Replace the SELECT between positions and positions from the end (Embedding of Keras 3) by a sum.

    x -- LESS 0 -- c,    SELECT(c, x + n, x)        =>        x + n * CAST(c)

Exact: c is 0 or 1. TFLM has no SELECT, and no SELECT_V2 of integers of 32 bits.
"""


def _check_chosen(match: Match) -> Operator | str | None:
    select = match.anchor
    condition, *chosen = operands(select, 3)
    output = select.outputs[0]
    if any(each is None or each.shape != output.shape for each in (condition, *chosen)):
        return "its operands have several shapes"
    if not OPERATORS["SELECT_V2"].tflm.takes(output.dtype):
        return f"TFLM has no SELECT_V2 of {output.dtype.label} either"
    alike = (each is not None and quantized_alike(each.quantization, output.quantization) for each in chosen)
    return select if all(alike) else f"'{output.name}' is quantized otherwise than what it chooses from"


def _rewrite_chosen(select: Operator, edit: Editor) -> None:
    edit.operator("SELECT_V2", tuple(operands(select, 3)), (select.outputs[0],), "SelectV2Options")


CHOSEN = Rule("chosen", Pattern("select", ("SELECT",)), _check_chosen, _rewrite_chosen)
"""A SELECT of operands of one shape, as of Keras's selu, is a SELECT_V2, which TFLM has.

    SELECT(c, x, y)        =>        SELECT_V2(c, x, y)

Exact: without broadcasting both are the same.
"""


def _has_kernel(operator: Operator, source: Tensor, build: TflmBuild) -> bool:
    return OPERATORS[operator.name].tflm.takes(source.dtype) and lacking(operator, build) is None


def _check_added_axis(build: TflmBuild, match: Match) -> Operator | None:
    expand = match.anchor
    source = expand.inputs[0]
    return None if source is None or _has_kernel(expand, source, build) else expand


def _rewrite_added_axis(expand: Operator, edit: Editor) -> None:
    edit.reshape(expand.required(0), expand.outputs[0])


ADDED_AXIS = Rule(
    "added_axis", Pattern("expand", ("EXPAND_DIMS",)), partial(_check_added_axis, PRESENT), _rewrite_added_axis
)
"""Replace an EXPAND_DIMS of a type that TFLM does not support, such as positions or masks, by a RESHAPE.

    x (1, 6) int32 -- EXPAND_DIMS -- y (1, 6, 1)        =>        x -- RESHAPE -- y

Exact: both copy the same bytes, whatever they mean.
"""


def _check_unpacked(build: TflmBuild, match: Match) -> Operator | str | None:
    unpack = match.anchor
    source = unpack.inputs[0]
    if source is None or _has_kernel(unpack, source, build):
        return None
    return (
        unpack if OPERATORS["SLICE"].tflm.takes(source.dtype) else f"TFLM has no SLICE of {source.dtype.label} either"
    )


def _rewrite_unpacked(unpack: Operator, edit: Editor) -> None:
    source = unpack.required(0)
    axis = int(unpack.option("axis", 0)) % len(source.shape)
    size = tuple(1 if at == axis else length for at, length in enumerate(source.shape))
    for number, output in enumerate(unpack.outputs):
        begin = [number if at == axis else 0 for at in range(len(size))]
        cut = edit.activation(f"{output.name}/cut", size, source)
        edit.slice(source, begin, size, cut)
        edit.reshape(cut, output)


UNPACKED = Rule("unpacked", Pattern("unpack", ("UNPACK",)), partial(_check_unpacked, PRESENT), _rewrite_unpacked)
"""Replace an UNPACK of a type that TFLM does not support, such as a mask, by a SLICE and a RESHAPE per output.

    x (1, 6) bool -- UNPACK -- six of (1)        =>        x -- SLICE (1, 1) -- RESHAPE (1), six times

Exact: both copy the same bytes.
"""


_RULES: tuple[tuple[AnyRule, ...], ...] = (
    BROADCAST,
    (FOLDED_SHAPES, WIDENED_CONSTANT, SHIFTED, CHOSEN, *REPEATED_PIXELS, LEGAL_CONCATENATION),
    (TILES,),
)
"""In this order: copies that nobody needs are not made at all. With the second ones go the rules of types."""


def _rules_of_types(build: TflmBuild) -> tuple[AnyRule, ...]:
    """Return the rules for operators of types that a build of TFLM lacks."""
    return (
        replace(ADDED_AXIS, check=partial(_check_added_axis, build)),
        replace(UNPACKED, check=partial(_check_unpacked, build)),
    )
