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
    """The halos and limits of one round; ``macs`` and ``operators`` as in ``SelectionLimits``.

    ``loops``: the forms of loop that stripes may have.
    """

    effort: int
    halos: tuple[str, ...]
    limits: SelectionLimits
    loops: tuple[str, ...] = ()

    def holds(self, other: Round) -> bool:
        """Whether all that the other round may do is allowed in this one."""
        return (
            other.effort <= self.effort
            and set(other.halos) <= set(self.halos)
            and other.limits.macs <= self.limits.macs
            and other.limits.operators <= self.limits.operators
            and set(other.loops) <= set(self.loops)
        )


def rounds(
    effort: int,
    halos: Sequence[str],
    extra_macs: float,
    model_macs: int,
    extra_operators: int | None,
    any_number: int,
    loops: Sequence[tuple[str, ...]] = (),
) -> Iterator[Round]:
    """From the narrowest to the one that was asked for; a round comes after all that are narrower.

    ``extra_macs``: a fraction of ``model_macs``. ``any_number``: of operators, where there is no limit. ``loops``:
    forms of loop, from few to many; rounds with them have all halos.
    """
    macs = [int(model_macs * rung) for rung in (*(m for m in MACS if m < extra_macs), extra_macs)]
    most = any_number if extra_operators is None else extra_operators
    operators = [*(n for n in OPERATORS if n < most), most]
    kinds: list[tuple[tuple[str, ...], tuple[str, ...]]] = [((halo,), ()) for halo in halos] if len(halos) > 1 else []
    kinds += [(tuple(halos), forms) for forms in ((), *loops)]
    for level, (chosen, forms), m, n in product(range(effort + 1), kinds, macs, operators):
        yield Round(level, chosen, SelectionLimits(m, n), forms)
