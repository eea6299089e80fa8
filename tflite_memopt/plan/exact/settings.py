"""What the exact search may spend and which of its techniques it uses."""

from __future__ import annotations

from dataclasses import dataclass

ORDERINGS = ("WAT", "TAW", "TWA")
"""Which item goes first of several that can start at one offset, by W: life, A: life times bytes, T: bytes
that the fullest of its sections still has to hold. Source: google/minimalloc, ``SolverParams.preordering_heuristics``.
"""


@dataclass(frozen=True)
class TreeSettings:
    """``work_limit`` bounds the turns of the tree's loops, so that the answer is the same on every machine; and so does
    ``work_per_pair``, times the number of items squared, since a small problem that is not solved soon is hard.
    ``pairs_limit`` bounds those of the search over pairs: small problems may need as many as large ones.

    The switches turn the techniques off one by one: ``decomposes`` splits the search in time, ``ranks_anew`` orders
    each part by itself, ``canonical`` leaves out placements that rest on nothing, ``infers`` closes nodes by their
    sections, ``orderings`` take turns, ``halves`` looks half way between the bound and the best plan and nearer to the
    plan, not at the bound alone. None of them changes what is proved in the end. ``compiles`` takes the compiled tree
    where it is installed.
    """

    work_limit: int = 200_000_000
    work_per_pair: int = 8_000
    pairs_limit: int = 12_000_000
    decomposes: bool = True
    ranks_anew: bool = True
    canonical: bool = True
    infers: bool = True
    orderings: tuple[str, ...] = ORDERINGS
    halves: bool = True
    compiles: bool = True

    def work_for(self, items: int, has_relations: bool, work: float) -> int:
        """Turns of the loops that a problem with so many items may take, with such a part of the work.

        A tree gets twenty parts at once: a model without relations is soon proved, and a question of a capacity mostly
        has no second chance.
        """
        if has_relations:
            return int(self.pairs_limit * work)
        return int(min(self.work_limit, self.work_per_pair * items * items) * max(min(work, 1.0), work / 20))
