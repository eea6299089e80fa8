"""What two files must have in common before anything is run: constants, quantization, options, and the interface.

A weight that is off by one step changes no output on most inputs, and an option that no input shows (a padding whose
rows a ReLU makes zero, a flag of another runtime) none at all. They need not be run to be found.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ..io.offline_plan import tensors_in_file_order
from ..ir.model import Graph, Model, Operator, OperatorOptions, Quantization, Signature, Tensor
from ..ir.tensors import affine_of, is_quantized, values
from .correspondence import Link, Pieces, links_between, links_in_loops

_NO_PIECES: Mapping[int, Pieces] = {}


def first_stored_difference(
    before: Model, after: Model, pieces: Pieces, loop_pieces: Mapping[int, Pieces] = _NO_PIECES
) -> str | None:
    """What differs in the first tensor of ``after`` whose constant values or quantization are not the original's.

    Without one, what differs in the first operator that is there as it was but for its options. Tensors correspond as
    in :func:`.correspondence.links_between`, subgraph by subgraph; what loops have of the entry graph by the record.
    """
    every = tensors_in_file_order(after)
    for link in links_in_loops(before.main, after, loop_pieces):
        found = None if link.turns else _reason(link, before.main.tensors[link.before], every[link.after])
        if found is not None:
            return f"in a loop: {found}"
    for index, (old, new) in enumerate(zip(before.graphs, after.graphs, strict=False)):
        where = f"subgraph {index}: " if index else ""
        links = links_between(old, new, pieces if not index else {})
        reasons = (_reason(each, old.tensors[each.before], new.tensors[each.after]) for each in links)
        reason = next(filter(None, reasons), None) or first_option_difference(old, new, links)
        if reason is not None:
            return f"{where}{reason}"
    return None


def interface_differences(before: Model, after: Model) -> tuple[str, ...]:
    """How names, quantization and signatures of the two entry graphs' inputs and outputs differ."""
    return (*_sides(before.main, after.main), *_signatures(before, after))


def _reason(link: Link, old: Tensor, new: Tensor) -> str | None:
    if not _same_scales(link, old.quantization, new.quantization, new):
        return f"the quantization of tensor '{new.name}' is not the original's"
    if old.is_constant and new.is_constant and not _same_values(link, old, new):
        return f"the constant '{new.name}' does not hold the original's values"
    return None


def _same_values(link: Link, old: Tensor, new: Tensor) -> bool:
    whole, piece = values(old), values(new)
    if whole is None or piece is None:  # packed or sparse: comparable only as a whole
        return link.start is not None or _bytes(old) == _bytes(new)
    wanted = link.range_of(whole, piece)
    return wanted is None or wanted.tobytes() == piece.tobytes()


def _bytes(tensor: Tensor) -> bytes:
    return b"" if tensor.buffer.data is None else tensor.buffer.data.tobytes()


def _same_scales(link: Link, old: Quantization | None, new: Quantization | None, piece: Tensor) -> bool:
    if old is None or new is None or not is_quantized(old) or not is_quantized(new):
        return is_quantized(old) == is_quantized(new)
    start = 0
    if link.start is not None and old.scale.size > 1 and old.axis < len(link.start):
        start = link.start[old.axis]
    count = new.scale.size
    same_axis = count == 1 or old.axis == new.axis or link.start is None
    scales = old.scale if old.scale.size == 1 else old.scale[start : start + count]
    points = old.zero_point if old.zero_point.size == 1 else old.zero_point[start : start + count]
    return same_axis and np.array_equal(scales, new.scale) and np.array_equal(points, new.zero_point)


def _sides(before: Graph, after: Graph) -> Iterator[str]:
    for side, old, new in (("input", before.inputs, after.inputs), ("output", before.outputs, after.outputs)):
        for at, (a, b) in enumerate(zip(old, new, strict=False)):
            if a.name != b.name:
                yield f"{side} {at} is called '{a.name}' in one, '{b.name}' in the other"
            elif affine_of(a) != affine_of(b):
                yield f"{side} {at} '{a.name}' is quantized otherwise: {_scale(a)} in one, {_scale(b)} in the other"


def _scale(tensor: Tensor) -> str:
    found = affine_of(tensor)
    return "not at all" if found is None else f"scale {found.scale:g}, zero point {found.zero_point}"


def _signatures(before: Model, after: Model) -> Iterator[str]:
    old, new = ({each.key: each for each in model.signatures or ()} for model in (before, after))
    if set(old) != set(new):
        yield f"the signatures are {sorted(old)} in one, {sorted(new)} in the other"
        return
    for key, signature in old.items():
        if _bindings(signature) != _bindings(new[key]):
            yield f"signature '{key}' gives other names to inputs or outputs, or names others"


def _bindings(signature: Signature) -> tuple[frozenset[tuple[str, int]], ...]:
    graph = signature.graph
    sides = ((signature.inputs, graph.inputs), (signature.outputs, graph.outputs))
    return tuple(
        frozenset((name, next((at for at, each in enumerate(ports) if each is tensor), -1)) for name, tensor in bound)
        for bound, ports in sides
    )


def first_option_difference(before: Graph, after: Graph, links: Sequence[Link]) -> str | None:
    """What differs in the first operator of ``after`` that reads and writes what one of ``before`` does, whole.

    ``links`` are those of the two graphs. Operators of another kind are a rewrite's work, judged by what they compute.
    """
    whole = {id(after.tensors[each.after]): before.tensors[each.before] for each in links if each.start is None}
    for step, operator in enumerate(after.operators):
        original = _original_of(operator, whole)
        if original is None:
            continue
        for what, old, new in _options(original, operator):
            name = f"operator {step} {operator.opcode.label} '{operator.outputs[0].name}'"
            return f"{name}: option {what} is {new!r}, in the original {old!r}"
    return None


def _original_of(operator: Operator, whole: dict[int, Tensor]) -> Operator | None:
    """The original's operator of the same kind with the same operands and results; None where there is none."""
    first = whole.get(id(operator.outputs[0])) if operator.outputs else None
    found = None if first is None else first.producer
    if found is None or found.opcode.label != operator.opcode.label:
        return None
    if len(found.inputs) != len(operator.inputs) or len(found.outputs) != len(operator.outputs):
        return None
    pairs = (*zip(found.inputs, operator.inputs, strict=True), *zip(found.outputs, operator.outputs, strict=True))
    return found if all(_same_operand(old, new, whole) for old, new in pairs) else None


def _same_operand(old: Tensor | None, new: Tensor | None, whole: dict[int, Tensor]) -> bool:
    if old is None or new is None:
        return old is new
    if whole.get(id(new)) is old:
        return old.shape == new.shape  # in another shape, options speak of other axes: a rewrite's work
    one, other = values(old), values(new)
    return one is not None and other is not None and one.shape == other.shape and one.tobytes() == other.tobytes()


def _options(old: Operator, new: Operator) -> Iterator[tuple[str, Any, Any]]:
    """Each option that is not the same: its name, and both values."""
    for one, other in ((old.options, new.options), (old.options2, new.options2)):
        yield from _fields(one, other)
    if not _same(old.custom_options, new.custom_options):
        yield "of the custom operator", _custom_bytes(old), _custom_bytes(new)


def _fields(old: OperatorOptions | None, new: OperatorOptions | None) -> Iterator[tuple[str, Any, Any]]:
    if old is None or new is None or old.kind != new.kind:
        was, now = (None if each is None else each.kind for each in (old, new))
        if was != now:
            yield "table", was, now
        return
    for name in sorted({*old.fields, *new.fields}):
        one, other = old.fields.get(name), new.fields.get(name)
        if not _same(one, other):
            yield name, one, other


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        return one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(map(_same, one, other))
    if isinstance(one, float) and isinstance(other, float) and math.isnan(one):
        return math.isnan(other)
    if hasattr(one, "__dict__") and type(one) is type(other):
        return _same(list(vars(one).items()), list(vars(other).items()))
    return type(one) is type(other) and bool(one == other)


def _custom_bytes(operator: Operator) -> str:
    data = operator.custom_options
    return "absent" if data is None else f"{data.size} bytes, of which the first are {data.tobytes()[:16].hex()}"
