"""Kinds of inputs, each of which excites what others leave asleep.

Uniform noise alone averages out: behind a few layers every position holds the same value. A family gives levels from 0
to ``LEVELS - 1`` for a shape whose last axis are channels and whose first is the batch; ``zero`` is the level that
stands for zero. Integer arithmetic throughout, so that the same seed gives the same input on every machine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

LEVELS = 1 << 16
"""Steps from the lowest to the highest value of an input: enough for every int16."""
Integers = npt.NDArray[np.int64]
_WORD_BITS = 32
_TOP = LEVELS - 1


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

    def integer(self, low: int, high: int) -> int:
        """One of them."""
        return int(self.integers(low, high))


Family = Callable[[Sequence[int], int, Stream], Integers]


def noise(shape: Sequence[int], zero: int, stream: Stream) -> Integers:
    """Every value by itself, over the whole range."""
    return stream.integers(0, _TOP, shape)


def image(shape: Sequence[int], zero: int, stream: Stream) -> Integers:
    """Low frequencies only: a coarse random grid, stretched to the shape."""
    axes = _spatial(shape)
    coarse = [min(size, stream.integer(2, 5)) if axis in axes else size for axis, size in enumerate(shape)]
    grid = stream.integers(0, _TOP, coarse)
    for axis in axes:
        grid = _stretched(grid, axis, shape[axis])
    return grid


def steps(shape: Sequence[int], zero: int, stream: Stream) -> Integers:
    """Sharp edges: one level on each side of a random cut along every axis, for each channel."""
    axes = _spatial(shape)
    grid = stream.integers(0, _TOP, [min(size, 2) if axis in axes else size for axis, size in enumerate(shape)])
    for axis in axes:
        cut = stream.integer(0, shape[axis] - 1)
        side = (np.arange(shape[axis]) >= cut).astype(np.int64)
        grid = grid.take(np.minimum(side, grid.shape[axis] - 1), axis=axis)
    return grid


def constants(shape: Sequence[int], zero: int, stream: Stream) -> Integers:
    """One random level for each channel, or for all of a vector."""
    if len(shape) > 2:
        return stream.integers(0, _TOP, shape[-1:]) + np.zeros(tuple(shape), np.int64)
    return np.full(tuple(shape), stream.integer(0, _TOP), np.int64)


def faint(shape: Sequence[int], zero: int, stream: Stream) -> Integers:
    """Weak noise around zero, from a half to a thousandth of the range."""
    return _around(zero, noise(shape, zero, stream), stream.integer(1, 10))


def extremes(shape: Sequence[int], zero: int, stream: Stream) -> Integers:
    """Only the lowest and the highest value."""
    return stream.integers(0, 1, shape) * _TOP


def noisy_image(shape: Sequence[int], zero: int, stream: Stream) -> Integers:
    """An image with noise on it."""
    return (image(shape, zero, stream) + noise(shape, zero, stream) // 4 - LEVELS // 8).clip(0, _TOP)


def impulses(shape: Sequence[int], zero: int, stream: Stream) -> Integers:
    """Zero but for a few random values."""
    chosen = stream.integers(0, stream.integer(3, 63), shape) == 0
    return np.where(chosen, noise(shape, zero, stream), zero)


def faint_image(shape: Sequence[int], zero: int, stream: Stream) -> Integers:
    """An image of weak contrast around a random level."""
    return _around(stream.integer(0, _TOP), image(shape, zero, stream), stream.integer(1, 4))


FAMILIES: dict[str, Family] = {
    "noise": noise,
    "image": image,
    "steps": steps,
    "constants": constants,
    "faint": faint,
    "extremes": extremes,
    "noisy image": noisy_image,
    "impulses": impulses,
    "faint image": faint_image,
    "zeros": lambda shape, zero, _: np.full(tuple(shape), zero, np.int64),
    "lowest": lambda shape, *_: np.zeros(tuple(shape), np.int64),
    "highest": lambda shape, *_: np.full(tuple(shape), _TOP, np.int64),
}
"""In the order in which they are drawn."""


def _spatial(shape: Sequence[int]) -> list[int]:
    """The axes along which neighbors are alike: all but batch and channels; of a vector, its only one."""
    last = len(shape) - 1 if len(shape) > 2 else len(shape)
    return [axis for axis in range(1, last) if shape[axis] > 1]


def _stretched(grid: Integers, axis: int, size: int) -> Integers:
    """Linear interpolation along one axis, rounded down."""
    if grid.shape[axis] == size:
        return grid
    intervals, steps_between = grid.shape[axis] - 1, max(1, size - 1)
    at = np.arange(size) * intervals
    first = np.minimum(at // steps_between, intervals - 1 if intervals else 0)
    weight = (at - first * steps_between).reshape([-1 if each == axis else 1 for each in range(grid.ndim)])
    left, right = (grid.take(np.minimum(first + step, intervals), axis=axis) for step in (0, 1))
    stretched: Integers = (left * (steps_between - weight) + right * weight) // steps_between
    return stretched


def _around(center: int, levels: Integers, bits: int) -> Integers:
    """The levels, weaker by a power of two, around another one."""
    return (center + ((levels - LEVELS // 2) >> bits)).clip(0, _TOP)
