"""How far rewriting moves outputs: a table for docs/benchmarks/rewrite.md, from the reports of the proofs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tflite_memopt.equivalence.verdict import Verdict
from tflite_memopt.report.model import Report

from .markdown_table import row, table

Labeled = tuple[str, Report]


def differences(runs: Iterable[Labeled]) -> Iterator[str]:
    """One row for each network and runtime where values may have changed; nothing when there is none."""
    rows = [
        (label, runtime, verdict)
        for label, report in runs
        for runtime, verdict in report.equivalence.items()
        if verdict.exactness != "exact" and verdict.equal is not None
    ]
    if not rows:
        return
    yield "## How far outputs differ\n"
    yield "Outputs of the whole network against the original's, all sites rewritten that the search chose; inputs are"
    yield "random over the full range. Float: as a share of the largest magnitude of the output (tolerance 1e-4)."
    yield "Integers: in steps (LSB). Argmax: how often the largest score is the same one.\n"
    yield from table("network | runtime | samples | largest difference | values that differ | same argmax")
    for label, runtime, verdict in rows:
        agreeing = verdict.agreeing_argmax_share
        yield row(
            label,
            runtime,
            verdict.samples,
            _largest(verdict),
            f"{100 * verdict.differing_share:.1f} %",
            "-" if agreeing is None else f"{100 * agreeing:.0f} %",
        )
    yield ""


def _largest(verdict: Verdict) -> str:
    if verdict.max_lsb_diff is not None:
        return f"{verdict.max_lsb_diff:g} LSB"
    return "-" if verdict.max_relative_diff is None else f"{verdict.max_relative_diff:.1e}"
