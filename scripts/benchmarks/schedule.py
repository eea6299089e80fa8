"""Schedulers measured, with the papers' tables beside ours."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import click

from scripts.papers.tables import ABLATION, PARTITIONED, PARTS, PEAKS, SECONDS
from tflite_memopt.published.ilp.method import IlpParts, ilp_with
from tflite_memopt.published.serenity.method import SerenityParts, serenity_with
from tflite_memopt.solvers.graph.limits import SearchLimit
from tflite_memopt.solvers.schedule.check import check_order, peak_of
from tflite_memopt.solvers.schedule.methods import METHODS, solve
from tflite_memopt.solvers.schedule.problem import Schedule, ScheduleProblem

from .markdown_table import row, table
from .networks import Network, named, networks_in

REPEATS = 3
SEARCHES = ("serenity", "hmcos", "ilp")
ABLATED = "nasnet", "randwire1", "hrnet_w18_small_v1"
VARIANTS = {
    "origin": IlpParts(pruning=False, fusion=False, partitions=1),
    "partition": IlpParts(pruning=False, fusion=False, partitions=None),
    "partition + fusion": IlpParts(pruning=False, fusion=True, partitions=None),
    "partition + pruning": IlpParts(pruning=True, fusion=False, partitions=None),
    "all": IlpParts(),
}
LEVELS = {
    "1: dynamic programming": SerenityParts(divide=False, budgeting=False),
    "1 + 2: divide and conquer": SerenityParts(divide=True, budgeting=False),
    "1 + 2 + 3: soft budgets": SerenityParts(),
}
PUBLISHED_LEVELS = ("N/A", "56.5", "37.9")


@click.command()
@click.argument("sources", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="Write Markdown here.")
@click.option("--time-limit", default=30.0, show_default=True, help="Seconds for each method, as in the paper.")
def schedule(sources: tuple[Path, ...], output: Path | None, time_limit: float) -> None:
    """Every scheduler on the models of SOURCES (files, or folders of .tflite), and the papers' tables."""
    networks = [network for path in sources for network in networks_in(path)]
    command = f"scripts/bench schedule {' '.join(map(named, sources))} --time-limit {time_limit:g}"
    text = "\n".join(_document(networks, SearchLimit(time_limit), command)) + "\n"
    if output is None:
        click.echo(text)
    else:
        output.write_text(text)


def _document(networks: Sequence[Network], limit: SearchLimit, command: str) -> Iterator[str]:
    yield "# Order of operators\n"
    yield f"Made by `{command}`.\n"
    yield "Peaks are bytes of the largest working set, tensors rounded up to 16 bytes. `*` marks a proved optimum."
    yield f"Seconds are wall time, the median of {REPEATS} runs where a run took less than a second. A method that"
    yield "is out of time shows the best order that it had.\n"
    runs = {network.name: _run_all(network, limit) for network in networks}
    problems = {network.name: network.problem for network in networks}
    yield from _ours(networks, runs)
    yield from _published_peaks(runs)
    yield from _published_seconds(runs)
    yield from _serenity_levels(problems, limit)
    yield from _ilp_ablation(problems, limit)
    yield from _ilp_partition(runs)
    yield from _ilp_parts(problems, limit)


def _run_all(network: Network, limit: SearchLimit) -> dict[str, Schedule]:
    found = {}
    for method in METHODS:
        click.echo(f"{network.name}: {method}", err=True)
        found[method] = _median(lambda method=method: solve(network.problem, method, limit))  # type: ignore[misc]
    return found


def _median(run: Callable[[], Schedule]) -> Schedule:
    first = run()
    if first.seconds >= 1:
        return first
    again = [first, *(run() for _ in range(REPEATS - 1))]
    return sorted(again, key=lambda schedule: schedule.seconds)[REPEATS // 2]


def _ours(networks: Sequence[Network], runs: dict[str, dict[str, Schedule]]) -> Iterator[str]:
    yield "## Peaks, bytes\n"
    yield from table("network | operators | " + " | ".join(METHODS) + " | bound | best_first / as_is")
    for network in networks:
        found = runs[network.name]
        cells = [f"{found[m].peak_bytes:,}{'*' if found[m].optimal else ''}" for m in METHODS]
        best, own = found["best_first"], found["as_is"].peak_bytes
        yield row(
            network.name,
            len(network.problem.steps),
            *cells,
            f"{best.lower_bound:,}",
            f"{best.peak_bytes / own:.3f}",
        )
    yield "\n## Seconds\n"
    yield from table("network | " + " | ".join((*SEARCHES, "best_first")) + " | states | fastest other / best_first")
    ratios = []
    for network in networks:
        found = runs[network.name]
        ratio = min(found[m].seconds for m in SEARCHES) / found["best_first"].seconds
        ratios.append(ratio)
        seconds = [f"{found[m].seconds:.4f}" for m in (*SEARCHES, "best_first")]
        yield row(network.name, *seconds, found["best_first"].states, f"{ratio:.1f}")
    slow = [network.name for network in networks if runs[network.name]["best_first"].seconds >= 1]
    open_ = [network.name for network in networks if not runs[network.name]["best_first"].optimal]
    mean = math.exp(statistics.mean(map(math.log, ratios)))
    yield f"\nGeometric mean of the last column: {mean:.1f}; the fastest other method counts whether or not it found"
    yield f"the optimum. best_first at a second or more: {', '.join(slow) or 'none'}."
    yield f"best_first without proof: {', '.join(open_) or 'none'}.\n"


def _published_peaks(runs: dict[str, dict[str, Schedule]]) -> Iterator[str]:
    yield "## Table II of the ILP paper: peaks, KB\n"
    yield "Theirs, then ours. The wiring of a random network depends on its seed, and how a framework lowers a cell"
    yield "(separate ADDs, padding) on the framework, so that only the pattern compares.\n"
    methods = ("rpo", "serenity", "hmcos", "ilp")
    yield from table("network | " + " | ".join(f"{m}: theirs, ours" for m in methods) + " | best_first")
    for name, published in PEAKS.items():
        if name in runs:
            ours = [runs[name][m].peak_bytes / 1024 for m in methods]
            pairs = [f"{theirs}, {our:.0f}" for theirs, our in zip(published, ours, strict=True)]
            yield row(name, *pairs, f"{runs[name]['best_first'].peak_bytes / 1024:.0f}")
    yield ""


def _published_seconds(runs: dict[str, dict[str, Schedule]]) -> Iterator[str]:
    yield "## Table III of the ILP paper: seconds\n"
    yield from table("network | hmcos: theirs, ours | ilp: theirs, ours | best_first")
    for name, (hmcos, ilp) in SECONDS.items():
        if name in runs:
            ours = {m: f"{runs[name][m].seconds:.2f}" for m in METHODS}
            yield row(name, f"{hmcos}, {ours['hmcos']}", f"{ilp}, {ours['ilp']}", ours["best_first"])
    yield ""


def _serenity_levels(problems: dict[str, ScheduleProblem], limit: SearchLimit) -> Iterator[str]:
    yield "## Table 2 of SERENITY: seconds on SwiftNet\n"
    yield "Theirs on their machine and network, ours on the SwiftNet-like network of the zoo.\n"
    yield from table("parts | theirs | swiftnet: seconds, states, proved | darts_cifar: seconds, states, proved")
    columns = [name for name in ("swiftnet", "darts_cifar_s1_f8") if name in problems]
    for (level, parts), published in zip(LEVELS.items(), PUBLISHED_LEVELS, strict=True):
        cells = []
        for name in columns:
            click.echo(f"{name}: serenity {level}", err=True)
            started = time.perf_counter()
            answer = serenity_with(problems[name], limit, parts)
            seconds = time.perf_counter() - started
            proved = "yes" if answer.lower_bound == solve(problems[name], "best_first").peak_bytes else "no"
            cells.append(f"{seconds:.3f}, {answer.states:,}, {proved}")
        yield row(level, published, *cells)
    yield ""


def _ilp_ablation(problems: dict[str, ScheduleProblem], limit: SearchLimit) -> Iterator[str]:
    yield "## Table IV of the ILP paper: variables and seconds\n"
    yield 'Variables of the largest program that was solved. "over" means that the time limit ended it.\n'
    yield from table("network | parts | theirs: seconds, variables | ours: seconds, variables | peak, KB")
    for name in ABLATED:
        for variant, parts in VARIANTS.items():
            if name in problems:
                seconds, variables, peak = _ilp(name, problems[name], parts, limit)
                theirs = ", ".join(ABLATION[name][variant])
                yield row(name, variant, theirs, f"{seconds}, {variables:,}", f"{peak:.0f}")
    yield ""


def _ilp_partition(
    runs: dict[str, dict[str, Schedule]],
) -> Iterator[str]:
    yield "## Table V of the ILP paper: what partition costs, KB\n"
    yield "Ours is the method's default, which cuts at light tensors; the optimum is best_first's.\n"
    yield from table("network | theirs: optimal, naive, heuristic | ours: optimal, partitioned")
    for name, published in PARTITIONED.items():
        if name in runs:
            best, cut = runs[name]["best_first"].peak_bytes / 1024, runs[name]["ilp"].peak_bytes / 1024
            yield row(name, ", ".join(map(str, published)), f"{best:.0f}, {cut:.0f} ({100 * (cut / best - 1):+.1f} %)")
    yield ""


def _ilp_parts(problems: dict[str, ScheduleProblem], limit: SearchLimit) -> Iterator[str]:
    yield "## Table VI of the ILP paper: number of parts\n"
    yield from table("network | parts | theirs: KB, seconds | ours: KB, seconds, variables")
    for name, published in PARTS.items():
        for parts, theirs in published.items():
            if name in problems:
                seconds, variables, peak = _ilp(name, problems[name], IlpParts(partitions=parts), limit)
                yield row(name, parts, f"{theirs[0]}, {theirs[1]}", f"{peak:.0f}, {seconds}, {variables:,}")


def _ilp(name: str, problem: ScheduleProblem, parts: IlpParts, limit: SearchLimit) -> tuple[str, int, float]:
    """(seconds, variables of the largest program, peak in KB)."""
    click.echo(f"{name}: ilp {parts}", err=True)
    started = time.perf_counter()
    found = ilp_with(problem, limit, parts)
    seconds = time.perf_counter() - started
    check_order(problem, found.answer.order)
    shown = f"{seconds:.2f}" if seconds < limit.time_limit else f"over {limit.time_limit:g}"
    return shown, max(found.variables, default=0), peak_of(problem, found.answer.order) / 1024
