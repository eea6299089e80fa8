"""LiteRT and TensorFlow Lite, with the reference kernels unless asked otherwise.

The default delegate differs from them by a step.
"""

from __future__ import annotations

import contextlib
import warnings
from typing import Any

from .adapter import OPTIMISED_KERNELS, REFERENCE, Outcome, RunJob

_RESOLVERS = {REFERENCE: "BUILTIN_REF", OPTIMISED_KERNELS: "BUILTIN_WITHOUT_DEFAULT_DELEGATES"}


def run_litert(job: RunJob) -> Outcome:
    """Run on ai-edge-litert."""
    from ai_edge_litert import interpreter

    return _run(interpreter.Interpreter, interpreter.OpResolverType, job)


def run_tensorflow(job: RunJob) -> Outcome:
    """Run on tf.lite of an installed TensorFlow."""
    import tensorflow as tf

    return _run(tf.lite.Interpreter, tf.lite.experimental.OpResolverType, job)


def _run(interpreter_class: Any, resolvers: Any, job: RunJob) -> Outcome:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # both announce their own deprecation at construction
        interpreter = interpreter_class(
            model_content=job.model,
            num_threads=1,
            experimental_op_resolver_type=getattr(resolvers, _RESOLVERS[job.kernels]),
            experimental_preserve_all_tensors=bool(job.tensors),
        )
    interpreter.allocate_tensors()
    inputs, outputs = interpreter.get_input_details(), interpreter.get_output_details()
    arrays = {}
    for number, sample in enumerate(job.samples):
        for detail, array in zip(inputs, sample, strict=True):
            interpreter.set_tensor(detail["index"], array)
        interpreter.invoke()
        for position, detail in enumerate(outputs):
            arrays[f"s{number}_o{position}"] = interpreter.get_tensor(detail["index"])
        for index in job.tensors:
            # Resource handles and tensors that no operator wrote have no data to look at, and say so by ValueError.
            with contextlib.suppress(ValueError):
                arrays[f"s{number}_t{index}"] = interpreter.get_tensor(index)
    return Outcome(arrays)
