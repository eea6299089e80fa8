"""What is wrong with an original model itself, in words for its owner."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..ir.check import describe
from ..ir.model import Model
from .gap import signal_to_noise
from .trace import Trace

_LEAST_DECIBELS = 20.0
"""Between LiteRT and TFLM: rounding alone leaves more than this."""


def findings_in(model: Model, traces: Mapping[str, Trace | None], is_sound: bool) -> tuple[str, ...]:
    """By runtime, the trace of the original, or None. ``is_sound``: TFLM gave the same bits twice."""
    other = next((traces[name] for name in ("litert", "tensorflow") if traces.get(name) is not None), None)
    return tuple(_findings(model, other, traces.get("tflm"), is_sound))


def _findings(model: Model, litert: Trace | None, tflm: Trace | None, is_sound: bool) -> Iterator[str]:
    shape = None if litert is None else _wrong_shape(model, litert)
    if shape is not None:
        where, said, inferred = shape
        yield (
            f"TFLM itself computes this model wrongly, from {where} on: the file says shape {said}, its operands make "
            f"{inferred}; LiteRT works that out, TFLM believes the file. Convert it again with a fixed batch size"
        )
    if not is_sound:
        yield (
            "TFLM itself does not give the same outputs twice for this model, with the samples in another order and "
            "its arena filled with another pattern: an operator reads memory that nobody wrote"
        )
    elif shape is None and litert is not None and tflm is not None:
        yield from _far_apart(model, litert, tflm)


def _wrong_shape(model: Model, trace: Trace) -> tuple[str, list[int], list[int]] | None:
    """The first operator with an output whose shape in the file is not what LiteRT infers."""
    positions = {id(tensor): index for index, tensor in enumerate(model.main.tensors)}
    for step, operator in enumerate(model.main.operators):
        for tensor in operator.outputs:
            values = trace.tensors.get(positions[id(tensor)])
            if values and values[0].shape != tensor.shape and values[0].size != 1:
                return describe(0, step, operator), list(tensor.shape), list(values[0].shape)
    return None


def _far_apart(model: Model, litert: Trace, tflm: Trace) -> Iterator[str]:
    positions = {id(tensor): index for index, tensor in enumerate(model.main.tensors)}
    for step, operator in enumerate(model.main.operators):
        for tensor in operator.outputs:
            at = positions[id(tensor)]
            a, b = litert.tensors.get(at), tflm.tensors.get(at)
            if a is None or b is None or a[0].shape != b[0].shape:
                continue
            if signal_to_noise({0: a}, {0: b}) < _LEAST_DECIBELS:
                yield (
                    f"TFLM's values are far from LiteRT's, from {describe(0, step, operator)} on: below "
                    f"{_LEAST_DECIBELS:g} dB of signal to noise. One of the two computes this model wrongly"
                )
                return
