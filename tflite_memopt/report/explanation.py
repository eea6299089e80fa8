"""Tables of applied and refused rewrites, for ``--verbose``. Nothing here prints."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ..model.ir.change import Refusal, RewriteUse
from .console import as_text, table_with
from .model import Report
from .words import LONGEST_LISTED, short_name

_MAX_NAMES = 3
_NAME = re.compile(r"'[^']*'")
"""The quoted part of a reason; reasons that differ in it only are listed once."""


def render_explanation(report: Report) -> RenderableType:
    """Return one row an applied rewrite, and one row a reason why a rule that fits was not applied."""
    if not report.rewrites and not report.refused:
        return Text("rewrites: no rule fits any operator, or none was tried")
    parts: list[RenderableType] = []
    if report.rewrites:
        parts.append(_applied(report.rewrites))
    if report.refused:
        parts.append(_refused(report.refused))
    return Group(*parts)


def _applied(uses: Sequence[RewriteUse]) -> Table:
    title = "applied rewrites, and the bytes that the model would need in addition without each one"
    table = table_with(title, "rule", "at", "exactness", ">bytes", overflow="fold")
    for use in uses:
        table.add_row(use.rule, _names(use.operators), use.exactness, f"{use.saved_bytes:,}")
    return table


def _refused(refusals: Sequence[Refusal]) -> Table:
    by_reason: dict[tuple[str, str], list[Refusal]] = {}
    for each in refusals:
        by_reason.setdefault((each.rule, _NAME.sub("'...'", each.reason)), []).append(each)
    title = "rewrites that match and were not applied"
    table = table_with(title, "rule", "reason", ">number", "at", overflow="fold")
    for (rule, reason), group in sorted(by_reason.items(), key=lambda item: -len(item[1])):
        said = group[0].reason if len(group) == 1 else reason
        table.add_row(rule, as_text(said), str(len(group)), _names([each.operator for each in group]))
    return table


def _names(names: Sequence[str]) -> Text:
    shown = ", ".join(short_name(name, LONGEST_LISTED) for name in names[:_MAX_NAMES])
    rest = len(names) - _MAX_NAMES
    return as_text(f"{shown} and {rest} more" if rest > 0 else shown)
