r"""Equal constants become one. Exactness: exact.

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
from typing import Any

import numpy as np

from .dead_tensors import tensors_to_keep
from .model import Buffer, Graph, Model, Quantization, Tensor


def share_constants(model: Model, most_bytes: int | None = None) -> tuple[Tensor, ...]:
    """Merge equal constants of at most ``most_bytes`` each, if given; returns the tensors that are no longer there."""
    _share_buffers(model, most_bytes)
    kept = tensors_to_keep(model)
    return tuple(tensor for graph in model.graphs for tensor in _share_tensors(graph, kept))


def _share_buffers(model: Model, most_bytes: int | None) -> None:
    """Point all tensors of equal bytes to one buffer, and drop the others, unless metadata needs them."""
    first: dict[Hashable, Buffer] = {}
    dropped = set()
    for tensor in (tensor for graph in model.graphs for tensor in graph.tensors if tensor.is_constant):
        if most_bytes is not None and tensor.nbytes > most_bytes:
            continue
        kept = first.setdefault(_buffer_key(tensor.buffer), tensor.buffer)
        if tensor.buffer is not kept:
            dropped.add(id(tensor.buffer))
            tensor.buffer = kept
    dropped -= {id(buffer) for _, buffer in model.metadata} | {id(buffer) for buffer in model.legacy_metadata or ()}
    model.buffers = [buffer for buffer in model.buffers if id(buffer) not in dropped]


def _share_tensors(graph: Graph, kept_apart: set[int]) -> list[Tensor]:
    """Merge equal constants of one graph; those of its interface keep their names, and so stay."""
    first: dict[Hashable, Tensor] = {}
    merged = []
    for tensor in graph.tensors:
        if not tensor.is_constant or tensor.is_variable or tensor.producer is not None or id(tensor) in kept_apart:
            continue
        kept = first.setdefault(_tensor_key(tensor), tensor)
        if kept is not tensor:
            graph.replace_uses(tensor, kept)
            merged.append(tensor)
    graph.remove_tensors(merged)
    return merged


def _buffer_key(buffer: Buffer) -> Hashable:
    data = b"" if buffer.data is None else buffer.data.tobytes()
    return data, _extras_key(buffer.extras)


def _tensor_key(tensor: Tensor) -> Hashable:
    quantization = _quantization_key(tensor.quantization)
    return tensor.shape, tensor.dtype, id(tensor.buffer), quantization, _extras_key(tensor.extras)


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
