"""LiteRT and TensorFlow Lite, with the reference kernels unless asked otherwise.

The default delegate differs from them by a step.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from .adapter import OPTIMISED_KERNELS, REFERENCE, Outcome, RunJob

Array = npt.NDArray[Any]
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
    arrays: dict[str, Array] = {}
    for number, sample in enumerate(job.samples):
        outputs, shown = _in_turns(interpreter, sample, job)
        arrays |= {f"s{number}_o{position}": array for position, array in enumerate(outputs)}
        arrays |= {f"s{number}_t{index}": array for index, array in shown.items()}
    return Outcome(arrays)


def _in_turns(interpreter: Any, sample: Sequence[Array], job: RunJob) -> tuple[list[Array], dict[int, Array]]:
    """The last outputs, and the values of the wanted tensors in all turns."""
    inputs, outputs = interpreter.get_input_details(), interpreter.get_output_details()
    shown: dict[int, list[Array]] = {}
    given = list(sample)
    for _ in range(job.turns):
        for detail, array in zip(inputs, given, strict=True):
            interpreter.set_tensor(detail["index"], array)
        interpreter.invoke()
        given = [interpreter.get_tensor(detail["index"]) for detail in outputs]
        for index in job.tensors:
            # Resource handles and tensors that no operator wrote have no data to look at, and say so by ValueError.
            with contextlib.suppress(ValueError):
                value = interpreter.get_tensor(index)
                shown.setdefault(index, []).append(value)
    return given, {index: each[0] if job.turns == 1 else np.concatenate(each) for index, each in shown.items()}
