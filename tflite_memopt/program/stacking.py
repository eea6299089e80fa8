"""The order in which models are made with one allocator, so that its arena is smallest.

    | tensors of whichever runs |  ....  | third | second | first | allocator |
    | temporaries of the one that is made |

Structures stack up from the end. What the order changes is how far the temporaries of one that is made reach into those
of the others, and the padding between structures.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..graph.alignment import aligned

Maker = Callable[[int], tuple[int, int]]
"""From the bytes of structures before a model is made: those after it, and the arena that making it needs.

Neither result falls when the argument rises.
"""


@dataclass(frozen=True)
class Stack:
    """Models in the ``order`` in which they are made.

    ``tail``: bytes of all structures. ``peak``: of the arena that making them needs.
    """

    order: tuple[int, ...]
    tail: int
    peak: int

    def arena(self, head: int) -> int:
        """The arena in bytes, whose first ``head`` bytes are for tensors."""
        return aligned(max(self.peak, head + self.tail))

    def with_one_more(self, number: int, maker: Maker) -> Stack:
        """The same, and a model on top of it."""
        tail, peak = maker(self.tail)
        return Stack((*self.order, number), tail, max(self.peak, peak))


def least_stack(makers: Sequence[Maker], allocator: int, head: int) -> Stack:
    """The order with the smallest arena; ``allocator``: bytes of its own structures, ``head``: of tensors.

    Of two stacks of the same models, one that is no smaller in both tail and peak never leads to less. So it is exact,
    in 2^n steps for n models (Held and Karp, "A Dynamic Programming Approach to Sequencing Problems", 1962).
    """
    best: dict[int, list[Stack]] = {0: [Stack((), allocator, 0)]}
    every = (1 << len(makers)) - 1
    for chosen in range(every):
        for stack in best.pop(chosen):
            for number, maker in enumerate(makers):
                if not chosen >> number & 1:
                    _keep(best.setdefault(chosen | 1 << number, []), stack.with_one_more(number, maker))
    return min(best[every], key=lambda each: (each.arena(head), each.order))


def _keep(front: list[Stack], new: Stack) -> None:
    """Put it among those that none other beats."""
    if any(each.tail <= new.tail and each.peak <= new.peak for each in front):
        return
    front[:] = [each for each in front if each.tail < new.tail or each.peak < new.peak]
    front.append(new)
