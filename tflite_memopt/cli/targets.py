"""The command ``targets``."""

from __future__ import annotations

import click

from .shared import JSON, show

_COLUMNS = 100
"""Of a table in a pipe, which has no width."""


@click.command(short_help="List the cores and chips that --target knows.")
@JSON
def targets(as_json: bool) -> None:
    """List the cores and chips that --target knows, their kernels, and whether these were measured.

    Below them are the builds of TFLM that --tflm knows, boards and chips with their RAM and flash, and the chips whose
    memories `codegen --memory CHIP` knows. With --json, print all facts about the targets.
    """
    from ..report.document import tables_of
    from ..report.targets import target_tables, targets_json

    if as_json:
        click.echo(targets_json(), nl=False)
        return
    show(tables_of(*target_tables()), _COLUMNS)
