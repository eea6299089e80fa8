"""Who vouches for a plan, so that TFLM need not run the model once more with no memory shared.

A plan is right when every tensor, at its last use, holds what the graph makes with no memory shared. Two runs with no
memory shared are there anyway: the original's on TFLM, and the optimised model's on LiteRT with all tensors preserved.
A tensor whose bits are those of either is right. Where one has other bits than both (LiteRT rounds in its own way here
and there) this says nothing, and TFLM runs the optimised model with no memory shared itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from .correspondence import Link
from .tolerance import Array, arrays_agree
from .trace import Trace


@dataclass(frozen=True)
class Witnesses:
    """``original``: its trace on TFLM, and ``links`` to its tensors from those of the optimised model.

    ``elsewhere`` waits for the optimised model's trace on a runtime that shares no memory; None where that has none.
    ``wanted``: the tensors that must be shown, since they are to be compared with the original's.
    """

    original: Trace
    links: Iterable[Link]
    elsewhere: Callable[[], Trace | None]
    wanted: frozenset[int]

    def vouch(self, shown: Trace) -> bool:
        """Whether the planned model shows all that is wanted, and every tensor it shows is known to be right."""
        if not self.wanted <= shown.tensors.keys():
            return False
        left = {at: values for at, values in shown.tensors.items() if not self._is_originals(at, values)}
        other = self.elsewhere() if left else None
        return not left or (other is not None and _are_known(left, other.tensors))

    def _is_originals(self, at: int, values: list[Array]) -> bool:
        """Whether a tensor holds the original's values. In loops a link says nothing of rows beyond the edge."""
        return any(
            _agree([link.range_of(*pair) for pair in zip(whole, values, strict=True)], values)
            for link in self.links
            if link.after == at and not link.turns and (whole := self.original.tensors.get(link.before)) is not None
        )


def _are_known(shown: Mapping[int, list[Array]], known: Mapping[int, list[Array]]) -> bool:
    return all(at in known and _agree(known[at], values) for at, values in shown.items())


def _agree(known: list[Array] | list[Array | None], shown: list[Array]) -> bool:
    """To the bit, in every sample."""
    if len(known) != len(shown):
        return False
    return all(a is not None and arrays_agree(a, b) for a, b in zip(known, shown, strict=True))
