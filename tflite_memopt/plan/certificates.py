"""Why no plan takes fewer bytes: sections of time, the items alive in them, and what these may share at most."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class BoundCertificate:
    """Why no plan takes fewer than ``nbytes``: what ``check.check_bound`` verifies.

    The ``items`` are all alive at ``scope``. So their bytes add up, less what the related ones of them may share; all
    but the topmost count with the padding that alignment forces on them. Where ``given``, the only item lies where it
    must, and the bytes are those up to its end. Of each of the ``rooms``, the items behind the first one may not share
    bytes with each other: what they have in common with the first one fits there beside each other. The sum is one of
    multiples of ``unit``, which divides all alignments.
    """

    nbytes: int
    scope: int = 0
    items: tuple[int, ...] = ()
    given: bool = False
    rooms: tuple[tuple[int, ...], ...] = ()
    unit: int = 1


Shares = Mapping[int, Mapping[int, int]]
"""``shares[i][j]``: bytes that two related items have in common at most."""


@dataclass(frozen=True)
class SharedRoom:
    """``guests``: items that may not share bytes with each other, but with the ``host``: ``nbytes`` in all at most."""

    host: int
    guests: tuple[int, ...]
    nbytes: int

    def spares(self, chosen: Collection[int], shares: Shares) -> int:
        """By how many bytes the pairs of the chosen items count too much as shared."""
        if self.host not in chosen:
            return 0
        return max(0, self._shared(chosen, shares[self.host]) - self.nbytes)

    def spares_more(self, index: int, chosen: Collection[int], shares: Shares) -> int:
        """What ``spares`` grows by with one item more: the host or a guest, not yet chosen."""
        pairs = shares[self.host]
        shared = self._shared(chosen, pairs)
        if index == self.host:
            return max(0, shared - self.nbytes)
        if self.host not in chosen:
            return 0
        return max(0, shared + pairs[index] - self.nbytes) - max(0, shared - self.nbytes)

    def _shared(self, chosen: Collection[int], pairs: Mapping[int, int]) -> int:
        return sum([pairs[guest] for guest in self.guests if guest in chosen])


@dataclass(frozen=True)
class SectionBound:
    """Items of a section whose bytes add up, but for what related ones may share.

    No plan goes below ``nbytes``: a union has at least the sum of its parts, rounded up to the ``unit`` of their
    offsets, less what they have in common at most, pair by pair, and in ``rooms`` several with one, and less the
    padding of the topmost.
    """

    items: tuple[int, ...]
    nbytes: int
    rooms: tuple[SharedRoom, ...]
    unit: int


@dataclass
class Analysis:
    """What ``bounds`` has computed about a problem, for whoever asks again.

    ``sections``: by the items that are alive together, ascending. ``shares``: bytes that (first, second, unit) may have
    in common, since a pair is alive in many sections.
    """

    bound: BoundCertificate | None = None
    sections: dict[tuple[int, ...], SectionBound] = field(default_factory=dict)
    shares: dict[tuple[int, int, int], int] = field(default_factory=dict)
