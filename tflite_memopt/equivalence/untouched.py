"""Operators that both models hold as they were, and whether their options are still the same.

An option that no input shows (a padding whose rows a ReLU makes zero, a flag of another runtime) need not be run to be
found.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ..ir.constants import values
from ..ir.model import Graph, Operator, OperatorOptions, Tensor
from .correspondence import Link


def first_option_difference(before: Graph, after: Graph, links: Sequence[Link]) -> str | None:
    """What differs in the first operator of ``after`` that reads and writes what one of ``before`` does, whole.

    ``links`` are those of the two graphs. Operators of another kind are a rewrite's work, judged by what they compute.
    """
    whole = {id(after.tensors[each.after]): before.tensors[each.before] for each in links if each.start is None}
    for step, operator in enumerate(after.operators):
        original = _original(operator, whole)
        if original is None:
            continue
        for what, old, new in _options(original, operator):
            name = f"operator {step} {operator.opcode.label} '{operator.outputs[0].name}'"
            return f"{name}: option {what} is {new!r}, in the original {old!r}"
    return None


def _original(operator: Operator, whole: dict[int, Tensor]) -> Operator | None:
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
        yield "of the custom operator", _bytes(old), _bytes(new)


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


def _bytes(operator: Operator) -> str:
    data = operator.custom_options
    return "absent" if data is None else f"{data.size} bytes, of which the first are {data.tobytes()[:16].hex()}"
