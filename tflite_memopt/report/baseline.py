"""A model against what was written down of it before: for CI, which fails when the arena has grown."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ..errors import UsageError
from ..memory.figures import MemoryUse
from .model import Analysis

_ARENA = "arena to reserve"


@dataclass(frozen=True)
class Growth:
    """A figure in bytes, or a count, before and now."""

    what: str
    before: int
    now: int


def growth_since(analysis: Analysis, baseline: bytes) -> tuple[Growth, ...]:
    """The figures of a model now and in ``baseline``, the JSON of ``analyze`` or ``optimize``; the arena is first.

    Raises UsageError when that is no such JSON, or was made for another target or other kernels.
    """
    try:
        fields = json.loads(baseline)
        was = fields["memory"] if "memory" in fields else fields["after"]
        made_for = fields["target"], fields["kernels"]
        size = fields["file_bytes"]
        rows = list(_figures(was, size if isinstance(size, int) else size["after"], analysis))
    except (ValueError, KeyError, TypeError) as error:
        raise UsageError("the baseline is no JSON report of analyze or optimize: write it anew") from error
    if made_for != (analysis.target, analysis.kernels):
        then, now = (
            f"{target or 'no target'}, {kernels} kernels" for target, kernels in (made_for, _made_for(analysis))
        )
        raise UsageError(f"the baseline is for {then}, the analysis for {now}: give the same --target and --kernels")
    return tuple(rows)


def has_grown(rows: tuple[Growth, ...]) -> bool:
    """Whether the arena is larger than it was."""
    return rows[0].now > rows[0].before


def growth_text(rows: tuple[Growth, ...]) -> str:
    """A line on the arena, and one for each other figure that changed."""
    first, *others = rows
    word = "GREW" if has_grown(rows) else "shrank" if first.now < first.before else "is as before"
    lines = [f"{_ARENA} {word}: {first.before:,} -> {first.now:,} bytes"]
    lines += [
        f"  {row.what}: {row.before:,} -> {row.now:,} ({row.now - row.before:+,})" for row in others if _moved(row)
    ]
    return "\n".join(lines) + "\n"


def growth_markdown(model: str | None, rows: tuple[Growth, ...]) -> str:
    """A table for a comment in a pull request."""
    sign = "needs **more** RAM than before" if has_grown(rows) else "needs no more RAM than before"
    lines = [f"### {model or 'The model'} {sign}", "", "| | before | now | change |", "|---|---:|---:|---:|"]
    for row in rows:
        change = f"{row.now - row.before:+,}" if _moved(row) else ""
        lines.append(f"| {row.what} | {row.before:,} | {row.now:,} | {change} |")
    return "\n".join(lines) + "\n"


def _moved(row: Growth) -> bool:
    return row.now != row.before


def _made_for(analysis: Analysis) -> tuple[str | None, str]:
    return analysis.target, analysis.kernels


def _figures(was: Mapping[str, Any], file_bytes: int, analysis: Analysis) -> Iterator[Growth]:
    now = analysis.memory
    needs = was["required_bytes"]
    yield Growth(f"{_ARENA}, bytes", needs.get("target", needs["32"]), now.required_for_target)
    for what, field in _FIELDS.items():
        yield Growth(what, int(was[field]), _value(now, field))
    yield Growth("file, bytes", file_bytes, analysis.file_bytes)


_FIELDS = {
    "head, bytes": "arena_bytes",
    "largest working set, bytes": "peak_bytes",
    "operators": "operators",
    "multiply-accumulates": "macs",
}


def _value(memory: MemoryUse, field: str) -> int:
    value: int = getattr(memory, field)
    return value
