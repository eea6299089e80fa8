"""Rows of the charts' data, from what is placed in the arena. Each has a sentence that says all of it in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ...memory.figures import ArenaMap, OperatorUse, PlacedTensor
from ..names import short_name

Row = dict[str, Any]
_SHIFT = 1
"""TFLM's scope 0 is before the first operator: shifted by one, a step has its operator's number."""


def step_rows(arena: ArenaMap) -> list[Row]:
    """A row an operator."""
    return [_step(number, step) for number, step in enumerate(arena.steps)]


def _step(number: int, step: OperatorUse) -> Row:
    output = short_name(step.output)
    return {
        "number": number,
        "start": step.start - _SHIFT,
        "end": step.end - _SHIFT,
        "operator": step.operator,
        "output": output,
        "bytes": step.working_set,
        "reach": step.reach,
        "macs": step.macs,
        "said": f"operator {number}, {step.operator} {output}: {step.working_set:,} bytes alive, arena used up to byte "
        f"{step.reach:,}, {step.macs:,} multiply-accumulates",
    }


def tensor_rows(arena: ArenaMap) -> list[Row]:
    """A row a tensor or scratch request, those that are drawn over others last."""
    rows = [_tensor(arena, tensor) for tensor in arena.tensors if tensor.end > tensor.start and tensor.bytes]
    return sorted(rows, key=lambda row: row["role"] in ("view", "in-place", "overlap"))


def _tensor(arena: ArenaMap, tensor: PlacedTensor) -> Row:
    step = None if tensor.operator is None else arena.steps[tensor.operator]
    made = "given by your code" if step is None else f"operator {tensor.operator}, {step.operator}"
    role = tensor.kind if tensor.sharing == "none" else tensor.sharing
    name, shape = short_name(tensor.name), "x".join(map(str, tensor.shape))
    return {
        "name": name,
        "shape": shape,
        "type": tensor.type,
        "operator": made,
        "bytes": tensor.bytes,
        "offset": tensor.offset,
        "top": tensor.offset + tensor.bytes,
        "start": max(0, tensor.start) - _SHIFT,
        "end": tensor.end - _SHIFT,
        "role": role,
        "said": f"{name}, {shape} {tensor.type}, {tensor.bytes:,} bytes at {tensor.offset:,}, {_WORDS[role]}, {made}, "
        f"steps {max(0, tensor.start) - _SHIFT} to {tensor.end - _SHIFT}",
    }


_WORDS = {
    "input": "input of the model",
    "output": "output of the model",
    "inner": "bytes of its own",
    "view": "a view: the same bytes as an input of its operator, nothing is copied",
    "in-place": "written over the input of its operator",
    "overlap": "written over a part of the input of its operator, which is read ahead of it",
    "scratch": "scratch memory of a kernel",
}


_MOVES = frozenset({"SLICE", "STRIDED_SLICE", "SPLIT", "SPLIT_V", "PAD", "PADV2", "CONCATENATION"})
"""Operators that compute nothing: they cut rows out for a stripe, or put them together."""


def stripe_rows(before: ArenaMap, after: ArenaMap) -> list[Row]:
    """A row a stripe: which rows of which tensor of the original it makes, and when."""
    whole = {tensor.name: tensor for tensor in before.tensors}
    pieces = [
        each
        for each in after.tensors
        if _is_stripe(each, whole.get(each.origin or "")) and after.steps[each.operator or 0].operator not in _MOVES
    ]
    layers = list(dict.fromkeys(each.origin or "" for each in pieces))
    return [_stripe(after, each, layers.index(each.origin or ""), whole[each.origin or ""]) for each in pieces]


def _is_stripe(piece: PlacedTensor, whole: PlacedTensor | None) -> bool:
    """Whether it holds some rows, of all that a tensor of four axes has."""
    return (
        whole is not None
        and piece.operator is not None
        and len(piece.shape) == len(whole.shape) == 4
        and piece.shape[1] < whole.shape[1]
    )


def _stripe(after: ArenaMap, piece: PlacedTensor, layer: int, whole: PlacedTensor) -> Row:
    step = after.steps[piece.operator or 0]
    first, height = piece.origin_start[1], whole.shape[1]
    last = first + piece.shape[1]
    name = short_name(whole.name)
    return {
        "layer": layer,
        "name": name,
        "operator": step.operator,
        "first": first,
        "last": last,
        "low": layer + 0.1 + 0.8 * first / height,
        "high": layer + 0.1 + 0.8 * last / height,
        "start": step.start - _SHIFT,
        "end": step.end - _SHIFT,
        "bytes": piece.bytes,
        "said": f"rows {first} to {last} of the {height} of {name}, {piece.bytes:,} bytes of {whole.bytes:,}, by "
        f"operator {piece.operator}, {step.operator}",
    }


def layer_rows(stripes: Sequence[Row]) -> list[Row]:
    """A row a tensor of the original that is made in stripes, and the time from its first stripe to its last."""
    return list(_layers(stripes))


def _layers(stripes: Sequence[Row]) -> Iterator[Row]:
    for layer in dict.fromkeys(row["layer"] for row in stripes):
        own = [row for row in stripes if row["layer"] == layer]
        yield {
            "name": own[0]["name"],
            "low": layer + 0.1,
            "high": layer + 0.9,
            "start": min(row["start"] for row in own),
            "end": max(row["end"] for row in own),
            "said": f"{own[0]['name']}, which the original makes whole, in {len(own)} stripes",
        }
