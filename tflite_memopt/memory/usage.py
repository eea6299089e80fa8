"""A model in its present order and plan -> the figures that reports show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ..analysis.macs import model_macs, operator_macs, runs_of
from ..analysis.working_set import WorkingSet, io_lower_bound, peak, working_sets
from ..graph.interval import covered
from ..ir.model import Model, Tensor
from ..ir.quantization import affine_of
from ..kernels.arena import ArenaUse, arena_use
from ..kernels.profile import KernelProfile
from ..kernels.requests import ILP32, WHEEL
from ..plan.bounds import max_breadth
from .figures import Bounds, InterfaceTensor, LiveTensor, MemoryUse, StepUse
from .in_force import head_of, offsets_in_force
from .layout import MemoryLayout
from .work import instructions


def memory_use(model: Model, layout: MemoryLayout, planned: Mapping[Tensor, int], profile: KernelProfile) -> MemoryUse:
    """Everything that can be said without running TFLM; ``planned`` is the offline plan in force, or empty.

    ``tflm`` is left as "not measured"; the verification fills it in.
    """
    offsets = offsets_in_force(layout, planned)
    head = head_of(layout, offsets)
    abis = {"32": ILP32, "64": WHEEL} | ({"target": profile.abi} if profile.target else {})
    uses: dict[str, ArenaUse] = {
        name: arena_use(model, head, profile.requests, abi, layout.order) for name, abi in abis.items()
    }
    if profile.target is not None and not profile.libraries:
        for planner in ("table", "table_apart"):
            uses[planner] = arena_use(model, head, profile.requests, profile.abi, layout.order, planner)
    required = {name: use.required for name, use in uses.items()}
    top = peak(working_sets_in_arena(model, layout, offsets))
    return MemoryUse(
        operators=operator_count(model),
        tensors=sum(len(graph.tensors) for graph in model.graphs),
        macs=model_macs(model),
        instructions=instructions(model, profile),
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


def operator_count(model: Model) -> int:
    """Operators of all subgraphs."""
    return sum(len(graph.operators) for graph in model.graphs)


def operator_kinds(model: Model) -> frozenset[str]:
    """What a firmware's op resolver must have: operators by name."""
    return frozenset(operator.opcode.label for graph in model.graphs for operator in graph.operators)


def interface_of(model: Model) -> tuple[InterfaceTensor, ...]:
    """The inputs and outputs of the entry graph, inputs first."""
    sides = (("input", model.main.inputs), ("output", model.main.outputs))
    return tuple(_interface_tensor(side, tensor) for side, tensors in sides for tensor in tensors)


def _interface_tensor(side: str, tensor: Tensor) -> InterfaceTensor:
    found = affine_of(tensor)
    scale, zero = (None, None) if found is None else (found.scale, found.zero_point)
    return InterfaceTensor(side, tensor.name, tensor.shape, tensor.dtype.label, tensor.nbytes, scale, zero)


def step_uses(model: Model, layout: MemoryLayout, planned: Mapping[Tensor, int]) -> tuple[StepUse, ...]:
    """Every operator's working set under the plan in force."""
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
    """A working set as the report shows it."""
    live = tuple(LiveTensor(t.name, t.shape, t.dtype.label, t.nbytes) for t in each.live)
    operator = each.operator
    output = operator.outputs[0].name if operator.outputs else ""
    return StepUse(
        each.graph,
        each.position,
        operator.opcode.label,
        output,
        each.nbytes,
        each.scratch_bytes,
        operator_macs(operator),
        live,
    )


def bounds_of(model: Model, layout: MemoryLayout, schedule_bound: int) -> Bounds:
    """The three lower bounds on the head; ``schedule_bound``, that of any order, holds here too; all in bytes."""
    return Bounds(io_lower_bound(model), schedule_bound, max(schedule_bound, max_breadth(layout.problem)))
