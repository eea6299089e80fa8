"""Channels in tiles measured: tiles.md."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from tflite_memopt.cascade.search import cascade
from tflite_memopt.io.writer import write_model
from tflite_memopt.memory.arrange import arrange
from tflite_memopt.memory.figures import MemoryUse
from tflite_memopt.memory.reading import read_planned
from tflite_memopt.options import Options
from tflite_memopt.pipeline import Result, optimize
from tflite_memopt.rewrite.sequences_along_h import sequences_along_h
from tflite_memopt.rewrite.stage import rewrite

from .markdown_table import row, table
from .tile_networks import NETWORKS

KERNELS = ("portable", "reference")
_HEADER = (
    "network | kernels | stock head | without tiles | with tiles | stock total | without tiles | with tiles"
    " | % of stock | operators | MACs | file | what was done | proved on"
)


@click.command()
@click.argument("models", nargs=-1, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="Write Markdown here.")
def tiles(models: tuple[Path, ...], output: Path | None) -> None:
    """Optimize the networks of scripts/benchmarks/tile_networks.py, and MODELS, with and without channels in tiles."""
    files = [(name, write_model(make())) for name, make in NETWORKS.items()]
    files += [(path.stem, path.read_bytes()) for path in models]
    rows = [_measured(name, data, kernels) for name, data in files for kernels in KERNELS]
    text = "\n".join(_document(rows, models))
    if output is None:
        click.echo(text)
    else:
        output.write_text(text)


def _measured(name: str, data: bytes, kernels: str) -> str:
    click.echo(f"{name}, {kernels}", err=True)
    options = Options(kernels=kernels)
    without, found = _without_tiles(data, options), optimize(data, options)
    before, after = found.report.before, found.report.after
    heads = before.arena_bytes, without.arena_bytes, after.arena_bytes
    totals = before.required_for_target, without.required_for_target, after.required_for_target
    share = f"{100 * totals[2] / totals[0]:.1f}"
    prices = (
        f"{after.operators - before.operators:+}",
        f"{after.macs / before.macs:.3f}",
        f"{len(found.model) / len(data):.3f}",
    )
    return row(name, kernels, *heads, *totals, share, *prices, _done(found), _proved(found))


def _without_tiles(data: bytes, options: Options) -> MemoryUse:
    """What the model needs rewritten and in stripes."""
    rewritten = rewrite(read_planned(data), options.profile, options, lambda _: None)
    striped = cascade(rewritten.model, options.profile, options, lambda _: None, other_form=sequences_along_h)
    return arrange(striped.model, options.profile, options).placement.memory


def _done(found: Result) -> str:
    uses = [use for use in found.report.rewrites if "channel_tiles" in use.rule]
    return "; ".join(f"{use.rule} ({use.exactness})" for use in uses) or "no tiles"


def _proved(found: Result) -> str:
    return ", ".join(name for name, verdict in found.report.equivalence.items() if verdict.equal)


def _document(rows: Sequence[str], models: Sequence[Path]) -> Iterator[str]:
    command = " ".join(("scripts/bench tiles", *(["MODELS"] if models else [])))
    yield "# Channels in tiles\n"
    yield f"Made by `{command} -o tiles.md`: `optimize` with default options, and the same without the"
    yield "search for tiles. Bytes; totals are those to reserve on 32 bits. Operators: more than before; MACs and file:"
    yield "shares of the original's. The networks are made by `scripts/benchmarks/tile_networks.py`, with random"
    yield "weights.\n"
    yield from table(_HEADER)
    yield from rows
    yield ""
