"""The rounds of a search: its own limits, and narrower ones, so that a wide limit never ends worse than a narrow one.

A round does the same whatever other rounds there are. The answer is the best of all rounds within the limits, so that
of a wider limit is among more. Limits on MACs that are narrower than what was asked for are of fixed sizes; there are
no narrower limits on operators, since they would double the rounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

from .select import SelectionLimits

MACS = (0.0, 0.1, 0.3, 1.0)
"""Fractions of the model's MACs that are rounds of their own."""


@dataclass(frozen=True)
class Round:
    """The halos and limits of one round; ``macs`` and ``operators`` as in ``SelectionLimits``.

    ``loops``: the forms of loop that stripes may have.
    """

    halos: tuple[str, ...]
    limits: SelectionLimits
    loops: tuple[str, ...] = ()


def rounds(
    halos: Sequence[str],
    extra_macs: float,
    model_macs: int,
    extra_operators: int | None,
    any_number: int,
    loops: Sequence[tuple[str, ...]] = (),
) -> tuple[Round, ...]:
    """From the one that was asked for to the narrowest; a round comes before all that are narrower.

    ``extra_macs``: a fraction of ``model_macs``. ``any_number``: of operators, where there is no limit. ``loops``:
    forms of loop, from few to many.
    """
    macs = [int(model_macs * rung) for rung in (*(m for m in MACS if m < extra_macs), extra_macs)]
    operators = any_number if extra_operators is None else extra_operators
    every = product((*reversed(loops), ()), choices_of(halos), reversed(macs))
    return tuple(Round(chosen, SelectionLimits(m, operators), forms) for forms, chosen, m in every)


def choices_of(halos: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """What may be done with halos in a round: anything, and each way alone."""
    return (tuple(halos), *((halo,) for halo in halos if len(halos) > 1))
