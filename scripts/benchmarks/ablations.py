"""What each mechanism saves: the RAM to reserve and the seconds with all of them, and without one at a time."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import click

from tflite_memopt.cascade.space import LOOPS_BY_HALO, UNROLLED
from tflite_memopt.errors import MemoptError
from tflite_memopt.options import Options
from tflite_memopt.pipeline import optimize
from tflite_memopt.schedule.methods import DEFAULT, METHODS

from .figures import Row, keep
from .models import AFTER, BEFORE, REFUSED
from .networks import random_networks

SECONDS, WITHOUT = "seconds of a processor", "without "

OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "search for offsets": {"planner": "greedy_by_size"},
    "outputs over inputs": {"kernels": "portable"},
    "rewrites, tiles": {"rewrite": False},
    "stripes": {"cascade": False},
    "loops": {"loops": False},
}
"""The options that switch a mechanism off, by its name."""


def _nothing(*_: object) -> list[Any]:
    return []


PARTS: Mapping[str, tuple[str, Any]] = {
    "order": ("schedule.methods.METHODS", {**METHODS, DEFAULT: METHODS["as_is"]}),
    "kept rows, unrolled": ("cascade.space.UNROLLED", tuple(mode for mode in UNROLLED if mode[0] != "rolling")),
    "clamped": ("cascade.space.LOOPS_BY_HALO", {"rolling": LOOPS_BY_HALO["rolling"]}),
    "masked": ("cascade.space.LOOPS_BY_HALO", {"recompute": LOOPS_BY_HALO["recompute"]}),
    "unrolled": ("cascade.space.UNROLLED", ()),
    "edges pad": ("cascade.space.UNROLLED", tuple(mode for mode in UNROLLED if mode[1] != "pad")),
    "edges trim": ("cascade.space.UNROLLED", tuple(mode for mode in UNROLLED if mode[1] != "trim")),
    "other orders": ("cascade.search.promising_orders", _nothing),
    "neighbors": ("cascade.in_order._CENTERS", {"quick": 0, "normal": 0, "thorough": 0}),
    "cores": ("plan.methods.cores_of", _nothing),
    "rules after stripes": ("rewrite.tiles.AFTER_STRIPES", ()),
}
"""What no option switches off, and what takes its place. Run in this process: ``jobs`` is 1."""
MECHANISMS = ("order", *OPTIONS)


Run = tuple[int, int, float]
"""The need before and after, in bytes, and seconds of processor time."""


@click.command()
@click.argument("models", nargs=-1, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--kernels", default="reference", show_default=True)
@click.option("--effort", type=click.Choice(["quick", "normal", "thorough"]), default="normal", show_default=True)
@click.option("--parts", is_flag=True, help="Parts of mechanisms: forms, edges, steps of the search, of the planner.")
@click.option("--random", "count", default=0, help="Add a row for the sum over this many random networks.")
def ablations(models: tuple[Path, ...], kernels: str, effort: Any, parts: bool, count: int) -> None:
    """The RAM that each of MODELS needs on 32 bits, and the seconds of processor time, without one mechanism each."""
    if not models and not count:
        raise click.UsageError("name models, or --random N")
    options = Options(kernels=kernels, effort=effort, verify=False, jobs=1, every_byte=True)
    which = " --parts" if parts else ""
    rows = (
        Row(
            name, "", f"--changes all --kernels {kernels} --effort {effort} --no-verify", _figures(data, options, parts)
        )
        for name, data in _named(models, count)
    )
    keep("ablations_of_parts" if parts else "ablations", f"scripts/bench ablations FILES{which}", rows)


def _named(models: tuple[Path, ...], count: int) -> Iterator[tuple[str, Sequence[bytes]]]:
    for path in models:
        yield path.stem, [path.read_bytes()]
    if count:
        yield f"{count} random networks", list(random_networks(count))


def _figures(models: Sequence[bytes], options: Options, parts: bool) -> Mapping[str, object]:
    try:
        before, need, seconds = _sum(models, options)
    except MemoptError as error:
        return {REFUSED: error}
    found: dict[str, object] = {BEFORE: before, AFTER: need, SECONDS: f"{seconds:.1f}"}
    for name in PARTS if parts else MECHANISMS:
        if name in PARTS:
            attribute, value = PARTS[name]
            with patch(f"tflite_memopt.{attribute}", value):
                _, without, took = _sum(models, options)
        else:
            _, without, took = _sum(models, replace(options, **OPTIONS[name]))
        found |= {f"{WITHOUT}{name}, bytes": without, f"{WITHOUT}{name}, seconds": f"{took:.1f}"}
    return found


def _sum(models: Iterable[bytes], options: Options) -> Run:
    before, after, seconds = zip(*(_run(data, options) for data in models), strict=True)
    return sum(before), sum(after), sum(seconds)


def _run(data: bytes, options: Options) -> Run:
    started = time.process_time()
    report = optimize(data, options).report
    took = time.process_time() - started
    return report.before.required_for_target, report.after.required_for_target, took
