"""Inputs for a comparison: seeded ones that excite a model, or the user's .npz."""

from __future__ import annotations

import zipfile
from os import PathLike
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import UsageError
from ..ir.dtype import DType
from ..ir.model import Graph, Model, Tensor
from .families import FAMILIES
from .ranges import LEVELS, InputRange, numpy_type, range_of
from .stream import Integers, Stream

Array = npt.NDArray[Any]
Sample = list[Array]
"""One array per graph input, in the graph's order, each of the input's shape and type."""
_GLIDE = 4
"""Invocations of a model with state from one input to the next one."""
_MOST_SCALED_BITS = 6
_NOT_EXCHANGED = (DType.RESOURCE, DType.VARIANT, DType.STRING, DType.INT4, DType.UINT4, DType.INT2)
_STATEFUL = frozenset({"ASSIGN_VARIABLE", "READ_VARIABLE", "CALL_ONCE", "CUSTOM", "VAR_HANDLE"})


def seeded_inputs(model: Model, samples: int, seed: int, first: int = 0) -> list[Sample]:
    """``samples`` samples, from the ``first`` of an endless sequence on, the same for the same seed on every machine.

    The families of :mod:`.families` take turns. A model with state gets sequences: inputs glide from one to the next.
    """
    ranges = [range_of(tensor) for tensor in model.main.inputs]
    gliding = has_state(model.main)
    return [
        [_values(tensor, ranges[at], at, number, seed, gliding) for at, tensor in enumerate(model.main.inputs)]
        for number in range(first, first + samples)
    ]


def has_state(graph: Graph) -> bool:
    """Whether an invocation may depend on the ones before it: by variables, or by custom operators."""
    return any(
        operator.name in _STATEFUL or any(tensor.is_variable for tensor in operator.present_inputs())
        for operator in graph.operators
    )


def inputs_from_npz(path: str | PathLike[str], model: Model) -> list[Sample]:
    """Samples from an .npz: one array per input name, of the input's shape or with a leading sample axis.

    Raises UsageError when the file, a name, a type or a shape does not fit, and when there is nothing to give.
    """
    if not model.main.inputs:
        raise UsageError(f"inputs '{path}': the model takes no inputs; leave --inputs out")
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
    if array.shape[1:] == tensor.shape:
        if not len(array):
            raise UsageError(f"inputs '{path}': '{tensor.name}' holds no sample at all: nothing would be proved")
        return list(array)
    raise UsageError(
        f"inputs '{path}': '{tensor.name}' has shape {list(array.shape)}, the model takes {list(tensor.shape)} "
        "(or samples of it along a first axis)"
    )


def _values(tensor: Tensor, found: InputRange, at: int, number: int, seed: int, gliding: bool) -> Array:
    levels = _glide(tensor, found, at, number, seed) if gliding else _levels(tensor, found, at, number, seed)
    values = found.values(levels, tensor.dtype)
    return values if found.is_known else _scaled(values, number, seed)


def _levels(tensor: Tensor, found: InputRange, at: int, number: int, seed: int) -> Integers:
    family = list(FAMILIES.values())[number % len(FAMILIES)]
    return family(tensor.shape, found.zero_level, Stream(seed, at, number))


def _glide(tensor: Tensor, found: InputRange, at: int, number: int, seed: int) -> Integers:
    """Between two neighbours of the plain sequence."""
    turn, phase = divmod(number, _GLIDE)
    start, end = (_levels(tensor, found, at, each, seed) for each in (turn, turn + 1))
    return ((start * (_GLIDE - phase) + end * phase) // _GLIDE).clip(0, LEVELS - 1)


def _scaled(values: Array, number: int, seed: int) -> Array:
    """Every third input of unknown range is larger or smaller by a power of two, the same for all inputs."""
    if number % 3 != 2 or values.dtype.kind != "f" or values.dtype == np.dtype(np.float16):
        return values
    bits = Stream(seed, number).integer(-_MOST_SCALED_BITS, _MOST_SCALED_BITS)
    scaled: Array = values * values.dtype.type(2.0**bits)
    return scaled


def is_exchanged(dtype: DType) -> bool:
    """Whether interpreters hand out values of this type as plain numbers."""
    return dtype not in _NOT_EXCHANGED and dtype.arena_bytes > 0
