"""What is known of many models, a row each, and what has grown from one run to the next."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ..memory.work import slowest

DONE = "done"


@dataclass(frozen=True)
class ModelRow:
    """One model under one set of options; ``options`` and ``content`` are SHA-256 in hexadecimal.

    ``before``, ``after``: bytes of the arena to reserve on the target, None where the model has no result.
    ``slowdown``: the run time that is added, as a fraction, with the library that gets slowest (estimated). ``limits``:
    what keeps it from needing less, in words. ``report``: the JSON of the whole report, without times.
    """

    name: str
    content: str
    options: str
    status: str
    error: str | None
    before: int | None
    after: int | None
    slowdown: float | None
    limits: str | None
    report: str | None

    @property
    def saved(self) -> int | None:
        """Bytes saved."""
        return None if self.before is None or self.after is None else self.before - self.after


def row_of(name: str, content: str, options: str, status: str, error: str | None, report: str | None) -> ModelRow:
    """The row of a model whose report is this JSON, or None."""
    if report is None:
        return ModelRow(name, content, options, status, error, None, None, None, None, None)
    fields = json.loads(report)
    limits = fields["summary"]["limits"]
    need = [_required(fields[side]) for side in ("before", "after")]
    slower = slowest(fields["before"]["instructions"], fields["after"]["instructions"])
    return ModelRow(name, content, options, status, error, need[0], need[1], slower, "; ".join(limits) or None, report)


def _required(memory: dict[str, Any]) -> int:
    sizes: dict[str, int] = memory["required_bytes"]
    return sizes.get("target", sizes["32"])


@dataclass(frozen=True)
class Regression:
    """A model that is worse than it was, and in which way."""

    name: str
    text: str


def regressions(now: Iterable[ModelRow], before: Iterable[ModelRow]) -> list[Regression]:
    """The models of ``before`` that now need more, have no result any more, or are missing; matched by name."""
    found = {row.name: row for row in now}
    worse = ((row.name, _worse(row, found.get(row.name))) for row in before)
    return [Regression(name, text) for name, text in sorted(worse) if text]


def _worse(before: ModelRow, now: ModelRow | None) -> str:
    """What is worse, empty where nothing is."""
    if before.after is None:
        return ""
    if now is None:
        return "it is not in the run any more"
    if now.after is None:
        return f"it had a result of {before.after:,} bytes and has none now: {now.status}, {now.error}"
    if now.after > before.after:
        return f"it needs {now.after - before.after:,} bytes more: {before.after:,} -> {now.after:,}"
    return ""


def total_saved(rows: Sequence[ModelRow]) -> tuple[int, int]:
    """Bytes of all models that have a result, before, and how many of them are saved."""
    known = [(row.before, row.after) for row in rows if row.before is not None and row.after is not None]
    return sum(before for before, _ in known), sum(before - after for before, after in known)
