"""A plan as the rows of a table: the requests of TFLM to a memory planner, in TFLM's order, with their places."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from struct import pack

from ..errors import ErrorKind, UsageError
from ..kernels.arena import MemoryPlanner
from ..kernels.profile import KernelProfile
from ..memory.layout import MemoryLayout, memory_layout, offsets_in_force
from ..memory.problems import ties_named
from ..memory.spread import capacities_for, moves_of, prices_for, spread_model
from ..model.ir.model import Model, Tensor
from .cpp_text import EXTERNAL, check_array, identifiers, literal

_UNLIMITED = 1 << 31
ARENA = "arena"
SCRATCH = "scratch"
_MOST_MEMORIES = 16
"""As many as a row of the table has bits for."""


@dataclass(frozen=True)
class MemoryRequest:
    """The firmware's requests for its memories.

    ``sizes``: bytes by the name of the memory, the fastest first; empty: one of any size. ``prices``: as
    ``memory.spread.prices_for``. ``tail``: the one in which TFLM's own structures lie; None: the last one.
    ``external``: tensors in buffers of the firmware's own, by name, or
    "input" and "output" for all of them. ``ties``: ``OUTPUT:INPUT`` at one place (``memory/problems.py``).
    ``temporaries_apart``: memory that TFLM needs only while it prepares has its own buffer.
    """

    sizes: Mapping[str, int] = field(default_factory=dict)
    tail: str | None = None
    external: tuple[str, ...] = ()
    ties: tuple[str, ...] = ()
    prices: Mapping[str, int] = field(default_factory=dict)
    temporaries_apart: bool = False

    @property
    def is_empty(self) -> bool:
        """Return whether the plan in the file is as good as any."""
        return not (self.sizes or self.tail or self.external or self.ties)

    @property
    def planner(self) -> MemoryPlanner:
        """Return the allocator that the arena is counted for."""
        return "table_apart" if self.temporaries_apart else "table"


@dataclass(frozen=True)
class PlannedBuffer:
    """A tensor or a scratch buffer of ``bytes``, in use in TFLM's steps ``first`` to ``last``, both included.

    ``first`` is -1 for buffers that are alive before the first step. ``offset``: bytes from the start of ``memory``.
    ``moved``: bytes that operators read and write of it in one invocation.
    """

    name: str
    bytes: int
    first: int
    last: int
    offset: int
    memory: int = 0
    moved: int = 0


@dataclass(frozen=True)
class Memory:
    """A memory as C++ has it: the name of its array, and of the macro that places it. ``label``: for comments."""

    array: str
    macro: str
    label: str
    bytes: int
    is_arena: bool
    is_external: bool


@dataclass(frozen=True)
class Table:
    """Rows, and by memory its name and the bytes that the rows take of it; ``arena``: which of them is TFLM's.

    The last memories are buffers of the firmware's own, one for each name in ``external``.
    """

    rows: tuple[PlannedBuffer, ...]
    names: tuple[str, ...]
    sizes: tuple[int, ...]
    arena: int
    external: tuple[str, ...] = ()

    @property
    def memories(self) -> tuple[Memory, ...]:
        """The memories in order."""
        own = identifiers(EXTERNAL, self.external)
        arrays = [ARENA if at == self.arena else name for at, name in enumerate(self.names)] + list(own.values())
        labels = (*self.names, *map(literal, self.external))
        macros = [f"TFLITE_MEMOPT_IN_{label.upper()}" for label in self.names] + [""] * len(own)
        return tuple(
            Memory(array, macro, label, nbytes, at == self.arena, at >= len(self.names))
            for at, (array, macro, label, nbytes) in enumerate(zip(arrays, macros, labels, self.sizes, strict=True))
        )

    @property
    def packed(self) -> bytes:
        """The rows as they lie in flash: all of TFLM's targets are little-endian."""
        return b"".join(pack("<ihhI", row.bytes, row.first, row.last, row.offset + row.memory) for row in self.rows)


def table_for(model: Model, planned: Mapping[Tensor, int], profile: KernelProfile, request: MemoryRequest) -> Table:
    """Return the table of a model, ``planned`` the offsets in its file, or none.

    Raises UsageError for a wrong request, InfeasibleError when the model does not fit.
    """
    if request.is_empty:
        rows = planned_buffers(model, planned, profile)
        return Table(rows, (ARENA,), (max((row.offset + row.bytes for row in rows), default=0),), 0)
    layout = memory_layout(model, profile)
    if any(tensor.fixed_offset is not None for tensor in layout.tensors):
        raise UsageError("an NPU's commands contain addresses in the arena: its tensors cannot be placed elsewhere")
    names, capacities, arena = _memories(model, profile, request)
    external = _external(model, layout, request.external)
    ties = ties_named(model, request.ties)
    prices = prices_for(request.sizes, request.prices) if request.sizes else (0,)
    spread = spread_model(model, layout, profile, capacities, prices, ties, external)
    if len(spread.used) > _MOST_MEMORIES:
        raise UsageError(f"{len(spread.used)} memories and buffers: a table holds at most {_MOST_MEMORIES}")
    rows = tuple(_rows(layout, spread.offsets, spread.memories, moves_of(model, layout)))
    outside = [next(row.name for row in rows if row.memory == at) for at in range(len(names), len(spread.used))]
    return Table(rows, names, spread.used, arena, tuple(outside))


def _memories(
    model: Model, profile: KernelProfile, request: MemoryRequest
) -> tuple[tuple[str, ...], tuple[int, ...], int]:
    """Names, bytes for the plan, and the number of the one with TFLM's structures, whose bytes are taken off."""
    if not request.sizes and request.tail is None:
        return (ARENA,), (_UNLIMITED,), 0
    for name in request.sizes:
        check_array(name)
        if (same := [each for each in request.sizes if each.lower() == name.lower()]) != [name]:
            raise UsageError(
                f"--memory {', '.join(same)}: names that differ only in case share one macro", ErrorKind.NAME
            )
    return tuple(request.sizes), *capacities_for(model, profile, request.sizes, request.tail, request.planner)


def _external(model: Model, layout: MemoryLayout, names: Sequence[str]) -> tuple[Tensor, ...]:
    """Return the tensors that the names mean. Raises UsageError for one that is not in the head."""
    main = set(model.main.tensors)
    by_name = {tensor.name: (tensor,) for tensor in layout.tensors if tensor in main}
    meant = {**by_name, "input": tuple(model.main.inputs), "output": tuple(model.main.outputs)}
    chosen: dict[Tensor, None] = {}
    for name in names:
        if name not in meant:
            close = get_close_matches(name, meant, 1)
            advice = f"did you mean '{close[0]}'?" if close else "write input, output or the name of a tensor"
            raise UsageError(f"--external {name}: no tensor of the arena has this name; {advice}", ErrorKind.UNKNOWN)
        chosen |= dict.fromkeys(tensor for tensor in meant[name] if tensor in layout.tensors)
    return tuple(chosen)


def planned_buffers(model: Model, planned: Mapping[Tensor, int], profile: KernelProfile) -> tuple[PlannedBuffer, ...]:
    """Return the rows of a model in one memory, ``planned`` the offsets in its file, or none.

    The order and the steps are those of ``AllocationInfoBuilder`` and ``CreatePlan`` (TFLM, micro_allocation_info.cc
    and micro_allocator.cc, commit 90b983c2b3f1): tensors by subgraph and position, then scratch in order of requests.
    """
    layout = memory_layout(model, profile)
    in_one = (0,) * len(layout.items)
    return tuple(_rows(layout, offsets_in_force(layout, planned), in_one, moves_of(model, layout)))


def _rows(
    layout: MemoryLayout, offsets: Sequence[int], memories: Sequence[int], moves: Sequence[int]
) -> Iterator[PlannedBuffer]:
    starts = [layout.timeline.tensors[tensor].start for tensor in layout.tensors]
    starts += [item.start for item in layout.items[len(starts) :]]
    names = [tensor.name for tensor in layout.tensors]
    names += [SCRATCH] * (len(starts) - len(names))
    every = zip(names, layout.items, starts, offsets, memories, moves, strict=True)
    for name, item, start, offset, memory, moved in every:
        yield PlannedBuffer(name, item.size, start, item.end - 1, offset, memory, moved)
