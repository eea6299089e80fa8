"""The page of ``report``: many models, what they save, what limits them, and which have no result."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..many_models import by_saving, headline_of, result_cells, without_result
from ..model_rows import ModelRow, Regression
from .appearance import PAGE
from .charts import savings_chart
from .page import Column, Lines, Page, PageTable, Picture, Side, html_of

_SHOWN = 60
"""Bars that one can still tell apart."""


def models_page(title: str, rows: Sequence[ModelRow], worse: Sequence[Regression] | None = None) -> bytes:
    """The page as one file in UTF-8; ``worse``: what another run is compared by, None for no comparison.

    Raises UsageError when the packages that draw are not installed.
    """
    lists = () if worse is None else (Lines("Worse than before", [f"{each.name}: {each.text}" for each in worse]),)
    return html_of(Page(title, headline_of(rows), lists, list(_pictures(rows)), list(_tables(rows))))


def _pictures(rows: Sequence[ModelRow]) -> Iterator[Picture]:
    best = by_saving(rows)[:_SHOWN]
    if best:
        text = f"The {len(best)} models that save most. A bar is what a model needed, the line on it what it needs now."
        yield Picture("RAM to reserve", text, (Side("models", "", savings_chart(best, PAGE)),))


def _tables(rows: Sequence[ModelRow]) -> Iterator[PageTable]:
    sizes = (Column("before", True), Column("after", True), Column("saved", True), Column("run time", True))
    yield PageTable(
        "Models", (Column("model"), *sizes, Column("what limits it")), [result_cells(row) for row in by_saving(rows)]
    )
    failed = [(row.name, row.status, row.error or "") for row in without_result(rows)]
    if failed:
        yield PageTable("Without a result", (Column("model"), Column("what happened"), Column("why")), failed)
