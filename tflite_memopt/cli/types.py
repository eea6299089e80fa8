"""Types of command-line values: files, and what a function reads from a text."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import click
from click.shell_completion import CompletionItem

from ..errors import ErrorKind, UsageError
from ..kernels.chips import MEMORIES, memories_of_chip
from ..options import Hop
from ..values import byte_size

_MOST_PARTS = 30


class FilePath(click.Path):
    """A file or folder by its name. ``-``, which elsewhere stands for a pipe, is refused: results go to files."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        if str(value) == "-":
            self.fail(
                "'-' is not a file; write /dev/stdin to read from a pipe, ./- for a file of that name", param, ctx
            )
        return Path(os.fsdecode(super().convert(value, param, ctx)))


ModelPath = FilePath(path_type=Path)


class WholeNumber(click.IntRange):
    """A whole number within limits, which messages call so."""

    name = "whole number"


# click.ParamType takes a type argument in the newest click only: hence the ignored warning.
class Value(click.ParamType):  # type: ignore[type-arg]
    """A value that ``read`` makes of a text, or raises UsageError; ``words`` complete one."""

    name = "text"

    def __init__(self, read: Callable[[str], Any], words: Sequence[str] = ()) -> None:
        self._read, self._words = read, words

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str):
            return value
        try:
            return self._read(value)
        except UsageError as error:
            self.fail(str(error), param, ctx)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Complete the words."""
        del ctx, param  # click passes them
        return [CompletionItem(word) for word in self._words if word.startswith(incomplete)]


Size = Value(byte_size)


def part_count(text: str) -> int:
    """Read a number of parts from 1, or ``auto``, which is 0."""
    if text == "auto":
        return 0
    if not text.isdigit() or not 1 <= int(text) <= _MOST_PARTS:
        raise UsageError(
            f"'{text}' is not a number of parts; write auto, or a number from 1 to {_MOST_PARTS}", ErrorKind.SYNTAX
        )
    return int(text)


def row_counts(text: str) -> tuple[int, ...]:
    """Read numbers of rows from 1, such as ``1,2,4``; none for an empty text."""
    numbers = [number for number in text.split(",") if number]
    if not all(number.isdecimal() and int(number) for number in numbers):
        raise UsageError(f"'{text}' has something else than numbers of rows from 1, such as 1,2,4", ErrorKind.SYNTAX)
    return tuple(map(int, numbers))


def fed_rows(text: str) -> Hop:
    """Read a number of rows, maybe with the input that is fed; ``auto`` is 0 rows: as many as turn out best."""
    count, comma, rest = text.partition(",")
    try:
        hop = Hop.of(f"1{comma}{rest}" if count == "auto" else text)
    except UsageError as error:
        raise UsageError(f"{error}; auto tries several", ErrorKind.SYNTAX) from error
    return replace(hop, rows=0) if count == "auto" else hop


class GivenMemory(NamedTuple):
    """A memory as it was given: its name, its bytes, and a price or none."""

    name: str
    bytes: int
    price: int | None


GivenMemories = tuple[GivenMemory, ...]


def given_memories(text: str) -> GivenMemories:
    """Read a memory by name and size, such as ``dtcm=64K`` or ``psram=8M@4``, or all those of a chip, by its name."""
    name, sign, size = text.partition("=")
    if name and sign:
        size, at, price = size.partition("@")
        if at and not price.isdecimal():
            raise UsageError(
                f"'{price}' is not a price; write a whole number, for example psram=8M@4", ErrorKind.SYNTAX
            )
        return (GivenMemory(name, byte_size(size), int(price) if at else None),)
    sizes = memories_of_chip(name)
    if sizes is None:
        raise UsageError(
            f"'{text}' is not a memory; write a name and a size, for example dtcm=64K, or one of {', '.join(MEMORIES)}",
            ErrorKind.SYNTAX,
        )
    return tuple(GivenMemory(chip_memory, size, None) for chip_memory, size in sizes.items())
