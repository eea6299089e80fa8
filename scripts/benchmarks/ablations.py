"""What each mechanism saves: the RAM to reserve and the seconds with all of them, and without one at a time."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any
from unittest.mock import patch

import click

from tflite_memopt.errors import MemoptError
from tflite_memopt.options import Options
from tflite_memopt.run.pipeline import optimize
from tflite_memopt.search.cascade.space import LOOPS_BY_HALO, UNROLLED
from tflite_memopt.solvers.schedule.methods import DEFAULT, METHODS

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
    "order": ("solvers.schedule.methods.METHODS", {**METHODS, DEFAULT: METHODS["as_is"]}),
    "kept rows, unrolled": ("search.cascade.space.UNROLLED", tuple(mode for mode in UNROLLED if mode[0] != "rolling")),
    "clamped": ("search.cascade.space.LOOPS_BY_HALO", {"rolling": LOOPS_BY_HALO["rolling"]}),
    "masked": ("search.cascade.space.LOOPS_BY_HALO", {"recompute": LOOPS_BY_HALO["recompute"]}),
    "unrolled": ("search.cascade.space.UNROLLED", ()),
    "edges pad": ("search.cascade.space.UNROLLED", tuple(mode for mode in UNROLLED if mode[1] != "pad")),
    "edges trim": ("search.cascade.space.UNROLLED", tuple(mode for mode in UNROLLED if mode[1] != "trim")),
    "other orders": ("search.cascade.search.promising_orders", _nothing),
    "neighbors": ("search.cascade.in_order._CENTERS", {"quick": 0, "normal": 0, "thorough": 0}),
    "cores": ("solvers.plan.methods.cores_of", _nothing),
    "rules after stripes": ("search.rewrite.tiles.AFTER_STRIPES", ()),
}
"""What no option switches off, and what takes its place. Run in this process: ``jobs`` is 1."""
MECHANISMS = ("order", *OPTIONS)


TUNED: Mapping[str, Sequence[str]] = {
    "solvers.schedule.best_first": ("_EFFORT", "_QUESTION", "_RESERVE", "_ITERATION", "_LEAD"),
    "solvers.schedule.bottleneck": ("_COMPLETIONS", "_MOST_KNOWN", "_LOOKED_AT", "_OPERATORS_PER_ITERATION"),
    "solvers.schedule.contracted_orders": ("MOST_ORDERS", "_MOST_REGIONS", "_TRIES", "_MOST_STEPS", "_HOT"),
    "solvers.schedule.reductions": ("_MOST_CANDIDATES", "_MOST_UNSURE"),
    "solvers.plan.disjunctive": ("_PARTS",),
    "solvers.plan.exact": ("_EFFORT", "_SECOND_OPINION", "_GROWTH", "_PLAIN_CHUNK", "_COMPILED_CHUNK"),
    "solvers.plan.methods": ("_LARGEST", "_SHARE_OF_A_CORE"),
    "memory.arrange": ("_EFFORT",),
    "search.rewrite.engine": ("_MOST_CHECKED",),
    "search.rewrite.search": ("_AHEAD",),
    "search.rewrite.stage": ("_EFFORT",),
    "search.rewrite.tiles": ("_EFFORT", "_COPIED", "_EFFORT_OF_ORDER"),
    "search.cascade.bound": ("_SPOILT", "_CERTAIN_ROWS"),
    "search.cascade.in_order": (
        "_EFFORT_OF_PLAN",
        "_EFFORT_OF_ORDER",
        "_NEAR",
        "_AFTERWARDS",
        "_MEASURED",
    ),
    "search.cascade.search": ("_LONGEST", "_EFFORT_OF_ORDERS", "_EFFORT_BELOW"),
    "search.cascade.select": ("BEAM", "HEADS", "_WIDER"),
    "search.cascade.space": ("LONGEST", "_WITH_LONGEST", "_MANY"),
    "search.cascade.table": ("_CHOSEN",),
}
"""Numbers that searches are tuned by. A share stays at most 1."""

Run = tuple[int, int, float]
"""The need before and after, in bytes, and seconds of processor time."""


@click.command()
@click.argument("models", nargs=-1, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--kernels", default="reference", show_default=True)
@click.option("--effort", type=click.Choice(["quick", "normal", "thorough"]), default="normal", show_default=True)
@click.option("--parts", is_flag=True, help="Parts of mechanisms: forms, edges, steps of the search, of the planner.")
@click.option(
    "--constants", is_flag=True, help="Each tuned number of the searches halved, and doubled: all models at once."
)
@click.option("--random", "count", default=0, help="Add a row for the sum over this many random networks.")
def ablations(models: tuple[Path, ...], kernels: str, effort: Any, parts: bool, constants: bool, count: int) -> None:
    """The RAM that each of MODELS needs on 32 bits, and the seconds of processor time, without one mechanism each."""
    if not models and not count:
        raise click.UsageError("name models, or --random N")
    options = Options(kernels=kernels, effort=effort, verify=False, jobs=1, every_byte=True)
    if constants:
        rows = _halved_and_doubled([*(path.read_bytes() for path in models), *random_networks(count)], options)
        keep("constants", f"scripts/bench ablations FILES --constants --random {count}", rows)
        return
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


def _halved_and_doubled(models: Sequence[bytes], options: Options) -> Iterator[Row]:
    """The need of all models together, and the seconds, with half and twice of each constant: changes in percent."""
    _, need, seconds = _sum(models, options)
    for module, names in TUNED.items():
        for name in names:
            value = getattr(import_module(f"tflite_memopt.{module}"), name)
            found: dict[str, object] = {"value": value}
            for word, other in (("halved", value / 2), ("doubled", value * 2)):
                other = max(1, int(other)) if isinstance(value, int) else min(1.0, other) if value < 1 else other
                with ExitStack() as patched:
                    for user in [each for key, each in sys.modules.items() if key.startswith("tflite_memopt.")]:
                        if user.__name__ == f"tflite_memopt.{module}" or getattr(user, name, None) is value:
                            patched.enter_context(patch.object(user, name, other))
                    _, then, took = _sum(models, options)
                found[f"{word}: RAM, %"] = f"{100 * (then / need - 1):+.2f}"
                found[f"{word}: processor time, times"] = f"{took / seconds:.2f}"
            yield Row(f"{module}.{name}", "", f"--kernels {options.kernels}, {len(models)} models", found)


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
