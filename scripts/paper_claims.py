"""A paper's claims beside what was measured: the values as printed, one page for each paper, and the index of all."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from markdown_table import row, table

VALUES = Path(__file__).with_name("paper_values")
_CLAIMS = "## Claims"
_HEADER = "where | claim | published | rerun | ours | rerun / published | holds"


@dataclass(frozen=True)
class Paper:
    """What ``paper_values/NAME.json`` says: title, source, where the values come from, and the claims by key."""

    title: str
    source: str
    note: str
    claims: Mapping[str, Mapping[str, str | float]]


@dataclass(frozen=True)
class Rerun:
    """One claim: what their method gave here, as printed in the paper; what our default gave; and whether it holds.

    ``value`` is the rerun as a number, where the published value is one. ``reason``: why it does not hold; none where
    it is that of the claim before.
    """

    key: str
    rerun: str
    ours: str
    holds: bool
    value: float | None = None
    reason: str = ""


def paper_named(name: str) -> Paper:
    """The values as printed."""
    return Paper(**json.loads((VALUES / f"{name}.json").read_text()))


def page(paper: Paper, command: str, reruns: Sequence[Rerun], tables: Sequence[str]) -> Iterator[str]:
    """The lines of docs/evidence/NAME.md. Raises KeyError for a claim that the paper's file does not have."""
    missing = set(paper.claims) - {each.key for each in reruns}
    if missing:
        raise KeyError(f"claims without a rerun: {', '.join(sorted(missing))}")
    yield f"# {paper.title}\n"
    yield f"{paper.source}. {paper.note}\n"
    yield f"Made by `{command}`. *Rerun* is our implementation of their method as printed; *ours* is our default."
    yield "The networks are rebuilt from their own papers, so that sizes agree and details of the graph may not."
    yield "Reasons that name a figure were measured; the others are what we think: no experiment has set them apart.\n"
    yield f"{_CLAIMS}\n"
    yield from table(_HEADER)
    for each in reruns:
        claim = paper.claims[each.key]
        printed = claim.get("value")
        ratio = "" if each.value is None or printed is None else f"{each.value / float(printed):.2f}"
        cells = (claim["where"], claim["claim"], claim["published"], each.rerun, each.ours, ratio)
        yield row(*cells, "yes" if each.holds else "no")
    yield ""
    for each in reruns:
        reason = each.reason or ("" if each.holds else "The reason is that of the claim before.")
        if reason:
            yield f"**{paper.claims[each.key]['claim']}.** {reason}\n"
    yield from tables


def index(folder: Path) -> Iterator[str]:
    """The lines of docs/evidence/index.md: the claims of all pages in the folder."""
    pages = sorted(path for path in folder.glob("*.md") if path.name != "index.md")
    yield "# The papers' claims, rerun\n"
    yield "Each page is made by one command, `scripts/paper NAME SOURCES...`, and says why where a claim does not hold"
    yield "here. Networks are rebuilt from their papers. What runs as printed is for judging the papers: it runs here"
    yield "only, and none of it is a default.\n"
    yield from table("page | claims that hold | command")
    for path in pages:
        claims = _claims_of(path)
        holding = sum(line.endswith("| yes |") for line in claims)
        yield row(f"[{path.stem}]({path.name})", f"{holding} of {len(claims)}", f"`{_command_of(path)}`")
    yield ""
    yield from table(f"paper | {_HEADER}")
    for path in pages:
        for line in _claims_of(path):
            yield f"| [{path.stem}]({path.name}) {line}"
    yield "\n```{toctree}\n:hidden:\n"
    yield from (path.stem for path in pages)
    yield "```"


def _command_of(path: Path) -> str:
    """What makes a page, as the page says."""
    return path.read_text().split("Made by `", 1)[1].split("`", 1)[0]


def _claims_of(path: Path) -> list[str]:
    """The rows of the first table of a page."""
    lines = path.read_text().split(f"{_CLAIMS}\n", 1)[1].splitlines()
    rows = [line for line in lines[: lines.index("", 1)] if line.startswith("|")]
    return rows[2:]
