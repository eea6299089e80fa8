"""Which operators are probed, and the tables of what was found."""

from __future__ import annotations

from collections.abc import Iterator

from scripts.kernel_probes.grid import GRIDS, elementwise
from scripts.kernel_probes.probe import Case, Probe
from scripts.kernel_probes.windows import library_windows


def grid_of(full: bool, library: bool) -> list[Case]:
    """The reference kernels' grid and, for a library or with --full, the one over the paths of the libraries."""
    cases = [case for grid in GRIDS for case in grid(full or (library and grid is elementwise))]
    return [*cases, *(window.case for window in library_windows())] if library or full else cases


def all_rows(probes: list[Probe]) -> Iterator[str]:
    """A Markdown table with one line for each probe."""
    yield "| operator | kind | rule, bytes | TFLM needs | above by | a row | a pixel |"
    yield "|---|---|---|---|---|---|---|"
    for p in probes:
        if p.error:
            yield f"| {p.label} | {p.kind} | {_text(p.rule)} | does not run: {p.error[:60]} | - | - | - |"
            continue
        above = "-" if p.rule is None or p.found is None else p.rule - p.found
        need = "NOT SAFE" if p.found is None else p.found
        yield f"| {p.label} | {p.kind} | {_text(p.rule)} | {need} | {above} | {p.row} | {p.pixel} |"


def group_rows(probes: list[Probe]) -> Iterator[str]:
    """A Markdown table with one line for each group of operators."""
    yield "| operators | probes | permitted | below need | least above need | needs over the reference rule |"
    yield "|---|---|---|---|---|---|"
    groups: dict[str, list[Probe]] = {}
    for p in probes:
        if not p.error:
            groups.setdefault(p.group or p.label.split(" ")[0], []).append(p)
    for name, members in groups.items():
        permitted = [p for p in members if p.rule is not None]
        margins = [p.rule - p.found for p in permitted if p.rule is not None and p.found is not None]
        over = [p.found - p.reference for p in members if p.found is not None]
        unsafe = sum(not p.is_safe for p in members)
        most = "NOT SAFE" if len(over) < len(members) else max(over)
        yield f"| {name} | {len(members)} | {len(permitted)} | {unsafe} | {min(margins, default='-')} | {most} |"


def _text(rule: int | None) -> str:
    return "none" if rule is None else str(rule)


def closing_line(probes: list[Probe]) -> str:
    """How many there are of what."""
    ran = [p for p in probes if not p.error]
    unsafe = sum(not p.is_safe for p in ran)
    far = sum(p.rule is not None and p.is_safe and not p.is_close for p in ran)
    none = sum(p.rule is None for p in ran)
    idle = sum(not p.exercised for p in ran)
    return (
        f"{len(probes)} probes: {unsafe} below what TFLM needs, {far} above it by more than a row, {none} that the "
        f"profile does not permit, {len(probes) - len(ran)} that do not run, {idle} whose output does not vary."
    )
