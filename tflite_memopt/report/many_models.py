"""Many models as a console table and as CSV, and what has grown since another run."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from io import StringIO
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from .model_rows import DONE, ModelRow, Regression, total_saved
from .words import percent


def headline_of(rows: Sequence[ModelRow]) -> str:
    """How many models there are, what became of them, and what they need and save together."""
    counts = Counter(row.status for row in rows)
    before, saved = total_saved(rows)
    said = ", ".join(f"{count:,} {status}" for status, count in sorted(counts.items(), key=lambda item: -item[1]))
    share = f", {saved:,} of {before:,} bytes saved ({100 * saved / before:.0f} %)" if before else ""
    return f"{len(rows):,} models: {said or 'none'}{share}"


def render_rows(rows: Sequence[ModelRow]) -> RenderableType:
    """The headline, the models that have a result, most saved first, and those that have none, with the reason."""
    table = Table(title_justify="left")
    table.add_column("model", overflow="fold")
    for name in ("before", "after", "saved", "run time"):
        table.add_column(name, justify="right")
    table.add_column("what limits it", overflow="fold")
    for row in by_saving(rows):
        table.add_row(*(Text(cell) for cell in result_cells(row)))
    parts: list[RenderableType] = [Text(headline_of(rows), style="bold")]
    if table.row_count:
        parts.append(table)
    parts += [Text(f"{row.name}: {row.status}: {row.error}", style="yellow") for row in without_result(rows)]
    return Group(*parts)


def by_saving(rows: Iterable[ModelRow]) -> list[ModelRow]:
    """The models that have a result, most saved first."""
    return sorted((row for row in rows if row.status == DONE), key=lambda row: (-(row.saved or 0), row.name))


def without_result(rows: Iterable[ModelRow]) -> list[ModelRow]:
    """The models that have none, by what became of them."""
    return sorted((row for row in rows if row.status != DONE), key=lambda row: (row.status, row.name))


def result_cells(row: ModelRow) -> tuple[str, ...]:
    """Name, bytes before, after and saved, the run time that is added, and what limits the model, in words."""
    share = f" ({100 * row.saved / row.before:.0f} %)" if row.saved is not None and row.before else ""
    return (
        row.name,
        f"{row.before:,}",
        f"{row.after:,}",
        f"{row.saved:,}{share}",
        percent(row.slowdown or 0.0),
        row.limits or "",
    )


def render_regressions(worse: Sequence[Regression], against: str) -> RenderableType:
    """A line for each model that is worse than it was in the run that is called ``against``."""
    if not worse:
        return Text(f"no model is worse than in {against}", style="green")
    lines = [Text(f"{each.name}: {each.text}", style="red") for each in worse]
    return Group(Text(f"{len(worse):,} models are worse than in {against}", style="bold red"), *lines)


def table_csv(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A stored table as CSV (RFC 4180)."""
    stream = StringIO()
    writer = csv.writer(stream)
    writer.writerow(columns)
    writer.writerows(rows)
    return stream.getvalue()


def without_reports(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> tuple[list[str], Iterator[list[Any]]]:
    """The same table without its column of whole reports, for a spreadsheet."""
    kept = [number for number, column in enumerate(columns) if column != "report"]
    return [columns[number] for number in kept], ([row[number] for number in kept] for row in rows)
