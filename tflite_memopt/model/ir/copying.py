r"""Copy a model, drop unreferenced objects, and share equal constants. All of it is exact.

Dead tensors:

    op --> a --> op         op --> a --> op
           b           =>
    (b: no writer, no reader, no name in the interface)

TFLM keeps a structure for every tensor of the file, and arena bytes for every dead activation.

Equal constants become one:

    op -- w1 (1, 2, 3)              op --\
    op -- w2 (1, 2, 3)      =>           w1 (1, 2, 3)
                                    op --/

Tensors of equal type, shape, bytes and quantization: TFLM keeps a structure for every tensor of the file. They are
merged within a subgraph. Buffers of equal bytes, whatever tensors they belong to: that is flash alone.

Kernels may share a constant. It is in flash, so that none writes it; and what a kernel derives from its quantization,
such as multipliers for each channel, is in the operator's own data (micro/kernels/conv_common.cc), while the
TfLiteTensor that it is read from is temporary (AllocateTempTfLiteTensor, micro_allocator.cc).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from .change import DEAD_TENSORS, SHARED_CONSTANTS, UNCALLED, Changed, changed
from .check import reachable, renumber_subgraphs
from .model import Buffer, Graph, Model, Operator, Quantization, Signature, Tensor


def copy_model(model: Model) -> Model:
    """New graphs, tensors and operators at the positions of the old ones.

    Operator codes and buffers are shared, with the weights in them: nothing changes those in place.
    """
    twins: dict[Tensor, Tensor] = {}
    graphs = [_copy_graph(graph, twins) for graph in model.graphs]
    pairs = dict(zip(map(id, model.graphs), graphs, strict=True))

    def signature(old: Signature) -> Signature:
        inputs = tuple((name, twins[tensor]) for name, tensor in old.inputs)
        outputs = tuple((name, twins[tensor]) for name, tensor in old.outputs)
        return replace(old, graph=pairs[id(old.graph)], inputs=inputs, outputs=outputs)

    return replace(
        model,
        graphs=graphs,
        opcodes=list(model.opcodes),
        buffers=list(model.buffers),
        metadata=list(model.metadata),
        legacy_metadata=None if model.legacy_metadata is None else list(model.legacy_metadata),
        signatures=None if model.signatures is None else [signature(each) for each in model.signatures],
    )


def _copy_graph(graph: Graph, twins: dict[Tensor, Tensor]) -> Graph:
    copied = Graph(graph.name, graph.extras)
    for tensor in graph.tensors:
        twins[tensor] = copied.add_tensor(unlinked_twin(tensor))
    for operator in graph.operators:
        copied.add_operator(_copy_operator(operator, twins))
    copied.inputs = tuple(twins[tensor] for tensor in graph.inputs)
    copied.outputs = tuple(twins[tensor] for tensor in graph.outputs)
    return copied


def unlinked_twin(tensor: Tensor) -> Tensor:
    """As ``dataclasses.replace(tensor)``, in a quarter of the time: searches copy models of hundreds of tensors."""
    twin = Tensor.__new__(Tensor)
    twin.__dict__.update(tensor.__dict__, producer=None, uses=[])
    return twin


def _copy_operator(operator: Operator, twins: dict[Tensor, Tensor]) -> Operator:
    twin = Operator.__new__(Operator)
    twin.__dict__.update(
        operator.__dict__,
        inputs=tuple([None if tensor is None else twins[tensor] for tensor in operator.inputs]),
        outputs=tuple([twins[tensor] for tensor in operator.outputs]),
        intermediates=tuple([twins[tensor] for tensor in operator.intermediates]),
    )
    return twin


def drop_dead_tensors(model: Model) -> Changed:
    """Remove tensors and constants that nothing reads."""
    kept, removed = tensors_to_keep(model), list[Tensor]()
    for graph in model.graphs:
        dead = [t for t in graph.tensors if t.producer is None and not t.uses and id(t) not in kept]
        graph.remove_tensors(dead)
        removed += dead
    drop_buffers(model, {id(tensor.buffer) for tensor in removed})
    return changed(model, DEAD_TENSORS, (tensor.name for tensor in removed))


def drop_uncalled(model: Model) -> tuple[Graph, ...]:
    """Drop the subgraphs that the first one does not call, and their signatures; returns these subgraphs."""
    called = sorted(reachable(model, 0))
    kept = [model.graphs[at] for at in called]
    dropped = tuple(graph for graph in model.graphs if graph not in kept)
    if dropped:
        for operator in (operator for graph in kept for operator in graph.operators):
            renumber_subgraphs(operator, {old: new for new, old in enumerate(called)})
        model.graphs = kept
        if model.signatures is not None:
            model.signatures = [each for each in model.signatures if each.graph in kept]
    return dropped


def drop_uncalled_signatures(model: Model) -> Changed:
    """Drop the subgraphs that the first one does not call; named by their signatures, if they have any."""
    signatures = model.signatures or []
    graphs = drop_uncalled(model)
    keys = [each.key for each in signatures if each.graph in graphs]
    return changed(model, UNCALLED, keys or (graph.name for graph in graphs))


def drop_unused_codes(model: Model) -> None:
    """Drop operator codes that no operator has: LiteRT refuses a file with one that it lacks, used or not."""
    used = {operator.opcode for operator in model.all_operators}
    model.opcodes = [opcode for opcode in model.opcodes if opcode in used]


def tensors_to_keep(model: Model) -> set[int]:
    """Return the ids of the tensors that signatures, interfaces of subgraphs, and operators' intermediates refer to."""
    kept = {id(tensor) for each in model.signatures or () for _, tensor in (*each.inputs, *each.outputs)}
    for graph in model.graphs:
        kept |= {id(tensor) for tensor in (*graph.inputs, *graph.outputs)}
        kept |= {id(tensor) for operator in graph.operators for tensor in operator.intermediates}
    return kept


def drop_buffers(model: Model, doomed: set[int]) -> None:
    """Drop buffers, by their ids, but for those that a tensor or metadata has, and the schema's "no data", buffer 0."""
    doomed = doomed - {id(tensor.buffer) for tensor in model.all_tensors}
    doomed -= {id(each) for each in (*(buffer for _, buffer in model.metadata), *(model.legacy_metadata or ()))}
    doomed -= {id(buffer) for buffer in model.buffers[:1]}
    model.buffers = [buffer for buffer in model.buffers if id(buffer) not in doomed]


def share_constants(model: Model, most_bytes: int | None = None) -> Changed:
    """Store equal constants once.

    ``most_bytes``: the largest constant that is merged; None for any.
    """
    _share_buffers(model, most_bytes)
    kept = tensors_to_keep(model)
    merged = [tensor.name for graph in model.graphs for tensor in _share_tensors(graph, kept)]
    return changed(model, SHARED_CONSTANTS, merged)


def _share_buffers(model: Model, most_bytes: int | None) -> None:
    """Point all tensors of equal bytes to one buffer, and drop the others, unless metadata needs them."""
    first: dict[Hashable, Buffer] = {}
    dropped = set()
    for tensor in (tensor for tensor in model.all_tensors if tensor.is_constant):
        if most_bytes is not None and tensor.nbytes > most_bytes:
            continue
        data = b"" if tensor.buffer.data is None else tensor.buffer.data.tobytes()
        kept = first.setdefault((data, _extras_key(tensor.buffer.extras)), tensor.buffer)
        if tensor.buffer is not kept:
            dropped.add(id(tensor.buffer))
            tensor.buffer = kept
    drop_buffers(model, dropped)


def _share_tensors(graph: Graph, kept_apart: set[int]) -> list[Tensor]:
    """Merge equal constants of one graph; those of its interface keep their names, and so stay."""
    first: dict[Hashable, Tensor] = {}
    merged = []
    for tensor in graph.tensors:
        if not tensor.is_constant or tensor.is_variable or tensor.producer is not None or id(tensor) in kept_apart:
            continue
        own = tensor.shape, tensor.dtype, id(tensor.buffer)
        kept = first.setdefault((*own, _quantization_key(tensor.quantization), _extras_key(tensor.extras)), tensor)
        if kept is not tensor:
            graph.replace_uses(tensor, kept)
            merged.append(tensor)
    graph.remove_tensors(merged)
    return merged


def _quantization_key(quantization: Quantization | None) -> Hashable:
    if quantization is None:
        return None
    values = quantization.scale.tobytes(), quantization.zero_point.tobytes()
    return *values, quantization.axis, _extras_key(quantization.extras)


def _extras_key(extras: Mapping[str, Any]) -> Hashable:
    return tuple(sorted((name, _key(value)) for name, value in extras.items() if value is not None))


def _key(value: Any) -> Hashable:
    """Equal for plain values that are equal; a table of the schema, such as of sparsity, is equal to itself only."""
    if isinstance(value, np.ndarray):
        return str(value.dtype), value.tobytes()
    return value if isinstance(value, (str, bytes, bool, int, float, frozenset)) else id(value)
