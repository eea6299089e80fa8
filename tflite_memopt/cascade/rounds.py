"""The order in which a search goes from narrow limits to wide ones, so that wide ones never end worse.

A search with wide limits first does what one with narrower ones does, and starts from its answer. Limits are taken in
rounds of fixed sizes; the last round has the limits that were asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from .select import SelectionLimits

MACS = (0.0, 0.1, 0.3, 1.0)
"""Fractions of the model's MACs that are rounds of their own."""
OPERATORS = (64,)
"""Numbers of operators that are."""


@dataclass(frozen=True)
class Round:
    """The halos and limits of one round; ``macs`` and ``operators`` as in ``SelectionLimits``."""

    effort: int
    halos: tuple[str, ...]
    limits: SelectionLimits

    def holds(self, other: Round) -> bool:
        """Whether all that the other round may do is allowed in this one."""
        return (
            other.effort <= self.effort
            and set(other.halos) <= set(self.halos)
            and other.limits.macs <= self.limits.macs
            and other.limits.operators <= self.limits.operators
        )


def rounds(
    effort: int, halos: Sequence[str], extra_macs: float, model_macs: int, extra_operators: int | None, any_number: int
) -> Iterator[Round]:
    """From the narrowest to the one that was asked for; a round comes after all that are narrower.

    ``extra_macs``: a fraction of ``model_macs``. ``any_number``: of operators, where there is no limit.
    """
    macs = [int(model_macs * rung) for rung in (*(m for m in MACS if m < extra_macs), extra_macs)]
    most = any_number if extra_operators is None else extra_operators
    operators = [*(n for n in OPERATORS if n < most), most]
    alone = [(halo,) for halo in halos] if len(halos) > 1 else []
    for level, chosen, m, n in product(range(effort + 1), [*alone, tuple(halos)], macs, operators):
        yield Round(level, chosen, SelectionLimits(m, n))
