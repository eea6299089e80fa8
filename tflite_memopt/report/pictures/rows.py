"""Rows of the charts' data, from the plan of the arena. Each has a sentence with the same content."""

from __future__ import annotations

from typing import Any

from ...memory.figures import ArenaMap, OperatorUse, PlacedTensor
from ..words import short_name

Row = dict[str, Any]
SHIFT = 1
"""TFLM's scope 0 is before the first operator: shifted by one, a step has its operator's number."""


def step_rows(arena: ArenaMap) -> list[Row]:
    """Return one row per operator."""
    return [_step(number, step) for number, step in enumerate(arena.steps)]


def _step(number: int, step: OperatorUse) -> Row:
    output = short_name(step.output)
    return {
        "number": number,
        "start": step.start - SHIFT,
        "end": step.end - SHIFT,
        "operator": step.operator,
        "output": output,
        "bytes": step.working_set,
        "reach": step.reach,
        "macs": step.macs,
        "part": "in use",
        "said": f"operator {number}, {step.operator} {output}: {step.working_set:,} bytes alive, arena used up to byte "
        f"{step.reach:,}, {step.macs:,} multiply-accumulates",
    }


def tensor_rows(arena: ArenaMap) -> list[Row]:
    """Return one row per tensor or scratch request, those that are drawn over others last."""
    rows = [_tensor(arena, tensor) for tensor in arena.tensors if tensor.end > tensor.start and tensor.bytes]
    return sorted(rows, key=lambda row: row["role"] in ("view", "in-place", "overlap"))


def _tensor(arena: ArenaMap, tensor: PlacedTensor) -> Row:
    step = None if tensor.operator is None else arena.steps[tensor.operator]
    made = "written by your code" if step is None else f"operator {tensor.operator}, {step.operator}"
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
        "start": max(0, tensor.start) - SHIFT,
        "end": tensor.end - SHIFT,
        "role": role,
        "said": f"{name}, {shape} {tensor.type}, {tensor.bytes:,} bytes at {tensor.offset:,}, {_WORDS[role]}, {made}, "
        f"steps {max(0, tensor.start) - SHIFT} to {tensor.end - SHIFT}",
    }


_WORDS = {
    "input": "input of the model",
    "output": "output of the model",
    "inner": "bytes of its own",
    "view": "a view: the same bytes as an input of its operator, nothing is copied",
    "in-place": "written over the input of its operator",
    "overlap": "written over the part of its operator's input that was read already",
    "scratch": "scratch memory of a kernel",
}
