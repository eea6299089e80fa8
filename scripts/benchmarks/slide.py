"""Sliding windows of hops of several rows, against the whole window and against a fed front: docs/results.md."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from tflite_memopt.errors import MemoptError
from tflite_memopt.memory.work import slowest
from tflite_memopt.options import Options
from tflite_memopt.pipeline import optimize
from tflite_memopt.program.run import optimize_in_parts

from .figures import Echo
from .markdown_table import row, table
from .strangers import files_of


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
    header = (
        "file | hop of window | RAM | products per hop | run time | right from call | RAM, time with --feed | equal"
    )
    echo = Echo("slide", "" if target is None else f"--target {target}")
    for line in table(header):
        echo(line)
    for path in files_of(sources):
        for hop in hops:
            options = Options(target=target, slide=str(hop), verify=verify, budget=budget)
            fed = _fed(path, Options(target=target, verify=False), hop) if feeds else ""
            echo(row(f"{path.stem}, hop {hop}", *_figures(path, options, hop, fed)))


def _figures(path: Path, options: Options, hop: int, fed: str) -> Iterator[str]:
    try:
        report = optimize(path, options).report
    except MemoptError as error:
        yield f"{hop}"
        yield f"refused: {error}".replace("\n", " ")
        yield from ("", "", "", fed, "")
        return
    before, after = report.before, report.after
    assert report.slide is not None
    yield f"{hop} of {report.slide.window}"
    yield f"{before.required_for_target:,} -> {after.required_for_target:,}"
    yield f"{before.macs:,} -> {after.macs:,} ({100 * after.macs / max(1, before.macs):.1f} %)"
    yield f"{100 * slowest(before.instructions, after.instructions):+.1f} %"
    yield f"{report.slide.calls:,}"
    yield fed
    hops = {verdict.samples for verdict in report.equivalence.values() if verdict.equal}
    proof = report.proofs["step"].status if report.proofs else "not proved"
    yield f"{proof}, {min(hops):,} hops on {len(report.equivalence)}" if hops else proof


def _fed(path: Path, options: Options, rows: int) -> str:
    """The arena of a program whose first part takes so many rows per call, and its time for a window."""
    try:
        program = optimize_in_parts(path, options, 2, lambda _: None, rows).program
    except MemoptError as error:
        return f"refused: {error}".replace("\n", " ")
    return f"{program.arena:,}, {100 * max(program.slowdown.values()):+.1f} % per window"
