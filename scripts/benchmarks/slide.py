"""Sliding windows of hops of several rows, against the whole window and against a fed front: docs/results/slide.csv."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import click

from tflite_memopt.errors import MemoptError
from tflite_memopt.memory.work import slowest
from tflite_memopt.options import Options
from tflite_memopt.run.parts.run import optimize_in_parts
from tflite_memopt.run.pipeline import optimize

from .figures import Row, keep
from .models import AFTER, BEFORE, REFUSED, SLOWER, files_of

WINDOW, CALLS = "rows of the window", "calls until outputs are right"
FED, FED_SLOWER = "RAM with --feed, bytes", "run time of a window added with --feed, %"


@click.command()
@click.argument("sources", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option("--hop", "hops", multiple=True, type=int, default=(1, 2, 4), show_default=True, help="Rows per call.")
@click.option("--target", help="The core or chip to plan for.")
@click.option("--budget", type=int, help="Bytes of RAM, within which the run time counts.")
@click.option("--no-verify", "verify", is_flag=True, default=True, flag_value=False, help="Do not run the models.")
@click.option("--no-feed", "feeds", is_flag=True, default=True, flag_value=False, help="Leave out --feed.")
def slide(
    sources: tuple[Path, ...], hops: tuple[int, ...], target: str | None, budget: int | None, verify: bool, feeds: bool
) -> None:
    """RAM, products, and run time per hop of each .tflite of SOURCES, files or folders, or the refusal."""
    keep(
        "slide", "scripts/bench slide FILES", _rows(sources, hops, Options(target=target, verify=verify), budget, feeds)
    )


def _rows(
    sources: tuple[Path, ...], hops: tuple[int, ...], options: Options, budget: int | None, feeds: bool
) -> Iterator[Row]:
    limit = "" if budget is None else f" --budget {budget}"
    verified = "" if options.verify else " --no-verify"
    for path in files_of(sources):
        for hop in hops:
            found = _figures(path, replace(options, slide=str(hop), budget=budget))
            fed = _fed(path, replace(options, verify=False, max_slowdown=1.0), hop) if feeds else {}
            yield Row(path.stem, options.target or "", f"--slide {hop}{limit}{verified}", {**found, **fed})


def _figures(path: Path, options: Options) -> Mapping[str, object]:
    try:
        report = optimize(path, options).report
    except MemoptError as error:
        return {REFUSED: error}
    before, after = report.before, report.after
    assert report.slide is not None
    hops = [verdict.samples for verdict in report.equivalence.values() if verdict.equal]
    return {
        WINDOW: report.slide.window,
        BEFORE: before.required_for_target,
        AFTER: after.required_for_target,
        "products before": before.macs,
        "products after": after.macs,
        SLOWER: f"{100 * slowest(before.instructions, after.instructions):.1f}",
        CALLS: report.slide.calls,
        "proof": report.proofs["step"].status if report.proofs else "not proved",
        "equal hops": min(hops, default=0),
    }


def _fed(path: Path, options: Options, rows: int) -> Mapping[str, object]:
    """The arena of a program whose first part takes so many rows per call, and its time for a window."""
    try:
        program = optimize_in_parts(path, options, 2, lambda _: None, rows).program
    except MemoptError as error:
        return {"refused with --feed": error}
    return {FED: program.arena, FED_SLOWER: f"{100 * max(program.slowdown.values()):.1f}"}
