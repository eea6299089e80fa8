"""The command ``optimize``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from ..options import EFFORTS, HALOS, IO, OBJECTIVES, REQUIRABLE, Options
from ..plan.methods import BEST as BEST_PLANNER
from ..plan.methods import NAMES as PLANNERS
from ..schedule.methods import DEFAULT as DEFAULT_SCHEDULER
from ..schedule.methods import METHODS as SCHEDULERS
from .exit_codes import OVER_BUDGET
from .shared import KERNELS, QUIET, RUNNER, SAMPLES, SEED, TARGET, TIME_LIMIT, progress_line, show
from .types import ByteSize, Date, ModelPath, Percent, Pin

_AS_IS = "as_is"


@click.command()
@click.argument("source", metavar="IN.tflite", type=ModelPath)
@click.option("-o", "--output", required=True, type=ModelPath, metavar="OUT.tflite", help="Where to write the result.")
@TARGET
@KERNELS
@click.option(
    "--scheduler",
    type=click.Choice(list(SCHEDULERS)),
    default=DEFAULT_SCHEDULER,
    show_default=True,
    help="Order of operators.",
)
@click.option(
    "--planner", type=click.Choice(PLANNERS), default=BEST_PLANNER, show_default=True, help="Offsets of tensors."
)
@click.option("--no-reorder", is_flag=True, help="Keep the order of operators, as --scheduler as_is does.")
@click.option("--no-rewrite", is_flag=True, help="Keep the operators as they are; only order and plan them.")
@click.option(
    "--allow-approximate",
    is_flag=True,
    help="Also rewrite where integers are requantised once more; the report says how far outputs differ.",
)
@click.option("--no-cascade", is_flag=True, help="Run no region stripe by stripe.")
@click.option(
    "--max-extra-macs",
    type=Percent(),
    default="10%",
    show_default=True,
    help="Multiply-accumulates that stripes may add, of the model's.",
)
@click.option(
    "--max-extra-operators", type=click.IntRange(min=0), help="Operators that stripes may add. [default: any]"
)
@click.option(
    "--halo",
    type=click.Choice([*HALOS, "both"]),
    default="both",
    show_default=True,
    help="Rows that two stripes need: computed twice, or kept; both: what is cheaper.",
)
@click.option("--no-loops", is_flag=True, help="Write stripes one after the other, never as one loop.")
@click.option(
    "--tflm-since",
    type=Date(),
    metavar="YYYY-MM-DD",
    help="Date of the firmware's TFLM: use no operator that is newer. [default: a present one]",
)
@click.option(
    "--io",
    type=click.Choice(IO),
    default="keep",
    show_default=True,
    help="Types of inputs and outputs; int8: drop QUANTIZE and DEQUANTIZE there, the application gives integers.",
)
@click.option(
    "--pin",
    "pins",
    type=Pin(),
    multiple=True,
    metavar="TENSOR=OFFSET",
    help="Keep a tensor at this offset, a multiple of 16; repeat for more.",
)
@click.option(
    "--objective",
    type=click.Choice(OBJECTIVES),
    default="total",
    show_default=True,
    help="What the budget limits: the arena to reserve (32-bit), or its head alone.",
)
@click.option("--budget", type=ByteSize(), help="Exit with 3 when the result needs more than this, for example 64K.")
@click.option(
    "--effort",
    type=click.Choice(EFFORTS),
    default="normal",
    show_default=True,
    help="How much the search for stripes looks at.",
)
@TIME_LIMIT
@SEED
@SAMPLES
@click.option("--inputs", type=ModelPath, metavar="X.npz", help="Your own inputs for the proof, arrays by input name.")
@RUNNER
@click.option("--no-verify", is_flag=True, help="Skip the proof of equality (and TFLM's measurement).")
@click.option(
    "--require",
    type=click.Choice(REQUIRABLE),
    multiple=True,
    help="tflm: exit with 1 unless TFLM executed the plan itself.",
)
@click.option(
    "--least-snr",
    "least_decibels",
    type=float,
    default=10.0,
    show_default=True,
    metavar="DB",
    help="Signal to noise that --allow-approximate must leave.",
)
@click.option(
    "--interpreter-seconds",
    type=click.FloatRange(min=1),
    default=900.0,
    show_default=True,
    metavar="SECONDS",
    help="Limit of one model's run in the proof.",
)
@click.option(
    "--interpreter-memory",
    type=ByteSize(),
    default="16384M",
    show_default=True,
    help="Limit of an interpreter process's address space.",
)
@click.option(
    "--keep-failures",
    type=ModelPath,
    metavar="FOLDER",
    help="Where to keep what reproduces a step that failed its proof.",
)
@click.option(
    "--keep-best/--no-keep-best",
    default=None,
    help="The first Ctrl-C ends the search, and what is complete is proved and written. [default: on a terminal]",
)
@click.option("--explain", is_flag=True, help="Also show which rewrites were applied, and which were not and why.")
@click.option("--report", "report_path", type=ModelPath, metavar="R.json", help="Write the JSON report.")
@click.option("--force", is_flag=True, help="Replace existing files, the input among them.")
@QUIET
def optimize(
    source: Path, output: Path, report_path: Path | None, force: bool, quiet: bool, explain: bool, **chosen: Any
) -> None:
    """Optimise IN.tflite, prove the result equal, and write it to OUT.tflite.

    Exits with 1, and writes no model, when the result is not equal.
    """
    from ..io.files import check_target, write_files
    from ..pipeline import optimize as run
    from ..report.console import render_report
    from ..report.model import to_json

    targets = [path for path in (output, report_path) if path is not None]
    if report_path is not None and report_path.absolute() == output.absolute():
        raise click.UsageError("--report and --output name the same file")
    for path in targets:
        check_target(path, (source,), force)
    result = run(source, _options(**chosen), progress_line(quiet))
    files = {output: result.model}
    if report_path is not None:
        files[report_path] = to_json(result.report).encode()
    write_files(files)
    show(render_report(result.report, explain))
    if result.report.within_budget is False:
        sys.exit(OVER_BUDGET)


def _options(
    no_verify: bool,
    no_rewrite: bool,
    no_cascade: bool,
    no_loops: bool,
    no_reorder: bool,
    scheduler: str,
    halo: str,
    **chosen: Any,
) -> Options:
    """The options of ``optimize`` from its flags, five of which say what is left out."""
    if no_reorder and scheduler not in (DEFAULT_SCHEDULER, _AS_IS):
        raise click.UsageError(f"--no-reorder and --scheduler {scheduler} exclude each other")
    order = _AS_IS if no_reorder else scheduler
    if chosen["keep_best"] is None:
        chosen["keep_best"] = sys.stderr.isatty()
    stages: dict[str, Any] = {"verify": not no_verify, "rewrite": not no_rewrite, "cascade": not no_cascade}
    stages["loops"] = not no_loops
    return Options(**stages, scheduler=order, halos=HALOS if halo == "both" else (halo,), **chosen)
