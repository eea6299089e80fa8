"""Read and write docs/results/NAME.csv, one row per figure; ``scripts/bench NAME`` writes them."""

from __future__ import annotations

import csv
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import click

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "results"


@dataclass(frozen=True)
class Figure:
    """``target``: as ``--target`` takes it, empty for any kernels. ``options``: the others, as on the command line.

    ``name``: what was counted, with its unit. ``version``: the last commit that changed the package.
    """

    model: str
    target: str
    options: str
    name: str
    value: str
    version: str

    @property
    def key(self) -> tuple[str, str, str, str]:
        """What the figure is of: another run of it replaces it."""
        return self.model, self.target, self.options, self.name


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
    """Put figures into a table; those of the same run are replaced where they stand."""
    found = {figure.key: figure for figure in read(name)}
    found |= {figure.key: figure for figure in new}
    path = FOLDER / f"{name}.csv"
    path.parent.mkdir(exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, [each.name for each in fields(Figure)], lineterminator="\n")
        writer.writeheader()
        writer.writerows(map(asdict, found.values()))


def version() -> str:
    """The last commit that changed the package; with a plus sign where files differ from it."""
    commit = _git("log", "-1", "--format=%h", "--", "tflite_memopt")
    return commit + "+" * bool(_git("status", "--porcelain", "--", "tflite_memopt"))


def stale() -> Iterator[tuple[str, str, int]]:
    """Tables with figures of other versions than the present one: name, version, and how many figures."""
    present = version()
    for path in files():
        counts: dict[str, int] = {}
        for figure in read(path.stem):
            counts[figure.version] = counts.get(figure.version, 0) + (figure.version != present)
        yield from ((path.stem, old, count) for old, count in counts.items() if count)


def _git(*arguments: str) -> str:
    return subprocess.run(("git", *arguments), cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def of_row(columns: list[str], cells: list[str], version: str, options: str = "") -> Iterator[Figure]:
    """The figures of a row of a Markdown table: "target" is the target, the first other column the model.

    A refusal is a short row.
    """
    named = dict(zip(columns, cells, strict=False))
    target = named.pop("target", "")
    (_, model), *others = named.items()
    for name, value in others:
        if value:
            yield Figure(model, target, options, name, value, version)


def cells_of(line: str) -> list[str]:
    """The cells of a line of a Markdown table."""
    return [cell.strip().replace("\0", "|") for cell in line.strip().strip("|").replace("\\|", "\0").split("|")]


class Echo:
    """Prints lines, and puts the rows of the first Markdown table among them into a table of figures at once."""

    def __init__(self, name: str, options: str = "") -> None:
        self._name, self._options, self._version = name, options, version()
        self._columns: list[str] | None = None
        self._is_over = False

    def __call__(self, line: str) -> None:
        """Print a line, and keep its figures."""
        click.echo(line)
        if self._is_over or not line.startswith("|"):
            self._is_over = self._is_over or self._columns is not None
        elif self._columns is None:
            self._columns = cells_of(line)
        elif not line.startswith("|---"):
            add(self._name, of_row(self._columns, cells_of(line), self._version, self._options))


def echo_text(name: str, text: str) -> None:
    """Print a whole page, and keep the figures of its first table."""
    echo = Echo(name)
    for line in text.splitlines():
        echo(line)
