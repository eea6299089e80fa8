"""What each mechanism saves: the RAM to reserve with all of them, and without one at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from tflite_memopt.errors import MemoptError
from tflite_memopt.options import Options
from tflite_memopt.pipeline import optimize

from .markdown_table import row, table

WITHOUT: Mapping[str, Mapping[str, Any]] = {
    "order": {"scheduler": "as_is"},
    "search for offsets": {"planner": "greedy_by_size"},
    "outputs over inputs": {"kernels": "portable"},
    "rewrites, tiles": {"rewrite": False},
    "stripes": {"cascade": False},
    "loops": {"loops": False},
    "kept rows": {"halos": ("recompute",)},
}
"""The options that switch a mechanism off, by its name."""


@click.command()
@click.argument("models", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--kernels", default="reference", show_default=True)
@click.option("--effort", type=click.Choice(["quick", "normal", "thorough"]), default="normal", show_default=True)
def ablations(models: tuple[Path, ...], kernels: str, effort: Any) -> None:
    """The RAM that each of MODELS needs on 32 bits: as it came, optimized, and without one mechanism at a time."""
    options = Options(kernels=kernels, effort=effort, verify=False, every_byte=True)
    for line in table(f"model | as it came | all | {' | '.join(f'without {name}' for name in WITHOUT)}"):
        click.echo(line)
    for path in models:
        click.echo(row(path.stem, *_cells(path, options)))


def _cells(path: Path, options: Options) -> Iterator[str]:
    try:
        report = optimize(path, options).report
    except MemoptError as error:
        yield str(error)
        return
    need = report.after.required_for_target
    yield from (f"{report.before.required_for_target:,}", f"{need:,}")
    for less in WITHOUT.values():
        without = optimize(path, replace(options, **less)).report.after.required_for_target
        yield f"{without:,}" if without == need else f"{without:,} ({100 * (without / need - 1):+.1f} %)"
