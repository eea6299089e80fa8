"""The table of README.md: the arena before and after, and the run time added, each row a whole run, verified.

python -m scripts.makers.readme_table MODEL.tflite...
"""

from __future__ import annotations

import sys
from pathlib import Path

from scripts.benchmarks.markdown_table import row, table
from tflite_memopt import Options, optimize
from tflite_memopt.memory.work import slowdowns
from tflite_memopt.report.words import change_in_percent, percent

COLUMNS = "model | arena as it comes | optimized for Cortex-M4 or M7 (CMSIS-NN)"
NAMES = {
    "mlperf_kws_int8": "MLPerf Tiny keyword spotting",
    "mlperf_vww_int8": "MLPerf Tiny visual wake words",
    "tflm_person_detect": "TFLM person detection",
    "mlperf_ic_int8": "MLPerf Tiny image classification",
    "mcunet_vww": "MCUNet visual wake words",
}


def main(paths: list[str]) -> None:
    """Optimize each model for Cortex-M4 and print its row."""
    print(*table(COLUMNS), sep="\n", flush=True)
    for path in paths:
        print(row_of(Path(path)), flush=True)


def row_of(path: Path) -> str:
    """The row of a model."""
    report = optimize(path, Options(target="cortex-m4")).report
    before, after = report.before.required_for_target, report.answer.reserve
    change = change_in_percent(before, after) or "no change"
    (slowdown,) = slowdowns(report.before.instructions, report.after.instructions).values()
    where = "" if report.basis.plan_executed else ", the plan was not executed"
    return row(NAMES.get(path.stem, path.stem), before, f"{after:,} ({change}) at {percent(slowdown)} run time{where}")


if __name__ == "__main__":
    main(sys.argv[1:])
