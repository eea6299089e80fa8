"""The ordering problem and its solution, as frozen integers: no model, no tensor, no flatbuffer.

Sizes are bytes. A tensor is alive from the step that writes it to the last step that reads it; the graph's
inputs from the first step on, its outputs to the last. A tensor here is a range of bytes with one writer: where
several tensors of a model are views of the same bytes, the problem has those bytes once, with the readers of all of
them, so that no method has to know views.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..graph.search_limit import SearchLimit


@dataclass(frozen=True)
class Reuse:
    """``saved`` bytes of input ``tensor`` and of the outputs are the same bytes, if the tensor dies at the step.

    In-place: the smaller of the two sizes. Overlap: what the distance between the two leaves of that.
    """

    tensor: int
    saved: int


@dataclass(frozen=True)
class Step:
    """One operator: distinct tensors read and written, scratch bytes, operators that must run before it.

    Its working set is everything alive, its outputs and its scratch, less the largest ``saved`` of the reuses
    whose tensor has no reader left. ``after`` holds order that data does not show, such as side effects.
    ``uncounted``: bytes that a plan may save here at most and that no scheduler counts.
    """

    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    scratch: int = 0
    after: tuple[int, ...] = ()
    reuses: tuple[Reuse, ...] = ()
    uncounted: int = 0


@dataclass(frozen=True)
class ScheduleProblem:
    """``sizes[t]`` is tensor t's bytes in the arena; ``inputs`` and ``outputs`` are the graph's tensors."""

    sizes: tuple[int, ...]
    steps: tuple[Step, ...]
    inputs: tuple[int, ...] = ()
    outputs: tuple[int, ...] = ()


@dataclass(frozen=True)
class Schedule:
    """``order[s]`` is the operator that runs at step s.

    ``peak_bytes`` is the largest working set; ``lower_bound`` holds for any order (the ``schedule_``
    bound); ``optimal`` says that the two are proved equal. ``states`` counts what the search visited.
    ``stopped_by_clock`` admits that the time limit ended a search: another machine may find another order.
    """

    order: tuple[int, ...]
    peak_bytes: int
    lower_bound: int
    optimal: bool
    method: str
    seconds: float
    states: int
    stopped_by_clock: bool = False


@dataclass(frozen=True)
class ScheduleAnswer:
    """What a method returns: an order, a bound it proved for any order (0 for none), and its effort.

    ``stopped_by_clock``: without the time limit it would have gone on.
    """

    order: tuple[int, ...]
    lower_bound: int = 0
    states: int = 0
    stopped_by_clock: bool = False


Method = Callable[[ScheduleProblem, SearchLimit], ScheduleAnswer]
"""What a method file provides. ``methods.solve`` times it, checks it and works out the peak."""
