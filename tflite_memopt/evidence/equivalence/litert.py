"""LiteRT, with its reference kernels, or with its optimized ones as it runs by default, but for the delegate (XNNPACK).

The reference kernels add in one order, whatever the shape of a tensor, so that a stripe has the same bits as those rows
of the whole. The optimized ones add floats in another order where an output has one pixel, a batch of one row, or few
channels: sums of some hundred terms around 1 are off by 2e-5 (measured on CONV_2D and FULLY_CONNECTED, ai-edge-litert
2.3.0 on x86-64; DEPTHWISE_CONV_2D has one order). Their sums of integers have the same bits in any shape, but for MEAN
over rows and columns that it keeps: of four dimensions it rounds it otherwise, by a step. The two differ by a step in
many kinds, and the reference kernel of SUM is wrong for int8 and int16, by up to the whole range.
:func:`.baseline.run_on_litert` chooses.
"""

from __future__ import annotations

import contextlib
import warnings
from typing import Any

from .adapter import OPTIMIZED_KERNELS, REFERENCE, Array, ModelRun, RunJob, by_position

_RESOLVERS = {REFERENCE: "BUILTIN_REF", OPTIMIZED_KERNELS: "BUILTIN_WITHOUT_DEFAULT_DELEGATES"}


def run_litert(job: RunJob) -> ModelRun:
    """Run on ai-edge-litert."""
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it announces its own deprecation at construction
        interpreter = Interpreter(
            model_content=job.model,
            num_threads=1,
            experimental_op_resolver_type=getattr(OpResolverType, _RESOLVERS[job.kernels]),
            experimental_preserve_all_tensors=bool(job.tensors),
        )
    interpreter.allocate_tensors()
    inputs = [detail["index"] for detail in interpreter.get_input_details()]
    outputs = [detail["index"] for detail in interpreter.get_output_details()]
    given, shown = [], []
    for number, sample in enumerate(job.samples):
        placed = job.placed(sample, len(inputs))
        carried = {at: interpreter.get_tensor(outputs[output]) for output, at in job.carried if at not in placed}
        for at, array in (placed | carried).items():
            interpreter.set_tensor(inputs[at], array)
        interpreter.invoke()
        if not job.gives_back(number):
            continue
        given.append(_plain({at: interpreter.get_tensor(index) for at, index in enumerate(outputs)}))
        shown.append(_plain(_shown(interpreter, job.tensors)))
    return ModelRun(by_position(given), by_position(shown))


def _shown(interpreter: Any, wanted: tuple[int, ...]) -> dict[int, Array]:
    found = {}
    for index in wanted:
        # Resource handles and tensors that no operator wrote have no data to look at, and say so by ValueError.
        with contextlib.suppress(ValueError):
            found[index] = interpreter.get_tensor(index)
    return found


def _plain(arrays: dict[int, Array]) -> dict[int, Array]:
    """Without strings and the like, which are no plain memory."""
    return {at: array for at, array in arrays.items() if array.dtype.kind != "O"}
