"""The options of a run as plain data, for its report."""

from __future__ import annotations

import os
from dataclasses import fields
from datetime import date
from pathlib import Path
from typing import Any

from ..options import Options

_LEFT_OUT = frozenset({"until", "jobs", "keep_best", "keep_failures"})
"""They change nothing of the result, and differ between machines."""
_FILES = frozenset({"inputs"})
"""Named without their folder: a report says nothing of the machine that it was made on."""


def options_used(options: Options) -> dict[str, Any]:
    """Option by name, as JSON has it. What decides how fast the same result comes is left out."""
    names = [field.name for field in fields(options) if field.name not in _LEFT_OUT]
    return {name: _plain(getattr(options, name), name in _FILES) for name in names}


def changed_options(used: dict[str, Any]) -> dict[str, Any]:
    """Those that are not the default ones."""
    default = options_used(Options())
    return {name: value for name, value in used.items() if name in default and value != default[name]}


def _plain(value: Any, is_file: bool) -> Any:
    if isinstance(value, (list, tuple)):
        return [_plain(each, is_file) for each in value]
    if isinstance(value, date):
        return value.isoformat()
    if value is not None and is_file:
        return Path(value).name
    return os.fspath(value) if isinstance(value, os.PathLike) else value
