"""LiteRT and TensorFlow Lite, both with the reference kernels: the default delegate differs by an LSB."""

from __future__ import annotations

import contextlib
import warnings
from typing import Any

from .adapter import Job, Outcome


def run_litert(job: Job) -> Outcome:
    """Run on ai-edge-litert."""
    from ai_edge_litert import interpreter

    return _run(interpreter.Interpreter, interpreter.OpResolverType.BUILTIN_REF, job)


def run_tensorflow(job: Job) -> Outcome:
    """Run on tf.lite of an installed TensorFlow."""
    import tensorflow as tf

    return _run(tf.lite.Interpreter, tf.lite.experimental.OpResolverType.BUILTIN_REF, job)


def _run(interpreter_class: Any, resolver: Any, job: Job) -> Outcome:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # both announce their own deprecation at construction
        interpreter = interpreter_class(
            model_content=job.model,
            num_threads=1,
            experimental_op_resolver_type=resolver,
            experimental_preserve_all_tensors=job.trace,
        )
    interpreter.allocate_tensors()
    inputs, outputs = interpreter.get_input_details(), interpreter.get_output_details()
    arrays = {}
    for number, sample in enumerate(job.samples):
        for detail, array in zip(inputs, sample, strict=True):
            interpreter.set_tensor(detail["index"], array)
        interpreter.invoke()
        if not job.trace:
            for position, detail in enumerate(outputs):
                arrays[f"s{number}_o{position}"] = interpreter.get_tensor(detail["index"])
    return Outcome(_all_tensors(interpreter) if job.trace else arrays)


def _all_tensors(interpreter: Any) -> dict[str, Any]:
    arrays = {}
    for detail in interpreter.get_tensor_details():
        # Temporaries and resource handles have no data to look at, and say so by ValueError.
        with contextlib.suppress(ValueError):
            arrays[f"t{detail['index']}"] = interpreter.get_tensor(detail["index"])
    return arrays
