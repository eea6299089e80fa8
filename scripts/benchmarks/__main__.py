"""Figures for docs/benchmarks: memory measured by TFLM, and where the time goes.

scripts/bench models FOLDER [-o docs/benchmarks/models.md]     every .tflite of a folder
scripts/bench arena FOLDER [-o docs/benchmarks/arena.md]       the head, permission by permission
scripts/bench schedule FOLDER... [-o docs/benchmarks/schedule.md]    every scheduler, the papers' tables
scripts/bench plan FOLDER... --minimalloc FOLDER [-o docs/benchmarks/plan.md]   every planner
scripts/bench rewrite FOLDER... [-o docs/benchmarks/rewrite.md]      what rewriting adds to order and plan
scripts/bench cascade MODEL... --results FOLDER [-o docs/benchmarks/cascade.md]   the search under its limits
scripts/bench loops SOURCE... [-o docs/benchmarks/loops.md]   stripes as one loop
scripts/bench others [NAME...] [-o docs/benchmarks/others.md]   the networks of `scripts/zoo --others`
scripts/bench people SOURCE... [-o docs/benchmarks/people.md]   the networks of `scripts/zoo --people`
scripts/bench floor FILE...                                    lower bounds for these networks
scripts/bench tiles [MODEL...] [-o tiles.md]   channels in tiles
scripts/bench random [--large] [-o FILE.json] [--against FILE.json]   needs and time of random networks
scripts/bench startup MODEL                                    wall time of `analyze`, start-up included
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import click

from scripts.makers.runs import run_models
from tflite_memopt.equivalence.inputs import seeded_inputs
from tflite_memopt.errors import MemoptError
from tflite_memopt.io.reader import read_model
from tflite_memopt.options import Options
from tflite_memopt.pipeline import Result, optimize

from .arena import arena
from .cascade import cascade
from .floor import floor
from .loops import loops
from .markdown_table import row, table
from .others import others
from .people import people
from .plan import plan
from .random import random
from .rewrite import rewrite
from .schedule import schedule
from .search import search
from .tiles import tiles

_MEMORY = "model | stock head | predicted | planned | TFLM after | plan bound | io bound | scratch operators | planner"
_ARENA = "model | required 32-bit | required 64-bit | smallest that TFLM accepts (64-bit) | off by"
_PROOF = "model | LiteRT | TensorFlow | TFLM | why no figure"
_TIME = "model | read | plan | write | verify"


@click.group()
def cli() -> None:
    """Benchmarks of tflite_memopt."""


@cli.command()
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="Write Markdown here.")
@click.option("--samples", default=20, show_default=True, help="Inputs per runtime.")
@click.option("--repeats", default=3, show_default=True, help="Runs of which the median time is shown.")
def models(folder: Path, output: Path | None, samples: int, repeats: int) -> None:
    """Optimize every model of FOLDER and show memory, verification and time."""
    rows: dict[str, list[str]] = {_MEMORY: [], _ARENA: [], _PROOF: [], _TIME: []}
    for path in sorted(folder.glob("*.tflite")):
        click.echo(path.stem, err=True)
        data = path.read_bytes()
        try:
            results = [optimize(data, Options(samples=samples, rewrite=False, cascade=False)) for _ in range(repeats)]
        except MemoptError as error:
            rows[_PROOF].append(row(path.stem, "-", "-", "-", error))
            continue
        result = results[0]
        rows[_MEMORY].append(_memory_row(path.stem, result))
        rows[_PROOF].append(_proof_row(path.stem, result))
        rows[_TIME].append(_time_row(path.stem, results))
        if "head" in result.report.after.tflm:
            rows[_ARENA].append(_arena_row(path.stem, result))
    text = "\n".join(_document(rows, f"scripts/bench models FOLDER --samples {samples} --repeats {repeats}"))
    if output is None:
        click.echo(text)
    else:
        output.write_text(text)


@cli.command()
@click.argument("model", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--runs", default=11, show_default=True)
def startup(model: Path, runs: int) -> None:
    """Median wall seconds of ``python -m tflite_memopt analyze MODEL``, and of an empty Python for comparison."""
    commands = {"analyze": ["-m", "tflite_memopt", "analyze", str(model)], "empty Python": ["-c", ""]}
    for name, arguments in commands.items():
        seconds = []
        for _ in range(runs):
            started = time.perf_counter()
            subprocess.run([sys.executable, *arguments], check=True, capture_output=True)
            seconds.append(time.perf_counter() - started)
        low, high = min(seconds), max(seconds)
        click.echo(f"{name}: median {statistics.median(seconds):.3f} s, {low:.3f} to {high:.3f}, {runs} runs")


def _memory_row(name: str, result: Result) -> str:
    report = result.report
    before, after = report.before, report.after
    measured = [use.tflm.get("head", "-") for use in (before, after)]
    cells = [name, measured[0], before.arena_bytes, after.arena_bytes, measured[1]]
    return row(*cells, report.bounds.plan, report.bounds.io, after.scratch_operators, report.plan.method)


def _proof_row(name: str, result: Result) -> str:
    words = {True: "equal", False: "DIFFERENT", None: "no"}
    verdicts = result.report.equivalence
    cells = [words[verdicts[runtime].equal] for runtime in ("litert", "tensorflow", "tflm")]
    reasons = [f"{runtime}: {(verdict.reason or '')[:160]}" for runtime, verdict in verdicts.items() if verdict.reason]
    return row(name, *cells, "; ".join(reasons))


def _time_row(name: str, results: list[Result]) -> str:
    stages = ("read", "arrange", "write", "verify")
    medians = (statistics.median(result.report.timing[stage] for result in results) for stage in stages)
    return row(name, *(f"{seconds:.3f}" for seconds in medians))


def _arena_row(name: str, result: Result) -> str:
    required = result.report.after.required_bytes
    smallest = _smallest_arena(result.model, required["64"])
    excess = 100 * (required["64"] - smallest) / smallest
    return row(name, required["32"], required["64"], smallest, f"{excess:+.2f} %")


def _smallest_arena(model: bytes, guess: int) -> int:
    """Bisection to 16 bytes between half the guess and twice the guess."""
    samples = seeded_inputs(read_model(model), 2, 0)
    low, high = guess // 2 // 16, 2 * guess // 16
    while high - low > 1:
        middle = (low + high) // 2
        if run_models("tflm", {"model": model}, samples, 16 * middle)["model"].ran:
            high = middle
        else:
            low = middle
    return 16 * high


def _document(rows: dict[str, list[str]], command: str) -> Iterator[str]:
    titles = {_MEMORY: "Head, bytes", _ARENA: "Arena to reserve, bytes", _PROOF: "Equality", _TIME: "Seconds, medians"}
    yield "# Models\n"
    yield f"Made by `{command}`. Heads and arenas are measured by the tflite-micro wheel."
    yield "The graph is as it was: order and plan alone. Times are wall seconds on two shared cores; `verify` starts"
    yield "three interpreters in subprocesses.\n"
    for header, lines in rows.items():
        yield f"## {titles[header]}\n"
        yield from table(header)
        yield from lines
        yield ""


cli.add_command(arena)
cli.add_command(cascade)
cli.add_command(schedule)
cli.add_command(floor)
cli.add_command(loops)
cli.add_command(others)
cli.add_command(people)
cli.add_command(plan)
cli.add_command(random)
cli.add_command(rewrite)
cli.add_command(search)
cli.add_command(tiles)

if __name__ == "__main__":
    cli()
