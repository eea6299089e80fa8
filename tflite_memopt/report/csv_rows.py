"""One row per operator, method or point, as CSV (RFC 4180)."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from dataclasses import asdict, fields
from io import StringIO

from ..memory.figures import ArenaMap, OperatorUse
from .model import Comparison, Exploration, FrontPoint, MethodUse
from .words import said_of_setting


def operators_csv(arena: ArenaMap) -> str:
    """Operators in the order in which they run: MACs, bytes alive, and the highest byte of the head in use."""
    columns = [each.name for each in fields(OperatorUse)]
    return _csv(columns, (asdict(step) for step in arena.steps))


def methods_csv(comparison: Comparison) -> str:
    """Schedulers, planners, shared objects and fused blocks, a row each; only the last have MACs."""
    kinds = (
        ("scheduler", comparison.schedulers),
        ("planner", comparison.planners),
        ("shared objects", comparison.shared_objects),
    )
    columns = ["kind", *(each.name for each in fields(MethodUse)), "macs"]
    rows = [{"kind": kind, **asdict(use)} for kind, uses in kinds for use in uses]
    for use in comparison.fusion:
        kind = "fused blocks with input and output" if use.ends_counted else "fused blocks"
        rows.append({"kind": kind, "method": said_of_setting(use), "bytes": use.bytes, "macs": use.macs})
    return _csv(columns, rows)


def points_csv(exploration: Exploration) -> str:
    """The model as it came, and the points of the front."""
    columns = [each.name for each in fields(FrontPoint)]
    rows = (asdict(point) for point in (exploration.before, *exploration.points))
    return _csv(columns, ({**row, "stripes": "; ".join(row["stripes"])} for row in rows))


def _csv(columns: Sequence[str], rows: Iterable[dict[str, object]]) -> str:
    stream = StringIO()
    writer = csv.DictWriter(stream, columns)
    writer.writeheader()
    writer.writerows(rows)
    return stream.getvalue().encode("utf-8", "replace").decode("utf-8")
