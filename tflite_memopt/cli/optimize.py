"""The command ``optimize``."""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..errors import UsageError
from ..options import HALOS, REQUIRABLE, Options
from ..plan.methods import NAMES as PLANNERS
from ..schedule.methods import DEFAULT as DEFAULT_SCHEDULER
from ..schedule.methods import METHODS as SCHEDULERS
from ..version import __version__
from .exit_codes import OVER_BUDGET
from .grouped import GroupedCommand
from .reports import Makers, report_option, reports_of
from .shared import (
    APPROXIMATE,
    EFFORT,
    FORCE,
    INPUTS,
    IO_TYPES,
    JOBS,
    JSON,
    KERNELS,
    OBJECTIVE,
    QUIET,
    RUNNER,
    SAMPLES,
    SEED,
    TARGET,
    TFLM_SINCE,
    TIME_LIMIT,
    VERBOSE,
    check_files,
    progress_line,
    show,
)
from .types import ByteSize, GivenRows, ModelPath, PartCount, Percent, Pin, RowsFed

if TYPE_CHECKING:
    from ..io.plan_label import PlanLabel
    from ..report.model import Report

_AS_IS = "as_is"


@click.command(cls=GroupedCommand, short_help="Make a model that needs less RAM, and verify it.")
@click.argument("source", metavar="IN.tflite", type=ModelPath)
@click.option(
    "-o",
    "--output",
    required=True,
    type=ModelPath,
    metavar="OUT.tflite",
    help="Where to write the optimized model; with --parts, a folder.",
)
@TARGET
@KERNELS
@click.option(
    "--scheduler",
    type=click.Choice(list(SCHEDULERS)),
    default=Options.scheduler,
    show_default=True,
    help="How to find the order in which the operators run; 'compare' shows them all side by side.",
)
@click.option(
    "--planner",
    type=click.Choice(PLANNERS),
    default=Options.planner,
    show_default=True,
    help="How to find each tensor's place in memory; 'compare' shows them all side by side.",
)
@click.option(
    "--no-reorder", is_flag=True, help="Run the operators in the order of the file, as --scheduler as_is does."
)
@click.option(
    "--no-rewrite",
    is_flag=True,
    help="Keep the graph: split no concatenation or layer with many channels, and clean nothing up.",
)
@APPROXIMATE
@click.option(
    "--no-cascade",
    is_flag=True,
    help="Run every operator as a whole: do not run groups of layers a few rows (a stripe) at a time.",
)
@click.option(
    "--max-extra-macs",
    type=Percent(),
    default=f"{100 * Options.max_extra_macs:g}%",
    show_default=True,
    help="How many multiply-accumulates (MACs) stripes may add: neighboring stripes compute some rows twice.",
)
@click.option(
    "--max-extra-work",
    type=Percent(),
    help="How much longer the model may run than before, as estimated in instructions of the target's kernels; without "
    "a target, with each library that was measured. [default: 10%, or as much as --max-extra-macs]",
)
@click.option(
    "--max-extra-operators",
    type=click.IntRange(min=0),
    metavar="N",
    help="How many operators stripes may add; each takes some memory and flash. [default: any number]",
)
@click.option(
    "--halo",
    type=click.Choice([*HALOS, "both"]),
    default="both",
    show_default=True,
    help="What to do with rows that two neighboring stripes need (the halo): compute them twice (recompute), keep "
    "them in memory (rolling), or whichever is cheaper (both).",
)
@click.option("--no-loops", is_flag=True, help="Write stripes one after the other, never as one loop.")
@TFLM_SINCE
@IO_TYPES
@click.option(
    "--pin",
    "pins",
    type=Pin(),
    multiple=True,
    metavar="TENSOR=OFFSET",
    help="Put this tensor at this byte of the arena, a multiple of 16. Repeat for more tensors.",
)
@click.option(
    "--tie",
    "ties",
    multiple=True,
    metavar="OUT:IN",
    help="An output that lies in the place of an input: what one run gives, the next one takes, without a copy. Repeat "
    "for more states.",
)
@OBJECTIVE
@click.option(
    "--budget",
    type=ByteSize(),
    metavar="SIZE",
    help="The RAM that you have, for example 64K, 64KiB or 0.5M. The search ends once the model fits, with the "
    "smallest price in computation; when it does not fit, the file is written all the same and the exit code is 3.",
)
@EFFORT
@JOBS
@TIME_LIMIT
@click.option(
    "--all-kernels",
    is_flag=True,
    help="Also show how small the RAM that tensors share (the head) could be with each other kernel library.",
)
@SEED
@SAMPLES
@INPUTS
@RUNNER
@click.option(
    "--no-verify",
    is_flag=True,
    help="Write the result without verifying that it computes the same. TFLM's own figures are then missing.",
)
@click.option(
    "--require",
    type=click.Choice(REQUIRABLE),
    multiple=True,
    help="tflm: write nothing, and exit with 1, unless TFLM itself ran the result with its plan.",
)
@click.option(
    "--least-snr",
    "least_decibels",
    type=float,
    default=Options.least_decibels,
    show_default=True,
    metavar="DB",
    help="With --allow-approximate: the least signal-to-noise ratio of the outputs; anything noisier is refused.",
)
@click.option(
    "--interpreter-seconds",
    type=click.FloatRange(min=1),
    default=Options.interpreter_seconds,
    show_default=True,
    metavar="SECONDS",
    help="How long one model may run in a process of the verification.",
)
@click.option(
    "--interpreter-memory",
    type=ByteSize(),
    default="16G",
    show_default=True,
    metavar="SIZE",
    help="How much memory each process of the verification may take on this computer.",
)
@click.option(
    "--parts",
    type=PartCount(),
    metavar="N|auto",
    help="Write the model as up to N models that run one after another in one arena, so that only the largest counts; "
    "auto: as many as pay. OUT is then a folder, which codegen and verify take.",
)
@click.option(
    "--feed",
    type=RowsFed(),
    metavar="rows=N|auto[,input=NAME]",
    help="Experimental. Let the model take its image in N rows a call, as a camera gives them, so that the image is "
    "never in the arena as a whole; auto: as many rows as turn out best. Of several inputs it is the largest, or the "
    "one that is named. OUT is then a folder as with --parts, whose default is 2.",
)
@click.option(
    "--replay",
    metavar="TEXT|FILE",
    help="Do what another run decided, without a search: the decision in its report, or the .tflite that it wrote, "
    "whose target, kernels and options then hold where this command line gives none.",
)
@click.option(
    "--explain",
    is_flag=True,
    help="Also show every change that was made or considered, why some were left out, and the log of the search.",
)
@report_option(".json", ".html", ".svg")
@click.option(
    "--receipt",
    type=ModelPath,
    metavar="FILE",
    help="Write an in-toto statement: digests of both files, what was proved, and what the firmware must have.",
)
@FORCE
@JSON
@QUIET
@VERBOSE
def optimize(
    source: Path,
    output: Path,
    reports: tuple[Path, ...],
    receipt: Path | None,
    force: bool,
    quiet: bool | None,
    verbose: bool,
    as_json: bool,
    explain: bool,
    parts: int | None,
    feed: GivenRows | None,
    **chosen: Any,
) -> None:
    """Make a model that needs less RAM from IN.tflite, verify that it computes the same, and write it to OUT.tflite.

    Exits with 1, and writes no model, when the result is not equal.
    """
    from ..io.files import write_files
    from ..pipeline import optimize as run
    from ..receipt import receipt_of
    from ..report.model import to_json
    from ..report.pictures.pages import report_page
    from ..report.pictures.plot import plot_of

    options = options_from_flags(**chosen)
    if receipt is not None and not options.verify:
        raise click.UsageError("--receipt says what was proved: leave --no-verify out")
    if parts is not None or feed is not None:
        if receipt is not None:
            raise click.UsageError("--receipt is for one model, not for a program")
        most_parts = 2 if parts is None else parts or None
        _in_parts(source, output, reports, options, most_parts, feed, force, quiet, as_json)
        return
    check_files((output, *reports, receipt), (source,), force)
    if explain:
        logging.basicConfig(format="%(message)s", level=logging.INFO, stream=sys.stderr)
    with progress_line(True if explain else quiet) as say:
        result = run(source, options, say)
    report = result.report
    makers: Makers = {
        ".json": lambda: to_json(report).encode(),
        ".html": lambda: report_page(report),
        ".svg": lambda: plot_of(report.arena),
    }
    written = {} if receipt is None else {receipt: receipt_of(report, result.model, output.name).encode()}
    write_files({output: result.model, **reports_of(reports, makers), **written})
    _print(report, output, as_json, explain, verbose, quiet is True)
    if report.within_budget is False:
        sys.exit(OVER_BUDGET)


def _in_parts(
    source: Path,
    output: Path,
    reports: tuple[Path, ...],
    options: Options,
    parts: int | None,
    feed: GivenRows | None,
    force: bool,
    quiet: bool | None,
    as_json: bool,
) -> None:
    from ..io.files import write_files
    from ..program.console import render_program
    from ..program.files import is_program, to_json
    from ..program.run import optimize_in_parts

    if output.is_file():
        raise UsageError(f"output '{output}' is a file: with --parts, name a folder")
    if is_program(output) and not force:
        raise UsageError(f"output '{output}' holds a program; name another folder, or --force to replace it")
    if not output.parent.is_dir():
        raise UsageError(f"output '{output}': the folder '{output.parent}' does not exist; create it first")
    if any(path.suffix != ".json" for path in reports):
        raise UsageError("--report: of a program there is a .json alone")
    check_files(reports, (source,), force)
    with progress_line(quiet) as say:
        rows, image = feed or (None, None)
        result = optimize_in_parts(source, options, parts, say, rows, image=image)
    program = result.program
    result.save(output, force)
    write_files(dict.fromkeys(reports, to_json(program).encode()))
    if as_json:
        click.echo(to_json(program), nl=False)
    else:
        show(render_program(result, output))
    need = program.head if options.objective == "head" else program.arena
    if options.budget is not None and need > options.budget:
        sys.exit(OVER_BUDGET)


def _print(report: Report, output: Path, as_json: bool, explain: bool, verbose: bool, quiet: bool) -> None:
    from ..report.console import brief_of, render_report
    from ..report.explanation import render_explanation
    from ..report.model import to_json

    if as_json:
        click.echo(to_json(report), nl=False)
    elif quiet and not explain and not verbose:
        click.echo(brief_of(report))
    else:
        show(render_report(report, output.name, verbose))
        if explain:
            show(render_explanation(report))


def options_from_flags(
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
    label = None if chosen.get("replay") is None else _label_in(chosen["replay"])
    if label is not None:
        chosen["replay"] = label.decision
    stages: dict[str, Any] = {"verify": not no_verify, "rewrite": not no_rewrite, "cascade": not no_cascade}
    stages["loops"] = not no_loops
    options = Options(**stages, scheduler=order, halos=HALOS if halo == "both" else (halo,), **chosen)
    return options if label is None else _made_again(options, label)


def _label_in(given: str) -> PlanLabel | None:
    """What a file that ``optimize`` wrote says of itself; None where it is no file but the text of a decision."""
    if not os.path.isfile(given):  # of a long text Path.is_file raises an error
        return None
    from ..io import plan_label
    from ..io.files import load
    from ..io.reader import read_model

    label = plan_label.decode(read_model(load(given)[0]))
    if label is None or not label.decision:
        raise UsageError(f"{given}: it holds no decision; give the text of one, or a file that optimize wrote")
    return label


def _made_again(options: Options, label: PlanLabel) -> Options:
    """The options under which a file was made, as far as the command line leaves them open."""
    from ..report.options_used import as_labeled

    if label.version not in ("", __version__):
        said = f"warning: made by version {label.version}, and this is {__version__}: other bytes may come of it"
        click.echo(said, err=True)
    return as_labeled(options, label)
