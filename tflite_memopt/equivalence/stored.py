"""What two files must have in common before anything is run: constants, quantisation, options, and the interface.

A weight that is off by one step changes no output on most inputs. It need not be run to be found.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from ..io.offline_plan import tensors_in_file_order
from ..ir.affine import affine_of
from ..ir.constants import values
from ..ir.model import Graph, Model, Quantization, Signature, Tensor
from ..ir.quantization import is_quantized
from .correspondence import Link, Pieces, links_between, links_in_loops
from .untouched import first_option_difference

_NO_PIECES: Mapping[int, Pieces] = {}


def first_stored_difference(
    before: Model, after: Model, pieces: Pieces, loop_pieces: Mapping[int, Pieces] = _NO_PIECES
) -> str | None:
    """What differs in the first tensor of ``after`` whose constant values or quantisation are not the original's.

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
    """How names, quantisation and signatures of the two entry graphs' inputs and outputs differ."""
    return (*_sides(before.main, after.main), *_signatures(before, after))


def _reason(link: Link, old: Tensor, new: Tensor) -> str | None:
    if not _same_scales(link, old.quantization, new.quantization, new):
        return f"the quantisation of tensor '{new.name}' is not the original's"
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
                yield f"{side} {at} '{a.name}' is quantised otherwise: {_scale(a)} in one, {_scale(b)} in the other"


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
