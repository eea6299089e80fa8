"""Reads the FlexBuffer map in which a custom operator keeps its options."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any

from flatbuffers import flexbuffers

from ...errors import ModelFormatError
from ...ir.model import Operator

# What the flatbuffers runtime raises when it follows a damaged offset.
_DAMAGE = (IndexError, ValueError, TypeError, struct.error, UnicodeDecodeError)


def custom_options(operator: Operator) -> Mapping[str, Any]:
    """The options by name; empty when there are none. Raises ModelFormatError when they are not a map."""
    if operator.custom_options is None or not operator.custom_options.size:
        return {}
    try:
        options = flexbuffers.Loads(operator.custom_options.tobytes())
    except _DAMAGE as error:
        raise _malformed(operator, "are damaged") from error
    if not isinstance(options, dict):
        raise _malformed(operator, "are not a FlexBuffer map")
    return options


def whole_number(operator: Operator, name: str) -> int:
    """One option as an integer. Raises ModelFormatError when it is missing or not a number."""
    value = custom_options(operator).get(name)
    if not isinstance(value, (int, float)):
        raise _malformed(operator, f"lack the number '{name}'")
    return int(value)


def _malformed(operator: Operator, what: str) -> ModelFormatError:
    return ModelFormatError(f"custom options of {operator.opcode.label} {what}; convert the model again")
