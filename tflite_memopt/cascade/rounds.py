"""The rounds of a search: its own limits, and narrower ones, so that a wide limit never ends worse than a narrow one.

A round does the same whatever other rounds there are. The answer is the best of all rounds within the limits, so that
of a wider limit is among more. Limits on MACs that are narrower than what was asked for are of fixed sizes; there are
no narrower limits on operators, since they would double the rounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

from .selection import SelectionLimits

MACS = (0.0, 0.1, 0.3, 1.0)
"""Fractions of the model's MACs that are rounds of their own."""
_SURE = 0.9
"""The part of that which is handed out: the estimate of single models was off by up to 0.6 % of the whole."""


@dataclass(frozen=True)
class Round:
    """The halos and limits of one round; ``macs`` and ``operators`` as in ``SelectionLimits``.

    ``loops``: the forms of loop that stripes may have.
    """

    halos: tuple[str, ...]
    limits: SelectionLimits
    loops: tuple[str, ...] = ()

    def is_within(self, other: Round) -> bool:
        """Whether whatever it may do, the other one may do as well."""
        own, its = self.limits, other.limits
        has_less = set(self.halos) <= set(other.halos) and set(self.loops) <= set(other.loops)
        return has_less and own.macs <= its.macs and own.operators <= its.operators and own.work <= its.work


def rounds(
    halos: Sequence[str],
    extra_macs: float,
    model_macs: int,
    model_work: int,
    extra_operators: int | None,
    any_number: int,
    loops: Sequence[tuple[str, ...]] = (),
    extra_work: float = 1.0,
) -> tuple[Round, ...]:
    """From the one that was asked for to the narrowest; a round comes before all that are narrower.

    ``extra_macs``: a fraction of ``model_macs``; ``extra_work``: of ``model_work``.
    ``any_number``: of operators, where there is no limit. ``loops``: forms of loop, from few to many.
    """
    rungs = (*(m for m in MACS if m < extra_macs), extra_macs)
    operators = any_number if extra_operators is None else extra_operators
    chosen = product((*reversed(loops), ()), choices_of(halos), reversed(rungs))
    return tuple(
        Round(halo, limits_at(m, model_macs, model_work, operators, extra_work), forms) for forms, halo, m in chosen
    )


def choices_of(halos: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """What may be done with halos in a round: anything, and each way alone."""
    return (tuple(halos), *((halo,) for halo in halos if len(halos) > 1))


def limits_at(
    extra_macs: float, model_macs: int, model_work: int, operators: int, extra_work: float
) -> SelectionLimits:
    """The limits of one rung; fractions as for ``rounds``."""
    return SelectionLimits(int(model_macs * extra_macs), operators, int(model_work * extra_work * _SURE))
