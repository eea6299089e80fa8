"""The table of README.md: the arena before and after, with any kernels and with TFLM's own.

    PYTHONPATH=. python scripts/readme_table.py MODEL.tflite...

A row ends with a star when a search was stopped by the clock, so that another machine may find another figure.
"""

from __future__ import annotations

import sys
from pathlib import Path

from markdown_table import row, table

from tflite_memopt import Options, Report, optimize
from tflite_memopt.ir.change import OUT_OF_TIME

_SECONDS = 900.0
_COLUMNS = "model | RAM as it comes | optimised, any kernels | optimised, TFLM's own kernels"


def main(paths: list[str]) -> None:
    """Optimise each model for both and print its row."""
    print(*table(_COLUMNS), sep="\n", flush=True)
    for path in paths:
        choices = [Options(kernels=kernels, time_limit=_SECONDS) for kernels in ("portable", "reference")]
        reports = [optimize(path, options).report for options in choices]
        cells = [_figure(report) for report in reports]
        print(row(Path(path).stem, reports[0].before.required_bytes["32"], *cells), flush=True)


def _figure(report: Report) -> str:
    """The arena, and by how much it is smaller; "not equal" can not happen: then there is no report."""
    before, after = (each.required_bytes["32"] for each in (report.before, report.after))
    star = "*" if any(refusal.reason == OUT_OF_TIME for refusal in report.refused) else ""
    where = "" if report.basis.plan_executed else " (plan not run)"
    return f"{after:,} ({100 * (after - before) / before:+.0f} %){star}{where}"


if __name__ == "__main__":
    main(sys.argv[1:])
