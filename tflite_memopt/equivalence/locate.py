"""When two models differ: which tensor differs first, in the order of execution."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy.typing as npt

from ..ir.dtype import DType
from ..ir.model import Model, Tensor
from .compare import EXACT, OPTIMISED, ORIGINAL, Tolerance, arrays_agree
from .inputs import Sample
from .runner import run_models

ReadModel = Callable[[bytes], Model]
WriteModel = Callable[[Model], bytes]
_OPAQUE = (DType.RESOURCE, DType.VARIANT, DType.STRING)


def first_differing_tensor(
    runtime: str,
    models: tuple[bytes, bytes],
    samples: list[Sample],
    arena_bytes: int,
    codec: tuple[ReadModel, WriteModel],
    tolerance: Tolerance = EXACT,
) -> str | None:
    """Name of the first tensor, in the optimised order, whose value after the last sample differs.

    ``models`` are (original, optimised); tensors are matched by name. LiteRT and TensorFlow keep all tensors
    for this; TFLM cannot under an offline plan, so there each prefix of the operators is run as a model of its
    own, with the plan in force. ``codec`` reads and writes models. None when no named tensor differs.
    """
    search = _by_prefixes if runtime == "tflm" else _by_trace
    return search(runtime, models, samples, arena_bytes, codec, tolerance)


def _by_trace(
    runtime: str,
    models: tuple[bytes, bytes],
    samples: list[Sample],
    arena_bytes: int,
    codec: tuple[ReadModel, WriteModel],
    tolerance: Tolerance,
) -> str | None:
    labels = (ORIGINAL, OPTIMISED)
    runs = run_models(runtime, dict(zip(labels, models, strict=True)), samples, arena_bytes, trace=True)
    graphs = [codec[0](data).main for data in models]
    values = [
        {tensor.name: runs[label].arrays.get(f"t{index}") for index, tensor in enumerate(graph.tensors)}
        for label, graph in zip(labels, graphs, strict=True)
    ]
    for operator in graphs[1].operators:
        for tensor in operator.outputs:
            before, after = values[0].get(tensor.name), values[1].get(tensor.name)
            if before is not None and after is not None and not arrays_agree(before, after, tolerance):
                return tensor.name
    return None


def _by_prefixes(
    runtime: str,
    models: tuple[bytes, bytes],
    samples: list[Sample],
    arena_bytes: int,
    codec: tuple[ReadModel, WriteModel],
    tolerance: Tolerance,
) -> str | None:
    read, write = codec
    last = f"s{len(samples) - 1}_o"
    names = [t.name for op in read(models[1]).main.operators for t in op.outputs if t.dtype not in _OPAQUE]
    for name in names:
        pair = [_prefix(read(data), name) for data in models]
        if pair[0] is None or pair[1] is None:
            continue
        written = {ORIGINAL: write(pair[0]), OPTIMISED: write(pair[1])}
        runs = run_models(runtime, written, samples, arena_bytes)
        before, after = (_final(runs[label].arrays, last) for label in (ORIGINAL, OPTIMISED))
        if before is not None and (after is None or not arrays_agree(before, after, tolerance)):
            return name
    return None


def _final(arrays: Mapping[str, npt.NDArray[Any]], last: str) -> npt.NDArray[Any] | None:
    return arrays.get(f"{last}0")


def _prefix(model: Model, name: str) -> Model | None:
    """The model up to the operator that writes tensor ``name``, with that tensor as its only output.

    All tensors stay, so that an offline plan still fits.
    """
    graph = model.main
    target = _named(graph.tensors, name)
    if target is None or target.producer is None:
        return None
    position = list(graph.operators).index(target.producer)
    for operator in list(graph.operators)[position + 1 :]:
        graph.remove_operator(operator)
    graph.outputs = (target,)
    model.signatures = None
    return model


def _named(tensors: list[Tensor], name: str) -> Tensor | None:
    return next((tensor for tensor in tensors if tensor.name == name), None)
