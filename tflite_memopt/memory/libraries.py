"""What a model needs under each library that firmware may link, when the profile leaves that open."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..ir.model import Model, Tensor
from ..kernels.arena import arena_use
from ..kernels.profile import KernelProfile
from ..options import Objective
from .in_force import head_in_force
from .layout import memory_layout


@dataclass(frozen=True)
class LibraryNeed:
    """Bytes on the profile's target: TFLM's head, and the arena to reserve. ``measured``: the library was run."""

    head: int
    required: int
    measured: bool


def needs_by_library(
    model: Model, planned: Mapping[Tensor, int], profile: KernelProfile, order: Sequence[int] | None = None
) -> dict[str, LibraryNeed]:
    """What the model needs under each library of the profile, or under its own, ``planned`` in force; by profile name.

    TFLM places each library's scratch around the same offsets. ``order`` as for ``memory_layout``.
    """
    found = {}
    for library in profile.libraries or (profile,):
        head = head_in_force(memory_layout(model, library, order=order), planned)
        required = arena_use(model, head, library.requests, profile.abi, order).required
        found[library.name] = LibraryNeed(head, required, library.measured_at is not None)
    return found


def miscomputed(model: Model, profile: KernelProfile) -> tuple[str, ...]:
    """Names of the outputs that a library of the profile may compute wrongly, whatever the plan."""
    operators = (operator for graph in model.graphs for operator in graph.operators)
    return tuple(operator.outputs[0].name for operator in operators if profile.may_miscompute(operator))


def worse_under(
    before: Mapping[str, LibraryNeed], after: Mapping[str, LibraryNeed], objective: Objective
) -> Iterator[str]:
    """Libraries that need more after than before: a larger head or, for the total, a larger arena.

    Of a library that was only read the head counts alone: its scratch can exceed all activations, and the structures of
    stripes would then weigh more than what they save elsewhere.
    """
    for name, need in after.items():
        counts_arena = objective == "total" and need.measured
        if need.head > before[name].head or (counts_arena and need.required > before[name].required):
            yield name
