"""Declare options: a field of a dataclass with its flag, its help, how it is read, checked, and recorded."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from decimal import Decimal
from functools import cache
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from .errors import ErrorKind, UsageError
from .kernels.boards import device_named
from .kernels.since import build_named
from .kernels.targets import target_named

Group = Literal["Result", "Target", "Limits on changes", "Verification", "Output"]
GROUPS: tuple[Group, ...] = get_args(Group)
"""Titles in the help of a command, in their order."""
Role = Literal["file", "apart", "check", "machine"]
"""What an option decides. "file": the contents of the result, so that its label has it; "apart": these too, but the
label has it elsewhere; "check": how the result is verified; "machine": nothing of the result."""
_SIZE = re.compile(r"(\d+(?:\.\d+)?|\.\d+)\s*([KMG]?)(?:I?B)?", re.IGNORECASE)
_UNITS = {"": 1, "K": 1024, "M": 1024**2, "G": 1024**3}


@dataclass(frozen=True)
class Declared:
    """All that is known of an option beside its type and its default, of which the command line is made.

    ``commands`` take it as ``flag``, None for one of the field's name, in a ``group`` of their help. ``read`` makes a
    value of the text, None to keep it, or raises UsageError; ``words`` complete one. ``sets``: the fields that a value
    of the flag stands for, where these are others. ``shown``: the default as the flag takes it. ``least``, ``most``,
    ``one_of``: the valid values beside None. ``check`` returns what is wrong with a value among all others, or None.
    """

    help: str = ""
    commands: tuple[str, ...] = ()
    flag: str | None = None
    group: Group = "Output"
    role: Role = "file"
    metavar: str | None = None
    read: Callable[[str], Any] | None = None
    words: tuple[str, ...] = ()
    sets: Callable[[Any], Mapping[str, Any]] | None = None
    shown: str | None = None
    repeats: bool = False
    least: float | None = None
    most: float = float("inf")
    one_of: tuple[str, ...] = ()
    check: Callable[[Any, Any], str | None] | None = None


def option(default: Any, meaning: str = "", **declared: Any) -> Any:
    """Return a field of a dataclass of options; see :class:`Declared`."""
    compare = declared.pop("compare", True)
    return field(default=default, compare=compare, metadata={Declared: Declared(meaning, **declared)})


def declared_in(kind: type[Any]) -> dict[str, Declared]:
    """Return what is declared of each field of a dataclass of options, by name."""
    return {member.name: member.metadata[Declared] for member in fields(kind)}


def wrong_types(options: Any) -> Iterator[tuple[str, str]]:
    """Yield each option whose value is not of its type, and the type."""
    for member in fields(options):
        if not _is_of(getattr(options, member.name), _hints(options.__class__)[member.name]):
            choices = member.metadata[Declared].one_of
            yield member.name, f"choose one of {', '.join(choices)}" if choices else f"must be of type {member.type}"


def wrong_values(options: Any) -> Iterator[tuple[str, str]]:
    """Yield each option whose value is none of its valid ones, and what to do."""
    for name, declared in declared_in(type(options)).items():
        value = getattr(options, name)
        if declared.one_of and value is not None:
            values = value if isinstance(value, tuple) else (value,)
            if not values or not set(values) <= set(declared.one_of):
                yield name, f"choose one of {', '.join(declared.one_of)}"
        if declared.least is not None and value is not None and not declared.least <= value <= declared.most:
            most = "" if declared.most == float("inf") else f" and at most {declared.most:g}"
            yield name, f"must be at least {declared.least:g}{most}"
        advice = None if declared.check is None else declared.check(options, value)
        if advice is not None:
            yield name, advice


@cache
def _hints(kind: type[Any]) -> dict[str, Any]:
    return get_type_hints(kind)


def _is_of(value: object, hint: Any) -> bool:
    """Return whether a value is of an annotated type; a whole number is a float, too."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return any(_is_of(value, alternative) for alternative in inner)
    if origin is Literal:
        return value in inner
    if origin is tuple:
        return isinstance(value, tuple) and all(_is_of(item, inner[0]) for item in value)
    return isinstance(value, (int, float) if hint is float else origin or hint)


def byte_size(text: str) -> int:
    """Read ``65536``, ``64K``, ``64 KB``, ``64KiB`` or ``0.5M``. K is always 1,024 bytes, M is 1,024 K."""
    parsed = _SIZE.fullmatch(text.strip())
    size = Decimal(parsed[1]) * _UNITS[parsed[2].upper()] if parsed else Decimal("0.5")
    if size % 1:
        raise UsageError(f"'{text}' is not a size; write bytes, or for example 64K, 64KiB or 0.5M", ErrorKind.SYNTAX)
    if size < 1:
        raise UsageError(f"'{text}' is too small; it must be at least 1 byte", ErrorKind.SYNTAX)
    return int(size)


def fraction(text: str) -> float:
    """Read a percentage from 0 to 100 such as ``10`` or ``10%``."""
    digits = text.strip().removesuffix("%").strip()
    if not digits.replace(".", "", 1).isdecimal():
        raise UsageError(f"'{text}' is not a percentage; write for example 10", ErrorKind.SYNTAX)
    if float(digits) > 100:
        raise UsageError(f"'{text}' is more than 100 %, the maximum", ErrorKind.SYNTAX)
    return float(digits) / 100


def one_target(text: str) -> str:
    """Read a core or chip such as ``cortex-m4``, ``Cortex_M4`` or ``stm32f407``: the target that it is."""
    name, at, version = text.partition("@")
    target, device = target_named(text), device_named(name)
    return target.name if device is None else f"{device.name}{at}{version}"


def one_build(text: str) -> str:
    """Read a build of TFLM such as ``zephyr-4.2``, or a day such as ``2025-11-10``."""
    build_named(text)
    return text
