"""Stripes as one loop, measured: docs/benchmarks/loops.md."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import click

from scripts.makers.model_builder import ModelBuilder
from tflite_memopt.io.writer import write_model
from tflite_memopt.ir.making import VALID
from tflite_memopt.options import Options
from tflite_memopt.pipeline import optimize

from .markdown_table import row, table
from .tflm_times import time_ratio

_COLUMNS = (
    "model | kernels | arena to reserve, 32 bits | head | tail | TFLM's head and tail, 64 bits | equal | MACs | file"
    " | time | stripes"
)
_REPEATS = 9


@click.command()
@click.argument("sources", nargs=-1, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="Write Markdown here.")
@click.option("--samples", default=20, show_default=True, help="Inputs in the verification on TFLM.")
@click.option("--kernels", multiple=True, default=("portable", "reference"), show_default=True)
def loops(sources: tuple[Path, ...], output: Path | None, samples: int, kernels: tuple[str, ...]) -> None:
    """The example of the loop, and SOURCES, with the default objective."""
    options = Options(samples=samples, runtimes=("tflm",))
    rows = []
    for name, data in (("example", example()), *((path.stem, path.read_bytes()) for path in sources)):
        for each in kernels:
            click.echo(f"{name} {each}", err=True)
            rows.append(measured(name, data, replace(options, kernels=each)))
    command = f"scripts/bench loops MODELS --samples {samples}"
    text = "\n".join(_document(command, rows)) + "\n"
    if output is None:
        click.echo(text)
    else:
        output.write_text(text)


def example() -> bytes:
    """A 3x3 convolution from 8 to 48 channels without padding, and a 1x1 back to 8, over an image of 50 x 48."""
    b = ModelBuilder()
    wide = b.conv(b.input("image", (1, 50, 48, 8)), 48, kernel=3, padding=VALID, seed=1)
    return write_model(b.finish(b.conv(wide, 8, seed=2)))


def measured(name: str, data: bytes, options: Options) -> str:
    """One row: what the tool makes of a model."""
    result = optimize(data, options)
    report = result.report
    before, after = report.before, report.after
    ratio = time_ratio(data, result.model, _REPEATS)
    stripes = "; ".join(use.rule for use in report.rewrites if use.rule.startswith("cascade"))
    predicted = f"{after.arena_bytes} + {after.tail_bytes['64']}"
    return row(
        name,
        options.kernels,
        f"{before.required_bytes['32']:,} -> {after.required_bytes['32']:,}",
        f"{after.arena_bytes:,}",
        f"{after.tail_bytes['32']:,}",
        f"{after.tflm.get('head')} + {after.tflm.get('tail')}, predicted {predicted}",
        "yes" if report.equivalence["tflm"].equal else "no",
        f"{after.macs / max(1, before.macs):.3f}",
        f"{report.file_bytes['after'] / report.file_bytes['before']:.3f}",
        "-" if ratio is None else f"{ratio:.2f}",
        stripes or "none",
    )


def _document(command: str, rows: list[str]) -> Iterator[str]:
    yield "# Loops"
    yield ""
    yield f"Made by `{command}`. MACs, file and run time are"
    yield f"shares of the original's; run time is the median of {_REPEATS} pairs on TFLM with reference kernels, on an"
    yield "x86-64 machine that others used, too. Instructions on a Cortex-M are in [devices.md](devices.md)."
    yield "[cascading.md](../cascading.md) explains the forms."
    yield ""
    yield from table(_COLUMNS)
    yield from rows
