"""Inputs for a comparison: seeded random ones, or the user's .npz."""

from __future__ import annotations

import zipfile
from os import PathLike
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..errors import UsageError
from ..ir.dtype import DType
from ..ir.model import Model, Tensor, Use

Array = npt.NDArray[Any]
Sample = list[Array]
"""One array per graph input, in the graph's order, each of the input's shape and type."""


class _Indexing(NamedTuple):
    """Which slot takes indices, and which slot they index."""

    index_slot: int
    table_slot: int


_INDEX_SLOTS = {"GATHER": _Indexing(1, 0), "EMBEDDING_LOOKUP": _Indexing(0, 1)}
_NUMPY_TYPES = {DType.BFLOAT16: np.uint16, DType.RESOURCE: np.int32}


def numpy_type(dtype: DType) -> np.dtype[Any]:
    """The numpy type that interpreters exchange tensors of this type in."""
    return np.dtype(_NUMPY_TYPES[dtype]) if dtype in _NUMPY_TYPES else np.dtype(dtype.label)


def seeded_inputs(model: Model, samples: int, seed: int) -> list[Sample]:
    """``samples`` random samples, the same for the same seed.

    Integers cover their whole range, except indices, which stay within what they index. Floats that are
    quantised at once cover that range and a little more, so that every int8 value occurs; others are in [-1, 1).
    """
    rng = np.random.default_rng(seed)
    return [[_random(tensor, rng) for tensor in model.main.inputs] for _ in range(samples)]


def inputs_from_npz(path: str | PathLike[str], model: Model) -> list[Sample]:
    """Samples from an .npz: one array per input name, of the input's shape or with a leading sample axis.

    Raises UsageError when the file, a name, a type or a shape does not fit.
    """
    try:
        with np.load(path, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except (OSError, ValueError, AttributeError, zipfile.BadZipFile) as error:
        raise UsageError(f"cannot read inputs '{path}': {error}") from error
    columns = [_column(arrays, tensor, path) for tensor in model.main.inputs]
    counts = {len(column) for column in columns}
    if len(counts) > 1:
        raise UsageError(f"inputs '{path}': the arrays have different numbers of samples: {sorted(counts)}")
    return [list(row) for row in zip(*columns, strict=True)]


def _column(arrays: dict[str, Array], tensor: Tensor, path: str | PathLike[str]) -> list[Array]:
    if tensor.name not in arrays:
        raise UsageError(f"inputs '{path}': no array named '{tensor.name}'; it has {sorted(arrays)}")
    array, wanted = arrays[tensor.name], numpy_type(tensor.dtype)
    if array.dtype != wanted:
        raise UsageError(f"inputs '{path}': '{tensor.name}' is {array.dtype}, the model takes {wanted}")
    if array.shape == tensor.shape:
        return [array]
    if array.shape[1:] == tensor.shape and len(array):
        return list(array)
    raise UsageError(
        f"inputs '{path}': '{tensor.name}' has shape {list(array.shape)}, the model takes {list(tensor.shape)} "
        "(or samples of it along a first axis)"
    )


def _random(tensor: Tensor, rng: np.random.Generator) -> Array:
    wanted = numpy_type(tensor.dtype)
    if wanted.kind == "b":
        return rng.integers(0, 2, tensor.shape).astype(wanted)
    if wanted.kind in "iu":
        low, high = _integer_range(tensor, wanted)
        return rng.integers(low, high, tensor.shape, dtype=wanted, endpoint=True)
    low_real, high_real = _float_range(tensor)
    values = rng.uniform(low_real, high_real, tensor.shape)
    return values.astype(wanted)


def _integer_range(tensor: Tensor, wanted: np.dtype[Any]) -> tuple[int, int]:
    """Lowest and highest value, both included."""
    sizes = [size for use in tensor.uses if (size := _indexed_size(use)) is not None]
    if sizes:
        return 0, min(sizes) - 1
    info = np.iinfo(wanted)
    return int(info.min), int(info.max)


def _indexed_size(use: Use) -> int | None:
    """How many entries an index in this slot chooses from; None when the slot takes no index."""
    rule = _INDEX_SLOTS.get(use.operator.name)
    if rule is None or use.slot != rule.index_slot:
        return None
    indexed = use.operator.inputs[rule.table_slot]
    axis = int(use.operator.option("axis", 0))
    return indexed.shape[axis] if indexed is not None and indexed.shape else 1


def _float_range(tensor: Tensor) -> tuple[float, float]:
    for use in tensor.uses:
        output = use.operator.outputs[0] if use.operator.name == "QUANTIZE" else None
        if output is not None and output.quantization is not None and output.quantization.scale.size:
            scale, zero = float(output.quantization.scale[0]), int(output.quantization.zero_point[0])
            info = np.iinfo(numpy_type(output.dtype))
            return (int(info.min) - 2 - zero) * scale, (int(info.max) + 2 - zero) * scale
    return -1.0, 1.0
