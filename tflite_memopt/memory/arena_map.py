"""What lies where in TFLM's arena, and when: the data of pictures and of tables with one row per operator."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from ..analysis.macs import operator_macs, runs_of
from ..graph.alignment import aligned
from ..ir.model import Model, Operator, Tensor
from ..kernels import arena as tflm_arena
from ..kernels.profile import KernelProfile
from ..kernels.requests import requests_in
from ..plan.problem import Item
from .arena_terms import params_bytes
from .figures import ArenaMap, MemoryUse, OperatorUse, PlacedTensor, Sharing, TailPart
from .in_force import head_of, offsets_in_force
from .layout import MemoryLayout
from .usage import working_sets_in_arena

_ORDER: tuple[Sharing, ...] = ("view", "in-place", "overlap", "none")


def arena_map(
    model: Model, layout: MemoryLayout, planned: Mapping[Tensor, int], memory: MemoryUse, profile: KernelProfile
) -> ArenaMap:
    """Every tensor and scratch request of the head at its place, and what the tail is made of.

    ``planned``: the offline plan in force, or empty; ``memory``: the model's figures under it.
    """
    offsets = offsets_in_force(layout, planned)
    sets = working_sets_in_arena(model, layout, offsets)
    positions = {each.operator: position for position, each in enumerate(sets)}
    spans, tops, runs = layout.timeline.spans, _tops(layout, offsets), runs_of(model)
    steps = tuple(
        OperatorUse(
            subgraph=each.graph,
            index=each.position,
            operator=each.operator.opcode.label,
            output=each.operator.outputs[0].name if each.operator.outputs else "",
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
    head = head_of(layout, offsets)
    return ArenaMap(memory.required_for_target, tail, head, layout.timeline.end, graphs, placed, steps)


def _tops(layout: MemoryLayout, offsets: Sequence[int]) -> dict[Tensor | Operator, int]:
    """Where each tensor ends in the head, and the highest scratch request of each operator."""
    ends = [offset + item.size for offset, item in zip(offsets, layout.items, strict=True)]
    tops: dict[Tensor | Operator, int] = dict(zip(layout.tensors, ends, strict=False))
    first = len(layout.tensors)
    by_start = _askers(layout)
    for item, end in zip(layout.items[first:], ends[first:], strict=True):
        operator = by_start[item.start]
        tops[operator] = max(tops.get(operator, 0), end)
    return tops


def _askers(layout: MemoryLayout) -> dict[int, Operator]:
    """The operators that ask for scratch, by the scope in which they start."""
    return {layout.timeline.spans[operator].start: operator for operator in layout.scratch}


def _tensors(
    model: Model, layout: MemoryLayout, offsets: Sequence[int], positions: Mapping[Operator, int]
) -> Iterator[PlacedTensor]:
    writers = {
        tensor: operator for graph in model.graphs for operator in graph.operators for tensor in operator.outputs
    }
    sharing = _sharing(layout, dict(zip(layout.tensors, offsets, strict=False)))
    for tensor, item, offset in zip(layout.tensors, layout.items, offsets, strict=False):
        writer = writers.get(tensor)
        yield PlacedTensor(
            name=tensor.name,
            shape=tensor.shape,
            type=tensor.dtype.label,
            bytes=tensor.nbytes,
            offset=offset,
            start=item.start,
            end=item.end,
            kind="input" if tensor in model.main.inputs else "output" if tensor in model.main.outputs else "inner",
            operator=None if writer is None else positions.get(writer),
            sharing=sharing.get(tensor, "none"),
        )


def _scratch(layout: MemoryLayout, offsets: Sequence[int], positions: Mapping[Operator, int]) -> Iterator[PlacedTensor]:
    by_start, first = _askers(layout), len(layout.tensors)
    for item, offset in zip(layout.items[first:], offsets[first:], strict=True):
        yield _request(item, offset, positions[by_start[item.start]])


def _request(item: Item, offset: int, operator: int) -> PlacedTensor:
    return PlacedTensor(
        name="scratch",
        shape=(item.size,),
        type="bytes",
        bytes=item.size,
        offset=offset,
        start=item.start,
        end=item.end,
        kind="scratch",
        operator=operator,
        sharing="none",
    )


def _sharing(layout: MemoryLayout, places: Mapping[Tensor, int]) -> dict[Tensor, Sharing]:
    """How outputs lie on an input of their operator; of several ways the one that overwrites least."""
    found: dict[Tensor, Sharing] = {}
    for reuse in (each for reuses in layout.reuses.values() for each in reuses):
        first, second = places[reuse.input], places[reuse.output]
        both = min(first + reuse.input.nbytes, second + reuse.output.nbytes) - max(first, second)
        is_in_force = both > 0 and (first - second == reuse.distance or not reuse.exact)
        known = found.get(reuse.output, "none")
        if is_in_force and _ORDER.index(reuse.kind) < _ORDER.index(known):
            found[reuse.output] = reuse.kind
    return found


def tail_parts(model: Model, profile: KernelProfile, tail: int) -> tuple[TailPart, ...]:
    """``tail`` bytes in parts, the largest first.

    Structures are counted as ``kernels/arena.py`` allocates them. What remains is the allocator's own and alignment.
    """
    abi = profile.abi
    asked = requests_in(model, abi, profile.requests)
    tensors = sum(len(graph.tensors) for graph in model.graphs)
    nodes = tflm_arena.NODE_AND_REGISTRATION.on(abi) * len(asked) + sum(map(params_bytes, asked.values()))
    parts = [
        TailPart("structures of tensors", tflm_arena.EVAL_TENSOR.on(abi) * tensors, tensors),
        TailPart("structures of operators", nodes, len(asked)),
    ]
    kept: Counter[str] = Counter()
    number: Counter[str] = Counter()
    for operator, each in asked.items():
        kept[operator.opcode.label] += sum(map(aligned, (*each.init, *each.prepare)))
        number[operator.opcode.label] += 1
    parts += [TailPart(f"kernels of {kind}", kept[kind], number[kind]) for kind in kept if kept[kind]]
    rest = tail - sum(part.bytes for part in parts)
    parts.append(TailPart("allocator, inputs, outputs and alignment", max(0, rest), 1))
    return tuple(sorted(parts, key=lambda part: (-part.bytes, part.name)))
