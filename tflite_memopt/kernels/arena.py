"""Cost model of TFLM's arena: replays its allocator, so that the arena is known before flashing.

TFLM's arena has a head (tensors and scratch, planned), a tail (structures that stay) and, while it prepares,
temporaries on top of the head. The firmware must reserve the largest sum of the three over time, and the
planner's own temporaries can exceed the head. This module replays every allocation of ``AllocateTensors``.

TFLM may accept up to the size of a kernel's permanent buffers less: ``AllocatePersistentBuffer`` compares the tail with
the head, not with the temporaries above it, and so lays a BATCH_MATMUL's buffers over tensors that Prepare still reads.
Such an arena is not counted as enough.

Source: TFLM micro_allocator.cc, micro_interpreter.cc, micro_allocation_info.cc,
arena_allocator/single_arena_buffer_allocator.cc (commit 90b983c2b3f1, 2026-08-20).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from ..model.ir.model import Model, Operator, Tensor
from ..model.ir.tensors import in_head
from ..operators.control import shared_names
from ..operators.requests import Abi, RequestRule, Requests, Size
from ..solvers.graph.alignment import ARENA_ALIGNMENT, aligned
from .requests import requests_in

MAX_SCRATCH_PER_OPERATOR = 12
"""``kMaxScratchBuffersPerOp``: requests that the head always keeps room for."""

# Structures of the interpreter itself. The 64-bit column is the tflite-micro wheel (0.dev20261023), so that the figure
# can be measured: it is built with tensor compression, which makes some structures larger.
BUFFER_ALLOCATOR = Size(36, 72)
PERSISTENT_ALLOCATOR = Size(16, 32)
NON_PERSISTENT_ALLOCATOR = Size(32, 56)
"""The two that take the place of BUFFER_ALLOCATOR in firmware with two arenas."""
MEMORY_PLANNER = Size(44, 72)
MICRO_ALLOCATOR = Size(36, 72)
RECORDING_BUFFERS, RECORDING_ALLOCATOR = 32, 200
"""Bytes that BUFFER_ALLOCATOR and MICRO_ALLOCATOR have more where they record, as in the wheel's Python interpreter."""
BUILTIN_DATA_ALLOCATOR = Size(8, 16)
SUBGRAPH_ALLOCATIONS = Size(8, 24, lp64=16)
EVAL_TENSOR = Size(12, 24)
NODE_AND_REGISTRATION = Size(32, 64)
SCRATCH_HANDLE = Size(4, 8)
SCRATCH_REQUEST = Size(12, 16)
TENSOR = Size(40, 64, short=32)
AFFINE_QUANTIZATION = Size(12, 24)
ALLOCATION_INFO = Size(24, 32)
PLANNED_BUFFER = Size(40, 40)
RESOURCE_VARIABLES = Size(12, 16)
RESOURCE_VARIABLE = Size(20, 40)
POINTER = Size(4, 8)
LARGER_NODE = Size(12, 24)
LARGER_TENSOR = Size(24, 48, short=32)
"""Bytes that a TfLiteNode and a TfLiteTensor have more without TF_LITE_STATIC_MEMORY.

As GCC 12 lays out tensorflow/lite/core/c/common.h of tflite-micro 90b983c2, and of 7948b85 of its Arduino library."""
_INT = 4


MemoryPlanner = Literal["tflm", "table", "table_apart"]
"""The planner that places tensors when a firmware starts: TFLM's own planner, or a table that ``codegen`` wrote.

"table_apart": all temporaries lie in a buffer that is not the arena, and so does the allocator's own structure.
"""


@dataclass(frozen=True)
class ArenaUse:
    """Bytes of the arena on one target. ``required`` is the arena to reserve, a multiple of 16.

    ``temporaries`` is the largest head-side use before the plan is in force: the planner's own tables.
    ``exact`` is False when an operator is not in the kernels' tables and its share is a guess.
    """

    head: int
    tail: int
    temporaries: int
    required: int
    exact: bool


TENSORS, OPERATORS, ALLOCATOR, INTERFACE = "tensors", "operators", "allocator", "interface"
"""What permanent bytes are of, where it is no kind of kernel, whose buffers have its label."""


class Permanent(NamedTuple):
    """One allocation of the tail, in bytes; ``of``: what it is of."""

    of: str
    size: int
    alignment: int


@dataclass(frozen=True)
class ArenaBesideHead:
    """The bytes that ``AllocateTensors`` takes beside the planned head; ``tail``, ``temporaries`` as in ``ArenaUse``.

    ``before_plan``: the arena that it needs until the plan is in force, whatever the head is then. ``permanent``: the
    allocations of the tail, in turn; their alignment, and what a build without static memory has more, come on top.
    ``scratch``: how many requests for scratch there are.
    """

    tail: int
    temporaries: int
    before_plan: int
    exact: bool
    permanent: tuple[Permanent, ...]
    scratch: int

    def with_head(self, head: int) -> ArenaUse:
        """Return the arena with a planned head of ``head`` bytes."""
        required = aligned(max(self.before_plan, head + self.tail))
        return ArenaUse(head, self.tail, self.temporaries, required, self.exact)


def arena_beside_head(
    model: Model,
    requests: RequestRule,
    abi: Abi,
    order: Sequence[int] | None = None,
    planner: MemoryPlanner = "tflm",
    beside: int | None = None,
) -> ArenaBesideHead:
    """Replay ``AllocateTensors`` for a model, whatever its planned head.

    ``requests`` is the kernel profile's table; ``abi`` the target's layout of structures.
    ``order``: positions of the main graph's operators in the order in which they run; None: as they stand. The tail
    depends on it through alignment. ``planner``: "tflm" is TFLM's own, in the arena with a record per buffer;
    "table" is one that the firmware brings, and has neither. ``beside``: bytes of the tail before the model is made
    by an allocator that exists, with the other models of that allocator; they are in the results. None: it has its own.
    """
    asked = requests_in(model, abi, requests)
    is_apart = planner == "table_apart"
    replay = _Replay(model, asked, abi, order, planner)
    if beside is None:
        replay.create(() if is_apart else (BUFFER_ALLOCATOR,))
    else:
        replay.arena.tail = beside
    temporaries, peak = replay.allocate()
    arena, before_plan = replay.arena, 0 if is_apart else peak
    exact = all(each.known for each in asked.values())
    more = 0 if abi.is_static else larger_structures(model, abi)
    return ArenaBesideHead(
        arena.tail + more, temporaries + more, before_plan + more, exact, tuple(arena.permanent), replay.scratch_count
    )


def larger_structures(model: Model, abi: Abi) -> int:
    """Return the bytes at most that a build without TF_LITE_STATIC_MEMORY needs more, a multiple of 16.

    That is a node for each operator, a tensor for each input and output, and those that a kernel looks at at once.
    """
    operators = model.all_operators
    looked_at = max((len(each.inputs) + len(each.outputs) for each in operators), default=0)
    tensors = len(model.main.inputs) + len(model.main.outputs) + looked_at
    return aligned(len(operators) * LARGER_NODE.on(abi) + tensors * LARGER_TENSOR.on(abi)) + ARENA_ALIGNMENT


def allocator_tail(abi: Abi) -> int:
    """Return the bytes of the tail that ``MicroAllocator::Create`` takes, with a planner that the firmware brings."""
    arena = _Arena()
    for structure in (BUFFER_ALLOCATOR, MICRO_ALLOCATOR):
        arena.persistent(ALLOCATOR, structure.on(abi), POINTER.on(abi))
    return arena.tail


@dataclass(frozen=True)
class TwoArenasUse:
    """Bytes to reserve where TFLM gets two arenas, multiples of 16: tensors and scratch, and permanent structures."""

    head: int
    tail: int


def two_arenas_use(model: Model, head: int, requests: RequestRule, abi: Abi) -> TwoArenasUse:
    """As :func:`arena_beside_head`, for ``MicroAllocator::Create`` with a persistent and a non-persistent arena.

    TFLM's temporaries are in the non-persistent one. Source: micro_allocator.cc, arena_allocator/
    persistent_arena_buffer_allocator.cc and non_persistent_arena_buffer_allocator.cc (the same commit).
    """
    replay = _Replay(model, requests_in(model, abi, requests), abi)
    replay.create((PERSISTENT_ALLOCATOR, NON_PERSISTENT_ALLOCATOR))
    temporaries, _ = replay.allocate()
    return TwoArenasUse(aligned(max(head, temporaries)), aligned(replay.arena.tail))


class _Arena:
    """``SingleArenaBufferAllocator``: sizes in bytes from either end of a 16-aligned block."""

    def __init__(self) -> None:
        self.head = self.temporary = self.tail = self.peak = self.head_peak = 0
        self.permanent: list[Permanent] = []

    def persistent(self, of: str, size: int, alignment: int = ARENA_ALIGNMENT) -> None:
        self.permanent.append(Permanent(of, size, alignment))
        self.tail = aligned(self.tail + size, alignment)
        self._note()

    def temporarily(self, *structures: tuple[int, int]) -> None:
        """Structures of (size, alignment), one above the other."""
        for size, alignment in structures:
            self.temporary = aligned(self.temporary, alignment) + size
        self._note()

    def offer_the_rest(self, used: int) -> None:
        """``GetAvailableMemory``: all that is left, aligned at both ends, of which ``used`` bytes are then needed."""
        self.temporarily((used, ARENA_ALIGNMENT))
        self.peak = max(self.peak, self.temporary + aligned(self.tail))

    def set_head(self, size: int) -> None:
        """Resize the head; all temporaries are gone."""
        self.head = self.temporary = size
        self._note()

    def _note(self) -> None:
        self.head_peak = max(self.head_peak, self.temporary)
        self.peak = max(self.peak, self.temporary + self.tail)


@dataclass
class _Replay:
    model: Model
    asked: Mapping[Operator, Requests]
    abi: Abi
    order: Sequence[int] | None = None
    planner: MemoryPlanner = "tflm"
    arena: _Arena = field(default_factory=_Arena)
    scratch_count: int = 0

    @property
    def pointer(self) -> int:
        return POINTER.on(self.abi)

    def create(self, allocators: Sequence[Size]) -> None:
        """``MicroAllocator::Create``."""
        planner = (MEMORY_PLANNER,) if self.planner == "tflm" else ()
        more = {BUFFER_ALLOCATOR: RECORDING_BUFFERS} if self.abi.records else {}
        for structure in (*allocators, *planner):
            self.arena.persistent(ALLOCATOR, structure.on(self.abi) + more.get(structure, 0), self.pointer)
        recording = RECORDING_ALLOCATOR if self.abi.records else 0
        self.arena.persistent(ALLOCATOR, MICRO_ALLOCATOR.on(self.abi) + recording, self.pointer)

    def allocate(self) -> tuple[int, int]:
        """``AllocateTensors``; the bytes of the head at most, and of the whole arena, before its plan is in force."""
        self.start()
        self.prepare()
        self.plan()
        most = self.arena.head_peak, self.arena.peak
        self.interface_tensors()
        return most

    def start(self) -> None:
        """Resource variables, eval tensors, nodes, then parsing and Init of every operator."""
        arena = self.arena
        self._resource_variables()
        self._structure(ALLOCATOR, BUILTIN_DATA_ALLOCATOR)
        self._reserve_requests()
        self._structure(ALLOCATOR, SUBGRAPH_ALLOCATIONS, len(self.model.graphs))
        for graph in self.model.graphs:
            self._structure(TENSORS, EVAL_TENSOR, len(graph.tensors))
        for graph in self.model.graphs:
            self._structure(OPERATORS, NODE_AND_REGISTRATION, len(graph.operators))
        for operator in self._operators():
            asked = self.asked[operator]
            if asked.params:
                arena.persistent(OPERATORS, asked.params, asked.params_alignment)
        for operator in self._operators():
            for size in self.asked[operator].init:
                arena.persistent(operator.opcode.label, size)

    def prepare(self) -> None:
        """Prepare of every operator: temporary tensors, persistent buffers, scratch requests."""
        for operator in self._operators():
            asked = self.asked[operator]
            for tensor in asked.temporaries:
                self.arena.temporarily(*self._tensor(tensor))
            for size in asked.prepare:
                self.arena.persistent(operator.opcode.label, size)
            self.scratch_count += len(asked.scratch)
            self._reserve_requests()

    def plan(self) -> None:
        """``CommitStaticMemoryPlan``: variables to the tail, and the planner's tables as temporaries."""
        tensors = self.model.all_tensors
        if self.scratch_count:
            self._structure(ALLOCATOR, SCRATCH_HANDLE, self.scratch_count)
        self.arena.temporarily((self.pointer * len(self.model.graphs), self.pointer))
        self.arena.temporarily((ALLOCATION_INFO.on(self.abi) * (len(tensors) + self.scratch_count), self.pointer))
        for tensor in tensors:
            if tensor.is_variable and not in_head(tensor):
                self.arena.persistent(TENSORS, tensor.nbytes)
        planned = sum(map(in_head, tensors)) + self.scratch_count if self.planner == "tflm" else 0
        self.arena.offer_the_rest(PLANNED_BUFFER.on(self.abi) * planned)

    def interface_tensors(self) -> None:
        """The TfLiteTensors of the graph's inputs and outputs."""
        for tensors in (self.model.main.inputs, self.model.main.outputs):
            self.arena.persistent(INTERFACE, self.pointer * len(tensors))
            for tensor in tensors:
                for size, alignment in self._tensor(tensor):
                    self.arena.persistent(INTERFACE, size, alignment)

    def _operators(self) -> Iterable[Operator]:
        main = self.model.main.operators
        yield from main if self.order is None else (main[at] for at in self.order)
        for graph in self.model.graphs[1:]:
            yield from graph.operators

    def _structure(self, of: str, structure: Size, count: int = 1) -> None:
        self.arena.persistent(of, structure.on(self.abi) * count, self.pointer)

    def _reserve_requests(self) -> None:
        room = self.scratch_count + MAX_SCRATCH_PER_OPERATOR
        self.arena.set_head(SCRATCH_REQUEST.on(self.abi) * room)

    def _resource_variables(self) -> None:
        if names := shared_names(self.model):
            self.arena.persistent(ALLOCATOR, RESOURCE_VARIABLES.on(self.abi))
            self.arena.persistent(ALLOCATOR, RESOURCE_VARIABLE.on(self.abi) * len(names))

    def _tensor(self, tensor: Tensor) -> tuple[tuple[int, int], ...]:
        """Return the structures of a tensor's TfLiteTensor: (size, alignment)."""
        quantization, own = tensor.quantization, (TENSOR.on(self.abi), self.pointer)
        if quantization is None or not quantization.scale.size or not quantization.zero_point.size:
            return (own,)
        scales = _INT * (1 + quantization.scale.size)
        return own, (AFFINE_QUANTIZATION.on(self.abi), self.pointer), (scales, _INT)
