"""The size to reserve: bytes of the arena that a firmware must give to a model, which all commands state.

It depends on the model and its plan, on the kernels and the layout of structures (the profile, which has the target and
the build of TFLM), and on who plans when the firmware starts: TFLM as it comes, or the table that ``codegen`` writes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..kernels.arena import ArenaUse, MemoryPlanner, arena_beside_head
from ..kernels.profile import KernelProfile
from ..model.ir.model import Model, Tensor
from ..operators.requests import Abi
from ..options import Objective
from .layout import heads_with


@dataclass(frozen=True)
class LibraryNeed:
    """Bytes that a model needs with one kernel library."""

    head: int
    """Bytes of the head in TFLM."""
    required: int
    """Arena to reserve, in bytes, with TFLM as it comes."""
    measured: bool
    """True if this library was run; otherwise its needs were read from source."""
    table: int | None = None
    """The same with the planner that codegen writes; null where it writes none by default."""

    def bytes_for(self, objective: Objective) -> int:
        """Return the bytes that the objective counts: the arena, or its head alone."""
        return self.required if objective == "total" else self.head


Needs = Mapping[str, LibraryNeed]
"""By kernel library."""


def reserve(
    model: Model,
    head: int,
    library: KernelProfile,
    planner: MemoryPlanner = "tflm",
    abi: Abi | None = None,
    order: Sequence[int] | None = None,
) -> ArenaUse:
    """Return the arena of a model whose tensors and scratch take ``head`` bytes under one kernel library.

    ``abi``: the layout of structures; None for the profile's. ``order`` as for ``arena_beside_head``.
    """
    return arena_beside_head(model, library.requests, abi or library.abi, order, planner).with_head(head)


def needs_by_library(
    model: Model, planned: Mapping[Tensor, int], profile: KernelProfile, order: Sequence[int] | None = None
) -> dict[str, LibraryNeed]:
    """Compute the model's need under each library of the profile, or its own, with ``planned`` in force; by profile
    name.

    TFLM places each library's scratch around the same offsets. ``order`` as for ``memory_layout``.
    """
    libraries = profile.libraries or (profile,)
    heads = heads_with(model, libraries, planned, order)
    return {each.name: need_with(model, head, each, order) for each, head in zip(libraries, heads, strict=True)}


def need_with(model: Model, head: int, library: KernelProfile, order: Sequence[int] | None = None) -> LibraryNeed:
    """Return the need under one library, whose head is ``head`` bytes."""
    use = reserve(model, head, library, order=order)
    table = None
    if use.exact and has_table(library):
        table = reserve(model, head, library, "table", order=order).required
    return LibraryNeed(head, use.required, library.measured_at is not None, table)


def has_table(profile: KernelProfile) -> bool:
    """Return whether ``codegen`` writes the plan as a table by default, if all that the kernels ask for is known.

    TFLM refuses a table that is wrong by a byte: the target is known, and its one library was measured.
    """
    return profile.target is not None and profile.measured_at is not None and not profile.libraries
