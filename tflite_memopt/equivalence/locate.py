"""When two models differ: which tensor differs first, in the order of execution."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..ir.dtype import DType
from ..ir.model import Model, Tensor
from .compare import OPTIMISED, ORIGINAL
from .inputs import Sample
from .runner import Run, run_models
from .tolerance import EXACT, Array, Tolerance, arrays_agree

ReadModel = Callable[[bytes], Model]
WriteModel = Callable[[Model], bytes]
_OPAQUE = (DType.RESOURCE, DType.VARIANT, DType.STRING)


@dataclass(frozen=True)
class Suspects:
    """Two models that differ on a runtime after the last of ``samples``: ``models`` are (original, optimised).

    ``samples`` are the same inputs for each of them. ``codec`` reads and writes models.
    """

    runtime: str
    models: tuple[bytes, bytes]
    samples: tuple[list[Sample], list[Sample]]
    arena_bytes: int
    codec: tuple[ReadModel, WriteModel]
    tolerance: Tolerance = EXACT


def first_differing_tensor(suspects: Suspects) -> str | None:
    """Name of the first tensor, in the optimised order, whose value after the last sample differs.

    Tensors are matched by name and type; None when no such tensor differs. LiteRT and TensorFlow keep all tensors for
    this; TFLM cannot under an offline plan, so there each prefix of the operators is run as a model of its
    own, with the plan in force.
    """
    return _by_prefixes(suspects) if suspects.runtime == "tflm" else _by_trace(suspects)


def _by_trace(suspects: Suspects) -> str | None:
    labelled = dict(zip((ORIGINAL, OPTIMISED), suspects.models, strict=True))
    runs = _run(suspects, labelled, trace=True)
    graphs = {label: suspects.codec[0](data).main for label, data in labelled.items()}
    values = {
        label: {tensor.name: runs[label].arrays.get(f"t{index}") for index, tensor in enumerate(graph.tensors)}
        for label, graph in graphs.items()
    }
    for operator in graphs[OPTIMISED].operators:
        for tensor in operator.outputs:
            before, after = values[ORIGINAL].get(tensor.name), values[OPTIMISED].get(tensor.name)
            if after is not None and _differ(before, after, suspects.tolerance):
                return tensor.name
    return None


def _by_prefixes(suspects: Suspects) -> str | None:
    read, write = suspects.codec
    last = f"s{len(suspects.samples[0]) - 1}_o0"
    operators = read(suspects.models[1]).main.operators
    for name in [tensor.name for op in operators for tensor in op.outputs if tensor.dtype not in _OPAQUE]:
        original, optimised = (_prefix(read(data), name) for data in suspects.models)
        if original is None or optimised is None:
            continue
        written = {ORIGINAL: write(original), OPTIMISED: write(optimised)}
        runs = _run(suspects, written)
        if _differ(runs[ORIGINAL].arrays.get(last), runs[OPTIMISED].arrays.get(last), suspects.tolerance):
            return name
    return None


def _run(suspects: Suspects, models: dict[str, bytes], trace: bool = False) -> dict[str, Run]:
    samples = dict(zip((ORIGINAL, OPTIMISED), suspects.samples, strict=True))
    return run_models(suspects.runtime, models, samples, suspects.arena_bytes, trace)


def _differ(before: Array | None, after: Array | None, tolerance: Tolerance) -> bool:
    """Whether the original has a value and the optimised model has none or another one of the same type."""
    if before is None or after is None:
        return before is not None
    return before.dtype == after.dtype and not arrays_agree(before, after, tolerance)


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
