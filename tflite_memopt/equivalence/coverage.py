"""What the inputs excited: tensors and channels that changed, values that were saturated, distinct outputs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from ..ir.affine import affine_of
from ..ir.model import Graph, Tensor
from .tolerance import Array
from .trace import Trace

_MOST_NAMED = 3
_MOST_SATURATED = 0.99
"""Share of a tensor's values at the end of their range, from which on it shows next to nothing."""

Woken = tuple[int, int | None]
"""A tensor's position and one of its channels; None for the tensor as a whole."""


@dataclass(frozen=True)
class TensorCoverage:
    """Of one tensor: share of values at an end of their range, and channels that always held the same value."""

    name: str
    channels: int
    constant_channels: int
    saturated: float


@dataclass(frozen=True)
class Coverage:
    """What ``samples`` inputs exercised of the original.

    ``distinct_outputs`` of them gave outputs of their own. ``tensors``: all that are computed. ``never_changed``: of
    these, the names that held the same values for every input. ``constant_channels`` of ``channels`` held one value all
    over. ``saturated``: names and shares of tensors nearly all of whose values were at the end of the range.
    """

    samples: int
    distinct_outputs: int
    tensors: int
    never_changed: tuple[str, ...]
    channels: int
    constant_channels: int
    saturated: dict[str, float] = field(default_factory=dict)

    @property
    def is_complete(self) -> bool:
        """Whether everything was exercised."""
        return not (self.never_changed or self.constant_channels or self.saturated)

    @property
    def shortfall(self) -> str:
        """What was not exercised, in words."""
        parts = []
        if self.constant_channels:
            parts.append(f"{self.constant_channels} of {self.channels} channels always held one value")
        if self.never_changed:
            parts.append(f"never changed: {_few(self.never_changed)}")
        if self.saturated:
            parts.append(f"nearly all values at the end of their range: {_few(tuple(self.saturated))}")
        return f"not exercised by the {self.samples} inputs of the proof: {'; '.join(parts)}"


def _few(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(f"'{name}'" for name in names[:_MOST_NAMED]) + more


@dataclass
class _Seen:
    """Of one tensor: extremes of each channel so far, counts of saturated and of all values, and the first value."""

    low: Array
    high: Array
    first: Array
    changed: bool = False
    saturated: int = 0
    values: int = 0


class Exercise:
    """Takes in traces of the original, and says what they exercised.

    Of the tensors of the entry graph: what a loop holds from turn to turn is compared elsewhere; its numbers come after
    theirs.
    """

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._seen: dict[int, _Seen] = {}
        self._outputs: set[tuple[bytes, ...]] = set()
        self._samples = 0

    def woken(self, trace: Trace) -> frozenset[Woken]:
        """What always held one value so far and does not in this trace: channels of tensors, and whole tensors."""
        each = (self._woken(index, array) for index, arrays in trace.tensors.items() for array in arrays)
        return frozenset(one for found in each for one in found)

    def add(self, trace: Trace) -> None:
        """Take in the samples of a trace."""
        outputs = list(trace.outputs.values())
        for sample in range(len(outputs[0]) if outputs else 0):
            self._outputs.add(tuple(values[sample].tobytes() for values in outputs))
            self._samples += 1
        for index, arrays in trace.tensors.items():
            for array in arrays:
                self._take(index, array)

    def summary(self) -> Coverage:
        """What was exercised so far."""
        tensors = {index: self._tensor(index) for index in self._seen}
        return Coverage(
            samples=self._samples,
            distinct_outputs=len(self._outputs),
            tensors=len(tensors),
            never_changed=tuple(
                self._graph.tensors[index].name for index, seen in self._seen.items() if not seen.changed
            ),
            channels=sum(each.channels for each in tensors.values()),
            constant_channels=sum(each.constant_channels for each in tensors.values()),
            saturated={
                each.name: round(each.saturated, 4) for each in tensors.values() if each.saturated > _MOST_SATURATED
            },
        )

    def _take(self, index: int, array: Array) -> None:
        if not array.size or index >= len(self._graph.tensors):
            return
        low, high = _extremes(array)
        seen = self._seen.setdefault(index, _Seen(low, high, array))
        if seen.low.shape == low.shape:
            seen.low, seen.high = np.minimum(seen.low, low), np.maximum(seen.high, high)
        seen.changed = seen.changed or not np.array_equal(seen.first, array)
        seen.saturated += _saturated(self._graph.tensors[index], array)
        seen.values += array.size

    def _woken(self, index: int, array: Array) -> Iterator[Woken]:
        seen = self._seen.get(index)
        if seen is None or not array.size:
            return
        if not seen.changed and not np.array_equal(seen.first, array):
            yield index, None
        asleep = seen.low == seen.high
        if not asleep.any() or _channels(array) != asleep.size:
            return
        low, high = _extremes(array)
        for channel in np.flatnonzero(asleep & ((low != seen.low) | (high != seen.high))):
            yield index, int(channel)

    def _tensor(self, index: int) -> TensorCoverage:
        seen = self._seen[index]
        constant = int(np.count_nonzero(seen.low == seen.high))
        return TensorCoverage(self._graph.tensors[index].name, seen.low.size, constant, seen.saturated / seen.values)


def _extremes(array: Array) -> tuple[Array, Array]:
    """Lowest and highest value of each channel; a vector is one channel."""
    channels = array.reshape(-1, _channels(array))
    return channels.min(axis=0), channels.max(axis=0)


def _channels(array: Array) -> int:
    return array.shape[-1] if array.ndim > 1 else 1


def _saturated(tensor: Tensor, array: Array) -> int:
    """Values at an end of their type. The lower one is no saturation where it stands for zero: a ReLU rests there."""
    if array.dtype not in (np.int8, np.uint8, np.int16):
        return 0
    info, quantised = np.iinfo(array.dtype), affine_of(tensor)
    rests_low = quantised is not None and quantised.zero_point == info.min
    low = 0 if rests_low else int(np.count_nonzero(array == info.min))
    return low + int(np.count_nonzero(array == info.max))
