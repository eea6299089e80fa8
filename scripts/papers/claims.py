"""A paper's claims beside what was measured: the values as printed, one page for each paper, and the index of all."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from scripts.benchmarks.markdown_table import row, table

VALUES = Path(__file__).with_name("values")
_CLAIMS = "## Claims"
_HEADER = "where | claim | published | rerun | ours | rerun / published | holds"


@dataclass(frozen=True)
class Paper:
    """What ``values/NAME.json`` says: title, source, where the values come from, and the claims by key."""

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


@dataclass(frozen=True)
class Spent:
    """Seconds of the clock and of the processor, children included."""

    clock: float
    processor: float

    @staticmethod
    def now() -> Spent:
        """Since some moment: two of them are to be subtracted."""
        times = os.times()
        return Spent(times.elapsed, times.user + times.system + times.children_user + times.children_system)

    def since(self, start: Spent) -> str:
        """The difference in words."""
        clock, processor = self.clock - start.clock, self.processor - start.processor
        return f", in {clock:.0f} s of the clock and {processor:.0f} s of the processor"


def page(paper: Paper, command: str, reruns: Sequence[Rerun], tables: Sequence[str], spent: str = "") -> Iterator[str]:
    """The lines of a paper's page. ``spent``: what ``Spent.since`` says; empty where parts were made before.

    Raises KeyError for a claim that the paper's file does not have.
    """
    missing = set(paper.claims) - {each.key for each in reruns}
    if missing:
        raise KeyError(f"claims without a rerun: {', '.join(sorted(missing))}")
    yield f"# {paper.title}\n"
    yield f"{paper.source}. {paper.note}\n"
    yield f"Made by `{command}`{spent}. *Rerun* is our implementation of"
    yield "their method as printed; *ours* is our default."
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
    """The lines of scripts/papers/README.md: the claims of all pages in a folder, paper by paper."""
    yield _HEAD
    for path in sorted(folder.glob("*.md")):
        paper, claims = paper_named(path.stem), _claims_of(path)
        holding = sum(claim[-1] == "yes" for claim in claims)
        yield f"\n## {paper.title}\n"
        yield f"{paper.source}. {holding} of {len(claims)} claims hold here.\n"
        yield f"    {_command_of(path)}\n"
        yield from table("where | claim | published | rerun | ours | holds")
        for where, claim, published, rerun, ours, _, holds in claims:
            yield row(where, claim, published, rerun, ours, holds)


_HEAD = """# The papers' claims, rerun

Each row is a claim of a paper: what it publishes, what its method gives here as printed (*rerun*), and what this tool's
default gives (*ours*). Networks are rebuilt from their papers, so that sizes agree and details of the graph may not.
What runs as printed is part of `scripts/papers` only. The command of each paper writes a page with the reason for every
claim that does not hold, and with all tables; `scripts/paper index` makes this page of them."""


def _command_of(path: Path) -> str:
    """What makes a page, as the page says."""
    return path.read_text().split("Made by `", 1)[1].split("`", 1)[0]


def _claims_of(path: Path) -> list[list[str]]:
    """The cells of the first table of a page, by row."""
    lines = path.read_text().split(f"{_CLAIMS}\n", 1)[1].splitlines()
    rows = [line for line in lines[: lines.index("", 1)] if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in rows[2:]]
