"""A plan in force as the proof of plans takes it: offsets of tensors, ranges of scratch, and what kernels permit."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from ..io import offline_plan
from ..ir.model import Model, Operator, Tensor
from ..kernels.profile import KernelProfile
from ..kernels.relations import KernelReuse
from ..kernels.requests import ILP32
from ..proof import Places
from .in_force import offsets_in_force
from .layout import MemoryLayout, memory_layout


def places_in_force(model: Model, profile: KernelProfile) -> Places:
    """Compute the places at which TFLM runs a model: those of the plan in its file, and those that TFLM finds itself.

    ``model``: as ``read_planned`` returns it. Raises ModelFormatError for a plan of another graph.
    """
    layout = memory_layout(model, profile)
    return places_of(model, layout, offsets_in_force(layout, offline_plan.decode(model) or {}), profile)


def places_of(model: Model, layout: MemoryLayout, offsets: Sequence[int], profile: KernelProfile) -> Places:
    """The places of a layout's items; ``offsets``: of all of them, those that TFLM finds itself included."""
    tensors = dict(zip(layout.tensors, offsets, strict=False))
    rest = iter(offsets[len(layout.tensors) :])
    scratch: dict[Operator, list[tuple[int, int]]] = {}
    for graph in model.graphs:
        for operator in graph.operators:
            if operator not in layout.scratch:
                continue
            for size in filter(None, profile.requests(operator, ILP32).scratch):
                first = next(rest)
                scratch.setdefault(operator, []).append((first, first + size))
    reuses_of = cache(profile.relations)

    def permits(operator: Operator, read: Tensor, written: Tensor, distance: int) -> bool:
        return any(
            reuse.input is read and reuse.output is written and _fits(reuse, distance) for reuse in reuses_of(operator)
        )

    return Places(tensors, permits, scratch, model.ties)


def _fits(reuse: KernelReuse, distance: int) -> bool:
    return distance == reuse.distance if reuse.exact else distance >= reuse.distance
