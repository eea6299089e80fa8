"""A region and how it is cut: what a search chooses, and how it is applied to a model."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal

from ..errors import InfeasibleError, UsageError
from ..ir.model import Model
from ..kernels.since import LOOPS, has_operators
from ..options import EFFORTS, HALOS, Options
from .cut_table import Ends, even_ends
from .loop.lower import LoopForm, lower_loop, turns_of
from .lower import lower
from .region import region_of
from .stripes import Edges, Halo, cuts_at, stripes_of

Form = Literal["unrolled"] | LoopForm
"""Stripes one after the other, or as one loop (``loop/``)."""
Mode = tuple[Halo, Edges]
LoopMode = tuple[Halo, Edges, LoopForm]
MODES: tuple[Mode, ...] = (
    ("recompute", "trim"),
    ("recompute", "pad"),
    ("rolling", "trim"),
    ("rolling", "pad"),
)
"""Of stripes one after the other."""
LOOP_MODES: tuple[LoopMode, ...] = (
    ("recompute", "trim", "clamped"),
    ("rolling", "pad", "masked"),
    ("recompute", "trim", "peeled"),
    ("recompute", "pad", "peeled"),
    ("rolling", "trim", "peeled"),
    ("rolling", "pad", "peeled"),
)
"""A clamped and a masked loop treat halo and edges in ways of their own."""


@dataclass(frozen=True, order=True)
class StripedRegion:
    """Steps ``first`` to ``end``, half-open, of a model in stripes that end with the rows ``ends`` of its output.

    As a loop, all its turns write as many rows as the first stripe has.
    """

    first: int
    end: int
    ends: Ends
    halo: Halo
    edges: Edges
    form: Form = "unrolled"

    @property
    def count(self) -> int:
        """How many stripes."""
        return len(self.ends)

    def said(self, height: int) -> str:
        """The stripes in words: ``6 stripes (rolling, trim)``, or ``a masked loop, 2 rows a turn``."""
        if self.form != "unrolled":
            rows = f"{self.ends[0]} row{'s' * (self.ends[0] > 1)} a turn"
            return f"a {self.form} loop, {rows}{f' ({self.halo}, {self.edges})' * (self.form == 'peeled')}"
        uneven = "" if self.ends == even_ends(height, self.count) else "uneven, "
        return f"{self.count} stripes ({uneven}{self.halo}, {self.edges})"


def modes_of(halos: Collection[str], loops: Collection[str] = ()) -> tuple[Mode | LoopMode, ...]:
    """The modes with one of these halos; of loops, those of the forms in ``loops``.

    Raises UsageError for an unknown halo, or for none.
    """
    if not halos or not set(halos) <= set(HALOS):
        raise UsageError(f"halos are {', '.join(halos) or 'none'}; choose one or both of {', '.join(HALOS)}")
    every: tuple[Mode | LoopMode, ...] = (*MODES, *(mode for mode in LOOP_MODES if mode[2] in loops))
    return tuple(mode for mode in every if mode[0] in halos)


def loop_forms(options: Options) -> list[tuple[LoopForm, ...]]:
    """The forms of loop to search, from few to many; none where they are not wanted, or not in the firmware's TFLM.

    A peeled loop has its operators three times, so that it rarely needs less than the others.
    """
    if not (options.loops and has_operators(LOOPS, options.tflm_since)):
        return []
    small: tuple[LoopForm, ...] = ("clamped", "masked")
    return [small, (*small, "peeled")] if options.effort == EFFORTS[-1] else [small]


def apply_stripes(model: Model, chosen: Sequence[StripedRegion]) -> None:
    """Run these regions of the main graph in stripes. Positions are those before any is applied.

    Raises InfeasibleError when one does not fit the model.
    """
    graph = model.main
    operators = list(graph.operators)
    for each in chosen:
        where = f"steps {each.first} to {each.end}"
        region = region_of(graph, operators[each.first : each.end])
        if isinstance(region, str):
            raise InfeasibleError(f"{where} are no region: {region}")
        height = region.exit.shape[1]
        if each.ends[-1:] != (height,) or list(each.ends) != sorted(set(each.ends)):
            raise InfeasibleError(f"{where}: {height} rows cannot be cut at {each.ends}")
        if each.form != "unrolled":
            turns = turns_of(region, each.ends[0], each.form, each.halo, each.edges)
            if isinstance(turns, str):
                raise InfeasibleError(f"{where} as a loop: {turns}")
            lower_loop(model, graph, region, turns)
            continue
        stripes = stripes_of(region, cuts_at(each.ends), each.halo, each.edges)
        if isinstance(stripes, str):
            raise InfeasibleError(f"{where} in {each.count} stripes: {stripes}")
        lower(model, graph, region, stripes)
