"""The test in a generated firmware: inputs that the firmware draws itself, and the outputs that TFLM gives for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..errors import ErrorKind, UsageError
from ..evidence.equivalence.adapter import Array, RunJob, Sample
from ..evidence.equivalence.baseline import arena_for
from ..evidence.equivalence.compare import FLOAT_SUMS
from ..evidence.equivalence.runner import Interpreters, ProcessLimits
from ..evidence.equivalence.sequences import zeros_of
from ..model.io import offline_plan
from ..model.io.reader import read_model
from ..model.io.writer import write_model
from ..model.ir.model import DType, Model, Tensor
from .cpp_text import literal

RUNS = 3
"""Inferences in sequence: the first one alone would not notice a lost state."""
_STATE, _FACTOR, _SUMMAND = 12345, 1664525, 1013904223
"""Of the linear congruential generator (Knuth, and Numerical Recipes, 7.1), as templates/self_test.h.jinja has it."""
_MOST_VALUES = 32
"""Of each float output that the firmware compares, evenly spaced."""
_KINDS: Mapping[DType, str] = {
    **dict.fromkeys((DType.INT8, DType.UINT8, DType.INT16), "kBytes"),
    DType.FLOAT32: "kFloats",
    DType.INT32: "kBits",
    DType.INT64: "kBits64",
}
"""Wide integers may be indices: 0 and 1 are in range almost everywhere. Inputs of other types are zeros."""


@dataclass(frozen=True)
class Expected:
    """The outputs that firmware must give: for every run one array per output.

    ``reference`` names the runtime that computed them. ``reason``: why there are none, otherwise None.
    """

    outputs: tuple[Sample, ...] = ()
    reference: str = "nobody"
    reason: str | None = "codegen ran without TFLM"


class Generator:
    """The values that firmware draws, in the same order."""

    def __init__(self) -> None:
        self._state = _STATE

    def fill(self, tensor: Tensor) -> Array:
        """Draw an input of the tensor's shape and type."""
        kind = kind_of(tensor)
        type_ = np.dtype(bool if tensor.dtype is DType.BOOL else tensor.dtype.label)
        count = tensor.elements
        if kind == "kZeros":
            return np.zeros(tensor.shape, type_)
        if kind == "kBytes":
            drawn = (self._next(count * type_.itemsize) >> np.uint32(24)).astype(np.uint8).view(type_)
        elif kind == "kFloats":
            drawn = ((self._next(count) >> np.uint32(8)).astype(np.int32) - (1 << 23)).astype(type_) / (1 << 23)
        else:
            drawn = (self._next(count) >> np.uint32(31)).astype(type_)
        filled: Array = drawn.astype(type_).reshape(tensor.shape)
        return filled

    def _next(self, count: int) -> Array:
        """Return the next ``count`` states: x[n] = a**n x[0] + c (a**(n-1) + ... + 1), modulo 2**32."""
        powers = np.multiply.accumulate(np.full(count, _FACTOR, np.uint32), dtype=np.uint32)
        sums = np.add.accumulate(np.concatenate([np.ones(1, np.uint32), powers[:-1]])[:count], dtype=np.uint32)
        states: Array = powers * np.uint32(self._state) + sums * np.uint32(_SUMMAND)
        if count:
            self._state = int(states[-1])
        return states


def drawn_inputs(inputs: Sequence[Tensor], tied: Sequence[int] = ()) -> list[Sample]:
    """Draw the inputs of all runs but those whose positions are ``tied``."""
    generator = Generator()
    return [[generator.fill(tensor) for at, tensor in enumerate(inputs) if at not in tied] for _ in range(RUNS)]


def expected_outputs(
    data: bytes, ties: tuple[tuple[int, int], ...] = (), original: tuple[str, bytes] | None = None
) -> Expected:
    """Run a model on TFLM, with no memory shared, over the inputs that firmware draws.

    ``ties``: (output, input) pairs by position: every run takes the output of the run before, the first one zeros.
    ``original``: name and
    bytes of the model to run in its place. Raises UsageError for an original with other inputs or outputs.
    """
    model = read_model(data)
    if original is not None:
        name, data = original
        _check_interface(model, read_model(data), name)
    samples = drawn_inputs(model.main.inputs, [at for _, at in ties])
    with Interpreters((), ProcessLimits()) as interpreters:
        runner = interpreters["tflm"]
        data, arena = _without_plan(data), arena_for(read_model(data))
        if not ties:
            run = runner.run(RunJob(data, samples, arena))
            rows = [[run.outputs[at][each] for at in sorted(run.outputs)] for each in range(RUNS)] if run.ran else []
        else:
            rows, states = [], {source: zeros_of(model.main.inputs[source]) for _, source in ties}
            for sample in samples:
                left = iter(sample)
                whole = [states[at] if at in states else next(left) for at in range(len(model.main.inputs))]
                run = runner.run(RunJob(data, [whole], arena))
                if not run.ran:
                    break
                rows.append([run.outputs[at][0] for at in sorted(run.outputs)])
                states = {source: rows[-1][output] for output, source in ties}
    if not run.ran:
        return Expected(reason=f"codegen could not run the model on TFLM ({run.reason})")
    of = "this model" if original is None else literal(original[0])
    return Expected(tuple(rows), f"{of} on TFLM's reference kernels", None)


def _without_plan(data: bytes) -> bytes:
    """Return the model with its offsets left to TFLM, which lets nothing share bytes that is alive at the same time."""
    model = read_model(data)
    if offline_plan.decode(model) is None:
        return data
    offline_plan.detach(model)
    return write_model(model)


def _check_interface(model: Model, original: Model, name: str) -> None:
    for side in ("inputs", "outputs"):
        ours, theirs = ([(t.dtype, t.shape) for t in getattr(each.main, side)] for each in (model, original))
        if ours != theirs:
            raise UsageError(
                f"--original '{name}' has other {side} than the model: omit it, or name the original",
                ErrorKind.INTERFACE,
            )


@dataclass(frozen=True)
class TestedOutput:
    """An output as the test has it: ``values`` are C++ numbers, digests of all runs, or of a float output some values.

    ``count``: how many of the latter there are in a run.
    """

    at: int
    name: str
    nbytes: int
    is_float: bool
    values: tuple[str, ...]
    tolerance: str
    count: int


def tested_outputs(outputs: Sequence[Tensor], expected: Expected) -> tuple[TestedOutput, ...]:
    """Return the outputs with what is expected of them."""
    count = max(1, min([_MOST_VALUES, *(t.elements for t in outputs if t.dtype is DType.FLOAT32)]))
    found = []
    for at, tensor in enumerate(outputs):
        wanted = [sample[at] for sample in expected.outputs]
        is_float, tolerance = tensor.dtype is DType.FLOAT32, 0.0
        if wanted and is_float:
            values = [_float(each.reshape(-1)[place * each.size // count]) for each in wanted for place in range(count)]
            tolerance = float(FLOAT_SUMS.limit(wanted).max())
        else:
            values = [f"{digest(each)}u" for each in wanted]
        found.append(TestedOutput(at, tensor.name, tensor.nbytes, is_float, tuple(values), _float(tolerance), count))
    return tuple(found)


def kind_of(tensor: Tensor) -> str:
    """Return how templates/self_test.h.jinja draws an input."""
    return _KINDS.get(tensor.dtype, "kZeros")


def _float(value: float) -> str:
    return f"{np.float32(value)!s}f" if np.isfinite(value) else "0.0f"


def digest(values: Array) -> int:
    """Compute FNV-1a (32 bits) of an array's bytes."""
    digest = 2166136261
    for byte in values.tobytes():
        digest = (digest ^ byte) * 16777619 & 0xFFFFFFFF
    return digest
