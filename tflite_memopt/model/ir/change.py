"""Records of changes: those made to a model, those refused and why, and how far each may alter values.

A *decision* is all that a run decided about a model, on one line, so that another run does the same without a search.

    steps in loops; sites 12 15e; mended; sites 30x4; along H; order 0-3,5,4; 4-11 unrolled 8,16 rolling pad

Parts in this order, each of which may be missing; all numbers are positions of operators.

    no rewrites     the graph stays as it came but for what would be computed wrongly
    steps in loops  unrolled steps are loops (``rewrite/steps_in_a_loop.py``)
    sites   operators of the cleaned-up model that rewriting takes apart (``rewrite/search.py``), once for each round
    mended  what a kernel library computes wrongly is written otherwise (``kernels/mend.py``), before later rounds
    along H sequences, and images with channels first, have rows (``rewrite/sequences_along_h.py``, ``planes.py``)
    order   of the rewritten model's operators, before stripes
    tilings regions of that order in stripes and loops (``cascade/tiling.py``)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Literal

from ...errors import ErrorKind, UsageError
from .model import Model

_ROLLED, _SITES, _ALONG_H, _ORDER, _NOTHING = "steps in loops", "sites ", "along H", "order ", "as it is"
_BELOW, _NO_REWRITES = "below ", "no rewrites"
MENDED = "mended"
"""In place of a round of sites: faults of kernel libraries are mended here."""


@dataclass(frozen=True)
class Decision:
    """``sites`` and ``tilings`` are in the words of those who apply them, or ``MENDED``. ``order``: empty where it
    stays. ``is_rewritten``: whether rules that are always an improvement were applied.

    ``below``: bytes of the objective that the plan is below only if the planner knows them; None where it does without.
    """

    sites: tuple[str, ...] = ()
    is_along_h: bool = False
    order: tuple[int, ...] = ()
    tilings: str = ""
    is_rolled: bool = False
    below: int | None = None
    is_rewritten: bool = True

    def __str__(self) -> str:
        order = () if self.order == tuple(range(len(self.order))) else (_ORDER + ",".join(_ranges(self.order)),)
        along = (_ALONG_H,) if self.is_along_h else ()
        rolled = (_ROLLED,) if self.is_rolled else ()
        below = () if self.below is None else (f"{_BELOW}{self.below}",)
        kept = () if self.is_rewritten else (_NO_REWRITES,)
        parts = (*kept, *rolled, *map(_site, self.sites), *along, *order, self.tilings, *below)
        return "; ".join(part for part in parts if part) or _NOTHING

    @property
    def actions(self) -> tuple[str, ...]:
        """The parts that a run can leave out, in the order in which they are applied."""
        words = (_site(word) for each in self.sites for word in each.split())
        rolled, along = (_ROLLED,) * self.is_rolled, (_ALONG_H,) * self.is_along_h
        return (*rolled, *words, *along, *self._tilings)

    def first(self, count: int) -> Decision:
        """Return the decision with its first ``count`` actions. The order stays while no operator is another one."""
        left = count - self.is_rolled
        sites = []
        for each in self.sites:
            words = each.split()
            sites += [" ".join(words[:left])] if left > 0 else []
            left -= len(words)
        is_along_h, left = self.is_along_h and left > 0, left - self.is_along_h
        tilings = "; ".join(self._tilings[: max(0, left)])
        order, is_rolled = self.order if left >= 0 else (), self.is_rolled and count > 0
        return Decision(tuple(sites), is_along_h, order, tilings, is_rolled, is_rewritten=self.is_rewritten)

    def without(self, at: int) -> Decision:
        """Return the decision without its action ``at``, and without all later ones that number operators after it."""
        tiling = at - len(self.actions) + len(self._tilings)
        rest = (*self._tilings[:tiling], *self._tilings[tiling + 1 :])
        return self.first(at) if tiling < 0 else replace(self, tilings="; ".join(rest), below=None)

    @property
    def _tilings(self) -> tuple[str, ...]:
        return tuple(part.strip() for part in self.tilings.split(";") if part.strip())


def _site(words: str) -> str:
    return words if words == MENDED else _SITES + words


def without_faults(decision: Decision, fails: Callable[[Decision], bool]) -> tuple[Decision, tuple[str, ...]] | None:
    """Return a failing decision without the actions with which it fails, and these; None if it fails with none.

    The first actions that fail together are halved until the last of them is known. ``fails``: whether the result of a
    decision is wrong, or cannot be made.
    """
    left_out: list[str] = []
    while not fails(decision.first(0)):
        right, wrong = 0, len(decision.actions)
        while wrong - right > 1:
            middle = (right + wrong) // 2
            right, wrong = (right, middle) if fails(decision.first(middle)) else (middle, wrong)
        left_out.append(decision.actions[wrong - 1])
        decision = decision.without(wrong - 1)
        if not fails(decision):
            return decision, tuple(left_out)
    return None


NOTHING_DECIDED = Decision()


def decision_in(text: str) -> Decision:
    """The decision that prints as this text. Raises UsageError, naming the part that is none."""
    parts = [part.strip() for part in text.split(";") if part.strip() not in ("", _NOTHING)]
    sites = tuple(part.removeprefix(_SITES) for part in parts if part.startswith(_SITES) or part == MENDED)
    orders = [_order_in(part.removeprefix(_ORDER)) for part in parts if part.startswith(_ORDER)]
    tilings = [part for part in parts if part[0].isdigit()]
    bounds = [part.removeprefix(_BELOW) for part in parts if part.startswith(_BELOW)]
    words = sum(map(parts.count, (_ROLLED, _ALONG_H, _NO_REWRITES))) + sum(each.isdecimal() for each in bounds)
    if max(len(orders), len(bounds)) > 1 or len(sites) + words + len(orders) + len(tilings) < len(parts):
        raise UsageError(
            f"'{text}' is not a decision; an example is 'order 0-3,5,4; 4-11 unrolled 8,16 rolling pad'",
            ErrorKind.SYNTAX,
        )
    below = int(bounds[0]) if bounds else None
    if (_NO_REWRITES in parts and (sites or _ROLLED in parts)) or (bounds and not tilings):
        raise UsageError(
            f"'{text}' contradicts itself: '{_NO_REWRITES}' excludes sites and steps in loops, and '{_BELOW}N' needs "
            "tilings",
            ErrorKind.SYNTAX,
        )
    order, is_rolled, is_rewritten = orders[0] if orders else (), _ROLLED in parts, _NO_REWRITES not in parts
    return Decision(sites, _ALONG_H in parts, order, "; ".join(tilings), is_rolled, below, is_rewritten)


def _order_in(text: str) -> tuple[int, ...]:
    try:
        ends = [tuple(map(int, part.split("-"))) for part in text.split(",")]
    except ValueError:
        ends = []
    spans = [range(each[0], each[-1] + 1) for each in ends]
    if not spans or not all(spans):
        raise UsageError(f"'{text}' is not an order of operators; an example is '0-3,5,4'", ErrorKind.SYNTAX)
    return tuple(chain.from_iterable(spans))


def _ranges(order: Sequence[int]) -> Iterator[str]:
    """Positions that follow one another as ``first-last``."""
    first = 0
    for at in range(1, len(order) + 1):
        if at == len(order) or order[at] != order[at - 1] + 1:
            yield str(order[first]) if at - first == 1 else f"{order[first]}-{order[at - 1]}"
            first = at


Exactness = Literal["exact", "reassociates", "approximates"]
EXACTNESS: tuple[Exactness, ...] = ("exact", "reassociates", "approximates")
"""From the strictest: the same bits; the same sums in another order (float); a requantized value more (integers)."""
DEAD_CHANNELS = "dead_channels"
"""The first word of the rule that deletes channels, in reports."""
BOUNDARY = "boundary"
"""Remove QUANTIZE and DEQUANTIZE at inputs and outputs (``--io int8``)."""
CHANNELS_LAST = "channels_last"
"""Remove the TRANSPOSE at inputs and outputs, which then have their channels last (``--io channels-last``)."""
DEAD_TENSORS = "dead_tensors"
"""Drop tensors and constants that nothing reads."""
SHARED_CONSTANTS = "share_constants"
"""Store equal constants once."""
UNCALLED = "uncalled_subgraphs"
"""Drop subgraphs that nothing calls, such as those of a second signature."""
WEIGHTS_INLINE = "weights_inline"
"""Write constants into the flatbuffer that lay behind it in the file, where TFLM does not look."""
FOREIGN_PLAN = "foreign_plan"
"""Leave out a memory plan in the file that is of another graph: TFLM refuses the file for it."""
INFERRED_SHAPES = "inferred_shapes"
"""Replace shapes of the file by those that LiteRT infers from the operands."""
STATIC_LISTS = "static_lists"
"""The rule by which loops set items of lists in place (``rewrite/static_lists.py``)."""
ONE_STEP = "one_step"
"""The rule of ``--step``, by which a recurrent network takes one frame per call (``rewrite/one_step.py``)."""
ONE_HOP = "one_hop"
"""The rule of ``--slide``, by which a network takes one hop of a sliding window per call (``cascade/slide.py``)."""
Cause = Literal["judged", "out_of_time", "needs_approximation"]
"""``judged``: by the rule or the cost. ``out_of_time``: in reports of earlier versions alone.
``needs_approximation``: it would change values more than is allowed."""


@dataclass(frozen=True)
class RewriteUse:
    """A place where rules were applied; the loosest of them determines ``exactness``."""

    rule: str
    """Name of the rule, or of several joined by ' + '."""
    operators: tuple[str, ...]
    """Changed operators, by the names of their first outputs."""
    exactness: Exactness
    """ "exact": the same bits; "reassociates": the same sums in another order; "approximates": rounded once more."""
    saved_bytes: int
    """Additional bytes without this change; such values do not add up. 0 for changes outside of the search."""
    stripes: str | None = None
    """The form in which a region runs a few rows at a time; null for other rules."""


@dataclass(frozen=True)
class Refusal:
    """A rule that fits an operator and was not applied: ``reason`` is for people, ``cause`` for programs."""

    rule: str
    """Name of the rule, or of several joined by ' + '."""
    operator: str
    """Name of the operator's first output."""
    reason: str
    """Why it was not changed."""
    cause: Cause = "judged"
    """ "judged", by the rule or its cost; "needs_approximation": it would change values more than is allowed."""


@dataclass(frozen=True)
class Changed:
    """What a pass made of a model, what it did, and what it did not do for which reason.

    A *pass* takes a model and changes that model itself: whoever needs it as it was passes a copy. ``uses`` is empty
    where the pass did nothing that is worth keeping.

    ``least``: of a search for stripes, bytes of the objective that nothing it looks at goes below, where it is known.
    ``decision``: what the pass chose by a search, with which it does the same again. ``without_loops``: with which it
    does the best of what such a search found without loops, where its best has one; ``next_best``: what it found next
    to its best. ``offsets``: where the search has placed the items of the model (``memory/layout.py``) in the order in
    which it stands.
    """

    model: Model
    uses: tuple[RewriteUse, ...] = ()
    refused: tuple[Refusal, ...] = ()
    least: int | None = None
    without_loops: Decision | None = None
    next_best: tuple[Decision, ...] = ()
    offsets: tuple[int, ...] | None = None
    decision: Decision = NOTHING_DECIDED

    def then(self, *later: Changed) -> Changed:
        """Return this and what later passes did as the work of one; model and decision are the last one's."""
        every = (self, *later)
        uses, refused = (
            tuple(chain.from_iterable(each)) for each in zip(*((x.uses, x.refused) for x in every), strict=True)
        )
        return replace(every[-1], uses=uses, refused=refused)


def changed(model: Model, rule: str, names: Iterable[str], refused: Iterable[Refusal] = ()) -> Changed:
    """Return what a pass with one rule did, exactly, to the operators or tensors with these names."""
    done = tuple(names)
    return Changed(model, (RewriteUse(rule, done, "exact", 0),) if done else (), tuple(refused))


def loosest(found: Iterable[Exactness]) -> Exactness:
    """The exactness of all changes together; "exact" when there is none."""
    return max(found, key=EXACTNESS.index, default="exact")
