"""Offsets that the user reserves for tensors by name, such as an input buffer that a camera fills."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..analysis.lifetimes import Lifetime
from ..errors import UsageError
from ..graph.alignment import ARENA_ALIGNMENT
from ..graph.interval import intersect
from ..ir.model import Tensor

Pins = Sequence[tuple[str, int]]
"""(tensor name, offset in bytes) pairs."""


def pinned_offsets(lifetimes: Mapping[Tensor, Lifetime], pins: Pins) -> dict[Tensor, int]:
    """The offset of each pinned tensor.

    Raises UsageError for a name that no tensor of the arena has, or several have, for an offset that is negative or
    not aligned, and for two pins that collide.
    """
    places: dict[Tensor, int] = {}
    for name, offset in pins:
        tensor = _tensor(lifetimes, name)
        if offset < 0 or offset % ARENA_ALIGNMENT:
            raise UsageError(f"pin '{name}={offset}': the offset must be a multiple of {ARENA_ALIGNMENT} bytes")
        if places.get(tensor, offset) != offset:
            raise UsageError(f"pin '{name}={offset}': the tensor is pinned at {places[tensor]} too")
        for other, place in places.items():
            apart = offset + tensor.nbytes <= place or place + other.nbytes <= offset
            if other is not tensor and intersect(lifetimes[tensor], lifetimes[other]) and not apart:
                raise UsageError(f"pin '{name}={offset}' collides with '{other.name}={place}': both are alive at once")
        places[tensor] = offset
    return places


def _tensor(lifetimes: Mapping[Tensor, Lifetime], name: str) -> Tensor:
    found = [tensor for tensor in lifetimes if tensor.name == name]
    if len(found) == 1:
        return found[0]
    if found:
        raise UsageError(f"pin '{name}': {len(found)} tensors have this name")
    known = ", ".join(f"'{tensor.name}'" for tensor in list(lifetimes)[:3])
    raise UsageError(f"pin '{name}': the arena has no tensor of this name; it has {known}, ... (see analyze --json)")
