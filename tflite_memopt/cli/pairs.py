"""Pairs of options of ``optimize`` that exclude each other: all others work together, which a test tries."""

from __future__ import annotations

from collections.abc import Iterator

import click

from ..options import NOT_IN_PARTS

_PARTS = ("--parts", "--feed")
_TYPES, _LAYOUT = "states keep their types", "states keep their layout"
_STATES = ("--tie", "--step", "--slide")
PAIRS: tuple[tuple[str, str, str], ...] = (
    ("--step", "--slide", "a window slides or a network steps"),
    ("--step", "--tie", "it ties the states of the network by itself"),
    ("--slide", "--tie", "it ties what windows share by itself"),
    *((state, "--io int8", _TYPES) for state in _STATES),
    *((state, "--io channels-last", _LAYOUT) for state in _STATES),
    *((flag, part, why) for flag, why in NOT_IN_PARTS.values() for part in _PARTS),
    ("--objective head", "--parts", "it minimizes the whole arena"),
    *(("--receipt", part, "it is of one model, not of a program") for part in _PARTS),
    *((f"--report {kind}", part, "a program has a .json report") for kind in (".html", ".svg") for part in _PARTS),
    ("--receipt", "--no-verify", "it records proofs"),
)
"""Both options, and why, in words that follow "A does not work with B:"."""


def refuse_pairs(ctx: click.Context) -> None:
    """Raise UsageError for the first pair that the command line has both of."""
    words = {name for param in ctx.command.params for name in _given(ctx, param)}
    for first, second, why in PAIRS:
        if {first, second} <= words:
            raise click.UsageError(f"{first} does not work with {second}: {why}", ctx)


def _given(ctx: click.Context, param: click.Parameter) -> Iterator[str]:
    """Yield the names by which a given option stands in pairs: its flag, and that with each of its values."""
    if ctx.get_parameter_source(param.name or "") is not click.core.ParameterSource.COMMANDLINE:
        return
    flag, value = max(param.opts, key=len), ctx.params.get(param.name or "")
    yield flag
    for each in value if isinstance(value, tuple) else (value,):
        yield f"{flag} {getattr(each, 'suffix', '') or str(each).partition('=')[0]}"
