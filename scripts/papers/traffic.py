"""A model on a chip with little fast memory: traffic to the outside, and how much the order decides.

Source: SERENITY (Ahn et al., MLSys 2020), Figures 3 and 11 and section 4.2; L. A. Belady, IBM Systems Journal 1966.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from tflite_memopt.solvers.graph.dependency_graph import bits
from tflite_memopt.solvers.schedule.problem import ScheduleProblem, memory_graph

BLOCK_BYTES = 1024
"""The unit of transfers in bytes; the last block of a tensor may be smaller."""
_NEVER = 1 << 62


@dataclass(frozen=True)
class OffChipTraffic:
    """Bytes fetched from outside, and bytes put out because they are needed again."""

    fetched: int
    put_out: int

    @property
    def total(self) -> int:
        """Bytes in both directions."""
        return self.fetched + self.put_out


class _Touch(NamedTuple):
    """A block that an operator reads; writes without reading it; or holds to its end, as TFLM holds all inputs."""

    block: int
    kind: Literal["read", "write", "hold"]


def off_chip_traffic(
    problem: ScheduleProblem, order: Sequence[int], capacity: int, block_bytes: int = BLOCK_BYTES
) -> OffChipTraffic:
    """The traffic of an order with ``capacity`` bytes on the chip; none where every working set fits.

    When a block has no room, the one that is needed again last gives way; it is put out if it is read again and
    changed since it was fetched. An operator needs its inputs until its outputs are written. Weights are not counted.
    What the network is given is on the chip at the start as far as it fits, and its results may stay there. A block
    that is larger than the memory is used outside. O(n log n) for n touches of a block.
    """
    sizes, touches = _trace(problem, order, block_bytes)
    return _Memory(sizes, capacity).run(touches)


def _trace(problem: ScheduleProblem, order: Sequence[int], block_bytes: int) -> tuple[list[int], list[_Touch]]:
    """The size of each block, and all touches: the graph's inputs written first, then operator by operator."""
    sizes: list[int] = []
    blocks: list[range] = []
    for size in (*problem.sizes, *(step.scratch for step in problem.steps)):
        first = len(sizes)
        sizes += [min(block_bytes, size - start) for start in range(0, size, block_bytes)]
        blocks.append(range(first, len(sizes)))
    touches = [_Touch(block, "write") for tensor in problem.inputs for block in blocks[tensor]]
    for operator in order:
        step = problem.steps[operator]
        read = [block for tensor in step.inputs for block in blocks[tensor]]
        written = [block for tensor in (*step.outputs, len(problem.sizes) + operator) for block in blocks[tensor]]
        touches += [_Touch(block, "read") for block in read]
        touches += [_Touch(block, "write") for block in written]
        touches += [_Touch(block, "hold") for block in (*read, *written)]
    return sizes, touches


class _Memory:
    """Blocks on the chip, the one that is needed last at the top of a heap; old entries of the heap are skipped."""

    def __init__(self, sizes: Sequence[int], capacity: int) -> None:
        self._sizes, self._capacity = sizes, capacity
        self._next: dict[int, int] = {}
        self._changed: set[int] = set()
        self._wanted: set[int] = set()
        self._latest: list[tuple[int, int]] = []
        self._used = self._fetched = self._put_out = 0

    def run(self, touches: Sequence[_Touch]) -> OffChipTraffic:
        for touch, (again, is_read_again) in zip(touches, _next_uses(touches), strict=True):
            (self._wanted.add if is_read_again else self._wanted.discard)(touch.block)
            self._touch(touch, again)
        return OffChipTraffic(self._fetched, self._put_out)

    def _touch(self, touch: _Touch, again: int) -> None:
        block, size = touch.block, self._sizes[touch.block]
        if block not in self._next:
            if touch.kind == "hold":
                return
            self._fetched += size if touch.kind == "read" else 0
            if size > self._capacity:
                self._put_out += size if touch.kind == "write" and block in self._wanted else 0
                return
            self._make_room(size)
            self._used += size
        if touch.kind == "write":
            self._changed.add(block)
        self._next[block] = again
        heapq.heappush(self._latest, (-again, block))

    def _make_room(self, size: int) -> None:
        while self._used + size > self._capacity:
            again, block = heapq.heappop(self._latest)
            if self._next.get(block) != -again:
                continue
            del self._next[block]
            self._used -= self._sizes[block]
            if block in self._changed and block in self._wanted:
                self._put_out += self._sizes[block]
            self._changed.discard(block)


def _next_uses(touches: Sequence[_Touch]) -> list[tuple[int, bool]]:
    """For each touch, when its block is read or held next before it is written anew, and whether it is ever read so."""
    found: list[tuple[int, bool]] = []
    seen: dict[int, tuple[int, bool]] = {}
    for position in reversed(range(len(touches))):
        block, kind = touches[position]
        _, is_read = found_next = seen.get(block, (_NEVER, False))
        found.append(found_next)
        seen[block] = (_NEVER, False) if kind == "write" else (position, is_read or kind == "read")
    return found[::-1]


def peaks_of_random_orders(problem: ScheduleProblem, count: int, seed: int) -> tuple[int, ...]:
    """Peaks in bytes of ``count`` random orders, smallest first.

    At each step one of the operators that can run is drawn, each with the same chance. That is not the same as drawing
    each order with the same chance, which would need the number of orders.
    """
    graph, source = memory_graph(problem), random.Random(seed)
    return tuple(sorted(graph.peak(random_order(graph.needs, graph.feeds, source)) for _ in range(count)))


def random_order(needs: tuple[int, ...], feeds: tuple[int, ...], source: random.Random) -> list[int]:
    """One order of the vertices that wait for ``needs`` and are waited for by ``feeds``, both as bit sets."""
    missing = [some.bit_count() for some in needs]
    ready = [v for v, count in enumerate(missing) if not count]
    order = []
    while ready:
        at = source.randrange(len(ready))
        ready[at], ready[-1] = ready[-1], ready[at]
        order.append(ready.pop())
        for later in bits(feeds[order[-1]]):
            missing[later] -= 1
            if not missing[later]:
                ready.append(later)
    return order
