"""The options of a run as plain data: for its report, and for the label of the file that it makes."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from ..errors import UsageError
from ..kernels.boards import usual_tflm
from ..model.io.plan_label import PlanLabel
from ..options import Options

_LEFT_OUT = frozenset({"jobs", "device"})
"""They change nothing of the result, and differ between machines."""
_FILES = frozenset({"inputs"})
"""Named without their folder: a report says nothing of the machine that it was made on."""

_CHECKS = frozenset({"samples", "inputs", "verify", "runtimes", "runner"})
"""They decide how a file is verified, not its contents."""
_SAID_APART = frozenset({"target", "kernels", "replay"})
"""The first two stand in the label by themselves; the others say how to come by the same file, or show more of it."""


def options_used(options: Options) -> dict[str, Any]:
    """Option by name, as JSON has it. Options that only affect speed are left out."""
    names = [field.name for field in fields(options) if field.name not in _LEFT_OUT]
    return {name: _plain(getattr(options, name), name in _FILES) for name in names}


def changed_options(used: dict[str, Any]) -> dict[str, Any]:
    """Return those that are not the default ones."""
    default = options_used(Options())
    return {name: value for name, value in used.items() if name in default and value != default[name]}


def shaping_options(options: Options) -> dict[str, Any]:
    """Return those that differ from the defaults and decide the contents of the file."""
    changed = changed_options(options_used(options))
    if usual_tflm(options.device) not in (None, options.tflm):
        changed["tflm"] = options.tflm  # even the default one: the board would choose another one
    return {name: value for name, value in changed.items() if name not in _CHECKS | _SAID_APART}


def as_labeled(options: Options, label: PlanLabel) -> Options:
    """Return the options with which a file was made, where these leave the default; those of its verification stay.

    Raises UsageError for an option that this version does not know.
    """
    known, recorded = shaping_names(), label.options
    if not set(recorded) <= known:
        strange = ", ".join(sorted(set(recorded) - known))
        raise UsageError(f"the file was made by version {label.version} with unknown options: {strange}")
    default = Options()
    own = {name: _tupled(value) for name, value in recorded.items() if getattr(options, name) == getattr(default, name)}
    wrong = [name for name, value in own.items() if not _is_like(value, getattr(default, name))]
    if wrong:
        raise UsageError(f"the file's label has no valid {', '.join(wrong)}: optimize the model again")
    if options.target is None and options.kernels is None:
        own |= {"target": label.target, "kernels": label.kernels}
    return replace(options, **own)


def shaping_names() -> frozenset[str]:
    """Return the options that a label may have."""
    return frozenset(field.name for field in fields(Options)) - _LEFT_OUT - _CHECKS - _SAID_APART


def options_text(changed: Mapping[str, Any]) -> str:
    """In words, such as ``effort=high, cascade=false``; "the default options" where there are none."""
    return ", ".join(f"{name}={json.dumps(value)}" for name, value in changed.items()) or "the default options"


def _tupled(value: Any) -> Any:
    return tuple(map(_tupled, value)) if isinstance(value, list) else value


def _is_like(value: Any, default: Any) -> bool:
    """Return whether a value is of the type of an option's default, if that says one."""
    return default is None or isinstance(value, (int, float) if isinstance(default, float) else type(default))


def _plain(value: Any, is_file: bool) -> Any:
    if isinstance(value, (list, tuple)):
        return [_plain(each, is_file) for each in value]
    if value is not None and is_file:
        return Path(value).name
    return os.fspath(value) if isinstance(value, os.PathLike) else value
