"""A paper's claims beside what was measured: the values as printed, one page for each paper, and the index of all."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from scripts.benchmarks.markdown_table import row, table

VALUES = Path(__file__).with_name("values")
_CLAIMS = "## Claims"
_HEADER = "where | claim | published | rerun | ours | rerun / published | holds"


@dataclass(frozen=True)
class Paper:
    """What ``values/NAME.json`` says: title, source, where the values come from, and the claims by key.

    ``rows``: the claims that stand in the index for their table or figure.
    """

    title: str
    source: str
    note: str
    rows: Sequence[str]
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
    """The lines of docs/evidence/NAME.md. ``spent``: what ``Spent.since`` says; empty where parts were made before.

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
    """The lines of docs/evidence/index.md: a row for each table and figure, then the claims of all pages."""
    pages = sorted(path for path in folder.glob("*.md") if path.name != "index.md")
    yield _HEAD
    yield from table(f"paper | {_HEADER} | command")
    for path in sorted(pages, key=lambda path: path.stem == _CODE):
        yield from _standing(path)
    yield ""
    yield "## The commands\n"
    yield "Seconds on two cores that others used, too (load 4 to 10): of the clock, and of the processor. No command"
    yield "waits for anything but the processor. What a page says beside its seconds is not in them.\n"
    yield from table("page | claims that hold | command | seconds: clock | processor")
    for path in pages:
        claims, spent = _claims_of(path), _spent_of(path)
        holding = sum(line.endswith("| yes |") for line in claims)
        yield row(_link(path), f"{holding} of {len(claims)}", f"`{_command_of(path)}`", *spent)
    yield "\n## Every claim\n"
    yield from table(f"paper | {_HEADER}")
    for path in pages:
        for line in _claims_of(path):
            yield f"| {_link(path)} {line}"
    yield "\n```{toctree}\n:hidden:\n"
    yield from (path.stem for path in pages)
    yield "```"


_CODE = "hmcos"
"""The page that judges no paper; its row comes last."""
_HEAD = """# The papers' claims, rerun

A row for each table and figure of the four papers: one claim of it, what their method gives here as printed, and what
our default gives. Below them is HMCOS's own code. Each page is made by one command, and says why where a claim does
not hold here. Networks are rebuilt from their papers. What runs as printed is for judging the papers: it runs here
only, and none of it is a default.
"""


def _standing(path: Path) -> Iterator[str]:
    """The rows of a page that stand for its tables and figures."""
    paper = paper_named(path.stem)
    lines = {line.split(" | ")[1]: line for line in _claims_of(path)}
    for key in paper.rows:
        yield f"| {_link(path)} {lines[str(paper.claims[key]['claim'])]} `scripts/paper {path.stem}` |"


def _link(path: Path) -> str:
    return f"[{path.stem}]({path.name})"


def _spent_of(path: Path) -> tuple[str, str]:
    """Seconds of the clock and of the processor, as the page says."""
    found = re.search(r"`, in (\d+) s of the clock and (\d+) s of the processor", path.read_text())
    return (found[1], found[2]) if found else ("-", "-")


def _command_of(path: Path) -> str:
    """What makes a page, as the page says."""
    return path.read_text().split("Made by `", 1)[1].split("`", 1)[0]


def _claims_of(path: Path) -> list[str]:
    """The rows of the first table of a page."""
    lines = path.read_text().split(f"{_CLAIMS}\n", 1)[1].splitlines()
    rows = [line for line in lines[: lines.index("", 1)] if line.startswith("|")]
    return rows[2:]
