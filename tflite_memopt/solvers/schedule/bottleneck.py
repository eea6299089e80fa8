"""Best-first search for the order of one segment whose largest working set is smallest.

A state is a set of fused operators; the bytes alive follow from it. States are taken in the order of the largest need
on the way to them, so that the first complete one is optimal, and what has been reached at any time is a lower bound.
*Free moves*: a ready operator that needs no more than the present largest need and leaves no more bytes alive runs at
once. That never hurts, since what it adds to the bytes alive can only fall when it is run later.

There are two directions: operators are run from the segment's start, or taken back from its end. Both have one shape,
so that one search serves both. In the backward direction a state is the set of operators taken back, and "running" one
means taking it back: the bytes alive after that are those before it ran. Which direction needs fewer states depends on
where the graph is hardest.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import islice

from ..graph.dependency_graph import bits, set_of
from ..graph.limits import Allowance
from .compiled_graph import CompiledGraph


@dataclass(frozen=True)
class Segment:
    """Operators that every order runs together: from the set ``executed`` to the set ``goal``, in bytes alive there."""

    executed: int
    goal: int
    alive_before: int
    alive_after: int

    @property
    def inside(self) -> int:
        """The segment's own operators."""
        return self.goal & ~self.executed


@dataclass(frozen=True)
class Direction:
    """A question of the search. It begins in the state ``start`` with ``alive`` bytes, and ends in the state ``goal``.

    ``waits[b]`` is the set that must be in the state before operator b is ready; ``wakes[b]`` are those that may become
    ready with it. ``may_fall`` are the operators that in some state leave no more bytes alive than before. ``cost`` of
    (state, b) is (working set in bytes while b runs, bytes alive after it), both less what is alive in the state.
    ``backward``: the last operator taken back is the first to run.
    """

    graph: CompiledGraph
    start: int
    alive: int
    goal: int
    waits: Sequence[int]
    wakes: Sequence[Sequence[int]]
    may_fall: int
    cost: Callable[[int, int], tuple[int, int]]
    backward: bool = False

    def ready(self) -> int:
        """Return the operators that are ready at the start."""
        return set_of(b for b in bits(self.goal & ~self.start) if not self.waits[b] & ~self.start)

    def in_order(self, moves: Sequence[int]) -> tuple[int, ...]:
        """Return the moves of a search as operators in the order in which they run."""
        return tuple(reversed(moves)) if self.backward else tuple(moves)


def forward(graph: CompiledGraph, segment: Segment) -> Direction:
    """From the segment's start: a state is the set of executed operators, those before the segment included."""
    return Direction(
        graph,
        segment.executed,
        segment.alive_before,
        segment.goal,
        graph.needs,
        graph.feeds,
        graph.may_fall,
        graph.cost,
    )


def backward(graph: CompiledGraph, segment: Segment) -> Direction:
    """From the segment's end: a state is the set of the segment's operators taken back."""
    inside = segment.inside

    def cost(state: int, b: int) -> tuple[int, int]:
        """Return the cost of b where it ran, turned round: taking it back adds what running it frees."""
        need, change = graph.cost(segment.goal & ~state & ~(1 << b), b)
        return need - change, -change

    waits = [set_of(feeds) & inside for feeds in graph.feeds]
    wakes = [tuple(bits(needs & inside)) for needs in graph.needs]
    # In the state where none of its inputs dies with it, taking it back frees what it wrote.
    may_fall = set_of(b for b, grow in enumerate(graph.grow) if grow >= 0)
    return Direction(graph, 0, segment.alive_after, inside, waits, wakes, may_fall, cost, backward=True)


State = tuple[int, int, int, int, int]
"""(less its number of operators, its place in the trail, its operators, bytes alive, ready operators)."""


class Frontier:
    """States in the order of (the larger of need and ``floor``, state): the one with most operators, then the oldest.

    ``floor``: bytes. No need that is pushed is below it. Needs below a floor that rises are not distinguished. They are
    kept in a heap of their own, so that it moves those states alone that it comes to: searches in two directions raise
    each other's floor thousands of times.
    """

    def __init__(self, floor: int) -> None:
        self.floor = floor
        self._at_floor: list[State] = []
        self._above: list[tuple[int, State]] = []

    def __bool__(self) -> bool:
        return bool(self._at_floor or self._above)

    def push(self, need: int, state: State) -> None:
        """Add a state with the largest need in bytes on the way to it. O(log n)."""
        if need <= self.floor:
            heapq.heappush(self._at_floor, state)
        else:
            heapq.heappush(self._above, (need, state))

    def pop(self) -> tuple[int, State]:
        """Return the first one, with its need or the floor in bytes. O(log n)."""
        return (self.floor, heapq.heappop(self._at_floor)) if self._at_floor else heapq.heappop(self._above)

    def first(self, count: int) -> Sequence[tuple[int, State]]:
        """Return the first ``count`` states, which stay."""
        low = [(self.floor, state) for state in heapq.nsmallest(count, self._at_floor)]
        return low + heapq.nsmallest(count - len(low), self._above)

    def raise_floor(self, floor: int) -> None:
        """From now on, do not distinguish needs up to ``floor`` bytes. Each state is moved at most once."""
        self.floor = max(floor, self.floor)
        while self._above and self._above[0][0] <= self.floor:
            heapq.heappush(self._at_floor, heapq.heappop(self._above)[1])


_COMPLETIONS = 32
"""States that are finished greedily when a search has to stop."""
_MOST_KNOWN = 1000
"""Costs of one operator that are kept for reuse."""
_LOOKED_AT = 64
"""Ready operators among which a greedy step chooses."""
_OPERATORS_PER_ITERATION = 2000
"""Number of fused operators per additional iteration that an operation on sets of them counts."""


Rule = Callable[[int, int], tuple[int, int]]


RULES: tuple[Rule, ...] = (lambda need, change: (need, change), lambda need, change: (change - need, need))
"""The operator that a greedy step takes first: the one that needs least, or the one that needs most beyond what it
leaves.

The second is optimal for independent branches (J. W. H. Liu, SIAM J. Algebraic Discrete Methods 1987).
"""


@dataclass(frozen=True)
class OrderFound:
    """``moves`` are the segment's fused operators in their order, ``peak`` is their largest need in bytes."""

    moves: tuple[int, ...]
    peak: int


@dataclass
class BottleneckSearch:
    """The search in one direction. ``reached`` is a working set in bytes that no order can avoid.

    ``limit`` is the peak of a known order: only better ones are looked for. The search goes on as long as the
    ``allowance`` lasts, but for ``reserve`` iterations to finish orders with. After those, orders are finished with
    whatever operator comes next.
    """

    direction: Direction
    reached: int
    limit: int
    allowance: Allowance
    reserve: int = 0
    count: int = 0
    visited: dict[int, int] = field(default_factory=dict)
    frontier: Frontier = field(init=False)
    trail: list[tuple[int, tuple[int, ...]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._waits, self._wakes, self._goal = self.direction.waits, self.direction.wakes, self.direction.goal
        self._may_fall, self._touches = self.direction.may_fall, self.direction.graph.touches
        self._unsure = self.direction.graph.unsure
        self._known: list[dict[int, tuple[int, int]]] = [{} for _ in self._unsure]
        # Sets of many operators are long integers: an iteration takes longer.
        self._iteration = 1 + len(self._unsure) // _OPERATORS_PER_ITERATION
        self.frontier = Frontier(self.reached)
        start, ready = self.direction.start, self.direction.ready()
        self._push(self.reached, -1, [], start, self.direction.alive, ready, ready)

    def advance(self, states: int) -> OrderFound | None:
        """Visit so many more states, as the allowance permits, or stop at the optimum.

        When the ``frontier`` has become empty no order is better than ``limit``.
        """
        stop, goal, frontier = self.count + states, self._goal, self.frontier
        while frontier and self.count < stop and self.may_search():
            peak, (_, here, state, alive, ready) = frontier.pop()
            if max(self.visited[state], frontier.floor) < peak:
                continue
            self.count += 1
            self.reached = peak
            if state == goal:
                return OrderFound(self._moves_to(here), peak)
            self._expand(peak, here, state, alive, ready)
        return None

    def may_search(self) -> bool:
        """Tell whether there is work left for more than finishing orders."""
        return self.allowance.left > self.reserve and not self.allowance.is_too_late()

    def raise_floor(self, floor: int) -> None:
        """Raise the bound to ``floor`` bytes, which every order reaches: smaller needs are no longer distinguished."""
        if floor <= self.reached:
            return
        self.reached = floor
        self.frontier.raise_floor(floor)

    def best_so_far(self, best: OrderFound) -> OrderFound:
        """Finish the most promising states greedily; the best of these and ``best``."""
        for peak, (_, here, state, alive, ready) in self.frontier.first(_COMPLETIONS):
            if self.allowance.is_spent():
                break
            for rule in RULES:
                moves, top = self._finish(rule, peak, state, alive, ready)
                if top < best.peak:
                    best = OrderFound(self._moves_to(here, moves), top)
        return best

    def greedy(self) -> OrderFound:
        """Return the best of both rules from the start, without a search."""
        found, way = [], self.direction
        for rule in RULES:
            moves, peak = self._finish(rule, self.reached, way.start, way.alive, way.ready())
            found.append(OrderFound(self.direction.in_order(moves), peak))
            if peak <= self.reached:
                break
        return min(found, key=lambda each: each.peak)

    def _expand(self, peak: int, here: int, state: int, alive: int, ready: int) -> None:
        """Push what follows from running each ready operator."""
        unsure, known, visited, limit = self._unsure, self._known, self.visited, self.limit
        self.allowance.left -= self._iteration * ready.bit_count()
        for b in bits(ready):
            need, change = known[b].get(state & unsure[b]) or self._cost(state, b)
            reached = alive + need if alive + need > peak else peak  # max() takes three times as long
            then = state | 1 << b
            if reached >= limit or visited.get(then, limit) <= reached:
                continue
            visited[then] = reached
            ready_then = self._ready_after(ready, then, b)
            # Nothing was free before b: if the peak is the same, only what b woke or touched can be free now.
            fresh = ready_then if reached > peak else ready_then & (~ready | self._touches[b])
            self._push(reached, here, [b], then, alive + change, ready_then, fresh)

    def _push(self, peak: int, parent: int, moves: list[int], state: int, alive: int, ready: int, fresh: int) -> None:
        if fresh & self._may_fall:
            state, alive, ready = self._free_moves(peak, moves, state, alive, ready, fresh)
        else:
            self.allowance.left -= self._iteration  # the same iteration that _free_moves counts where nothing is free
        known = self.visited.get(state)
        if known is not None:
            known = max(known, self.frontier.floor)
            if known < peak or (known == peak and len(moves) > 1):
                return
        self.visited[state] = peak
        self.trail.append((parent, tuple(moves)))
        self.frontier.push(peak, (-state.bit_count(), len(self.trail) - 1, state, alive, ready))

    def _free_moves(
        self, peak: int, moves: list[int], state: int, alive: int, ready: int, fresh: int
    ) -> tuple[int, int, int]:
        """Run what is free, adding it to ``moves``; (state, bytes alive, ready) afterwards.

        ``fresh`` are the ready operators that may be free.
        """
        unsure, known, iterations = self._unsure, self._known, 1
        fresh &= self._may_fall
        while fresh:
            iterations += 1
            b = (fresh & -fresh).bit_length() - 1
            fresh &= fresh - 1
            need, change = known[b].get(state & unsure[b]) or self._cost(state, b)
            if change > 0 or alive + need > peak:
                continue
            state |= 1 << b
            alive += change
            moves.append(b)
            ready_then = self._ready_after(ready, state, b)
            fresh |= ready_then if change else ready_then & (~ready | self._touches[b])
            fresh &= self._may_fall
            ready = ready_then
        self.allowance.left -= self._iteration * iterations
        return state, alive, ready

    def _cost(self, state: int, b: int) -> tuple[int, int]:
        """Return the direction's cost of b, kept by what the state holds of the operators that change it."""
        known, key = self._known[b], state & self._unsure[b]
        cost = known.get(key)
        if cost is None:
            cost = self.direction.cost(state, b)
            if len(known) < _MOST_KNOWN:
                known[key] = cost
        return cost

    def _ready_after(self, ready: int, state: int, b: int) -> int:
        """Return the ready operators when ``b``, one of them, has run."""
        waits = self._waits
        ready ^= 1 << b
        for w in self._wakes[b]:
            if not waits[w] & ~state:
                ready |= 1 << w
        return ready & self._goal

    def _finish(self, rule: Rule, peak: int, state: int, alive: int, ready: int) -> tuple[list[int], int]:
        """Free moves, and else the operator that comes first by ``rule``; (moves, largest need)."""
        moves: list[int] = []
        while ready:
            looked_at = 1
            if not self.allowance.is_spent():
                looked_at = _LOOKED_AT
                state, alive, ready = self._free_moves(peak, moves, state, alive, ready, ready)
            if not ready:
                break
            self.allowance.left -= self._iteration * looked_at
            costs = {b: self._cost(state, b) for b in islice(bits(ready), looked_at)}
            b = min(costs, key=lambda b: rule(*costs[b]))
            need, change = costs[b]
            peak = max(peak, alive + need)
            state |= 1 << b
            alive += change
            moves.append(b)
            ready = self._ready_after(ready, state, b)
        return moves, peak

    def _moves_to(self, node: int, rest: list[int] | None = None) -> tuple[int, ...]:
        parts = [tuple(rest or ())]
        while node >= 0:
            node, moves = self.trail[node]
            parts.append(moves)
        return self.direction.in_order([b for moves in reversed(parts) for b in moves])
