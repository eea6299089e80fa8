"""RAM of the networks that other tools quote, beside what they quote: docs/results.md."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import click

from scripts.zoo_networks.__main__ import default_folder
from scripts.zoo_networks.msf_cnn import CHAINS
from tflite_memopt.analysis.macs import model_macs
from tflite_memopt.errors import MemoptError
from tflite_memopt.io.reader import read_model
from tflite_memopt.options import Options
from tflite_memopt.pipeline import optimize
from tflite_memopt.program.fronts import AUTO
from tflite_memopt.program.run import optimize_in_parts

from .figures import echo_text
from .markdown_table import row, table
from .others_published import FILES, SOURCES, Published, published

WAYS: Mapping[str, str] = {
    "any kernels": "the default options",
    "named core": "`--target CORE`",
    "parts": "`--target CORE --parts auto --effort quick`",
    "feed": "`--target CORE --feed auto --parts auto --effort quick --max-slowdown 20`",
    "head": "`--kernels reference --objective head --max-slowdown 100`",
}
"""The options of optimize, by the name of the way. The last one is for figures of tensors alone."""
_COLUMNS = ("any kernels", "named core", "parts", "feed")
_MARKS = {"all": "", "tensors": "t", "between": "b", "without input": "x"}
_INTRODUCTION = """\
Networks of others' tables, rebuilt in int8, random weights; bytes. Ours: whole arena/head/MACs in times those of the
network/estimated instructions more than as it came, in %. Others, with their MACs where these are said,
and the least of ours over theirs as one or in parts/fed, as they count: all RAM; `t` tensors with the network's input
and output; `b` tensors without these; `x` tensors without the input. *Fed*: ours takes the image in rows, and does not
count it. -: not run.

    scripts/zoo --others
    scripts/bench others --jobs 2
"""


@dataclass(frozen=True)
class Row:
    """One network one way: the whole arena and its head in bytes, MACs, and instructions more than as it came.

    ``slowdown``: estimated. ``seconds``: of the clock. ``error``: why there is no result.
    """

    network: str
    way: str
    arena: int = 0
    head: int = 0
    macs: float = 0.0
    slowdown: float = 0.0
    verified: str = ""
    seconds: float = 0.0
    error: str | None = None


@click.command()
@click.argument("names", nargs=-1)
@click.option("--way", "ways", multiple=True, type=click.Choice([*WAYS]), default=[*WAYS], help="Ways to measure.")
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="Write Markdown here.")
@click.option("--jobs", default=1, show_default=True, type=click.IntRange(1), help="Rows to measure at once.")
@click.option(
    "--files",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default=None,
    help="Folder with networks that others publish as files, NAME.tflite; the page says where they come from.",
)
@click.option("--kept-only", is_flag=True, help="Measure nothing: the page of the rows that were kept.")
def others(
    names: tuple[str, ...], ways: tuple[str, ...], output: Path | None, jobs: int, files: Path | None, kept_only: bool
) -> None:
    """Measure networks NAMES, way after way; without names those of `scripts/zoo --others`, and all of --files.

    Each row is kept and measured once.
    """
    figures = [each for each in published() if each.network not in FILES or files is not None]
    every = list(dict.fromkeys(figure.network for figure in figures))
    unknown = [name for name in names if name not in every]
    if unknown:
        raise click.UsageError(f"no network {', '.join(unknown)}; there are {', '.join(every)}")
    has_head = {*CHAINS, *FILES}
    wanted = [(name, way) for way in ways for name in names or every if way in _COLUMNS or name in has_head]
    missing = [] if kept_only else [(_file(each[0], files), *each) for each in wanted if not _place(*each).exists()]
    if jobs == 1:
        for each in missing:
            _measure_and_keep(*each)
    elif missing:
        with ProcessPoolExecutor(jobs) as pool:
            list(pool.map(_measure_and_keep, *zip(*missing, strict=True)))
    rows = [_kept(name, way) for name in every for way in WAYS if _place(name, way).exists()]
    text = "\n".join(_document(rows, figures)) + "\n"
    if output is None:
        echo_text("others", text)
    else:
        output.write_text(text)


def _file(name: str, files: Path | None) -> Path:
    if name not in FILES:
        path, source = default_folder() / f"others_{name}.tflite", "run `scripts/zoo --others`"
    else:
        path, source = (files or Path()) / f"{name}.tflite", f"it is in {FILES[name]}"
    if not path.exists():
        raise click.UsageError(f"{path} is not there: {source}")
    return path


def _core(name: str) -> str:
    """Return the core that a network is measured for: ST and TinyTS measured the files on a Cortex-M4."""
    return "cortex-m4" if name in FILES else "cortex-m7"


def _place(name: str, way: str) -> Path:
    return default_folder().parent / "others" / f"{name}.{way.replace(' ', '_')}.json"


def _measure_and_keep(file: Path, name: str, way: str) -> None:
    click.echo(f"{name}: {way}", err=True)
    made, place = _measured(file, name, way), _place(name, way)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(json.dumps(asdict(made)))


def _kept(name: str, way: str) -> Row:
    return Row(**json.loads(_place(name, way).read_text()))


def _measured(file: Path, name: str, way: str) -> Row:
    started = time.perf_counter()
    try:
        made = _as_program(file, name, way) if way in ("parts", "feed") else _as_one(file, name, way)
    except MemoptError as error:
        made = Row(name, way, error=str(error))
    return replace(made, seconds=time.perf_counter() - started)


def _as_one(file: Path, name: str, way: str) -> Row:
    data = file.read_bytes()
    options = Options(target=None if way == "any kernels" else _core(name))
    if way == "head":
        options = Options(kernels="reference", objective="head", max_slowdown=1.0)
    result = optimize(data, options)
    before, after = result.report.before, result.report.after
    slowdown = max(after.instructions[each] / count for each, count in before.instructions.items()) - 1
    equal = [each for each, verdict in result.report.equivalence.items() if verdict.equal]
    macs = after.macs / before.macs
    said = ", ".join(equal)
    return Row(name, way, after.required_for_target, after.arena_bytes, macs, slowdown, said)


def _as_program(file: Path, name: str, way: str) -> Row:
    fed = way == "feed"
    options = Options(target=_core(name), effort="quick", max_slowdown=0.2 if fed else 0.1)
    result = optimize_in_parts(file, options, feed=AUTO if fed else None)
    program, calls = result.program, 1 if result.program.feed is None else result.program.feed.calls
    models = [model_macs(read_model(data)) for data in result.models]
    before = model_macs(read_model(file.read_bytes()))
    macs = (sum(models) + (calls - 1) * models[0]) / before
    head, slowdown = program.head, max(program.slowdown.values())
    return Row(name, way, program.arena, head, macs, slowdown, program.verified)


def _document(rows: list[Row], figures: list[Published]) -> Iterator[str]:
    by_place = {(each.network, each.way): each for each in rows}
    networks = list(dict.fromkeys(figure.network for figure in figures))
    yield "# Networks that others quote\n"
    yield _INTRODUCTION
    not_run = []
    for core in dict.fromkeys(map(_core, networks)):
        columns = (*_COLUMNS, "head") if core == "cortex-m4" else _COLUMNS
        yield f"\nCORE is {core}:\n"
        yield from table(f"network | others | {' | '.join(columns)}")
        for name in (each for each in networks if _core(each) == core):
            ours = {way: by_place.get((name, way)) for way in WAYS}
            said = "; ".join(_said(figure, ours) for figure in figures if figure.network == name)
            if any(ours.values()):
                yield row(name, said, *(_cell(ours[way]) for way in columns))
            else:
                not_run.append(f"{name} ({said})")
    yield f"\nNot run: {', '.join(not_run) or 'none'}."
    yield "Our ways, on the command line of `tflite-memopt optimize`:\n"
    for way, options in WAYS.items():
        yield f"- **{way}**: {options}."
    for each in rows:
        if each.error is not None or (each.way not in _COLUMNS and each.network not in FILES):
            yield f"- {each.network}, {each.way}: {each.error or _cell(each)}"
    apart = [f"{each.network} {each.way}" for each in rows if each.error is None and not _is_verified(each)]
    yield f"\nVerified bit-exact on LiteRT and TFLM: all{' but ' if apart else ''}{', '.join(apart)}."
    yield ""
    for tool, source in SOURCES.items():
        yield f"- **{tool}**: {source}."


def _is_verified(ours: Row) -> bool:
    return all(runtime in ours.verified.lower() for runtime in ("litert", "tflm"))


def _said(figure: Published, ours: Mapping[str, Row | None]) -> str:
    """A figure of another tool, and how much the least of ours is of it, counted the same way: whole/fed."""
    whole, fed = [each for way, each in ours.items() if way != "feed"], [ours["feed"]]
    if figure.counts in ("between", "without input"):
        whole = []
    macs = "" if figure.macs is None else f" x{figure.macs}"
    shares = f"{_share(figure, whole)}/{_share(figure, fed)}"
    return f"{figure.tool} {figure.bytes:,}{_MARKS[figure.counts]}{macs} {shares}"


def _share(figure: Published, ours: Sequence[Row | None]) -> str:
    made = [each for each in ours if each is not None and each.error is None]
    sizes = [each.arena if figure.counts == "all" else each.head for each in made]
    return f"{min(sizes) / figure.bytes:.2f}" if sizes else "-"


def _cell(ours: Row | None) -> str:
    if ours is None or ours.error is not None:
        return "-"
    return f"{ours.arena:,}/{ours.head:,}/{ours.macs:.2f}/{100 * ours.slowdown:+.1f}"
