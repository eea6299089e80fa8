"""The command ``verify``."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..errors import printable
from .exit_codes import CONTRADICTED, DONE, NOT_EQUAL
from .flags import flags_of, options_from
from .shared import JSON, QUIET, file_option, progress_line, show
from .types import ModelPath

if TYPE_CHECKING:
    from ..evidence.equivalence.verdict import Verdict
    from ..options import Options


_COLUMNS = 120
"""Of the table in a pipe, which has no width."""


@click.command(short_help="Compare two models, bit by bit.")
@click.argument("first", metavar="A.tflite", type=ModelPath)
@click.argument("second", metavar="B.tflite", type=ModelPath)
@flags_of("verify")
@file_option(
    "--check-receipt",
    "receipt",
    help="Check a receipt of optimize without running the models: digests, proofs, and requirements on the firmware.",
)
@JSON
@QUIET
def verify(first: Path, second: Path, receipt: Path | None, as_json: bool, quiet: bool | None, **flags: Any) -> None:
    """Compare A.tflite and B.tflite: a proof for all inputs, a proof of the memory plan that optimize wrote into B, the
    interface, and outputs on real kernels for the same inputs. Models of optimize --tie also run in sequences;
    those of --step are called once for each time step. The plan is proved for the target that B itself names.

    Exits with 0 if nothing differs and a runtime runs both, with 1 if there is a difference, no runtime can run A,
    TFLM computes B otherwise than the file says, or --runner has no verdict, and with 5 if a runtime differs where the
    proof says equal. B.tflite may be a folder that optimize --parts wrote; its parts run one after another.
    """
    from ..api import verify as run
    from ..evidence.equivalence.verdict import contradiction
    from ..report.document import tables_of
    from ..report.documents import verdict_line, verification_table
    from ..report.model import Verification, to_json

    if receipt is not None:
        _check_receipt(first, second, receipt, quiet)
        return
    options = options_from(flags)
    if second.is_dir():
        _verify_program(first, second, options, as_json, quiet)
        return
    with progress_line(quiet) as say:
        verdicts = run(first, second, options, say)
    fault = contradiction(verdicts)
    if fault is not None:
        click.echo(f"{fault}; please report both files", err=True)
    if as_json:
        click.echo(to_json(Verification(verdicts)), nl=False)
    else:
        click.echo(printable(verdict_line(verdicts)))
        if not quiet:
            show(tables_of(verification_table(verdicts)), _COLUMNS)
    for name, verdict in verdicts.items():
        if verdict.equal is False:
            click.echo(f"{name}: {verdict.reason}", err=True)
    sys.exit(CONTRADICTED if fault is not None else _code_of(verdicts))


def _code_of(verdicts: Mapping[str, Verdict]) -> int:
    """Return the exit code of verdicts that contradict each other in nothing."""
    if any(verdict.equal is False for verdict in verdicts.values()):
        return NOT_EQUAL
    if "runner" in verdicts and not verdicts["runner"].equal:
        click.echo(f"runner: no verdict: {verdicts['runner'].reason}", err=True)
        return NOT_EQUAL
    return DONE if any(verdict.equal for verdict in verdicts.values() if verdict.samples) else NOT_EQUAL


def _check_receipt(first: Path, second: Path, receipt: Path, quiet: bool | None) -> None:
    from ..model.io.files import load
    from ..report.receipt import mismatches

    with progress_line(quiet) as say:
        wrong = list(mismatches(receipt.read_text(errors="replace"), load(first)[0], load(second)[0], say))
    for mismatch in wrong:
        click.echo(f"receipt: {mismatch}", err=True)
    if wrong:
        sys.exit(NOT_EQUAL)
    if not quiet:
        click.echo("the receipt holds: both files match it, and its proofs were repeated")


def _verify_program(first: Path, folder: Path, options: Options, as_json: bool, quiet: bool | None) -> None:
    from ..run.parts.verifying import verify_folder

    if options.runner is not None or as_json:
        raise click.UsageError("--runner and --json are for one model, not for a program")
    with progress_line(quiet) as say:
        verified = verify_folder(first, folder, options, say)
    if not quiet:
        click.echo(f"equal, {verified}")
