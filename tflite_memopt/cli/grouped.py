"""Help in groups."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

import click

_GROUPS = {
    "Result": (
        "output",
        "budget",
        "objective",
        "effort",
        "io",
        "parts",
        "feed",
        "ties",
        "step",
        "slide",
        "replay",
    ),
    "Target": ("target", "kernels", "tflm"),
    "Limits on changes": ("changes", "max_slowdown", "keep_quantized", "allow_approximate"),
    "Verification": ("inputs", "no_verify"),
}
"""Names of parameters by title, as the help shows them; the last group has the others."""
_REST = "Output"
_WORDS = "tflite_memopt.words"


class GroupedCommand(click.Command):
    """A command whose help has its options in groups, and that can be printed again with other options."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Keep the words of the command line."""
        ctx.meta[_WORDS] = list(args)
        return super().parse_args(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the groups, each in its own order."""
        records = {
            each.name: record
            for each in self.get_params(ctx)
            if isinstance(each, click.Option) and (record := each.get_help_record(ctx)) is not None
        }
        groups = {title: [records.pop(name) for name in names if name in records] for title, names in _GROUPS.items()}
        for title, rows in (groups | {_REST: list(records.values())}).items():
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)


def said_again(ctx: click.Context, without: Sequence[str], more: Sequence[str]) -> str:
    """Return the command line, to be copied, without some options that take a value, and with more words."""
    words: list[str] = []
    given = iter(ctx.meta[_WORDS])
    for word in given:
        if word in without:
            next(given, None)
        elif word.partition("=")[0] not in without:
            words.append(word)
    return shlex.join(["tflite-memopt", str(ctx.info_name), *words, *more])
