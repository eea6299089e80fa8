"""The RAM of the models of a repository, now and at a revision, as text and as a comment for a pull request."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from urllib.parse import quote

from ..errors import printable
from ..version import __version__

MARK = "<!-- tflite-memopt: RAM of models -->"
"""The first line of a comment, by which the next run finds it and replaces it."""


@dataclass(frozen=True)
class ModelRam:
    """Bytes of a model's arena, ``now`` and ``before``; None where there is no model, and ``error`` says why.

    ``error``: also where it computes wrongly with the kernels. ``most``: what it needs with the library that needs the
    most, in words, and whether ``now`` is an estimate. ``over``: why it is over the budget; empty if it fits.
    """

    name: str
    now: int | None
    before: int | None = None
    error: str = ""
    most: str = ""
    over: str = ""


def has_grown(row: ModelRam) -> bool:
    """Return whether it needs more than it did."""
    return row.now is not None and row.before is not None and row.now > row.before


def ram_text(rows: Sequence[ModelRam]) -> str:
    """Return a line on all, and one on each model."""
    lines = [headline_of(rows)]
    for row in rows:
        change = "" if row.before is None else f", {_change(row)}"
        notes = "".join(f", {note}" for note in _notes(row))
        lines.append(f"  {printable(row.name)}: {row.error or f'{_told(row)}{change}{notes}'}")
    return "\n".join(lines) + "\n"


def ram_json(rows: Sequence[ModelRam]) -> str:
    """Return the rows for programs."""
    return json.dumps([asdict(row) for row in rows], indent=2) + "\n"


def ram_markdown(rows: Sequence[ModelRam], budget: int | None, made_for: str) -> str:
    """Return the same as a comment. ``made_for``: the kernels that the figures are for, in words."""
    limit = "" if budget is None else f"; the budget is {budget:,} bytes"
    lines = [MARK, f"### {headline_of(rows)}", "", "| model | before | now | change | |", "|---|---:|---:|---:|---|"]
    for row in rows:
        before = "" if row.before is None else f"{row.before:,}"
        now = "" if row.now is None else f"{row.now:,}"
        notes = "; ".join(f"**{note}**" for note in _notes(row))
        change = "" if row.before is None or row.now is None else _change(row)
        lines.append(f"| {_cell(row.name)} | {before} | {now} | {change} | {_cell(row.error) or notes} |")
    return "\n".join([*lines, "", f"Bytes of the arena to reserve, {made_for}{limit}."]) + "\n"


def ram_sarif(rows: Sequence[ModelRam]) -> str:
    """Return what fails the check as SARIF 2.1.0, for the code scanning of a repository."""
    results = [
        {
            "ruleId": rule,
            "level": "error",
            "message": {"text": f"{printable(row.name)}: {said}"},
            "locations": [
                {"physicalLocation": {"artifactLocation": {"uri": quote(row.name)}, "region": {"startLine": 1}}}
            ],
            "partialFingerprints": {"rule/v1": rule},
        }
        for row in rows
        for rule, said in _findings(row)
    ]
    rules = [{"id": rule, "shortDescription": {"text": text}} for rule, text in _RULES.items()]
    driver = {"name": "tflite-memopt", "semanticVersion": __version__, "rules": rules}
    log = {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "results": results}],
    }
    return json.dumps(log, indent=2) + "\n"


_RULES = {
    "model-error": "A model cannot run on TFLM, or computes wrongly there.",
    "over-budget": "A model needs more RAM than the budget.",
    "ram-grown": "A model needs more RAM than before.",
}


def _findings(row: ModelRam) -> Iterator[tuple[str, str]]:
    if row.error:
        yield "model-error", printable(row.error)
    if row.over:
        yield "over-budget", row.over
    if has_grown(row):
        yield "ram-grown", f"{_told(row)}, {_change(row)}"


def headline_of(rows: Sequence[ModelRam]) -> str:
    """Return the line on all models."""
    over = sum(bool(row.over) for row in rows)
    grown, wrong = sum(map(has_grown, rows)), sum(bool(row.error) for row in rows)
    parts = ((over, "over budget"), (grown, "grown"), (wrong, "with an error"))
    faults = ", ".join(f"{count} {what}" for count, what in parts if count)
    count = f"{len(rows)} model{'s' if len(rows) != 1 else ''}"
    return f"RAM of {count}: {faults or 'all is well'}"


def _notes(row: ModelRam) -> Iterator[str]:
    if row.most:
        yield row.most
    if row.over:
        yield f"over budget: {row.over}"
    if has_grown(row):
        yield "grown"


def _told(row: ModelRam) -> str:
    return f"{row.now:,} bytes" if row.before is None else f"{row.before:,} -> {row.now:,} bytes"


def _change(row: ModelRam) -> str:
    assert row.now is not None
    assert row.before is not None
    share = f" ({100 * (row.now - row.before) / row.before:+.1f} %)" if row.before else ""
    return "no change" if row.now == row.before else f"{row.now - row.before:+,}{share}"


def _cell(text: str) -> str:
    """Text that neither ends a cell nor is read as Markdown or HTML: names of files are a contributor's to choose."""
    return printable(text).translate(_ESCAPED)


_ESCAPED = str.maketrans(
    {letter: f"&#{ord(letter)};" for letter in "<>&|@"} | {letter: f"\\{letter}" for letter in "\\`*_[]#~"}
)
"""Each letter by itself: what stands for one letter is not escaped again."""
