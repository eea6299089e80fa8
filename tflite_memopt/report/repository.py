"""The RAM of the models of a repository, now and at a revision, as text and as a comment for a pull request."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

MARK = "<!-- tflite-memopt: RAM of models -->"
"""The first line of a comment, by which the next run finds it and replaces it."""


@dataclass(frozen=True)
class ModelRam:
    """Bytes of a model's arena, ``now`` and ``before``; None where there is no model, and ``error`` says why."""

    name: str
    now: int | None
    before: int | None = None
    error: str = ""


def has_grown(row: ModelRam) -> bool:
    """Return whether it needs more than it did."""
    return row.now is not None and row.before is not None and row.now > row.before


def is_over(row: ModelRam, budget: int | None) -> bool:
    """Return whether it needs more than the budget, if there is one."""
    return budget is not None and row.now is not None and row.now > budget


def ram_text(rows: Sequence[ModelRam], budget: int | None) -> str:
    """Return a line on all, and one on each model."""
    lines = [headline_of(rows, budget)]
    for row in rows:
        change = "" if row.before is None else f", {_change(row)}"
        notes = "".join(f", {note}" for note in _notes(row, budget))
        lines.append(f"  {row.name}: {_told(row)}{change}{notes}")
    return "\n".join(lines) + "\n"


def ram_markdown(rows: Sequence[ModelRam], budget: int | None, made_for: str) -> str:
    """Return the same as a comment. ``made_for``: the kernels that the figures are for, in words."""
    limit = "" if budget is None else f"; the budget is {budget:,} bytes"
    lines = [
        MARK,
        f"### {headline_of(rows, budget)}",
        "",
        "| model | before | now | change | |",
        "|---|---:|---:|---:|---|",
    ]
    for row in rows:
        before = "" if row.before is None else f"{row.before:,}"
        now = "" if row.now is None else f"{row.now:,}"
        notes = "; ".join(f"**{note}**" for note in _notes(row, budget))
        change = "" if row.before is None or row.now is None else _change(row)
        lines.append(f"| {_cell(row.name)} | {before} | {now} | {change} | {_cell(row.error) or notes} |")
    return "\n".join([*lines, "", f"Bytes of the arena to reserve, {made_for}{limit}."]) + "\n"


def headline_of(rows: Sequence[ModelRam], budget: int | None) -> str:
    """Return the next step; empty without one."""
    over = sum(is_over(row, budget) for row in rows)
    grown, wrong = sum(map(has_grown, rows)), sum(bool(row.error) for row in rows)
    parts = ((over, "over budget"), (grown, "grown"), (wrong, "with an error"))
    said = ", ".join(f"{count} {what}" for count, what in parts if count)
    count = f"{len(rows)} model{'s' if len(rows) != 1 else ''}"
    return f"RAM of {count}: {said or 'all is well'}"


def _notes(row: ModelRam, budget: int | None) -> Iterator[str]:
    if is_over(row, budget):
        yield "over budget"
    if has_grown(row):
        yield "grown"


def _told(row: ModelRam) -> str:
    if row.now is None:
        return row.error
    return f"{row.now:,} bytes" if row.before is None else f"{row.before:,} -> {row.now:,} bytes"


def _change(row: ModelRam) -> str:
    assert row.now is not None
    assert row.before is not None
    share = f" ({100 * (row.now - row.before) / row.before:+.1f} %)" if row.before else ""
    return "no change" if row.now == row.before else f"{row.now - row.before:+,}{share}"


def _cell(text: str) -> str:
    """Text that neither ends a cell nor is read as Markdown or HTML: names of files are a contributor's to choose."""
    for letter in "\\`*_[]<>|#@&~":
        text = text.replace(letter, f"&#{ord(letter)};" if letter in "<>&|@" else f"\\{letter}")
    return " ".join(text.split())
