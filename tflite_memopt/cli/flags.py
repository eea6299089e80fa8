"""Flags of the commands: those of a run as :class:`Options` declares them, others in the same form, in groups."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import click

from ..options import DECLARED, Options
from ..values import GROUPS, Declared, Group
from .types import ModelPath, Value, WholeNumber, part_count

_WORDS = "tflite_memopt.words"
Function = TypeVar("Function", bound=Callable[..., Any])


class _Flag(click.Option):
    def __init__(self, *args: Any, group: Group = "Output", **attributes: Any) -> None:
        super().__init__(*args, **attributes)
        self.group = group


class GroupedCommand(click.Command):
    """A command whose help has its options in groups, and that can be printed again with other options."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Keep the words of the command line."""
        ctx.meta[_WORDS] = list(args)
        return super().parse_args(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the groups."""
        records = [
            (getattr(option, "group", GROUPS[-1]), record)
            for option in self.get_params(ctx)
            if isinstance(option, click.Option) and (record := option.get_help_record(ctx)) is not None
        ]
        for group in GROUPS:
            rows = [record for title, record in records if title == group]
            if rows:
                with formatter.section(group):
                    formatter.write_dl(rows)


def flag(*names: str, group: Group = "Output", **attributes: Any) -> Callable[[Function], Function]:
    """Return the decorator of an option in a group of a command's help."""
    return click.option(*names, cls=_Flag, group=group, **attributes)


parts_option = partial(flag, "--parts", group="Result", type=Value(part_count), metavar="N|auto")
"""The decorator of the option for the number of models that run one after another."""


def flag_name(field: str) -> str:
    """Return the flag of an option of a run."""
    return DECLARED[field].flag or f"--{field.replace('_', '-')}"


def flag_of(field: str, **attributes: Any) -> Callable[[Function], Function]:
    """Return the decorator of an option as it is declared; ``attributes``: what differs in a command."""
    declared, default = DECLARED[field], getattr(Options, field)
    made: dict[str, Any] = {"help": declared.help, "group": declared.group}
    if isinstance(default, bool) and not declared.words:
        made["is_flag"] = True
    else:
        is_many = declared.repeats or isinstance(default, tuple)
        shown = declared.shown or (None if is_many else default)
        made |= {"type": _type_of(declared), "metavar": declared.metavar, "multiple": declared.repeats}
        made |= {"default": shown, "show_default": True} if shown is not None else {}
    return flag(flag_name(field), field, **made | attributes)


def flags_of(command: str) -> Callable[[Function], Function]:
    """Return the decorator that gives a command all flags that are declared for it."""

    def decorate(function: Function) -> Function:
        for field in reversed([name for name, declared in DECLARED.items() if command in declared.commands]):
            function = flag_of(field)(function)
        return function

    return decorate


def fields_from(flags: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what the values of flags say of the fields of ``Options``."""
    found: dict[str, Any] = {}
    for field, value in flags.items():
        sets = DECLARED[field].sets
        found |= {field: value} if sets is None else sets(value)
    return found


def options_from(flags: Mapping[str, Any], **others: Any) -> Options:
    """Return the options of a run from the values of its flags, and ``others`` by name."""
    return Options(**{**others, **fields_from(flags)})


def _type_of(declared: Declared) -> Any:
    choices = declared.one_of or (() if declared.read else declared.words)
    if choices:
        return click.Choice(choices)
    if declared.read is int:
        return WholeNumber(min=None if declared.least is None else int(declared.least))
    if declared.read is None:
        return str
    return ModelPath if declared.read is Path else Value(declared.read, declared.words)


def command_again(ctx: click.Context, without: Sequence[str], more: Sequence[str]) -> str:
    """Return the command line, to be copied, without some options that take a value, and with more words."""
    kept: list[str] = []
    words: Iterator[str] = iter(ctx.meta[_WORDS])
    for word in words:
        if word in without:
            next(words, None)
        elif word.partition("=")[0] not in without:
            kept.append(word)
    return shlex.join(["tflite-memopt", str(ctx.info_name), *kept, *more])
