"""Offsets that the user reserves for tensors by name, such as an input buffer that a camera fills."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import combinations

from ..errors import InfeasibleError, UsageError
from ..graph.alignment import ARENA_ALIGNMENT
from ..ir.model import Tensor
from ..plan.check import check_given
from ..plan.problem import PlanProblem

Pins = Sequence[tuple[str, int]]
"""(tensor name, offset in bytes) pairs."""


def pinned_offsets(tensors: Collection[Tensor], unplannable: Collection[Tensor], pins: Pins) -> dict[Tensor, int]:
    """The offset of each pinned tensor among the head's ``tensors``.

    Raises UsageError for a name that no tensor of the arena has, or several have, for a tensor that TFLM places by
    itself (``unplannable``), for an offset that is negative or not aligned, and for two offsets of one tensor.
    """
    places: dict[Tensor, int] = {}
    for name, offset in pins:
        tensor = _tensor(tensors, name)
        if tensor in unplannable:
            raise UsageError(
                f"pin '{name}={offset}': TFLM places this tensor itself, because a subgraph has a variable "
                "with the same index; leave the pin out"
            )
        if offset < 0 or offset % ARENA_ALIGNMENT:
            raise UsageError(f"pin '{name}={offset}': the offset must be a multiple of {ARENA_ALIGNMENT} bytes")
        if tensor.fixed_offset not in (None, offset):
            raise UsageError(f"pin '{name}={offset}': an NPU's commands have the tensor at {tensor.fixed_offset}")
        if places.get(tensor, offset) != offset:
            raise UsageError(f"pin '{name}={offset}': the tensor is pinned at {places[tensor]} too")
        places[tensor] = offset
    return places


def check_pins(problem: PlanProblem, tensors: Sequence[Tensor]) -> None:
    """Raise UsageError, naming both, when two pins collide: alive at once, bytes shared, and no relation permits it.

    ``tensors`` are those of the problem's first items.
    """
    pinned = [number for number, item in enumerate(problem.items) if item.offset is not None]
    for a, b in combinations(pinned, 2):
        alone = (item if at in (a, b) else replace(item, offset=None) for at, item in enumerate(problem.items))
        try:
            check_given(PlanProblem(tuple(alone), problem.relations))
        except InfeasibleError as error:
            first, second = (f"'{tensors[at].name}={problem.items[at].offset}'" for at in (a, b))
            raise UsageError(f"pin {first} collides with {second}: both are alive at once") from error


def _tensor(tensors: Collection[Tensor], name: str) -> Tensor:
    found = [tensor for tensor in tensors if tensor.name == name]
    if len(found) == 1:
        return found[0]
    if found:
        raise UsageError(f"pin '{name}': {len(found)} tensors have this name")
    known = ", ".join(f"'{tensor.name}'" for tensor in list(tensors)[:3])
    raise UsageError(f"pin '{name}': the arena has no tensor of this name; it has {known}, ... (see analyze --json)")
