"""Inputs for a comparison: seeded random ones, or the user's .npz."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import ErrorKind, UsageError
from ...model.analysis.macs import model_macs
from ...model.ir.model import DType, Model, Tensor, Use
from ...model.ir.tensors import affine_of, integers
from ...options import Options
from .adapter import Array, Sample

LEVELS = 1 << 16
"""Steps from the lowest to the highest value of an input: enough for every int16."""
Integers = npt.NDArray[np.int64]
_WORD_BITS = 32
_WEAKEST = 8
"""Bits by which a sample may be weaker than the range of its input."""
_NOT_EXCHANGED = (DType.RESOURCE, DType.VARIANT, DType.STRING, DType.INT4, DType.UINT4, DType.INT2)
_INDEX_SLOTS = {"GATHER": (1, 0), "EMBEDDING_LOOKUP": (0, 1)}
"""The slot that takes indices, and the one that they index."""
_SHIFTS = ("ADD", "MAXIMUM", "MINIMUM", "SUB")
_CARRIES: Mapping[str, tuple[int, ...]] = {
    **dict.fromkeys(_SHIFTS, (0, 1)),
    **dict.fromkeys(("CAST", "EXPAND_DIMS", "GATHER", "RESHAPE", "SLICE", "SQUEEZE"), (0,)),
    **dict.fromkeys(("STRIDED_SLICE", "TRANSPOSE", "UNPACK"), (0,)),
    **dict.fromkeys(("CONCATENATION", "PACK"), tuple(range(10))),
    **dict.fromkeys(("SELECT", "SELECT_V2"), (1, 2)),
    **dict.fromkeys(("SPLIT",), (1,)),
}
"""By kind, the inputs whose elements its output has, as they are or moved by a constant."""
_MOST_STEPS = 20
"""Operators between an input and the table that it is an index of."""
_NUMPY_TYPES = {DType.BFLOAT16: np.uint16, DType.RESOURCE: np.int32, DType.INT4: np.int8, DType.UINT4: np.uint8}
_PACKED_LIMITS = {DType.INT4: (-8, 7), DType.UINT4: (0, 15), DType.INT2: (-2, 1)}
_LARGEST_INTEGER = 1 << 30
"""In magnitude, of wide integers that are not quantized: a sum of two still fits an int32."""


class Stream:
    """One stream of random integers for each key.

    numpy keeps the raw words of PCG64 and the mixing of seeds as they are for good, but not what its distributions make
    of them (numpy NEP 19); so only raw words are taken, and integers made of them here.
    """

    def __init__(self, *key: int) -> None:
        self._words = np.random.PCG64(np.random.SeedSequence(list(key)))

    def integers(self, low: int, high: int, shape: Sequence[int] = ()) -> Integers:
        """Uniform integers, both ends included; at most 2**32 of them to choose from."""
        count = int(np.prod(shape, dtype=np.int64))
        words = np.asarray(self._words.random_raw(count), np.uint64) >> np.uint64(64 - _WORD_BITS)
        scaled = (words * np.uint64(high - low + 1)) >> np.uint64(_WORD_BITS)
        found: npt.NDArray[Any] = scaled.astype(np.int64) + low
        return found.reshape(tuple(shape))


def seeded_inputs(model: Model, samples: int, seed: int) -> list[Sample]:
    """``samples`` samples, the first ones of an endless sequence, the same for the same seed on every machine.

    In turn uniform noise over the range of each input, weaker noise around zero, and zero: some models mask it.
    """
    ranges = [range_of(tensor) for tensor in model.main.inputs]
    return [
        [_drawn(tensor, ranges[at], number, Stream(seed, at, number)) for at, tensor in enumerate(model.main.inputs)]
        for number in range(samples)
    ]


LEAST_SAMPLES, MOST_SAMPLES = 10, 30
_PRODUCTS = 300_000_000
"""In all samples of one model on one runtime: about a tenth of a run at normal effort, which is 20 to 40 s of a core
that does 100 million products per second in reference kernels."""


def samples_for(model: Model, options: Options) -> list[Sample]:
    """Return the samples of a verification: the user's, as many as the user says, or more where they cost little.

    Raises UsageError for inputs that do not fit.
    """
    if options.inputs is not None:
        return inputs_from_npz(options.inputs, model)
    count = min(MOST_SAMPLES, max(LEAST_SAMPLES, _PRODUCTS // max(1, model_macs(model))))
    return verification_inputs(model, count if options.samples is None else options.samples, options.seed)


def verification_inputs(model: Model, samples: int, seed: int) -> list[Sample]:
    """Extremes first, all inputs of a sample alike: minimum, maximum, zero, and a ramp; then :func:`seeded_inputs`.

    Of fewer than :data:`LEAST_SAMPLES` all are random.
    """
    columns = [_extremes(tensor) for tensor in model.main.inputs]
    ends = [list(row) for row in zip(*columns, strict=True)] if samples >= LEAST_SAMPLES else []
    return [*ends, *seeded_inputs(model, samples - len(ends), seed)]


def _extremes(tensor: Tensor) -> list[Array]:
    """Return the lowest value everywhere, the highest, zero, and a ramp from the lowest to the highest."""
    found, steps = range_of(tensor), np.arange(tensor.elements, dtype=np.int64)
    ramp = (steps * (LEVELS - 1) // max(1, tensor.elements - 1)).reshape(tensor.shape)
    flat = (np.full(tensor.shape, level, np.int64) for level in (0, LEVELS - 1, found.zero_level))
    return [found.values(levels, tensor.dtype) for levels in (*flat, ramp)]


def _drawn(tensor: Tensor, found: InputRange, number: int, stream: Stream) -> Array:
    levels = stream.integers(0, LEVELS - 1, tensor.shape)
    if number % 3 == 1:
        weaker = (levels - LEVELS // 2) >> int(stream.integers(1, _WEAKEST))
        levels = (found.zero_level + weaker).clip(0, LEVELS - 1)
    elif number % 3 == 2:
        levels = np.full(tensor.shape, found.zero_level, np.int64)
    return found.values(levels, tensor.dtype)


def inputs_from_npz(path: str | PathLike[str], model: Model) -> list[Sample]:
    """Samples from an .npz: one array per input name, of the input's shape or with a leading sample axis.

    Raises UsageError when the file, a name, a type or a shape does not fit, and when there is nothing to give.
    """
    if not model.main.inputs:
        raise _unfit(path, "the model has no inputs; omit --inputs")
    try:
        with np.load(path, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except (OSError, ValueError, AttributeError, zipfile.BadZipFile) as error:
        raise UsageError(f"cannot read inputs '{path}': {error}", ErrorKind.SAMPLES) from error
    columns = [_column(arrays, tensor, path) for tensor in model.main.inputs]
    counts = {len(column) for column in columns}
    if len(counts) > 1:
        raise _unfit(path, f"the arrays have different numbers of samples: {sorted(counts)}")
    return [list(row) for row in zip(*columns, strict=True)]


def _unfit(path: str | PathLike[str], said: str) -> UsageError:
    return UsageError(f"inputs '{path}': {said}", ErrorKind.SAMPLES)


def _column(arrays: dict[str, Array], tensor: Tensor, path: str | PathLike[str]) -> list[Array]:
    if tensor.name not in arrays:
        raise _unfit(path, f"no array named '{tensor.name}'; it has {sorted(arrays)}")
    array, wanted = arrays[tensor.name], numpy_type(tensor.dtype)
    if array.dtype != wanted:
        raise _unfit(path, f"'{tensor.name}' is {array.dtype}, the model takes {wanted}")
    if array.shape == tensor.shape:
        return [array]
    if array.shape[1:] == tensor.shape:
        if not len(array):
            raise _unfit(path, f"'{tensor.name}' holds no sample at all: nothing would be verified")
        return list(array)
    raise _unfit(
        path,
        f"'{tensor.name}' has shape {list(array.shape)}, the model takes {list(tensor.shape)} "
        "(or samples of it along a first axis)",
    )


def is_exchanged(dtype: DType) -> bool:
    """Return whether interpreters exchange values of this type as plain numbers."""
    return dtype not in _NOT_EXCHANGED and dtype.arena_bytes > 0


def numpy_type(dtype: DType) -> np.dtype[Any]:
    """The numpy type that interpreters exchange tensors of this type in."""
    return np.dtype(_NUMPY_TYPES[dtype]) if dtype in _NUMPY_TYPES else np.dtype(dtype.label)


@dataclass(frozen=True)
class InputRange:
    """Lowest and highest value, both included, and the value that stands for zero."""

    low: float
    high: float
    zero: float

    @property
    def zero_level(self) -> int:
        """The level of the value that stands for zero."""
        if self.high <= self.low:
            return 0
        return round((self.zero - self.low) / (self.high - self.low) * (LEVELS - 1))

    def values(self, levels: npt.NDArray[np.int64], dtype: DType) -> npt.NDArray[Any]:
        """The values of levels from 0 to ``LEVELS - 1``, in the type of the input."""
        wanted = numpy_type(dtype)
        if wanted.kind in "iub":
            low, high = int(self.low), int(self.high)
            return (low + (levels * (high - low) + LEVELS // 2 - 1) // (LEVELS - 1)).astype(wanted)
        # One division, one product and one sum in float64: each rounded once, the same everywhere.
        share = levels.astype(np.float64) / (LEVELS - 1)
        return (share * (self.high - self.low) + self.low).astype(wanted)


def range_of(tensor: Tensor) -> InputRange:
    """The range of an input: indices stay within what they index, and floats that are quantized at once within that."""
    wanted = numpy_type(tensor.dtype)
    if wanted.kind == "b":
        return InputRange(0, 1, 0)
    limits = _taken(tensor, 0)
    if limits is not None:
        low, high = limits
        return InputRange(low, high, min(max(0, low), high))
    return _integer_range(tensor, wanted) if wanted.kind in "iu" else _float_range(tensor)


def _integer_range(tensor: Tensor, wanted: np.dtype[Any]) -> InputRange:
    info = np.iinfo(wanted)
    low, high = _PACKED_LIMITS.get(tensor.dtype, (int(info.min), int(info.max)))
    low, high = max(low, -_LARGEST_INTEGER), min(high, _LARGEST_INTEGER)
    quantized = affine_of(tensor)
    zero = 0 if quantized is None else quantized.zero_point
    return InputRange(low, high, min(max(zero, low), high))


Limits = tuple[int, int]
"""The lowest and the highest value that is taken."""


def _taken(tensor: Tensor, depth: int) -> Limits | None:
    """The values from which an index into a table is made: those that all readers take; None where no index is.

    Where none suits all, those of most from 0 on: of Keras 3's Embedding, which adds the size of its table to negative
    positions, the others.
    """
    if depth > _MOST_STEPS:
        return None
    found = [limits for use in tensor.uses if (limits := _taken_by(use, depth)) is not None]
    if not found:
        return None
    low, high = max(limits[0] for limits in found), min(limits[1] for limits in found)
    return (low, high) if low <= high else max(found)


def _taken_by(use: Use, depth: int) -> Limits | None:
    """The values in an input slot from which an operator, and those that read it, make an index that its table has."""
    operator, name = use.operator, use.operator.name
    size = _indexed_size(use)
    if size is not None:
        return 0, max(0, size - 1)
    if name not in _CARRIES or use.slot not in _CARRIES[name] or not operator.outputs:
        return None
    limits = _taken(operator.outputs[0], depth + 1)
    if limits is None or name not in _SHIFTS:
        return limits
    other = integers(next((each for each in operator.present_inputs() if each is not operator.inputs[use.slot]), None))
    # What is computed, such as a distance for negative positions alone, is taken to change nothing.
    return limits if other is None or other.size != 1 else _before(name, use.slot, limits, int(other[0]))


def _before(name: str, slot: int, limits: Limits, by: int) -> Limits | None:
    """The values of one operand from which an operator with the constant ``by`` makes those within limits."""
    low, high = limits
    if name == "ADD":
        return low - by, high - by
    if name == "SUB":
        return (low + by, high + by) if slot == 0 else (by - high, by - low)
    if name == "MAXIMUM":
        return (-_LARGEST_INTEGER if low <= by <= high else low), high
    return low, (_LARGEST_INTEGER if low <= by <= high else high)


def _indexed_size(use: Use) -> int | None:
    """Return the number of entries that an index in this slot chooses from; None when the slot takes no index."""
    index_slot, table_slot = _INDEX_SLOTS.get(use.operator.name, (None, 0))
    if use.slot != index_slot:
        return None
    indexed = use.operator.inputs[table_slot]
    axis = int(use.operator.option("axis", 0))
    return indexed.shape[axis] if indexed is not None and indexed.shape else 1


def _float_range(tensor: Tensor) -> InputRange:
    for use in tensor.uses:
        output = use.operator.outputs[0] if use.operator.name == "QUANTIZE" else None
        quantized = None if output is None else affine_of(output)
        if output is not None and quantized is not None:
            info = np.iinfo(numpy_type(output.dtype))
            scale, zero = quantized.scale, quantized.zero_point
            # Two steps beyond either end, so that clamping is seen too.
            return InputRange((int(info.min) - 2 - zero) * scale, (int(info.max) + 2 - zero) * scale, 0.0)
    return InputRange(-1.0, 1.0, 0.0)
