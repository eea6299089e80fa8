"""Read and write docs/results/NAME.csv, one row per figure; ``scripts/bench NAME`` writes them."""

from __future__ import annotations

import csv
import subprocess
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import NamedTuple

import click

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "results"


@dataclass(frozen=True)
class Figure:
    """``target``: as ``--target`` takes it, empty for any kernels. ``options``: the others, as on the command line.

    ``name``: what was counted, with its unit. ``version``: the last commit that changed what makes it, or that of
    another tool. ``source``: the command that measures it again; with "not here: " before it, where this repository
    cannot.
    """

    model: str
    target: str
    options: str
    name: str
    value: str
    version: str
    source: str

    @property
    def run(self) -> tuple[str, str, str]:
        """The run that it is of: another one replaces all of its figures."""
        return self.model, self.target, self.options


def files() -> list[Path]:
    """The tables, by name."""
    return sorted(FOLDER.glob("*.csv"))


def read(name: str) -> list[Figure]:
    """The figures of a table, in the order of their runs; none where there is no table."""
    path = FOLDER / f"{name}.csv"
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return [Figure(**row) for row in csv.DictReader(file)]


def add(name: str, new: Iterable[Figure]) -> None:
    """Put figures into a table; those of the same run are replaced where they stand, also by a refusal."""
    runs = _by_run(read(name)) | _by_run(new)
    path = FOLDER / f"{name}.csv"
    path.parent.mkdir(exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, [each.name for each in fields(Figure)], lineterminator="\n")
        writer.writeheader()
        writer.writerows(asdict(figure) for run in runs.values() for figure in run)


def _by_run(figures: Iterable[Figure]) -> dict[tuple[str, str, str], list[Figure]]:
    found: dict[tuple[str, str, str], list[Figure]] = {}
    for figure in figures:
        found.setdefault(figure.run, []).append(figure)
    return found


ABOVE_ONE_MODEL = frozenset(
    {"__init__", "__main__", "api", "batch", "cli", "costs", "run/explore", "run/parts", "serve"}
)
"""Of the package: what stands above ``run/pipeline``, so that no figure of one model depends on it."""


def version(in_parts: bool) -> str:
    """The last commit that changed what makes a figure, ``in_parts`` or not; with a plus sign where files differ."""
    others = ABOVE_ONE_MODEL - {"run/parts"} if in_parts else ABOVE_ONE_MODEL
    paths = (
        "--",
        "tflite_memopt",
        *(f":!tflite_memopt/{other}{end}" for other in sorted(others) for end in ("", ".py")),
    )
    return _git("log", "-1", "--format=%h", *paths) + "+" * bool(_git("status", "--porcelain", *paths))


def _versions() -> Mapping[bool, str]:
    """The present versions, of figures in parts and of others."""
    return {in_parts: version(in_parts) for in_parts in (False, True)}


def is_in_parts(table: str, options: str) -> bool:
    """Return whether a run makes several models of one, or compares with them."""
    return table == "slide" or "--parts" in options or "--feed" in options


NOT_HERE = "not here: "
"""Begins the source of a figure that needs what this repository does not have."""


class Stale(NamedTuple):
    """Figures of a table that another version of the package has made, and how to make them again."""

    table: str
    version: str
    source: str
    figures: int


def stale() -> Iterator[Stale]:
    """The tables with figures of other versions than the present one."""
    present = _versions()
    for path in files():
        counts = Counter(
            (figure.version, figure.source)
            for figure in read(path.stem)
            if figure.version != present[is_in_parts(path.stem, figure.options)]
        )
        yield from (Stale(path.stem, *each, count) for each, count in counts.items())


def _git(*arguments: str) -> str:
    return subprocess.run(("git", *arguments), cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


class Row(NamedTuple):
    """The figures of one run: of a model, for a target, with other options; by their names."""

    model: str
    target: str
    options: str
    values: Mapping[str, object]


def keep(name: str, source: str, rows: Iterable[Row]) -> None:
    """Print rows as they come, and put their figures into a table, also those of a run that is interrupted."""
    present, made = _versions(), list[Figure]()
    try:
        for model, target, options, values in rows:
            of = present[is_in_parts(name, options)]
            click.echo(f"{' '.join(filter(None, (model, target, options)))}: {_said(values)}")
            new = (Figure(model, target, options, each, str(value), of, source) for each, value in values.items())
            made += new
    finally:
        add(name, made)


def _said(values: Mapping[str, object]) -> str:
    return "; ".join(f"{name} {value}" for name, value in values.items())
