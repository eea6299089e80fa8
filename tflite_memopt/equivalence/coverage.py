"""What the inputs excited: tensors and channels that changed, values that were saturated, distinct outputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from ..ir.model import Graph, Tensor
from ..ir.quantization import affine_of
from .adapter import Array, Run

_MOST_NAMED = 3
_MOST_SATURATED = 0.99
"""Share of a tensor's values at the end of their range, from which on it shows next to nothing."""


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
        return f"not exercised by the {self.samples} inputs of the verification: {'; '.join(parts)}"


class _Covered(NamedTuple):
    """Of one tensor: its channels, those that always held one value, the share of saturated values."""

    name: str
    has_changed: bool
    channels: int
    constant_channels: int
    saturated: float


def coverage_of(graph: Graph, run: Run) -> Coverage:
    """What a run of the original exercised of its entry graph."""
    rows = list(zip(*run.outputs.values(), strict=True))
    tensors = [
        _covered(graph.tensors[index], arrays)
        for index, arrays in run.tensors.items()
        if index < len(graph.tensors) and arrays[0].size
    ]
    return Coverage(
        samples=len(rows),
        distinct_outputs=len({tuple(values.tobytes() for values in row) for row in rows}),
        tensors=len(tensors),
        never_changed=tuple(each.name for each in tensors if not each.has_changed),
        channels=sum(each.channels for each in tensors),
        constant_channels=sum(each.constant_channels for each in tensors),
        saturated={each.name: round(each.saturated, 4) for each in tensors if each.saturated > _MOST_SATURATED},
    )


def _covered(tensor: Tensor, arrays: Sequence[Array]) -> _Covered:
    """Channels are the last axis; a vector is one channel."""
    channels = arrays[0].shape[-1] if arrays[0].ndim > 1 else 1
    low = np.min([array.reshape(-1, channels).min(axis=0) for array in arrays], axis=0)
    high = np.max([array.reshape(-1, channels).max(axis=0) for array in arrays], axis=0)
    has_changed = any(not np.array_equal(arrays[0], array) for array in arrays[1:])
    saturated = sum(_saturated(tensor, array) for array in arrays) / sum(array.size for array in arrays)
    return _Covered(tensor.name, has_changed, channels, int(np.count_nonzero(low == high)), saturated)


def _saturated(tensor: Tensor, array: Array) -> int:
    """Values at an end of their type. The lower one is no saturation where it stands for zero: a ReLU rests there."""
    if array.dtype not in (np.int8, np.uint8, np.int16):
        return 0
    info, quantized = np.iinfo(array.dtype), affine_of(tensor)
    rests_low = quantized is not None and quantized.zero_point == info.min
    low = 0 if rests_low else int(np.count_nonzero(array == info.min))
    return low + int(np.count_nonzero(array == info.max))


def _few(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(f"'{name}'" for name in names[:_MOST_NAMED]) + more
