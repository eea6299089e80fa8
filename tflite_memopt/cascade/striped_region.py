"""A region and how it is cut: what a search chooses, and how it is applied to a model."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from ..errors import InfeasibleError, UsageError
from ..ir.model import Model
from ..options import HALOS
from .cut_table import Ends, even_ends
from .lower import lower
from .region import region_of
from .stripes import Edges, Halo, cuts_at, stripes_of

Mode = tuple[Halo, Edges]
MODES: tuple[Mode, ...] = (
    ("recompute", "trim"),
    ("recompute", "pad"),
    ("rolling", "trim"),
    ("rolling", "pad"),
)


@dataclass(frozen=True, order=True)
class StripedRegion:
    """Steps ``first`` to ``end``, half-open, of a model in stripes that end with the rows ``ends`` of its output."""

    first: int
    end: int
    ends: Ends
    halo: Halo
    edges: Edges

    @property
    def count(self) -> int:
        """How many stripes."""
        return len(self.ends)

    def said(self, height: int) -> str:
        """The stripes in words: ``6 stripes (rolling, trim)``."""
        uneven = "" if self.ends == even_ends(height, self.count) else "uneven, "
        return f"{self.count} stripes ({uneven}{self.halo}, {self.edges})"


def modes_of(halos: Collection[str]) -> tuple[Mode, ...]:
    """The modes with one of these halos. Raises UsageError for an unknown one, or for none."""
    if not halos or not set(halos) <= set(HALOS):
        raise UsageError(f"halos are {', '.join(halos) or 'none'}; choose one or both of {', '.join(HALOS)}")
    return tuple(mode for mode in MODES if mode[0] in halos)


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
        stripes = stripes_of(region, cuts_at(each.ends), each.halo, each.edges)
        if isinstance(stripes, str):
            raise InfeasibleError(f"{where} in {each.count} stripes: {stripes}")
        lower(model, graph, region, stripes)
