"""What the rewriter did and what it left alone, as rich tables for ``--explain``. Nothing here prints."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from .model import Refusal, Report, RewriteUse

_MAX_NAMES = 3


def render_explanation(report: Report) -> RenderableType:
    """One row an applied rewrite, and one row a reason why a rule that fits was not applied."""
    if not report.rewrites and not report.refused:
        return Text("rewrites: no rule fits any operator, or none was tried")
    parts: list[RenderableType] = []
    if report.rewrites:
        parts.append(_applied(report.rewrites))
    if report.refused:
        parts.append(_refused(report.refused))
    return Group(*parts)


def _applied(uses: Sequence[RewriteUse]) -> Table:
    table = Table(title="rewrites that were applied", title_justify="left")
    for column in ("rule", "at", "exactness", "saved bytes"):
        table.add_column(column, justify="right" if column == "saved bytes" else "left", overflow="fold")
    for use in uses:
        table.add_row(use.rule, _names(use.operators), use.exactness, f"{use.saved_bytes:,}")
    return table


def _refused(refusals: Sequence[Refusal]) -> Table:
    by_reason: dict[tuple[str, str], list[str]] = {}
    for each in refusals:
        by_reason.setdefault((each.rule, each.reason), []).append(each.operator)
    table = Table(title="rewrites that fit and were not applied", title_justify="left")
    for column in ("rule", "reason", "number", "at"):
        table.add_column(column, justify="right" if column == "number" else "left", overflow="fold")
    for (rule, reason), operators in sorted(by_reason.items(), key=lambda item: -len(item[1])):
        table.add_row(rule, Text(reason), str(len(operators)), _names(operators))
    return table


def _names(names: Sequence[str]) -> Text:
    """The first names of a list; bytes that are not UTF-8 become question marks."""
    shown = ", ".join(names[:_MAX_NAMES])
    rest = len(names) - _MAX_NAMES
    text = f"{shown} and {rest} more" if rest > 0 else shown
    return Text(text.encode("utf-8", "replace").decode("utf-8"))
