"""RAM of the networks that other tools quote, beside what they quote: docs/benchmarks/others.md."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import click

from scripts.zoo_networks.__main__ import default_folder
from tflite_memopt.analysis.macs import model_macs
from tflite_memopt.errors import MemoptError
from tflite_memopt.io.reader import read_model
from tflite_memopt.options import Options
from tflite_memopt.pipeline import optimize
from tflite_memopt.program.fronts import AUTO
from tflite_memopt.program.run import optimize_in_parts
from tflite_memopt.report.words import percent

from .construction import measured
from .markdown_table import row, table
from .others_published import SOURCES, Published, published

TARGET, BUILD = "cortex-m7", "cortex-m7-cmsis-nn"
WAYS: Mapping[str, str] = {
    "any kernels": "",
    "cortex-m7": "--target cortex-m7",
    "parts": "--target cortex-m7 --parts auto --effort quick",
    "feed": "--target cortex-m7 --feed auto --parts auto --effort quick --max-extra-work 0.2",
}
"""What optimize is told, by the name of the way."""
MOST_MACS = 60_000_000
"""Of a network that is also run in QEMU, which takes minutes beyond."""
_OURS = "network | way | arena | head | MACs | instructions | verified | s"
_THEIRS = "network | tool | bytes | counts | any kernels | cortex-m7 | parts | feed | best of ours / theirs"
_COUNTS = {"all": "all RAM", "tensors": "tensors, with both ends", "between": "tensors between the ends"}


@dataclass(frozen=True)
class Row:
    """One network one way: the whole arena and its head in bytes, MACs, and instructions more than as it came.

    ``ran``: these are of QEMU, not estimated. ``error``: why there is no result.
    """

    network: str
    way: str
    arena: int = 0
    head: int = 0
    macs: float = 0.0
    slowdown: float = 0.0
    ran: bool = False
    verified: str = ""
    seconds: float = 0.0
    error: str | None = None


@click.command()
@click.argument("names", nargs=-1)
@click.option("--way", "ways", multiple=True, type=click.Choice([*WAYS]), default=[*WAYS], help="Ways to measure.")
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="Write Markdown here.")
@click.option("--kept-only", is_flag=True, help="Measure nothing: the page of the rows that were kept.")
def others(names: tuple[str, ...], ways: tuple[str, ...], output: Path | None, kept_only: bool) -> None:
    """Networks NAMES (all without one) of `scripts/zoo --others`, way after way; each row is kept and made once."""
    figures = published()
    every = list(dict.fromkeys(figure.network for figure in figures))
    unknown = [name for name in names if name not in every]
    if unknown:
        raise click.UsageError(f"no network {', '.join(unknown)}; there are {', '.join(every)}")
    for way in () if kept_only else ways:
        for name in names or every:
            if not _place(name, way).exists():
                click.echo(f"{name}: {way}", err=True)
                _keep(_measured(name, way))
    rows = [_kept(name, way) for name in every for way in WAYS if _place(name, way).exists()]
    text = "\n".join(_document(rows, figures)) + "\n"
    if output is None:
        click.echo(text)
    else:
        output.write_text(text)


def _file(name: str) -> Path:
    return default_folder() / f"others_{name}.tflite"


def _place(name: str, way: str) -> Path:
    return default_folder().parent / "others" / f"{name}.{way.replace(' ', '_')}.json"


def _keep(made: Row) -> None:
    place = _place(made.network, made.way)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(json.dumps(asdict(made)))


def _kept(name: str, way: str) -> Row:
    return Row(**json.loads(_place(name, way).read_text()))


def _measured(name: str, way: str) -> Row:
    if not _file(name).exists():
        raise click.UsageError(f"{_file(name)} is not there: run `scripts/zoo --others`")
    started = time.perf_counter()
    try:
        made = _as_one(name, way) if way in ("any kernels", "cortex-m7") else _as_program(name, way)
    except MemoptError as error:
        made = Row(name, way, error=str(error))
    return replace(made, seconds=time.perf_counter() - started)


def _as_one(name: str, way: str) -> Row:
    data = _file(name).read_bytes()
    result = optimize(data, Options(target=TARGET if way == TARGET else None))
    before, after = result.report.before, result.report.after
    slowdown = max(after.instructions[each] / count for each, count in before.instructions.items()) - 1
    runs = way == TARGET and before.macs <= MOST_MACS
    if runs:
        slowdown = measured(result.model, TARGET, BUILD)[1] / measured(data, TARGET, BUILD)[1] - 1
    equal = [each for each, verdict in result.report.equivalence.items() if verdict.equal]
    macs = after.macs / before.macs
    said = ", ".join(equal)
    return Row(name, way, after.required_for_target, after.arena_bytes, macs, slowdown, runs, said)


def _as_program(name: str, way: str) -> Row:
    fed = way == "feed"
    options = Options(target=TARGET, effort="quick", max_extra_work=0.2 if fed else None)
    result = optimize_in_parts(_file(name), options, feed=AUTO if fed else None)
    program, calls = result.program, 1 if result.program.feed is None else result.program.feed.calls
    models = [model_macs(read_model(data)) for data in result.models]
    macs = (sum(models) + (calls - 1) * models[0]) / model_macs(read_model(_file(name).read_bytes()))
    head = max(part.head for part in program.parts)
    return Row(name, way, program.arena, head, macs, max(program.slowdown.values()), False, program.verified)


def _document(rows: list[Row], figures: list[Published]) -> Iterator[str]:
    by_place = {(each.network, each.way): each for each in rows}
    yield "# Networks that others quote\n"
    yield from table(_THEIRS)
    for figure in figures:
        ours = [_in(figure, by_place.get((figure.network, way))) for way in WAYS]
        best = min((size for size in ours if size is not None), default=None)
        share = "-" if best is None else f"{best / figure.bytes:.2f}"
        cells = ["-" if size is None else size for size in ours]
        yield row(figure.network, figure.tool, figure.bytes, _COUNTS[figure.counts], *cells, share)
    yield "\n## Ours\n"
    yield from table(_OURS)
    for each in rows:
        if each.error is not None:
            yield row(each.network, each.way, *["-"] * 4, each.error[:160], f"{each.seconds:.0f}")
            continue
        instructions = percent(each.slowdown) + ("" if each.ran else " (estimate)")
        figures_of = (each.arena, each.head, f"x {each.macs:.2f}", instructions, each.verified, f"{each.seconds:.0f}")
        yield row(each.network, each.way, *figures_of)
    yield "\n## Sources\n"
    for tool, source in SOURCES.items():
        yield f"- **{tool}**: {source}."


def _in(figure: Published, ours: Row | None) -> int | None:
    """Our bytes as the other tool counts them; without the ends only where the input is fed."""
    if ours is None or ours.error is not None or (figure.counts == "between" and ours.way != "feed"):
        return None
    return ours.arena if figure.counts == "all" else ours.head
