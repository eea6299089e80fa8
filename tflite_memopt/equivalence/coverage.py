"""What the inputs excited: tensors and channels that changed, values that were saturated, distinct outputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ..ir.model import Graph, Tensor
from ..ir.tensors import affine_of
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


def coverage_of(graph: Graph, run: Run) -> Coverage:
    """What a run of the original exercised of its entry graph. Channels are the last axis; a vector is one channel."""
    rows = {tuple(values.tobytes() for values in row) for row in zip(*run.outputs.values(), strict=True)}
    tensors = {
        graph.tensors[at]: found for at, found in run.tensors.items() if at < len(graph.tensors) and found[0].size
    }
    never_changed, channels, constant_channels, saturated = [], 0, 0, {}
    for tensor, arrays in tensors.items():
        if all(np.array_equal(arrays[0], array) for array in arrays[1:]):
            never_changed.append(tensor.name)
        width = arrays[0].shape[-1] if arrays[0].ndim > 1 else 1
        by_channel = np.concatenate([array.reshape(-1, width) for array in arrays])
        channels += width
        constant_channels += int(np.count_nonzero(by_channel.min(axis=0) == by_channel.max(axis=0)))
        share = _saturated(tensor, by_channel) / by_channel.size
        if share > _MOST_SATURATED:
            saturated[tensor.name] = round(share, 4)
    samples = len(next(iter(run.outputs.values()), ()))
    return Coverage(samples, len(rows), len(tensors), tuple(never_changed), channels, constant_channels, saturated)


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
