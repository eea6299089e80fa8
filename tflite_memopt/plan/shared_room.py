"""What several items may have in common with one item at most, where they may not share bytes with each other.

A loop's result may lie over its inputs, each of them above what the next turns still read:

    result    [ made | not read yet ........ ]
    inputs           [ first ][ second ][ third ][ fourth ]
                     |<--- their room --->|

One by one each of them fits into the room. Together they do not, so that pairs alone say too little of what all need.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..graph.alignment import aligned
from .permissions import Intervals, Permissions

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


def shared_rooms(
    related: Sequence[int], sizes: Mapping[int, int], shares: Shares, permissions: Permissions, unit: int
) -> list[SharedRoom]:
    """The rooms that are too small for their guests, each pair of items in one of them at most.

    ``related``: items alive at one time, those that are to be hosts first; ``sizes`` in bytes, multiples of ``unit``.
    """
    found: list[SharedRoom] = []
    taken: set[tuple[int, int]] = set()
    rank = {index: turn for turn, index in enumerate(related)}
    for host in related:
        sharing = [i for i, nbytes in shares[host].items() if nbytes and (i, host) not in taken]
        guests = _apart(sorted(sharing, key=rank.__getitem__), shares)
        if len(guests) < 2:
            continue
        covered = [part for i in guests for part in _covered(sizes[host], sizes[i], permissions[i][host], unit)]
        room = SharedRoom(host, tuple(guests), _union(covered))
        if room.spares((host, *guests), shares):
            found.append(room)
            taken |= {(host, i) for i in guests}
    return found


def _apart(items: Sequence[int], shares: Shares) -> list[int]:
    """Some of the items, of which no two are related; the first ones first."""
    found: list[int] = []
    for i in items:
        if not any(i in shares[other] for other in found):
            found.append(i)
    return found


def _covered(host: int, guest: int, forbidden: Intervals, unit: int) -> Iterator[tuple[int, int]]:
    """Bytes of a host of that size that a guest may lie on; ``forbidden``: for its offset less the host's."""
    start = -guest
    for low, high in forbidden:
        last = low // unit * unit
        if start <= last:
            yield max(0, start), min(host, last + guest)
        start = aligned(high, unit)
    yield max(0, start), host


def _union(parts: Sequence[tuple[int, int]]) -> int:
    total, reached = 0, 0
    for start, end in sorted(parts):
        total += max(0, end - max(start, reached))
        reached = max(reached, end)
    return total
