"""The table of README.md: the arena before and after, for any kernels, for CMSIS-NN and for TFLM's own.

    python -m scripts.makers.readme_table MODEL.tflite...

Each cell is a whole run with its verification: bytes, their change against the same kernels, and the run time added. A
row ends with a star when a search was stopped by the clock, so that another machine may find another figure.
"""

from __future__ import annotations

import sys
from pathlib import Path

from scripts.benchmarks.markdown_table import row, table
from tflite_memopt import Options, Report, optimize
from tflite_memopt.ir.change import OUT_OF_TIME
from tflite_memopt.memory.work import slowdowns
from tflite_memopt.report.words import change_in_percent, percent

_SECONDS = 900.0
_COLUMNS = "model | RAM as it comes | any kernels | Cortex-M4, M7 (CMSIS-NN) | TFLM's own kernels"
_CHOICES = (
    Options(kernels="portable", time_limit=_SECONDS),
    Options(target="cortex-m4", time_limit=_SECONDS),
    Options(kernels="reference", time_limit=_SECONDS),
)
_NAMES = {
    "mlperf_kws_int8": "MLPerf Tiny keyword spotting",
    "mlperf_vww_int8": "MLPerf Tiny visual wake words",
    "tflm_person_detect": "TFLM person detection",
    "mlperf_ic_int8": "MLPerf Tiny image classification",
    "mcunet_vww": "MCUNet visual wake words",
}


def main(paths: list[str]) -> None:
    """Optimize each model for all of them and print its row."""
    print(*table(_COLUMNS), sep="\n", flush=True)
    for path in paths:
        reports = [optimize(path, options).report for options in _CHOICES]
        name = _NAMES.get(Path(path).stem, Path(path).stem)
        print(row(name, reports[0].before.required_for_target, *map(_figure, reports)), flush=True)


def _figure(report: Report) -> str:
    """The arena, its change and the run time added; "not equal" can not happen: then there is no report."""
    before, after = report.before.required_for_target, report.after.required_for_target
    star = "*" if any(refusal.reason == OUT_OF_TIME for refusal in report.refused) else ""
    where = "" if report.basis.plan_executed else " (plan not run)"
    change = change_in_percent(before, after) or "no change"
    return f"{after:,} ({change}), {_price(report)}{star}{where}"


def _price(report: Report) -> str:
    shares = [percent(share) for share in slowdowns(report.before.instructions, report.after.instructions).values()]
    return f"{'up to ' if len(set(shares)) > 1 else ''}{shares[0]}"


if __name__ == "__main__":
    main(sys.argv[1:])
