"""Functions of one stored integer, by their tables: DEQUANTIZE, clamps, QUANTIZE, and what is composed of them.

An element that is such a function is known by the integer that it is of, and by what becomes of each integer that its
type has. So QUANTIZE of DEQUANTIZE is the integer itself where all 256 come back, and two ways to compute one table are
one function. Where kernels may round a value either way there is no table, and the operator is a function of which
nothing is known.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from ...model.ir.model import DType, Tensor
from .call import Quant, is_float, quantization_of
from .ring import Keys, Known, Ring, U

Table = npt.NDArray[Any]
"""What becomes of each integer, the least first: integers, or floats of 32 bits."""
Function = Callable[[Table], Table | None]
"""What an operator makes of a table; None where kernels may round either way."""
_ENDS = {DType.INT8: (-128, 127), DType.INT16: (-32768, 32767)}
_EVERY = {dtype: np.arange(least, most + 1) for dtype, (least, most) in _ENDS.items()}
_OF_FLOATS = {"RELU": (0.0, np.inf), "RELU6": (0.0, 6.0), "RELU_N1_TO_1": (-1.0, 1.0)}
_DOUBT = 2.0**-21
"""Of the number of integers: how far from halfway a quotient must be. Kernels divide by a scale in float32, or multiply
by its inverse: four roundings of 2**-24 of up to the whole range, and as much again."""
_MOST_QUOTIENT = 2.0**30
_RATIOS = (0.5, 2.0**16)
"""Of scales, between which a multiplier of 31 bits shifts to the left alone: it rounds once, and does not overflow."""


def mapped(keys: Keys, value: Ring, dtype: DType, function: Function, otherwise: Callable[[Ring], Ring]) -> Ring:
    """Return a function of each element of a value of this type; ``otherwise``: of those for which it has no table."""
    images, flat = keys.images, value.reshape(-1)
    source, numbers = images.find(keys.hash(flat, "image")) if images else (flat, np.full(flat.size, -1))
    made: Ring = np.empty(flat.size, U)
    for number in np.unique(numbers).tolist():
        at = numbers == number
        known, own = (source[at], images.tables[number]) if number >= 0 else (flat[at], _EVERY.get(dtype))
        table = None if own is None else function(own)
        made[at] = otherwise(flat[at]) if table is None else image_of(keys, known, table)
    return made.reshape(value.shape)


def image_of(keys: Keys, source: Ring, table: Table) -> Ring:
    """Return what becomes of integers by a table: they themselves where it changes none."""
    if table.dtype.kind == "i" and any(np.array_equal(table, each) for each in _EVERY.values()):
        return source
    found = keys.hash(source, "table", table.dtype.str, table.tobytes())
    found = found if table.dtype.kind == "i" else keys.as_float(found)
    keys.images.add(keys.hash(found, "image"), source, table)
    return found


def rising(keys: Keys, rows: Ring) -> tuple[Ring, DType, Table] | None:
    """Return the integers of numbers, their type, and the table of which the numbers are, if these rise with them.

    None where it is not one table of which all of them are, or where one of them is less than that of a lower integer.
    """
    if not keys.images or not rows.size:
        return None
    source, numbers = keys.images.find(keys.hash(rows.reshape(-1), "image"))
    if numbers.min() < 0 or numbers.min() != numbers.max():
        return None
    table = keys.images.tables[numbers[0]]
    (dtype,) = (each for each, stored in _EVERY.items() if stored.size == table.size)
    return None if (np.diff(table) < 0).any() else (source.reshape(rows.shape), dtype, table)


def conversion_of(name: str, source: Tensor, target: Tensor) -> Function | None:
    """Return what DEQUANTIZE to float32, or QUANTIZE to 8 or 16 bits, makes of a table; None for others."""
    old, new = _affine(source), _affine(target)
    if name == "DEQUANTIZE" and old is not None and target.dtype is DType.FLOAT32:
        return lambda table: real_of(table, quantization_of(source))
    if name != "QUANTIZE" or new is None:
        return None
    scale, point = new
    if is_float(source):
        return lambda table: _stored(table.astype(np.float64) / scale, point, target.dtype)
    if old is None or source.dtype is not target.dtype or not _RATIOS[0] <= old[0] / scale <= _RATIOS[1]:
        return None
    ratio, before = old[0] / scale, old[1]
    return lambda table: _stored(ratio * (table - before), point, target.dtype)


def clamp_of(name: str, source: Tensor, target: Tensor) -> Function | None:
    """Return what RELU, RELU6, or RELU_N1_TO_1 makes of a table; None for others, and for integers of two scales."""
    low, high = _OF_FLOATS.get(name, (0.0, 0.0))
    if low == high or source.dtype is not target.dtype:
        return None
    if target.dtype is DType.FLOAT32:
        return lambda table: np.clip(table, np.float32(low), np.float32(high))
    affine = _affine(target)
    if affine is None or affine != _affine(source) or low < 0:
        return None
    scale, point = affine
    most = _EVERY[target.dtype][-1:] if high == np.inf else _stored(np.asarray([high / scale]), point, target.dtype)
    return None if most is None else lambda table: np.clip(table, point, most[0])


def limit_of(name: str, source: Tensor, limit: Tensor, target: Tensor, known: int) -> Function | None:
    """Return what MAXIMUM or MINIMUM of integers and a known one makes of a table; None where scales differ."""
    sides = {(each.dtype, _affine(each)) for each in (source, limit, target)}
    if len(sides) > 1 or _affine(source) is None:
        return None
    choose = np.maximum if name == "MAXIMUM" else np.minimum
    return lambda table: np.asarray(choose(table, known))


def _affine(tensor: Tensor) -> tuple[float, int] | None:
    """Return the one scale and zero point of stored integers."""
    scales, points, _ = quantization_of(tensor)
    return (scales[0], points[0]) if tensor.dtype in _ENDS and len(scales) == len(points) == 1 else None


def real_of(value: Known, quantization: Quant) -> Known:
    """The float32 numbers that integers stand for: the real product of scale and distance, rounded once.

    In float64 the product is exact: 24 bits by at most 17.
    """
    scales, points, axis = quantization
    along = [-1 if at == axis else 1 for at in range(value.ndim)]
    scale, point = (np.asarray(each).reshape(along if len(each) > 1 else ()) for each in (scales, points or (0,)))
    found: Known = (scale * (value.astype(np.float64) - point)).astype(np.float32)
    return found


def _stored(quotients: Table, point: int, dtype: DType) -> Table | None:
    """Return quotients as integers, rounded to the next; None where one is about as far from two."""
    least, most = _ENDS[dtype]
    if not np.abs(quotients).max() < _MOST_QUOTIENT:
        return None
    inside = quotients[(quotients + point > least - 1) & (quotients + point < most + 1)]
    beyond_half = np.abs(inside - np.floor(inside) - 0.5)
    if inside.size and beyond_half.min() < _DOUBT * (most - least + 1):
        return None
    return np.clip(np.floor(quotients + 0.5).astype(np.int64) + point, least, most)
