"""What is wrong with an original model itself, in words for its owner."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..ir.check import describe
from ..ir.model import Model
from .gap import signal_to_noise
from .shapes import InferredModel
from .trace import Trace

_LEAST_DECIBELS = 20.0
"""Between LiteRT and TFLM: rounding alone leaves more than this."""


def findings_in(shaped: InferredModel, traces: Mapping[str, Trace | None], is_sound: bool) -> tuple[str, ...]:
    """By runtime, the trace of the original, or None. ``is_sound``: TFLM gave the same bits twice."""
    other = next((traces[name] for name in ("litert", "tensorflow") if traces.get(name) is not None), None)
    return tuple(_findings(shaped, other, traces.get("tflm"), is_sound))


def _findings(shaped: InferredModel, litert: Trace | None, tflm: Trace | None, is_sound: bool) -> Iterator[str]:
    if shaped.wrong:
        first = shaped.wrong[0]
        yield (
            f"TFLM itself computes this model wrongly, from {first.where} on: the file says shape {list(first.said)}, "
            f"its operands make {list(first.inferred)}; LiteRT works that out, TFLM believes the file. The result has "
            "the right shapes; figures of the original are those of the file with the right shapes"
        )
    if not is_sound:
        yield (
            "TFLM itself does not give the same outputs twice for this model, with the samples in another order and "
            "its arena filled with another pattern: an operator reads memory that nobody wrote"
        )
    elif litert is not None and tflm is not None:
        yield from _far_apart(shaped.model, litert, tflm)


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
