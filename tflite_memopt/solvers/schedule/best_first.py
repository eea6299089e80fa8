"""The default method: contraction, then a best-first search on the largest working set.

The two directions of a search through one segment: operators are run from its start, or taken back from its end.

Both have one shape, so that one search serves both. In the backward direction a state is the set of operators taken
back, and "running" one means taking it back: the bytes alive after that are those before it ran. Which direction needs
fewer states depends on where the graph is hardest. Operators here are fused operators.

A fused graph in bit sets: what a search needs to run one operator in a given state, and no more.

Operators here are fused operators, numbered in a topological order: operator b is bit b of every set.

The states that a search has yet to visit, by the largest need on the way to them, with a floor that rises.

Needs below the floor are not distinguished. They are kept in a heap of their own, so that a floor that rises moves
those states alone that it comes to: searches in two directions raise each other's floor thousands of times.

Best-first search for the order of one segment whose largest working set is smallest.

A state is a set of fused operators; the bytes alive follow from it. States are taken in the order of the largest need
on the way to them, so that the first complete one is optimal, and what has been reached at any time is a lower bound.
*Free moves*: a ready operator that needs no more than the present largest need and leaves no more bytes alive runs at
once. That never hurts, since what it adds to the bytes alive can only fall when it is run later.

The default: exact reductions, then best-first search on the bottleneck, segment by segment, with a proof.

The graph is contracted first (``reductions.py``). What remains is cut where every fused operator comes before or after
one of them: the state there is the same in all orders, so that the segments between are searched by themselves, the
one with the largest certain need first. What is proved of one is a bound for all, and so makes the others easier. A
segment is searched from both ends in turn, and the end that is done first decides.

Limits count work, so that every machine finds the same order: at most ``_EFFORT`` iterations of the loops, and
``_MEMORY`` bytes of states (1 GiB) for each segment. Then the best order so far is returned, and the bound that was
proved.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice

from ..graph.dependency_graph import (
    TransitiveClosure,
    bits,
    dependency_graph,
    kahn_order,
    reverse_post_order,
    set_of,
    single_vertex_cuts,
    transitive_closure,
    union,
)
from ..graph.limits import Allowance, SearchLimit
from .problem import MemoryGraph, ScheduleAnswer, ScheduleProblem, memory_graph, schedule_lower_bound
from .reductions import FusedGraph, PeakCandidate, contract


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
    backward: bool

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
        backward=False,
    )


def backward(graph: CompiledGraph, segment: Segment) -> Direction:
    """From the segment's end: a state is the set of the segment's operators taken back."""
    inside = segment.inside

    def cost(state: int, b: int) -> tuple[int, int]:
        """Return the cost of b where it ran, turned round: taking it back adds what running it frees."""
        need, change = graph.cost(segment.goal & ~state & ~(1 << b), b)
        return need - change, -change

    return Direction(
        graph,
        0,
        segment.alive_after,
        inside,
        [set_of(feeds) & inside for feeds in graph.feeds],
        [tuple(bits(needs & inside)) for needs in graph.needs],
        # In the state where none of its inputs dies with it, taking it back frees what it wrote.
        set_of(b for b, grow in enumerate(graph.grow) if grow >= 0),
        cost,
        backward=True,
    )


_MOST_OPERATORS_BOUNDED = 3000
"""The bound of tensors alive across an operator is quadratic in the number of operators."""

Death = tuple[int, int]
"""(operators that also read a tensor, bytes): the bytes are free once all those operators have run."""


@dataclass(frozen=True)
class CompiledCandidate:
    """``extra`` bytes less what has died of ``released``, less the largest that has died of ``reuses``."""

    extra: int
    released: tuple[Death, ...]
    reuses: tuple[Death, ...]

    @property
    def is_sure(self) -> bool:
        """Tell whether it needs the same in every state."""
        return not (self.released or self.reuses)


@dataclass(frozen=True)
class CompiledGraph:
    """``orders[b]`` are the single operators of fused operator b; ``needs`` and ``feeds`` are its direct edges.

    ``need[b]`` is its need on top of the bytes alive in every state, ``candidates[b]`` may ask for more in some.
    ``grow[b]`` is what it adds to them before its unsure ``deaths``. ``least_need[b]`` is a lower bound in bytes
    of the working set while it runs, in any order. ``cuts`` are the operators that all others come before or after,
    and the last one.
    """

    orders: tuple[tuple[int, ...], ...]
    needs: tuple[int, ...]
    feeds: tuple[tuple[int, ...], ...]
    grow: tuple[int, ...]
    deaths: tuple[tuple[Death, ...], ...]
    need: tuple[int, ...]
    candidates: tuple[tuple[CompiledCandidate, ...], ...]
    least_need: tuple[int, ...]
    alive_at_start: int
    cuts: tuple[int, ...]

    @cached_property
    def unsure(self) -> tuple[int, ...]:
        """For each operator those whose having run changes its cost."""
        return tuple(union(others for others, _ in self._deaths_of(b)) for b in range(len(self.needs)))

    @cached_property
    def touches(self) -> tuple[int, ...]:
        """For each operator those whose cost changes when it has run."""
        # By tensor: many operators may share one, and each pair of them once would be quadratic.
        sharing: dict[int, int] = {}
        for b in range(len(self.needs)):
            for readers in {others | 1 << b for others, _ in self._deaths_of(b)}:
                sharing[readers] = sharing.get(readers, 0) | 1 << b
        touched = [0] * len(self.needs)
        for readers, changed in sharing.items():
            for b in bits(readers):
                touched[b] |= changed & ~(1 << b)
        return tuple(touched)

    @cached_property
    def may_fall(self) -> int:
        """Operators that write no more than what can die with them."""
        most = (sum(size for _, size in deaths) for deaths in self.deaths)
        return set_of(b for b, (grow, dies) in enumerate(zip(self.grow, most, strict=True)) if grow <= dies)

    def _deaths_of(self, b: int) -> tuple[Death, ...]:
        """Return all the deaths that the cost of an operator depends on."""
        of_candidates = (death for each in self.candidates[b] for death in (*each.released, *each.reuses))
        return (*self.deaths[b], *of_candidates)

    def cost(self, executed: int, b: int) -> tuple[int, int]:
        """(working set in bytes while operator b runs, bytes alive after it), both less the bytes alive before it."""
        waiting = ~executed
        return self._need(waiting, b), self.grow[b] - _died(self.deaths[b], waiting)

    def _need(self, waiting: int, b: int) -> int:
        need = self.need[b]
        for candidate in self.candidates[b]:
            extra = candidate.extra - _died(candidate.released, waiting)
            extra -= max((saved for others, saved in candidate.reuses if not others & waiting), default=0)
            need = max(need, extra)
        return need


def _died(deaths: Sequence[Death], waiting: int) -> int:
    """Return the bytes of the tensors for which nobody waits any more."""
    return sum(size for others, size in deaths if not others & waiting)


def compiled(graph: FusedGraph) -> CompiledGraph:
    """Number the fused operators, and return the graph with bit sets in place of names."""
    order = graph.topological()
    number = {v: b for b, v in enumerate(order)}
    home = {op: number[v] for v in order for op in graph.order[v]}
    edges = dependency_graph([set_of(number[u] for u in graph.needs[v]) for v in order])
    closure = transitive_closure(edges)
    readers = [set_of(home[op] for op in bits(mask)) for mask in graph.readers]
    costs = [_costs(graph, v, b, readers, closure) for b, v in enumerate(order)]
    least = [cost.least_need for cost in costs]
    if len(order) <= _MOST_OPERATORS_BOUNDED:
        least = _with_across(graph, least, order, closure, readers)
    return CompiledGraph(
        orders=tuple(tuple(graph.order[v]) for v in order),
        needs=edges.needs,
        feeds=tuple(tuple(bits(feeds)) for feeds in edges.feeds),
        grow=tuple(cost.grow for cost in costs),
        deaths=tuple(cost.deaths for cost in costs),
        need=tuple(max((c.extra for c in cost.candidates if c.is_sure), default=0) for cost in costs),
        candidates=tuple(tuple(c for c in cost.candidates if not c.is_sure) for cost in costs),
        least_need=tuple(least),
        alive_at_start=graph.alive_at_start,
        cuts=tuple(step - 1 for step in single_vertex_cuts(closure) if step),
    )


@dataclass(frozen=True)
class _OperatorCosts:
    """One operator's part of ``CompiledGraph``; ``least_need`` is without what is alive across it."""

    grow: int
    deaths: tuple[Death, ...]
    candidates: tuple[CompiledCandidate, ...]
    least_need: int


def _costs(graph: FusedGraph, v: int, b: int, readers: Sequence[int], closure: TransitiveClosure) -> _OperatorCosts:
    """Return the costs of fused operator v, which is number b of ``readers`` and ``closure``."""
    operator, sizes = graph.operators[v], graph.sizes
    may = frozenset(t for t in operator.inputs - graph.kept if not readers[t] & closure.after[b])
    sure = frozenset(t for t in may if not readers[t] & ~(1 << b | closure.before[b]))
    others = {t: readers[t] & ~(1 << b) for t in may - sure}
    return _OperatorCosts(
        operator.change(sizes, sure),
        tuple((others[t], sizes[t]) for t in sorted(others)),
        tuple(_in_bits(candidate.settled(sure, sizes), others, sizes) for candidate in operator.candidates),
        sum(sizes[t] for t in operator.inputs - graph.outputs[v]) + operator.need(sizes, may),
    )


def _in_bits(candidate: PeakCandidate, others: Mapping[int, int], sizes: Sequence[int]) -> CompiledCandidate:
    released = tuple((others[t], sizes[t]) for t in sorted(candidate.released) if t in others)
    reuses = tuple((others[r.tensor], r.saved) for r in candidate.reuses if r.tensor in others)
    return CompiledCandidate(candidate.extra, released, reuses)


def _with_across(
    graph: FusedGraph, least: Sequence[int], order: Sequence[int], closure: TransitiveClosure, readers: Sequence[int]
) -> list[int]:
    """``least`` with every tensor that is alive across an operator in all orders."""
    total = list(least)
    writer = {t: b for b, v in enumerate(order) for t in graph.outputs[v]}
    for t, mine in enumerate(readers):
        if t not in writer and t not in graph.inputs:
            continue
        across = closure.after[writer[t]] if t in writer else (1 << len(order)) - 1
        if t not in graph.kept:
            across &= union(closure.before[r] for r in bits(mine))
        for b in bits(across):
            if t not in graph.operators[order[b]].inputs:
                total[b] += graph.sizes[t]
    return total


State = tuple[int, int, int, int, int]
"""(less its number of operators, its place in the trail, its operators, bytes alive, ready operators)."""


class Frontier:
    """States in the order of (the larger of need and ``floor``, state): the one with most operators, then the oldest.

    ``floor``: bytes. No need that is pushed is below it.
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


def _least_need_search(need: int, change: int) -> tuple[int, int]:
    return need, change


def _largest_hill(need: int, change: int) -> tuple[int, int]:
    return change - need, need


RULES: tuple[Rule, ...] = (_least_need_search, _largest_hill)
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


_MEMORY = 1 << 30
_BYTES_PER_STATE = 600
"""A cautious estimate of what Python needs for one state, and for each fused operator half a byte more."""
_EFFORT = 5_000_000
"""Iterations of the loops: some five to ten seconds."""
_QUESTION = 500_000
"""Iterations of the loops for the question whether any order comes below a limit; no more than for the search
itself.
"""
_RESERVE = 0.1
"""Part of the work that is kept for finishing the orders that a search has begun."""
_ITERATION = 16
"""States that one direction visits before the other goes on."""
_LEAD = 5
"""Iterations of the direction that last raised the bound for each iteration of the other one."""


def best_first(problem: ScheduleProblem, limit: SearchLimit) -> ScheduleAnswer:
    """An order of smallest peak; without work or memory to prove it, the best order and the proved bound.

    The model's own order is the answer where none is better. Where ``limit.below`` is out of reach, as far as a
    question with work of its own can tell, the best of the simple orders is.
    """
    allowance = Allowance(_EFFORT, limit)
    graph, floor = memory_graph(problem), schedule_lower_bound(problem)
    simple: dict[tuple[int, ...], int] = {}
    for order in _simple_orders(graph):
        if order not in simple:
            simple[order] = graph.peak(order)
        if simple[order] == floor:
            return ScheduleAnswer(order, floor)
    own = min(simple, key=simple.__getitem__)
    if limit.below is not None and floor >= limit.below:
        return ScheduleAnswer(own, floor)
    fused = FusedGraph(graph)
    contract(fused)
    small = compiled(fused)
    segments = _segments(small)
    floor = max(floor, *small.least_need)
    visited = 0
    if limit.below is not None:
        visited, is_reachable = _question(small, segments, limit.below, allowance)
        if is_reachable is False:
            return ScheduleAnswer(own, max(floor, limit.below), visited)
        if is_reachable is None and allowance.left < _QUESTION:  # the same search once more would find no more
            return ScheduleAnswer(own, floor, visited)
    moves: dict[Segment, tuple[int, ...]] = {}
    reserve = int(_RESERVE * allowance.left)
    for segment in sorted(segments, key=lambda segment: -_least_need_method(small, segment)):
        moves[segment], floor, count = _search(small, segment, floor, None, allowance, reserve)
        visited += count
    found = tuple(v for segment in segments for b in moves[segment] for v in small.orders[b])
    best = found if graph.peak(found) < simple[own] else own
    return ScheduleAnswer(best, floor, visited, allowance.stopped_by_clock)


def _question(
    graph: CompiledGraph, segments: Sequence[Segment], peak: int, allowance: Allowance
) -> tuple[int, bool | None]:
    """(states visited, whether some order needs less than ``peak`` bytes; None where that is not known).

    Quicker than to look for the smallest peak: smaller needs are not distinguished. It ends at the first segment that
    needs as much, or that is not known to need less. Its work is its own.
    """
    visited, own = 0, allowance.another(_QUESTION)
    for segment in sorted(segments, key=lambda segment: -_least_need_method(graph, segment)):
        if _least_need_method(graph, segment) >= peak:
            return visited, False
        _, reached, count = _search(graph, segment, peak - 1, peak, own, 0)
        visited += count
        if reached >= peak or own.is_spent():
            return visited, False if reached >= peak else None
    return visited, True


def _simple_orders(graph: MemoryGraph) -> Iterator[tuple[int, ...]]:
    """Yield the baselines' orders, first of all the model's own if it is one."""
    if graph.runs_as_numbered:
        yield tuple(range(len(graph.needs)))
    yield kahn_order(graph)
    yield reverse_post_order(graph)


def _segments(graph: CompiledGraph) -> list[Segment]:
    """Return the segments in the order in which they run."""
    segments = []
    executed, alive = 0, graph.alive_at_start
    for cut in graph.cuts:
        goal, before = (2 << cut) - 1, alive
        start = executed
        for b in range(start.bit_length(), cut + 1):
            alive += graph.cost(executed, b)[1]
            executed |= 1 << b
        segments.append(Segment(start, goal, before, alive))
    return segments


def _least_need_method(graph: CompiledGraph, segment: Segment) -> int:
    return max(graph.least_need[segment.executed.bit_length() : segment.goal.bit_length()])


def _search(
    graph: CompiledGraph, segment: Segment, floor: int, below: int | None, allowance: Allowance, reserve: int
) -> tuple[tuple[int, ...], int, int]:
    """(fused operators in order, bytes that no order can avoid, states visited) of one segment.

    ``floor``: needs up to so many bytes are not distinguished. ``below``: nor are those of so many and more.
    """
    searches: list[BottleneckSearch] = []
    best: OrderFound | None = None
    for direction in (forward, backward):
        searches.append(BottleneckSearch(direction(graph, segment), floor, 0, allowance, reserve))
        quick = searches[-1].greedy()
        best = quick if best is None or quick.peak < best.peak else best
        if best.peak <= floor:
            return best.moves, floor, 0
    assert best is not None
    for search in searches:
        search.limit = best.peak if below is None else min(below, best.peak)
    most = _MEMORY // (_BYTES_PER_STATE + len(graph.needs) // 2)
    lead = 1
    while sum(len(search.visited) for search in searches) < most and searches[0].may_search():
        for search, iteration in zip(searches, (lead * _ITERATION, _ITERATION), strict=True):
            found = search.advance(iteration)
            if found or not search.frontier:
                best = found or best
                return best.moves, best.peak, sum(search.count for search in searches)
        if searches[0].reached != searches[1].reached:
            searches.sort(key=lambda search: -search.reached)
            searches[1].raise_floor(searches[0].reached)
            lead = _LEAD
    for search in searches:
        best = search.best_so_far(best)
    return best.moves, max(search.reached for search in searches), sum(search.count for search in searches)
