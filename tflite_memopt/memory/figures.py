"""The memory of a model in figures: plain data that reports show, and its computation. All sizes are bytes.

``ArenaTerms`` has TFLM's tail and planner temporaries as sums, to which operators and tensors can be added. It is a
replay of the allocator (``kernels/arena.py``) in closed form, without its alignment, so that bytes can be added one
by one: structures come first, then the operators' persistent buffers, each aligned to 16. The tail can be 30 bytes
larger than such a sum, and a few bytes more with short enums, where some structures are no multiples of a word.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeVar, get_args

import numpy as np
import numpy.typing as npt

from ..kernels import arena
from ..kernels.arena import MemoryPlanner
from ..kernels.profile import KernelProfile
from ..kernels.support import OperatorName, names_of
from ..model.analysis.lifetimes import WorkingSet, io_lower_bound, peak, working_sets
from ..model.analysis.loops import Loop
from ..model.analysis.macs import model_macs, runs_of
from ..model.ir.model import Model, Operator, Tensor
from ..model.ir.tensors import FLOATS, affine_of, in_head
from ..operators.requests import ILP32, WHEEL, Abi, Requests
from ..operators.table import WITH_SCALES, operator_macs
from ..options import Objective
from ..solvers.graph.alignment import ARENA_ALIGNMENT, aligned
from ..solvers.graph.interval import covered
from ..solvers.plan.bounds import max_breadth
from .layout import MemoryLayout, head_of, offsets_in_force
from .reserve import has_table, reserve
from .storage import bytes_in_common
from .work import instructions, weights_read


@dataclass(frozen=True)
class TensorUse:
    """A tensor of a file, or a scratch request with the name of its operator's output."""

    name: str
    """Name in the file."""
    shape: tuple[int, ...]
    """Size along each axis."""
    type: str
    """Element type, as NumPy names it where it has it."""
    bytes: int
    """Size in the arena."""


@dataclass(frozen=True)
class StepUse(OperatorName):
    """An operator and the working set while it runs."""

    bytes: int
    """Working set in bytes; bytes that several tensors share count once."""
    scratch_bytes: int
    """Scratch of its kernel, in bytes."""
    macs: int
    """Multiply-accumulates."""
    live: tuple[TensorUse, ...]
    """Tensors that are alive while it runs, the largest first. They may overlap."""


@dataclass(frozen=True)
class MemoryUse:
    """The RAM that a model needs."""

    operators: int
    """Number of operators in all subgraphs."""
    tensors: int
    """Number of tensors in all subgraphs, including constants."""
    macs: int
    """Multiply-accumulates."""
    instructions: dict[str, int]
    """Estimated instructions of one run, by kernel library."""
    weights_read: int
    """Bytes of weights that the operators of one run read: stripes read theirs again."""
    peak_bytes: int
    """Largest working set: bytes that some operator needs at once, without gaps between tensors."""
    arena_bytes: int
    """The head: bytes of the arena that tensors and scratch share over time."""
    tail_bytes: dict[str, int]
    """The tail: bytes of TFLM's own structures, without alignment; by "32" and "64", the bits of a pointer, and
    "target" if one is named."""
    planner_temporary_bytes: dict[str, int]
    """Bytes that TFLM's planner uses instead of the head while it loads the model; by "32", "64" and "target"."""
    required_bytes: dict[str, int]
    """Arena to reserve, in bytes: "target" for the named one with TFLM as it comes, "table" for that with the planner
    that codegen writes ("table_apart": its temporaries outside of the arena); "32" and "64" for pointers of that many
    bits and enums of 4 bytes. Without a target, "32" is for the build of TFLM that was named."""
    required_is_exact: bool
    """False if an operator's structures are a guess: measure the arena."""
    scratch_operators: int
    """Number of operators with scratch memory in the head."""
    tflm: dict[str, int | str]
    """Bytes that TFLM measured on this computer: head, tail, total, and on a runner smallest_arena (the smallest
    that it accepts) and pointer_bits; or error, the reason."""
    peak: StepUse | None
    """The operator with the largest working set; null without any operator."""

    @property
    def required_for_target(self) -> int:
        """The arena that firmware must reserve on the named target; on 32 bits where none is named."""
        return self.required_bytes.get("target", self.required_bytes["32"])

    @property
    def temporaries_for_target(self) -> int:
        """The bytes of TFLM's planner while it loads the model, in the place of the head."""
        return self.planner_temporary_bytes.get("target", self.planner_temporary_bytes["32"])

    def bytes_for(self, objective: Objective) -> int:
        """Return the bytes that the objective counts: the arena that firmware must reserve, or its head alone."""
        return self.required_for_target if objective == "total" else self.arena_bytes

    @property
    def tail_for_target(self) -> int:
        """The bytes of that arena that are neither head nor planner: TFLM's own structures."""
        return self.required_for_target - max(self.arena_bytes, self.temporaries_for_target)


@dataclass(frozen=True)
class Bounds:
    """Lower bounds on the head: by inputs and outputs, by any order, by this order."""

    io: int
    """Bytes of the head for the model's inputs or outputs alone."""
    schedule: int
    """Lower bound on the head for any order, in bytes."""
    plan: int
    """Lower bound on the head for the final order, in bytes."""


@dataclass(frozen=True)
class InterfaceTensor(TensorUse):
    """An input or output of a model."""

    side: str
    """"input" or "output"."""
    scale: float | None
    """real = scale * (value - zero_point); null if not quantized with one scale."""
    zero_point: int | None
    """See scale."""
    layout: str | None
    """"channels last" where --io channels-last has put them there; null where the original's layout stays."""


@dataclass(frozen=True)
class ReuseInForce:
    """An operator whose output shares bytes with its input in the plan."""

    operator: str
    """Kind of the operator: its name in the TFLite schema, or the code of a custom operator."""
    kind: str
    """"view": the output is bytes of the input, nothing is copied. "in-place": written exactly over it. "overlap":
    written over the part that was read already."""
    input: str
    """Name of the input."""
    output: str
    """Name of the output."""
    saved_bytes: int
    """Bytes that both tensors share."""


Sharing = Literal["none", "view", "in-place", "overlap"]


_Kind = Literal["input", "output", "inner", "scratch"]


@dataclass(frozen=True)
class PlacedTensor(TensorUse):
    """A tensor or a scratch request in the head: bytes ``[offset, offset + bytes)`` in scopes ``[start, end)``."""

    offset: int
    """Its first byte in the head."""
    start: int
    """First scope of its lifetime. Time is counted in scopes, as TFLM does."""
    end: int
    """End of its lifetime, exclusive."""
    kind: _Kind
    """"input" or "output" of the model, "inner", or "scratch"."""
    operator: int | None
    """Position in steps of the operator that writes it; null for an input."""
    sharing: Sharing
    """Sharing with an input of that operator: "view", "in-place", "overlap" or "none"."""


@dataclass(frozen=True)
class OperatorUse(OperatorName):
    """An operator that runs in scopes ``[start, end)``."""

    macs: int
    """Multiply-accumulates."""
    working_set: int
    """Bytes in use while it runs."""
    reach: int
    """Highest byte of the head in use, plus one."""
    scratch_bytes: int
    """Scratch of its kernel, in bytes."""
    start: int
    """The scope in which it begins. Time is counted in scopes, as TFLM does."""
    end: int
    """The scope before which it has ended."""


@dataclass(frozen=True)
class TailPart:
    """Bytes of the tail that tensors, operators, or kernels of one kind take together."""

    name: str
    """Structures of TFLM, or persistent buffers of one kind of kernel."""
    bytes: int
    """Total bytes."""
    count: int
    """Number of tensors, operators, or kernels."""


@dataclass(frozen=True)
class ArenaMap:
    """The places of tensors and scratch in the head over time, in scopes ``[0, end)``."""

    required: int
    """Bytes of the arena to reserve: on the target, or on 32 bits without one."""
    tail: tuple[TailPart, ...]
    """TFLM's own structures, at the end of the arena, by part, the largest first."""
    head: int
    """Bytes of the head."""
    end: int
    """The scope in which the model ends. Time is counted in scopes, as TFLM does."""
    graphs: tuple[str, ...]
    """Names of the model's subgraphs, the main one first."""
    tensors: tuple[PlacedTensor, ...]
    """Tensors and scratch in the head."""
    steps: tuple[OperatorUse, ...]
    """Operators in execution order."""


_WORD = 4
Number = TypeVar("Number", int, npt.NDArray[np.int64])


@dataclass(frozen=True)
class ArenaTerms:
    """A model's bytes beside its head, and its operators.

    ``parts_of_tail``: structures, buffers and scratch handles; ``tables``: the planner's temporaries. Regions add what
    they add to these. ``least_tail`` and ``least_temporaries``: bounds of the whole model to which bytes can be added.
    ``interface``: bytes of the tail that are taken when the head is in place.
    """

    abi: Abi
    parts_of_tail: int
    tables: int
    least_tail: int
    least_temporaries: int
    interface: int
    operators: int
    macs: int

    def more(self, operators: Number, tensors: Number, planned: Number, requests: Number) -> tuple[Number, Number]:
        """Return lower bounds on added tail and temporaries, in bytes, without buffers that operators request."""
        tail = arena.EVAL_TENSOR.on(self.abi) * tensors + arena.NODE_AND_REGISTRATION.on(self.abi) * operators
        tail = tail + arena.SCRATCH_HANDLE.on(self.abi) * requests
        return tail, _tables(self.abi, tensors, planned, requests)


def arena_terms(model: Model, profile: KernelProfile, loops: Sequence[Loop] | None = None) -> ArenaTerms:
    """Return the terms of a model as it stands; ``loops``: its own, where they are known."""
    abi = profile.abi
    beside = arena.arena_beside_head(model, profile.requests, abi)
    tensors = model.all_tensors
    tables = _tables(abi, len(tensors), sum(map(in_head, tensors)), beside.scratch)
    tables += arena.POINTER.on(abi) * len(model.graphs)
    before = [each for each in beside.permanent if each.of != arena.INTERFACE]
    sizes = [aligned(each.size, max(_WORD, each.alignment)) for each in before]
    first = next((at for at, each in enumerate(before) if each.alignment == ARENA_ALIGNMENT), None)
    if first is not None:
        sizes[first] = before[first].size  # it shares its 16 bytes with structures
    return ArenaTerms(
        abi=abi,
        parts_of_tail=sum(sizes),
        tables=tables,
        least_tail=beside.tail - 2 * (ARENA_ALIGNMENT - 1),
        least_temporaries=tables + arena.SCRATCH_REQUEST.on(abi) * arena.MAX_SCRATCH_PER_OPERATOR,
        interface=sum(each.size for each in beside.permanent if each.of == arena.INTERFACE),
        operators=len(model.all_operators),
        macs=model_macs(model, loops),
    )


def _tables(abi: Abi, tensors: Number, planned: Number, requests: Number) -> Number:
    """Return the planner's temporaries for so many tensors, those in the head among them, and scratch requests."""
    infos = arena.ALLOCATION_INFO.on(abi) * (tensors + requests)
    buffers = arena.PLANNED_BUFFER.on(abi) * (planned + requests)
    return infos + buffers + arena.SCRATCH_REQUEST.on(abi) * requests


def least_tail(operators: Iterable[Operator], profile: KernelProfile) -> int:
    """Return bytes of TFLM's structures that operators take in every form that rules, tiles, stripes, and loops have.

    Each filter is read by an operator at least, which has an output. Its buffers are as large for some rows as for all
    of them, and those of some channels add up to as much; floats may do without (``dense_pixels``).
    """
    abi, found = profile.abi, dict[object, int]()
    for operator in operators:
        filters = operator.operand(1) if operator.name in WITH_SCALES else None
        if filters is not None and filters.is_constant:
            asked = profile.requests(operator, abi)
            buffers = 0 if operator.outputs[0].dtype in FLOATS else sum(asked.init) + sum(asked.prepare)
            size = arena.NODE_AND_REGISTRATION.on(abi) + 2 * arena.EVAL_TENSOR.on(abi) + buffers
            key = id(filters.buffer)
            found[key] = min(size, found.get(key, size))
    return sum(found.values())


def least_need(model: Model, profile: KernelProfile, objective: Objective) -> int:
    """Return the bytes of the objective that no form of a cleaned-up model goes below, in one file.

    Its inputs or outputs; and in the tail the allocator, the interface's structures, and ``least_tail``.
    """
    head = io_lower_bound(model)
    if objective == "head":
        return head
    beside = arena.arena_beside_head(model, profile.requests, profile.abi)
    kept = sum(each.size for each in beside.permanent if each.of in (arena.ALLOCATOR, arena.INTERFACE))
    kept -= arena.SCRATCH_HANDLE.on(profile.abi) * beside.scratch  # other forms may ask for less, and have no loop
    kept -= arena.SUBGRAPH_ALLOCATIONS.on(profile.abi) * (len(model.graphs) - 1)
    return head + kept + least_tail(model.all_operators, profile)


def params_bytes(asked: Requests) -> int:
    """Of the parser's structure. One of a few bytes is filled up to a word, as the next structure's place is."""
    return aligned(asked.params, max(_WORD, asked.params_alignment)) if asked.params else 0


def memory_use(model: Model, layout: MemoryLayout, planned: Mapping[Tensor, int], profile: KernelProfile) -> MemoryUse:
    """Everything that can be said without running TFLM; ``planned`` is the offline plan in force, or empty.

    ``tflm`` is left as "not measured"; the verification fills it in.
    """
    offsets = offsets_in_force(layout, planned)
    head = head_of(layout.items, offsets)
    abis = {"32": ILP32, "64": WHEEL, "target": profile.abi} if profile.target else {"32": profile.abi, "64": WHEEL}
    uses = {name: reserve(model, head, profile, abi=abi, order=layout.order) for name, abi in abis.items()}
    if has_table(profile) and uses["target"].exact:
        for planner in get_args(MemoryPlanner)[1:]:
            uses[planner] = reserve(model, head, profile, planner, order=layout.order)
    required = {name: use.required for name, use in uses.items()}
    top = peak(working_sets_in_arena(model, layout, offsets))
    return MemoryUse(
        operators=len(model.all_operators),
        tensors=len(model.all_tensors),
        macs=model_macs(model),
        instructions=instructions(model, profile),
        weights_read=weights_read(model),
        peak_bytes=top.nbytes if top else 0,
        arena_bytes=head,
        tail_bytes={word: use.tail for word, use in uses.items()},
        planner_temporary_bytes={word: use.temporaries for word, use in uses.items()},
        required_bytes=required,
        required_is_exact=uses["32"].exact,
        scratch_operators=len(layout.scratch),
        tflm={"error": "not measured"},
        peak=step_use(top) if top else None,
    )


def operator_kinds(model: Model) -> frozenset[str]:
    """Return the operators that a firmware's op resolver must have, by name."""
    return frozenset(operator.opcode.label for operator in model.all_operators)


def interface_of(model: Model, turned: Collection[str] = ()) -> tuple[InterfaceTensor, ...]:
    """Return the inputs and outputs of the entry graph, inputs first.

    ``turned``: the names of those that have their channels last, and had them first.
    """
    sides = (("input", model.main.inputs), ("output", model.main.outputs))
    return tuple(_interface_tensor(side, tensor, turned) for side, tensors in sides for tensor in tensors)


def _interface_tensor(side: str, tensor: Tensor, turned: Collection[str]) -> InterfaceTensor:
    found = affine_of(tensor)
    scale, zero = (None, None) if found is None else (found.scale, found.zero_point)
    layout = "channels last" if tensor.name in turned else None
    return InterfaceTensor(tensor.name, tensor.shape, tensor.dtype.label, tensor.nbytes, side, scale, zero, layout)


def step_uses(model: Model, layout: MemoryLayout, planned: Mapping[Tensor, int]) -> tuple[StepUse, ...]:
    """Return every operator's working set under the plan in force."""
    runs, sets = runs_of(model), working_sets_in_arena(model, layout, offsets_in_force(layout, planned))
    return tuple(replace(use, macs=runs[use.subgraph] * use.macs) for use in map(step_use, sets))


def working_sets_in_arena(model: Model, layout: MemoryLayout, offsets: Sequence[int]) -> list[WorkingSet]:
    """Working sets as they lie in the arena: bytes that several tensors share count once."""
    ranges = [(offset, offset + item.size) for offset, item in zip(offsets, layout.items, strict=True)]
    places = dict(zip(layout.tensors, ranges, strict=False))
    scratch: dict[int, list[tuple[int, int]]] = {}
    for item, where in zip(layout.items[len(layout.tensors) :], ranges[len(layout.tensors) :], strict=True):
        scratch.setdefault(item.start, []).append(where)

    def in_arena(each: WorkingSet) -> WorkingSet:
        own = scratch.get(layout.timeline.spans[each.operator].start, ())
        return replace(each, nbytes=covered([*(places[tensor] for tensor in each.live), *own]))

    return [in_arena(each) for each in working_sets(model, layout.timeline, layout.scratch)]


def step_use(each: WorkingSet) -> StepUse:
    """Return a working set as the report shows it."""
    live = tuple(TensorUse(t.name, t.shape, t.dtype.label, t.nbytes) for t in each.live)
    names = names_of(each.graph, each.position, each.operator)
    return StepUse(*names, each.nbytes, each.scratch_bytes, operator_macs(each.operator), live)


def bounds_of(model: Model, layout: MemoryLayout, schedule_bound: int) -> Bounds:
    """The three lower bounds on the head; ``schedule_bound``, that of any order, holds here too; all in bytes."""
    return Bounds(io_lower_bound(model), schedule_bound, max(schedule_bound, max_breadth(layout.problem)))


_ORDER: tuple[Sharing, ...] = ("view", "in-place", "overlap", "none")


def arena_map(
    model: Model, layout: MemoryLayout, planned: Mapping[Tensor, int], memory: MemoryUse, profile: KernelProfile
) -> ArenaMap:
    """Return every tensor and scratch request of the head at its place, and the parts of the tail.

    ``planned``: the offline plan in force, or empty; ``memory``: the model's figures under it.
    """
    offsets = offsets_in_force(layout, planned)
    sets = working_sets_in_arena(model, layout, offsets)
    positions = {each.operator: position for position, each in enumerate(sets)}
    spans, tops, runs = layout.timeline.spans, _tops(layout, offsets), runs_of(model)
    steps = tuple(
        OperatorUse(
            *names_of(each.graph, each.position, each.operator),
            macs=runs[each.graph] * operator_macs(each.operator),
            working_set=each.nbytes,
            reach=max((tops[holder] for holder in (*each.live, each.operator) if holder in tops), default=0),
            scratch_bytes=each.scratch_bytes,
            start=spans[each.operator].start,
            end=spans[each.operator].end,
        )
        for each in sets
    )
    graphs = tuple(graph.name for graph in model.graphs)
    placed = (*_tensors(model, layout, offsets, positions), *_scratch(layout, offsets, positions))
    tail = tail_parts(model, profile, memory.tail_for_target)
    head = head_of(layout.items, offsets)
    return ArenaMap(memory.required_for_target, tail, head, layout.timeline.end, graphs, placed, steps)


def _tops(layout: MemoryLayout, offsets: Sequence[int]) -> dict[Tensor | Operator, int]:
    """Compute the end of each tensor in the head, and of the highest scratch request of each operator."""
    ends = [offset + item.size for offset, item in zip(offsets, layout.items, strict=True)]
    tops: dict[Tensor | Operator, int] = dict(zip(layout.tensors, ends, strict=False))
    first = len(layout.tensors)
    by_start = _askers(layout)
    for item, end in zip(layout.items[first:], ends[first:], strict=True):
        operator = by_start[item.start]
        tops[operator] = max(tops.get(operator, 0), end)
    return tops


def _askers(layout: MemoryLayout) -> dict[int, Operator]:
    """Return the operators that ask for scratch, by the scope in which they start."""
    return {layout.timeline.spans[operator].start: operator for operator in layout.scratch}


def _tensors(
    model: Model, layout: MemoryLayout, offsets: Sequence[int], positions: Mapping[Operator, int]
) -> Iterator[PlacedTensor]:
    writers = {tensor: operator for operator in model.all_operators for tensor in operator.outputs}
    sharing = _sharing(layout, dict(zip(layout.tensors, offsets, strict=False)))
    for tensor, item, offset in zip(layout.tensors, layout.items, offsets, strict=False):
        writer = writers.get(tensor)
        operator = None if writer is None else positions.get(writer)
        kind: _Kind = "input" if tensor in model.main.inputs else "output" if tensor in model.main.outputs else "inner"
        what, place = (tensor.name, tensor.shape, tensor.dtype.label, tensor.nbytes), (offset, item.start, item.end)
        yield PlacedTensor(*what, *place, kind, operator, sharing.get(tensor, "none"))


def _scratch(layout: MemoryLayout, offsets: Sequence[int], positions: Mapping[Operator, int]) -> Iterator[PlacedTensor]:
    by_start, first = _askers(layout), len(layout.tensors)
    for item, offset in zip(layout.items[first:], offsets[first:], strict=True):
        operator = positions[by_start[item.start]]
        place = offset, item.start, item.end
        yield PlacedTensor("scratch", (item.size,), "bytes", item.size, *place, "scratch", operator, "none")


def _sharing(layout: MemoryLayout, places: Mapping[Tensor, int]) -> dict[Tensor, Sharing]:
    """Classify the outputs that lie on an input of their operator; of several kinds the one that overwrites least."""
    found: dict[Tensor, Sharing] = {}
    for reuse in (each for reuses in layout.reuses.values() for each in reuses):
        distance = places[reuse.input] - places[reuse.output]
        is_in_force = bytes_in_common(reuse, places) > 0 and (distance == reuse.distance or not reuse.exact)
        known = found.get(reuse.output, "none")
        if is_in_force and _ORDER.index(reuse.kind) < _ORDER.index(known):
            found[reuse.output] = reuse.kind
    return found


_STRUCTURES = {arena.TENSORS: "structures of tensors", arena.OPERATORS: "structures of operators"}


def tail_parts(model: Model, profile: KernelProfile, tail: int) -> tuple[TailPart, ...]:
    """``tail`` bytes in parts, the largest first.

    Structures are counted as ``kernels/arena.py`` allocates them. The rest is the allocator's own, and alignment.
    """
    sizes: Counter[str] = Counter()
    for of, size, alignment in arena.arena_beside_head(model, profile.requests, profile.abi).permanent:
        if of not in (arena.ALLOCATOR, arena.INTERFACE):
            sizes[of] += aligned(size, max(_WORD, alignment))
    number = Counter(operator.opcode.label for operator in model.all_operators)
    number |= {arena.TENSORS: len(model.all_tensors), arena.OPERATORS: number.total()}
    parts = [TailPart(_STRUCTURES.get(of, f"kernels of {of}"), size, number[of]) for of, size in sizes.items() if size]
    rest = tail - sum(part.bytes for part in parts)
    parts.append(TailPart("allocator, inputs, outputs and alignment", max(0, rest), 1))
    return tuple(sorted(parts, key=lambda part: (-part.bytes, part.name)))
