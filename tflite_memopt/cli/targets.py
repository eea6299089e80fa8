"""The command ``targets``."""

from __future__ import annotations

import click

from .shared import JSON, show


@click.command(short_help="List the cores and chips that --target knows.")
@JSON
def targets(as_json: bool) -> None:
    """List the cores and chips that --target knows: kernels, layout, measured facts, and facts read from source.

    Below them are boards and chips with their RAM and flash, and the chips whose memories `codegen --memory CHIP`
    knows.
    """
    from ..report.targets import render_devices, render_memories, render_targets, targets_json

    if as_json:
        click.echo(targets_json(), nl=False)
        return
    show(render_targets())
    show(render_devices())
    show(render_memories())
