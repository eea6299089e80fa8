"""The page of `scripts/bench batch`: tables of what was measured, and the arithmetic for a million candidates."""

from __future__ import annotations

import json
import sqlite3
import textwrap
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from tflite_memopt.oracle.levels import RAM_EFFORTS

from .batch_queue import Cluster, simulate
from .markdown_table import row, table

_MILLION = 1_000_000
_DAY = 24 * 3600.0
_RUNS = (
    "engine bare loop",
    "engine one process",
    "engine two processes, a worker killed",
    "engine Dask, two workers",
)
_ENGINES = "engine | workers | models | models a second | work, s a model | beside the work, s a model | overhead"
_LEVELS = "effort | candidates | median, ms | 99th percentile, ms"
_ERRORS = "effort | rank correlation | mean error | largest above | largest below"
_QUEUE = "work | workers | hours | workers busy | center busy | begun again"


def write_page(folder: Path, output: Path, said: str) -> None:
    """Put together what is in a folder of figures; ``said``: commit and state of the machine, in a sentence."""
    output.write_text("\n".join(_page(folder, said)) + "\n")


def _text(*parts: str) -> str:
    return textwrap.fill(" ".join(parts), 120, break_on_hyphens=False) + "\n"


def _page(folder: Path, said: str) -> Iterator[str]:
    yield "# Many models: figures\n"
    yield _text(
        "Made by `scripts/bench batch`, its pieces one after the other: `engine`, `costs`, `oracle`, `families`,",
        f"`whole`, `errors`, `page`. {said} Compare columns with each other, and trust ratios more than seconds.",
    )
    yield from _engines(folder)
    yield from _oracle(folder)
    yield from _errors(folder)
    yield from _million(folder)


def _read(folder: Path, name: str) -> Any:
    """What a piece has measured; None when it was not run."""
    path = folder / f"{name}.json"
    return json.loads(path.read_text()) if path.exists() else None


def _engines(folder: Path) -> Iterator[str]:
    yield "## Engines\n"
    yield _text(
        "Candidates: two cells of three nodes at twelve sizes, `tests/oracle/cells.py`, each a file. The work:",
        "`optimize` for cortex-m4 without rewrites, stripes and verification. *Work* is what the report says that a",
        "run took; *beside the work*: all other seconds of the workers, from the first row to the last. The",
        "overhead is that of the engine against the bare loop, which also has seconds beside the work: reading, and",
        "making the report.",
    )
    yield from table(_ENGINES)
    bare = _read(folder, _RUNS[0])
    for name in _RUNS:
        found = _read(folder, name)
        if found is not None:
            yield _engine_row(name.removeprefix("engine "), found, bare)
    yield ""
    killed = _read(folder, _RUNS[2])
    if killed is not None:
        yield _text(
            f"Of the two processes one was killed (SIGKILL) when a third was done: {killed['done']:,} of",
            f"{killed['models']:,} models done, {killed['distinct']:,} rows of distinct models;",
            "what it worked on is written down as crashed.",
        )


def _engine_row(name: str, found: dict[str, Any], bare: dict[str, Any] | None) -> str:
    models = found["rate"] * found["wall"]
    work = found["work"] / models
    beside = found["workers"] * found["wall"] / models - work
    overhead = "-"
    if bare is not None and found is not bare:
        ratio = bare["wall"] / bare["work"]
        overhead = f"{100 * ((work + beside) / (work * ratio) - 1):.1f} %"
    cells = (name, found["workers"], found["models"], f"{found['rate']:.2f}", f"{work:.3f}", f"{beside:.3f}", overhead)
    return row(*cells)


def _oracle(folder: Path) -> Iterator[str]:
    yield "## The oracle\n"
    yield _text(
        "Processor time of `RamOracle.on('cortex-m4').ram(sketch, effort)`. *family*: `bounds` and `plans` of one",
        "graph at 10,000 sizes, 992 of them different, a candidate's part of the time; of ten graphs. *at first*: with",
        "what the oracle has to learn of the operators; all others when it knows them.",
    )
    yield from table(_LEVELS)
    for effort in ("family, bound, at first", "family, bound", "family, plan", *RAM_EFFORTS[1:]):
        found = _read(folder, f"oracle {effort}")
        if found is not None:
            count = f"{len(found):,}" if "family" not in effort else "10 x 10,000"
            yield row(effort, count, *(f"{each:.4g}" for each in np.percentile(found, [50, 99])))
    yield ""
    yield _text(
        "What binds `stripes` is the prediction: some 20 regions a candidate, 2.5 ms each; the selections are planned",
        "in 21 ms. Of each peak it looks first at the exit that leaves least alive, and at the others only where that",
        "leads to nothing. On 60 candidates that are not among these (numbers from 1,000,012 on), one after the other",
        "on the same busy machine, that was 86 ms in place of 112, with the same sum of answers; on the 200 below all",
        "answers are the same as before. Tried and left out: three numbers of stripes in place of 23, 74 ms in place",
        "of 92, but 2.3 % more bytes.",
    )


def _errors(folder: Path) -> Iterator[str]:
    wholes, rows = (_read(folder, name) or [] for name in ("whole", "errors"))
    yield "## The oracle against a whole run\n"
    yield _text(
        f"{len(rows)} candidates; the whole run is `optimize` with the default options (rewrites, stripes, loops) but",
        "no verification. Errors are shares of the whole run's arena.",
    )
    if not rows:
        return
    yield from table(_ERRORS)
    whole = np.array(wholes[: len(rows)])
    for effort in RAM_EFFORTS:
        found = np.array([each[effort] for each in rows])
        errors = 100 * (found - whole) / whole
        above, below = max(0.0, errors.max()), max(0.0, -errors.min())
        correlation = np.corrcoef(_ranks(found), _ranks(whole))[0, 1]
        yield row(effort, f"{correlation:.3f}", f"{errors.mean():+.1f} %", f"{above:.1f} %", f"{below:.1f} %")
    bounds, orders, plans = (np.array([each[effort] for each in rows]) for effort in ("bound", "order", "plan"))
    lower, apart = 100 * (plans - bounds) / plans, 100 * abs(plans - orders) / plans
    yield ""
    yield _text(
        f"Against `plan`, which has the same operators, `bound` is lower by {lower.mean():.2f} % in the mean and by",
        f"{lower.max():.2f} % at most; `order` differs by {apart.max():.2f} % at most.",
    )


def _ranks(values: np.ndarray) -> np.ndarray:
    """Ranks from 0; equal values have the mean of theirs."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    mean: np.ndarray = (last - (counts + 1) / 2)[inverse]
    return mean


def _million(folder: Path) -> Iterator[str]:
    costs, services = _read(folder, "costs"), _services(folder)
    if costs is None or not services:
        return
    center, short = costs["center"], costs["models"]
    works = {"order and plan only": short, "a whole run": _read(folder, "whole seconds") or short}
    yield "## A million candidates\n"
    yield _text(
        "The arithmetic, from processor time, which others on the machine change little (`scripts/bench batch costs`",
        "and `whole`), each worker with a processor of its own:",
    )
    for name, seconds in works.items():
        mean = float(np.mean(seconds))
        hours = f"{_MILLION * mean / 3600:,.0f} worker hours for all"
        yield f"- {name}: {mean:.3f} s of a worker ({len(seconds)} models), {hours}."
    for name, each in center.items():
        most = ", ".join(f"{np.mean(seconds) / each:,.0f} ({work})" for work, seconds in works.items())
        yield (
            f"- The one process that sends jobs and writes rows, {name}: {1e3 * each:.1f} ms a job, "
            f"{_MILLION * each / 3600:.1f} hours for all. It keeps so many workers busy: {most}."
        )
    size = costs["bytes_a_row"]
    yield f"- A row takes {size / 1e3:,.1f} KB, nearly all of it the report: {size * _MILLION / 1e9:,.0f} GB for all.\n"
    yield _text(
        "So the center breaks first, and on a cluster the more so the shorter the work is. A simulation",
        "(`scripts/benchmarks/batch_queue.py`): service times drawn from those measured, the center, as on Dask,",
        "serving one worker at a time, workers that live a day in the mean and are replaced after a minute, each death",
        "costing the job in hand.",
    )
    yield from table(_QUEUE)
    for name, seconds in works.items():
        for workers in (4, 16, 64, 256, 1024):
            found = simulate(Cluster(workers, max(center.values()), _DAY), _MILLION, seconds)
            busy = (f"{100 * each:.0f} %" for each in (found.workers_busy, found.centre_busy))
            yield row(name, f"{workers:,}", f"{found.seconds / 3600:,.1f}", *busy, found.again)
    yield ""
    yield from _check(folder, min(center.values()), services)
    yield _text(
        "A search needs little of this. The oracle answers before there is a file: at the medians above it bounds a",
        "million candidates on one processor in minutes, and only what fits the budget becomes a job. Where it is",
        "needed, parts with a folder each, every part with a center of its own, divide what the center costs.",
    )


def _check(folder: Path, center: float, services: list[float]) -> Iterator[str]:
    measured = _read(folder, _RUNS[2])
    if measured is not None:
        found = simulate(Cluster(2, center, 1e12), measured["models"], services)
        yield _text(
            "The same simulation, with the service times of the run with two processes above, says",
            f"{measured['models'] / found.seconds:.2f} models a second; {measured['rate']:.2f} were measured.",
        )


def _services(folder: Path) -> list[float]:
    """Seconds of each model of the run with two processes, in its worker."""
    path = folder / "out two processes" / "results.sqlite"
    if not path.exists():
        return []
    with closing(sqlite3.connect(path)) as connection:
        return [seconds for (seconds,) in connection.execute("SELECT seconds FROM results ORDER BY content")]
