"""Help in groups: a command with many options shows those of its users, and with --help-all those of experts."""

from __future__ import annotations

from typing import Any

import click

_GROUPS = {
    "Result": ("output", "folder", "budget", "objective", "effort", "io", "allow_approximate"),
    "Target": ("target", "kernels", "tflm_since", "all_kernels"),
    "Limits on what may change": ("max_extra_work", "max_extra_macs", "no_rewrite", "no_cascade"),
    "Verification": ("samples", "inputs", "runner", "no_verify", "require"),
    "Many models": ("workers", "worker_memory", "cluster", "no_models"),
    "Output": ("reports", "receipt", "as_json", "explain", "verbose", "quiet", "force", "help_all", "help"),
}
"""Names of parameters by title, as the help shows them. A parameter that stands nowhere here is for experts."""
_EXPERT = "Expert"


class GroupedCommand(click.Command):
    """A command with ``--help-all``."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        text = "Show this message with the options for experts."
        self.params.append(
            click.Option(
                ["--help-all"], is_flag=True, is_eager=True, expose_value=False, callback=_show_everything, help=text
            )
        )

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the groups, each in its own order, and the experts' options where they were asked for."""
        records = {
            each.name: record for each in self.get_params(ctx) if (record := each.get_help_record(ctx)) is not None
        }
        for title, names in _GROUPS.items():
            rows = [records.pop(name) for name in names if name in records]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)
        if records and ctx.meta.get(_EXPERT):
            with formatter.section(_EXPERT):
                formatter.write_dl(list(records.values()))


def _show_everything(ctx: click.Context, _: click.Parameter, is_asked: bool) -> None:
    if is_asked:
        ctx.meta[_EXPERT] = True
        click.echo(ctx.get_help())
        ctx.exit()
