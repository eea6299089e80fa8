"""Which regions to run in stripes, as a problem of integers, and its exact solution.

The steps of a model, in order, each need some bytes. An *option* replaces an interval of steps by stripes that need
less, and pays for it with bytes of the tail, MACs and operators. A *cover* is a set of options that do not overlap. For
a limit on the bytes, every step outside the options, and every option, must stay within it.

Estimates: a step's bytes are those alive, and not the planner's; the planner has the last word on each cover.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from operator import le


@dataclass(frozen=True)
class Option:
    """Steps ``first`` to ``end``, half-open, in stripes: ``peak`` bytes while they run.

    ``tail``, ``temporaries`` (bytes), ``macs`` and ``operators`` are what is added to the model's.
    """

    first: int
    end: int
    peak: int
    tail: int
    temporaries: int
    macs: int
    operators: int


@dataclass(frozen=True)
class Limits:
    """The most that a cover may add."""

    macs: int
    operators: int


@dataclass(frozen=True)
class Cover:
    """Options by number, in order; ``peak`` is the largest of all steps, the rest are sums over the options."""

    options: tuple[int, ...]
    peak: int
    tail: int
    temporaries: int
    macs: int
    operators: int


def covers(needs: Sequence[int], options: Sequence[Option], limits: Limits, levels: int = 64) -> tuple[Cover, ...]:
    """The covers that no other one beats in peak, tail, MACs and operators at once, for up to ``levels`` peaks.

    ``needs[s]`` is what step s needs as it stands. The cover without options is always among them.
    """
    # What no option and no step stays below cannot be a limit; what an option needs as well as more tail is no use.
    peaks = sorted({*needs, *(option.peak for option in options)} or {0})
    found: dict[tuple[int, ...], Cover] = {}
    for limit in _spread(peaks, levels):
        for cover in _within(needs, options, limit, limits):
            found[cover.options] = cover
    found[()] = Cover((), max(needs, default=0), 0, 0, 0, 0)
    return tuple(_undominated(list(found.values()), _peak_and_prices))


def _spread(values: Sequence[int], count: int) -> Iterator[int]:
    """Up to ``count`` of the values, the largest among them."""
    if len(values) <= count:
        return iter(values)
    return (values[(len(values) - 1) * k // (count - 1)] for k in range(count))


def _within(needs: Sequence[int], options: Sequence[Option], limit: int, limits: Limits) -> list[Cover]:
    """The best covers with a peak of at most ``limit``: dynamic programming over the steps."""
    by_first: dict[int, list[int]] = {}
    for number, option in enumerate(options):
        if option.peak <= limit and option.macs <= limits.macs and option.operators <= limits.operators:
            by_first.setdefault(option.first, []).append(number)
    labels: list[list[Cover]] = [[] for _ in range(len(needs) + 1)]
    labels[0] = [Cover((), 0, 0, 0, 0, 0)]
    for step, need in enumerate(needs):
        labels[step] = _undominated(labels[step], _prices)
        for label in labels[step]:
            if need <= limit:
                labels[step + 1].append(_grown(label, need))
            for number in by_first.get(step, ()):
                grown = _with(label, number, options[number])
                if grown.macs <= limits.macs and grown.operators <= limits.operators:
                    labels[options[number].end].append(grown)
    return _undominated(labels[len(needs)], _prices)


def _grown(cover: Cover, need: int) -> Cover:
    if need <= cover.peak:
        return cover
    return Cover(cover.options, need, cover.tail, cover.temporaries, cover.macs, cover.operators)


def _with(cover: Cover, number: int, option: Option) -> Cover:
    return Cover(
        (*cover.options, number),
        max(cover.peak, option.peak),
        cover.tail + option.tail,
        cover.temporaries + option.temporaries,
        cover.macs + option.macs,
        cover.operators + option.operators,
    )


def _undominated(covers: list[Cover], costs: Callable[[Cover], tuple[int, ...]]) -> list[Cover]:
    """Without those that another one equals or beats in everything."""
    kept: list[tuple[tuple[int, ...], Cover]] = []
    for own, cover in sorted(((costs(cover), cover) for cover in covers), key=lambda pair: pair[0]):
        if not any(all(map(le, other, own)) for other, _ in kept):
            kept.append((own, cover))
    return [cover for _, cover in kept]


def _prices(cover: Cover) -> tuple[int, ...]:
    return cover.tail, cover.macs, cover.operators


def _peak_and_prices(cover: Cover) -> tuple[int, ...]:
    return cover.peak, *_prices(cover)
