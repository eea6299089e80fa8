"""Plan problems and plans as CSV, so that a bug report is a few lines of text.

Two kinds of row after the header ``kind,a,b,c,d,e``: ``item,size,start,end,alignment,offset`` (offset empty
when it is free) and ``relation,first,second,distance,exact,``. A plan has the header ``item,offset``.
"""

from __future__ import annotations

import csv
import io

from ..errors import UsageError
from .problem import Item, PlanProblem, Relation

_HEADER = ["kind", "a", "b", "c", "d", "e"]


def problem_to_csv(problem: PlanProblem) -> str:
    """Text of a problem; ``problem_from_csv`` reads it back unchanged."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(_HEADER)
    for i in problem.items:
        writer.writerow(["item", i.size, i.start, i.end, i.alignment, "" if i.offset is None else i.offset])
    for r in problem.relations:
        writer.writerow(["relation", r.first, r.second, r.distance, int(r.exact), ""])
    return stream.getvalue()


def problem_from_csv(text: str) -> PlanProblem:
    """Parse a problem. Raises UsageError with the line that is wrong."""
    items: list[Item] = []
    relations: list[Relation] = []
    for number, row in enumerate(csv.reader(io.StringIO(text)), start=1):
        if number == 1 or not row:
            continue
        try:
            _parse_row(row, items, relations)
        except (ValueError, IndexError) as error:
            raise UsageError(f"plan problem, line {number}: {row} is not a row of {_HEADER}: {error}") from error
    for r in relations:
        if not (0 <= r.first < len(items) and 0 <= r.second < len(items)):
            raise UsageError(f"plan problem: a relation names items {r.first} and {r.second} of {len(items)}")
    return PlanProblem(tuple(items), tuple(relations))


def offsets_to_csv(offsets: tuple[int, ...]) -> str:
    """Text of a plan: one row an item."""
    return "item,offset\n" + "".join(f"{index},{offset}\n" for index, offset in enumerate(offsets))


def _parse_row(row: list[str], items: list[Item], relations: list[Relation]) -> None:
    kind, a, b, c, d, e = row
    if kind == "item":
        items.append(Item(int(a), int(b), int(c), int(d), int(e) if e else None))
    elif kind == "relation":
        relations.append(Relation(int(a), int(b), int(c), bool(int(d))))
    else:
        raise ValueError(f"unknown kind '{kind}'")
