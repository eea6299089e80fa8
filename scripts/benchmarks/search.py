"""What a whole run of the tool finds and costs, model by model: docs/benchmarks/search.md."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from tflite_memopt.ir.change import OUT_OF_TIME

from .markdown_table import row, table
from .whole_run import WholeRun, whole_run

_COLUMNS = "model | kernels | stock | need | head | tail | operators | MACs | file | processor, s | clock, s | search"


@click.command()
@click.argument("models", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="Write Markdown here.")
@click.option("--kernels", multiple=True, default=("portable", "reference"), show_default=True)
@click.option("--objective", default="total", show_default=True)
def search(models: tuple[Path, ...], output: Path | None, kernels: tuple[str, ...], objective: str) -> None:
    """MODELS with the default options, one command each, verification included."""
    lines = list(_heading(objective))
    for model in models:
        for each in kernels:
            click.echo(f"{model.stem} {each}", err=True)
            lines.append(_row(model.stem, each, whole_run(model, ["--kernels", each, "--objective", objective])))
            if output is not None:
                output.write_text("\n".join(lines) + "\n")
    if output is None:
        click.echo("\n".join(lines))


def _heading(objective: str) -> Iterator[str]:
    yield "# Whole runs"
    yield ""
    yield (
        f"Made by `scripts/bench search MODELS --objective {objective}`: `optimize` with the default options, one "
        "command each, verification included. Bytes. `need`: the arena to reserve on 32 bits; MACs and file are shares "
        "of the original's. Trust processor time more than the clock: others used the machine, too."
    )
    yield ""
    yield from table(_COLUMNS)


def _row(name: str, kernels: str, run: WholeRun | str) -> str:
    if isinstance(run, str):
        return row(name, kernels, *["-"] * 9, run)
    before, after = run.report["before"], run.report["after"]
    size = run.report["file_bytes"]
    share = f"{size['after'] / size['before']:.3f}"
    said = [each for each in run.report["refused"] if each["rule"] == "cascade" and each["operator"] == "the search"]
    end = said[-1]["reason"] if said else "no region to cut"
    return row(
        name,
        kernels,
        before["required_bytes"]["32"],
        after["required_bytes"]["32"],
        after["arena_bytes"],
        after["tail_bytes"]["32"],
        after["operators"],
        f"{after['macs'] / max(1, before['macs']):.3f}",
        share,
        f"{run.processor:.1f}",
        f"{run.clock:.1f}",
        "stopped by the clock" if end == OUT_OF_TIME else end,
    )
