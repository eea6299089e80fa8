"""The command ``optimize``."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from ..errors import ErrorKind, UsageError
from ..options import Hop, Options, as_labeled
from ..solvers.graph.side_by_side import usable_cores
from ..version import __version__
from .exit_codes import code_of
from .flags import GroupedCommand, command_again, fields_from, flag, flags_of, options_from, parts_option
from .networks import network_table
from .pairs import refuse_pairs
from .reports import report_option, reports_of, result_option
from .shared import FORCE, JSON, QUIET, VERBOSE, check_files, file_option, progress_line, show
from .types import ModelPath, Value, fed_rows

if TYPE_CHECKING:
    from ..model.io.plan_label import PlanLabel
    from ..report.model import Report


@click.command(
    cls=GroupedCommand,
    short_help="Reduce the RAM of a model, and verify the result.",
    epilog=f"\b\nMy network is ...\n{network_table()}",
)
@click.argument("source", metavar="IN.tflite", type=ModelPath)
@result_option(required=True, help="Output file; with --parts, a folder.")
@flags_of("optimize")
@parts_option(
    help="Split the model into up to N models that run one after another in one arena, so that only the largest "
    "counts; auto: as many as pay for themselves. OUT is then a folder for codegen and verify."
)
@flag(
    "--feed",
    group="Result",
    type=Value(fed_rows),
    metavar="N|auto[,input=NAME]",
    help="Experimental. Let the model take its image in N rows per call, as a camera delivers them, so that the "
    "whole image is never in the arena; auto: try several numbers. The input is the largest unless it is named. OUT is "
    "then a folder, and the default of --parts is 2: the first layers and the rest.",
)
@report_option(".json", ".html", ".svg")
@JSON
@file_option(
    "--receipt",
    help="Write an in-toto statement: digests of both files, the proofs, and the requirements on the firmware.",
)
@FORCE
@QUIET
@VERBOSE
def optimize(
    source: Path,
    output: Path,
    reports: tuple[Path, ...],
    as_json: bool,
    receipt: Path | None,
    force: bool,
    quiet: bool | None,
    verbose: bool,
    parts: int | None,
    feed: Hop | None,
    **flags: Any,
) -> None:
    """Reduce the RAM that IN.tflite needs, verify the result, and write it to OUT.tflite.

    Exits with 1 and writes no model if the result is not equal.
    """
    from ..model.io.files import read_file, write_files
    from ..report.document import text_of
    from ..report.documents import brief_of, report_document
    from ..report.model import to_json
    from ..run.candidate import Cache
    from ..run.parts.ways import other_ways, with_advice
    from ..run.pipeline import optimize as run

    refuse_pairs(click.get_current_context())
    read = (source, *_files_read(flags["inputs"], flags["replay"]))
    options = _options_of(flags)
    if parts is not None or feed is not None:
        most_parts = 2 if parts is None else parts or None
        _in_parts(read, output, reports, as_json, options, most_parts, feed, force, quiet)
        return
    check_files((output, *reports, receipt), read, force, output)
    with progress_line(quiet) as say:
        cache = Cache()
        result = run(source, options, say, cache)
        report = result.report
        search = options.search
        if report.within_budget is False and not search.meets_budget(report.after.bytes_for(search.objective)):
            ways = tuple(other_ways(read_file(source), options, result, say, cache))
            report = replace(report, ways=ways)
        else:
            report = with_advice(result, options)
    commands = _commands(report, output)
    calls = _registered(report, result.model)
    document = report_document(report, output.name, commands, calls)
    written: dict[Path, bytes] = {}
    if receipt is not None:
        from ..report.receipt import receipt_of

        written[receipt] = receipt_of(report, result.model, output.name).encode()
    write_files({output: result.model, **reports_of(reports, report, document), **written})
    if as_json:
        click.echo(to_json(report), nl=False)
    elif verbose:
        show(text_of(document))
    elif quiet:
        click.echo(brief_of(report, commands))
    else:
        show(text_of(report_document(report, output.name, commands, is_short=True)))
    if options.verify or report.tflm.runs:  # without verification the user has said that the firmware runs it
        sys.exit(code_of(report.answer))


def _files_read(inputs: Path | None, replay: str | None) -> Iterator[Path]:
    """Yield the files beside the model that options name."""
    if inputs is not None:
        yield inputs
    if replay is not None and os.path.isfile(replay):
        yield Path(replay)


def _in_parts(
    read: tuple[Path, ...],
    output: Path,
    reports: tuple[Path, ...],
    as_json: bool,
    options: Options,
    parts: int | None,
    feed: Hop | None,
    force: bool,
    quiet: bool | None,
) -> None:
    from ..model.io.files import write_folder
    from ..report.document import text_of
    from ..run.parts.console import answer_of_program, program_document
    from ..run.parts.files import is_program, to_json
    from ..run.parts.run import optimize_in_parts

    if output.is_file():
        raise UsageError(f"output '{output}' is a file: with --parts, name a folder", ErrorKind.NOT_WRITABLE)
    if is_program(output) and not force:
        raise UsageError(
            f"output '{output}' holds a program; name another folder, or --force to replace it", ErrorKind.EXISTS
        )
    if not output.parent.is_dir():
        raise UsageError(
            f"output '{output}': the folder '{output.parent}' does not exist; create it first", ErrorKind.NOT_WRITABLE
        )
    check_files(reports, read, force)
    with progress_line(quiet) as say:
        rows, image = (None, None) if feed is None else (feed.rows, feed.input)
        result = optimize_in_parts(read[0], options, parts, say, rows, image=image)
    write_folder(output, result.files(), read, force, dict.fromkeys(reports, to_json(result.program).encode()))
    if as_json:
        click.echo(to_json(result.program), nl=False)
    else:
        document = program_document(result, output)
        show(document.headline if quiet else text_of(document))
    sys.exit(code_of(answer_of_program(result)))


def _registered(report: Report, model: bytes) -> list[str]:
    """Return the calls of the resolver that register the operators of a result; none if TFLM cannot run it."""
    from ..firmware.resolver import registrations
    from ..model.io.reader import read_model

    if not report.tflm.runs:
        return []
    needed = registrations(read_model(model))
    return [*(f"{method}()" for method in needed.methods), *(f'AddCustom("{name}", ...)' for name in needed.custom)]


def _commands(report: Report, output: Path) -> list[str]:
    """Return the command that writes each other way: in place of the output, or into a folder beside it."""
    context, dropped = click.get_current_context(), ("-o", "--output", "--report", "--receipt", "--effort")
    commands = []
    for way in report.ways:
        replaced = [word for word in way.flags.split() if word.startswith("--")]
        is_file = "--parts" not in replaced
        where = ("-o", str(output), "--force") if is_file else ("-o", str(output.with_suffix("")))
        commands.append(command_again(context, (*dropped, *replaced), (*where, *way.flags.split())))
    return commands


def _options_of(flags: Mapping[str, Any]) -> Options:
    """Return the options of a run; those of a file that it repeats where the flags leave them open."""
    label = None if flags["replay"] is None else _label_in(flags["replay"])
    if label is None:
        return options_from(flags, jobs=usable_cores())
    if label.version not in ("", __version__):
        warning = f"warning: made by version {label.version}, and this is {__version__}: the result may differ"
        click.echo(warning, err=True)
    sources = click.get_current_context().get_parameter_source
    given = {name: value for name, value in flags.items() if sources(name) is ParameterSource.COMMANDLINE}
    options = options_from({**flags, "replay": label.decision}, jobs=usable_cores())
    return as_labeled(options, label, fields_from(given))


def _label_in(replay: str) -> PlanLabel | None:
    """Read the label of a file that ``optimize`` wrote; None for the text of a decision."""
    if not os.path.isfile(replay):  # Path.is_file raises an error on long texts
        return None
    from ..model.io import plan_label
    from ..model.io.files import load
    from ..model.io.reader import read_model

    label = plan_label.decode(read_model(load(replay)[0]))
    if label is None or not label.decision:
        raise UsageError(f"{replay}: this file has no decision; give the text of one, or a file that optimize wrote")
    return label
