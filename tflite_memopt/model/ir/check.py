"""The independent check of a model's structure: true before and after every stage.

It trusts nothing: links are recomputed from the operators' lists. It says nothing of numerics.

An NPU runs operators from a command stream that its compiler wrote, with the addresses of what it reads and writes.
Vela compiles parts of a network for Arm's Ethos-U to one custom operator each. It reads its command stream and weights,
then the memory that the NPU works in: a tensor that nothing writes, and that TFLM gives bytes as any other. The command
stream names places in it by their distance from its first byte, inputs and outputs among them, so that all of these
must lie where the file's offline plan has them. Commands for an Edge TPU or a Neutron have no addresses: their kernels
are given those of the tensors in each run.

Source: tflite-micro commit 90b983c2b3f1, micro/kernels/ethos_u/ethosu.cc; google-coral/coralmicro, libs/tpu; NXP's eIQ
Neutron converter.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from ...errors import ErrorKind, ModelFormatError, UnsupportedModelError
from .model import DType, Graph, Model, Operator, OperatorOptions, Tensor, Use
from .tensors import integers


@dataclass(frozen=True)
class Npu:
    """An NPU that runs custom operators."""

    name: str
    has_addresses: bool
    """Its commands have addresses in the arena."""


NPUS: Mapping[str, Npu] = {
    "ethos-u": Npu("Arm's Ethos-U", True),
    "edgetpu-custom-op": Npu("Google's Edge TPU", False),
    "NeutronGraph": Npu("NXP's Neutron", False),
}
"""By the custom code of their operators."""
NPU_HAS_ADDRESSES = "an NPU's commands have addresses in the arena, which hold for this graph and this order alone"
"""The reason to leave such a graph as it is."""


def npu_of(operator: Operator) -> Npu | None:
    """Return the NPU that runs an operator; None where the CPU does."""
    return NPUS.get(operator.opcode.custom_code or "") if operator.name == "CUSTOM" else None


def first_on_npu(model: Model) -> tuple[str, Npu] | None:
    """Return the first operator that an NPU runs, in words, and the NPU; None without one."""
    for number, position, operator in model.located_operators:
        npu = npu_of(operator)
        if npu is not None:
            return describe(number, position, operator), npu
    return None


def has_addresses(operator: Operator) -> bool:
    """Tell whether an NPU runs it from commands that have addresses in the arena."""
    npu = npu_of(operator)
    return npu is not None and npu.has_addresses


def npu_operators(graph: Graph) -> list[Operator]:
    """The graph's operators whose commands have addresses, in order."""
    return [operator for operator in graph.operators if has_addresses(operator)]


def is_fixed_by_npu(model: Model) -> bool:
    """Tell whether any operator's commands have addresses, so that the graph and its order stay."""
    return any(npu_operators(graph) for graph in model.graphs)


def is_work_memory(tensor: Tensor) -> bool:
    """Tell whether it is memory that an NPU works in: nothing writes it, and nothing else reads it.

    The caller knows that it is no input of its graph.
    """
    is_given = tensor.is_constant or tensor.is_variable or tensor.producer is not None
    return not is_given and bool(tensor.uses) and all(has_addresses(use.operator) for use in tensor.uses)


# Source: TFLM micro_allocation_info.cc, MarkSubgraphLifetimesIfNecessary.
_SUBGRAPH_FIELDS = {
    "IF": ("thenSubgraphIndex", "elseSubgraphIndex"),
    "WHILE": ("condSubgraphIndex", "bodySubgraphIndex"),
    "CALL_ONCE": ("initSubgraphIndex",),
}
# Operators that call subgraphs and that TFLM does not have; their memory cannot be planned.
_OF_STABLEHLO = ("COMPOSITE", "WHILE", "CASE", "REDUCE", "REDUCE_WINDOW", "SCATTER", "SORT", "CUSTOM_CALL")
UNSUPPORTED_CALLERS = frozenset(("CALL", *(f"STABLEHLO_{name}" for name in _OF_STABLEHLO)))


def called_subgraphs(operator: Operator) -> tuple[int, ...]:
    """Positions in ``Model.graphs`` of the subgraphs that ``operator`` calls; empty for most operators."""
    names = _SUBGRAPH_FIELDS.get(operator.name, ())
    return tuple(int(operator.option(name, -1)) for name in names)


def renumber_subgraphs(operator: Operator, positions: Mapping[int, int]) -> None:
    """Let ``operator`` call the subgraphs at new positions: old position -> new one."""
    names = _SUBGRAPH_FIELDS.get(operator.name, ())
    if names and operator.options is not None:
        moved = {name: positions[int(operator.option(name, -1))] for name in names}
        operator.options = OperatorOptions(operator.options.kind, {**operator.options.fields, **moved})


def reachable(model: Model, index: int) -> set[int]:
    """Positions of the subgraph and of all that it calls."""
    found, left = {index}, [index]
    while left:
        called = {at for operator in model.graphs[left.pop()].operators for at in called_subgraphs(operator)}
        left += called - found
        found |= called
    return found


MAX_TENSOR_BYTES = 2**31 - 1
"""TFLM's planner counts in signed 32-bit integers (greedy_memory_planner.h)."""
MAX_ACTIVATION_BYTES = 2**26
"""Of one tensor in the arena: more than a microcontroller's memory. Samples and proofs take many times as much here."""
_WINDOWED = (
    *("CONV_2D", "DEPTHWISE_CONV_2D", "CONV_3D", "TRANSPOSE_CONV"),
    *("MAX_POOL_2D", "AVERAGE_POOL_2D", "L2_POOL_2D"),
)
_WINDOW_FIELDS = (
    *("strideD", "strideH", "strideW", "filterHeight", "filterWidth"),
    *("dilationDFactor", "dilationHFactor", "dilationWFactor"),
)
_DEPTHS = ("SPACE_TO_DEPTH", "DEPTH_TO_SPACE")
_BLOCKS = (*_DEPTHS, "SPACE_TO_BATCH_ND", "BATCH_TO_SPACE_ND")
_SAY_SIZE: Mapping[str, int] = {
    **dict.fromkeys(("BROADCAST_TO", "MIRROR_PAD", "PAD", "PADV2", "TILE"), 1),
    **dict.fromkeys(("RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"), 1),
    **dict.fromkeys(("FILL", "TRANSPOSE_CONV"), 0),
}
"""Operands that say how large an output is."""
MAX_CALL_DEPTH = 64
"""Levels of subgraphs that call subgraphs; an interpreter on a microcontroller recurses on its stack."""


def check_model(model: Model) -> None:
    """Raise ModelFormatError or UnsupportedModelError unless the model can be planned and run.

    Checked: links, execution order, outputs, windows, tensor sizes, constants' data, called subgraphs.
    """
    for index, graph in enumerate(model.graphs):
        _check_links(graph, index)
        _check_order(graph, index)
        _check_outputs(graph, index)
        _check_windows(graph, index)
        _check_sizes(graph, index)
        for number, tensor in enumerate(graph.tensors):
            _check_tensor(tensor, f"subgraph {index}, tensor {number} '{tensor.name}'")
    _check_calls(model, 0, (), set())


def describe(graph_index: int, position: int, operator: Operator) -> str:
    """Name an operator as every message does: subgraph, index, opcode, and its first output's name."""
    label = operator.outputs[0].name if operator.outputs else "no output"
    return f"subgraph {graph_index}, operator {position} ({operator.opcode.label}, '{label}')"


def misfit(operator: Operator) -> ModelFormatError:
    """The error for an operator whose tensors are not those that its kind has."""
    label = operator.outputs[0].name if operator.outputs else "no output"
    shapes = [None if tensor is None else list(tensor.shape) for tensor in operator.inputs]
    return ModelFormatError(
        f"{operator.opcode.label} '{label}': inputs of shapes {shapes} do not fit the operator", ErrorKind.OPERAND
    )


def _wrong(where: str, what: str, kind: ErrorKind) -> ModelFormatError:
    return ModelFormatError(f"{where}: {what}", kind)


def _unsupported(where: str, what: str, kind: ErrorKind) -> UnsupportedModelError:
    return UnsupportedModelError(f"{where}: {what}", kind)


def _check_links(graph: Graph, index: int) -> None:
    where = f"subgraph {index}"
    known = {id(tensor) for tensor in graph.tensors}
    for tensor in (*graph.inputs, *graph.outputs):
        if id(tensor) not in known:
            raise _wrong(where, f"input or output '{tensor.name}' is not among its tensors", ErrorKind.FOREIGN_TENSOR)
    for position, operator in enumerate(graph.operators):
        here = describe(index, position, operator)
        for tensor in (*operator.present_inputs(), *operator.outputs, *operator.intermediates):
            if id(tensor) not in known:
                raise _wrong(here, f"tensor '{tensor.name}' is not in its subgraph", ErrorKind.FOREIGN_TENSOR)
    producers, uses = _producers(graph, index), _uses(graph)
    for tensor in graph.inputs:
        if id(tensor) in producers:
            raise _wrong(where, f"input '{tensor.name}' is written by an operator", ErrorKind.WRITTEN_INPUT)
    for tensor in graph.tensors:
        same_uses = _slots(tensor.uses) == _slots(uses.get(id(tensor), []))
        if tensor.producer is not producers.get(id(tensor)) or not same_uses:
            raise _wrong(where, f"the links of tensor '{tensor.name}' do not match the operators", ErrorKind.LINKS)


def _producers(graph: Graph, index: int) -> dict[int, Operator]:
    producers: dict[int, Operator] = {}
    for position, operator in enumerate(graph.operators):
        here = describe(index, position, operator)
        for tensor in operator.outputs:
            if id(tensor) in producers:
                raise _wrong(here, f"tensor '{tensor.name}' has two producers", ErrorKind.TWO_PRODUCERS)
            if tensor.is_constant:
                raise _wrong(here, f"it writes tensor '{tensor.name}', which is a constant", ErrorKind.WRITTEN_INPUT)
            producers[id(tensor)] = operator
    return producers


def _uses(graph: Graph) -> dict[int, list[Use]]:
    uses: dict[int, list[Use]] = {}
    for operator in graph.operators:
        for slot, tensor in enumerate(operator.inputs):
            if tensor is not None:
                uses.setdefault(id(tensor), []).append(Use(operator, slot))
    return uses


def _slots(uses: list[Use]) -> list[tuple[int, int]]:
    return sorted((id(use.operator), use.slot) for use in uses)


def _check_order(graph: Graph, index: int) -> None:
    position = {id(operator): number for number, operator in enumerate(graph.operators)}
    inputs = {id(tensor) for tensor in graph.inputs}
    for number, operator in enumerate(graph.operators):
        for tensor in operator.present_inputs():
            if tensor.is_constant or tensor.is_variable or tensor.nbytes == 0 or id(tensor) in inputs:
                continue
            here = describe(index, number, operator)
            if tensor.producer is None and is_work_memory(tensor):
                continue
            if tensor.producer is None:
                raise _wrong(here, f"it reads tensor '{tensor.name}', {_missing(tensor)}", ErrorKind.UNWRITTEN)
            if position[id(tensor.producer)] >= number:
                writer = describe(index, position[id(tensor.producer)], tensor.producer)
                on_cycle = _on_cycle(operator)
                kind = "a cycle of operators" if on_cycle else "operators out of order"
                raise ModelFormatError(
                    f"{here}: it reads tensor '{tensor.name}', which {writer} writes later: {kind}",
                    ErrorKind.CYCLE if on_cycle else ErrorKind.ORDER,
                )


def _missing(tensor: Tensor) -> str:
    """Say why a tensor has no values: the newest schema lets a constant lie in another file."""
    if tensor.extras.get("externalBuffer"):
        return "whose values are in another file, where TFLM does not look: convert the model into one file"
    return "which nothing writes"


def _check_outputs(graph: Graph, index: int) -> None:
    inputs = {id(tensor) for tensor in graph.inputs}
    for tensor in graph.outputs:
        has_value = tensor.is_constant or tensor.is_variable or tensor.nbytes == 0 or id(tensor) in inputs
        if tensor.producer is None and not has_value:
            raise _wrong(
                f"subgraph {index}", f"it returns tensor '{tensor.name}', which nothing writes", ErrorKind.UNWRITTEN
            )


def _check_windows(graph: Graph, index: int) -> None:
    """Windows must have a size and move: kernels divide by both."""
    for position, operator in enumerate(graph.operators):
        if operator.name not in _WINDOWED:
            continue
        here = describe(index, position, operator)
        if operator.options is None:
            raise _wrong(here, "it has no options, so no strides", ErrorKind.WINDOW)
        zero = next((name for name in _WINDOW_FIELDS if operator.option(name, 1) == 0), None)
        if zero is not None:
            raise _wrong(here, f"its {zero} is 0", ErrorKind.WINDOW)
        empty = next((tensor for tensor in operator.present_inputs() if 0 in tensor.shape), None)
        if empty is not None:
            raise _wrong(here, f"tensor '{empty.name}' of shape {list(empty.shape)} is empty", ErrorKind.EMPTY)


def _check_sizes(graph: Graph, index: int) -> None:
    """Sizes that operands say: of blocks from 1 on, and of an output that a microcontroller may hold.

    Interpreters and proofs make what operands say, whatever shape the file has for the output.
    """
    for position, operator in enumerate(graph.operators):
        here = describe(index, position, operator)
        if operator.name in _BLOCKS:
            blocks = [operator.option("blockSize", 1)] if operator.name in _DEPTHS else _operand(operator, 1)
            if min(map(int, blocks), default=1) < 1:
                raise _wrong(here, f"it has a block of {min(map(int, blocks))}", ErrorKind.OPERAND)
        size = _size_said(operator)
        if size is not None and min(size, default=1) < 0:
            raise _wrong(here, f"its operands request shape {size}", ErrorKind.OPERAND)
        if size is not None and operator.name.startswith("RESIZE") and 0 in size:
            raise _wrong(here, f"it resizes to {size[0]} x {size[1]}", ErrorKind.OPERAND)
        if size is not None and prod(size) * operator.outputs[0].dtype.arena_bytes > MAX_ACTIVATION_BYTES:
            raise UnsupportedModelError(
                f"{here}: its operands request a size of {' x '.join(map(str, size))}: no microcontroller has the "
                f"bytes, and tensors of over {MAX_ACTIVATION_BYTES:,} are not planned",
                ErrorKind.TOO_LARGE,
            )


def _size_said(operator: Operator) -> list[int] | None:
    """Return dimensions of an output that constant operands say, or a part of them; None where they say none."""
    name, source = operator.name, operator.inputs[0] if operator.inputs else None
    numbers = _operand(operator, _SAY_SIZE.get(name, -1))
    if source is None or not numbers or not operator.outputs:
        return None
    if name in ("PAD", "PADV2", "MIRROR_PAD"):
        pairs = zip(numbers[::2], numbers[1::2], source.shape, strict=False)
        return [before + size + after for before, after, size in pairs]
    if name == "TILE":
        return [size * count for size, count in zip(source.shape, numbers, strict=False)]
    return numbers


def _operand(operator: Operator, slot: int) -> list[int]:
    found = integers(operator.inputs[slot]) if 0 <= slot < len(operator.inputs) else None
    return [] if found is None else found.tolist()


def _on_cycle(operator: Operator) -> bool:
    """True when ``operator`` depends on its own outputs."""
    seen: set[int] = set()
    stack = [operator]
    while stack:
        for tensor in stack.pop().present_inputs():
            producer = tensor.producer
            if producer is operator:
                return True
            if producer is not None and id(producer) not in seen:
                seen.add(id(producer))
                stack.append(producer)
    return False


def _check_tensor(tensor: Tensor, where: str) -> None:
    shape = list(tensor.shape)
    if any(dim == -1 for dim in shape):
        raise _unsupported(
            where, f"shape {shape} is dynamic; fix the input shapes and convert the model again", ErrorKind.DYNAMIC
        )
    if any(dim < 0 for dim in shape):
        raise _wrong(where, f"shape {shape} has a negative size", ErrorKind.OPERAND)
    if tensor.nbytes > MAX_TENSOR_BYTES:
        raise _unsupported(
            where,
            f"shape {shape} of {tensor.dtype.label} takes {tensor.nbytes:,} bytes, more than {MAX_TENSOR_BYTES:,}",
            ErrorKind.TOO_LARGE,
        )
    if not tensor.is_constant and tensor.nbytes > MAX_ACTIVATION_BYTES:
        raise UnsupportedModelError(
            f"{where}: shape {shape} of {tensor.dtype.label} takes {tensor.nbytes:,} bytes of the arena: no "
            f"microcontroller has them, and tensors of over {MAX_ACTIVATION_BYTES:,} are not planned",
            ErrorKind.TOO_LARGE,
        )
    if tensor.buffer.data is not None and tensor.is_constant:
        held, is_sparse = tensor.buffer.data.size, tensor.extras.get("sparsity") is not None
        if not is_sparse and held < tensor.file_bytes:
            raise _wrong(
                where,
                f"its buffer holds {held} bytes, shape {shape} of {tensor.dtype.label} needs {tensor.file_bytes}",
                ErrorKind.BUFFER,
            )
    elif tensor.dtype.arena_bytes == 0 and tensor.dtype is not DType.VARIANT and tensor.producer is not None:
        raise _unsupported(where, f"TFLM has no tensors of type {tensor.dtype.label}", ErrorKind.NO_SUCH_TYPE)


def _check_calls(model: Model, index: int, path: tuple[int, ...], done: set[int]) -> None:
    if index in path:
        raise UnsupportedModelError(
            f"subgraph {index} calls itself through subgraphs {list(path)}", ErrorKind.RECURSION
        )
    if index in done:
        return
    if len(path) > MAX_CALL_DEPTH:
        raise UnsupportedModelError(
            f"subgraph {index} is called more than {MAX_CALL_DEPTH} levels deep", ErrorKind.RECURSION
        )
    for position, operator in enumerate(model.graphs[index].operators):
        here = describe(index, position, operator)
        if operator.name in UNSUPPORTED_CALLERS:
            raise _unsupported(
                here, f"TFLM has no {operator.name}, so its subgraph cannot be planned", ErrorKind.NO_SUCH_OPERATOR
            )
        for called in called_subgraphs(operator):
            if not 0 <= called < len(model.graphs):
                raise _wrong(
                    here, f"it calls subgraph {called}, the model has {len(model.graphs)}", ErrorKind.NO_SUCH_SUBGRAPH
                )
            _check_calls(model, called, (*path, index), done)
    done.add(index)
