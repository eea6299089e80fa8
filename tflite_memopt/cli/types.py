"""Types of command-line values: sizes, shares, targets."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import click
from click.shell_completion import CompletionItem

from ..errors import ErrorKind, UsageError
from ..kernels.boards import device_named
from ..kernels.chips import MEMORIES, memories_of_chip
from ..kernels.since import BUILDS, build_named
from ..kernels.targets import TARGETS, target_named
from ..options import ALL_PORTS, IO, Hop, Options

_SIZE = re.compile(r"(\d+(?:\.\d+)?|\.\d+)\s*([KMG]?)(?:I?B)?", re.IGNORECASE)
_MOST_PARTS = 30
CHANNELS_LAST = "channels-last"
_UNITS = {"": 1, "K": 1024, "M": 1024**2, "G": 1024**3}


class FilePath(click.Path):
    """A file or folder by its name. ``-``, which elsewhere stands for a pipe, is refused: results go to files."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        if str(value) == "-":
            self.fail(
                "'-' is not a file; write /dev/stdin to read from a pipe, ./- for a file of that name", param, ctx
            )
        return Path(os.fsdecode(super().convert(value, param, ctx)))


ModelPath = FilePath(path_type=Path)


# click.ParamType takes a type argument in the newest click only: hence the ignored warnings.
class ByteSize(click.ParamType):  # type: ignore[type-arg]
    """A size such as ``65536``, ``64K``, ``64 KB``, ``64KiB`` or ``0.5M``. K is always 1,024 bytes, M is 1,024 K."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        parsed = _SIZE.fullmatch(str(value).strip())
        size = Decimal(parsed[1]) * _UNITS[parsed[2].upper()] if parsed else Decimal("0.5")
        if size % 1:
            self.fail(f"'{value}' is not a size; write bytes, or for example 64K, 64KiB or 0.5M", param, ctx)
        if size < 1:
            self.fail(f"'{value}' is too small; it must be at least 1 byte", param, ctx)
        return int(size)


class PartCount(click.ParamType):  # type: ignore[type-arg]
    """A number of parts from 1, or ``auto``, which is 0."""

    name = "parts"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        if str(value) == "auto":
            return 0
        if not str(value).isdigit() or not 1 <= int(value) <= _MOST_PARTS:
            self.fail(
                f"'{value}' is not a number of parts; write auto, or a number from 1 to {_MOST_PARTS}", param, ctx
            )
        return int(value)


class IoWord(click.ParamType):  # type: ignore[type-arg]
    """A word of ``--io``: ``keep``, ``int8``, ``channels-last``, or ``channels-last=NAME``."""

    name = "io"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        word, equals, name = str(value).partition("=")
        if word not in (*IO, CHANNELS_LAST) or (equals and (word != CHANNELS_LAST or not name)):
            said = ", ".join(f"'{each}'" for each in (*IO, CHANNELS_LAST, f"{CHANNELS_LAST}=NAME"))
            self.fail(f"'{value}' is not one of {said}", param, ctx)
        return str(value)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Complete the words without a name."""
        del ctx, param  # click passes them
        return [CompletionItem(each) for each in (*IO, CHANNELS_LAST) if each.startswith(incomplete)]


def interface_of_words(words: Sequence[str]) -> dict[str, Any]:
    """Return the options that the words of ``--io`` stand for. Raises UsageError for words that exclude each other."""
    types = [word for word in dict.fromkeys(words) if word in IO]
    if len(types) > 1 or ("keep" in types and len(set(words)) > 1):
        raise UsageError(f"--io {' --io '.join(words)}: keep excludes all others", ErrorKind.EXCLUDED)
    turned = [word.partition("=")[2] or ALL_PORTS for word in words if word not in IO]
    return {"io": types[0] if types else Options.io, "channels_last": tuple(dict.fromkeys(turned))}


class HopList(click.ParamType):  # type: ignore[type-arg]
    """Numbers of rows from 1, such as ``1,2,4``; none for an empty text."""

    name = "hops"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, ...]:
        if isinstance(value, tuple):
            return value
        numbers = [each for each in str(value).split(",") if each]
        if not all(each.isdecimal() and int(each) for each in numbers):
            self.fail(f"'{value}' has something else than numbers of rows from 1, such as 1,2,4", param, ctx)
        return tuple(map(int, numbers))


class FedRowsType(click.ParamType):  # type: ignore[type-arg]
    """A number of rows, or ``auto``, which is 0 rows: as many as turn out best; maybe with the input that is fed."""

    name = "rows"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Hop:
        if isinstance(value, Hop):
            return value
        count, comma, rest = str(value).partition(",")
        try:
            hop = Hop.of(f"1{comma}{rest}" if count == "auto" else str(value))
        except UsageError as error:
            self.fail(f"{error}; auto tries several", param, ctx)
        return replace(hop, rows=0) if count == "auto" else hop


class GivenMemory(NamedTuple):
    """A memory as it was given: its name, its bytes, and a price or none."""

    name: str
    bytes: int
    price: int | None


GivenMemories = tuple[GivenMemory, ...]


class MemoryType(click.ParamType):  # type: ignore[type-arg]
    """A memory by name and size, such as ``dtcm=64K`` or ``psram=8M@4``, or all those of a chip, by its name."""

    name = "memory"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> GivenMemories:
        if isinstance(value, tuple):
            return value
        name, sign, size = str(value).partition("=")
        if name and sign:
            size, at, price = size.partition("@")
            if at and not price.isdecimal():
                self.fail(f"'{price}' is not a price; write a whole number, for example psram=8M@4", param, ctx)
            return (GivenMemory(name, ByteSize().convert(size, param, ctx), int(price) if at else None),)
        sizes = memories_of_chip(name)
        if sizes is None:
            chips = ", ".join(MEMORIES)
            self.fail(
                f"'{value}' is not a memory; write a name and a size, for example dtcm=64K, or one of {chips}",
                param,
                ctx,
            )
        return tuple(GivenMemory(each, size, None) for each, size in sizes.items())


class TflmName(click.ParamType):  # type: ignore[type-arg]
    """A build of TFLM such as ``zephyr-4.2``, or a day such as ``2025-11-10``."""

    name = "build"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        try:
            build_named(str(value))
        except UsageError as error:
            self.fail(str(error), param, ctx)
        return str(value)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        del ctx, param  # click passes them
        return [CompletionItem(name) for name in BUILDS if name.startswith(incomplete)]


class TargetName(click.ParamType):  # type: ignore[type-arg]
    """A core or chip such as ``cortex-m4``, ``Cortex_M4`` or ``stm32f407``: the target that it is."""

    name = "target"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        name, at, version = str(value).partition("@")
        try:
            target, device = target_named(str(value)), device_named(name)
            return target.name if device is None else f"{device.name}{at}{version}"
        except UsageError as error:
            self.fail(str(error), param, ctx)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        del ctx, param  # click passes them
        return [CompletionItem(name) for name in TARGETS if name.startswith(incomplete)]


class Percent(click.ParamType):  # type: ignore[type-arg]
    """A percentage from 0 to 100 such as ``10`` or ``10%``, as a fraction."""

    name = "percent"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, float):
            return value
        digits = str(value).strip().removesuffix("%").strip()
        if not digits.replace(".", "", 1).isdecimal():
            self.fail(f"'{value}' is not a percentage; write for example 10", param, ctx)
        if float(digits) > 100:
            self.fail(f"'{value}' is more than 100 %, the maximum", param, ctx)
        return float(digits) / 100
