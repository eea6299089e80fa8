"""Whether the values of a dataclass have the types that it names: what a checker of types sees only before the run."""

from __future__ import annotations

import os
import types
from collections.abc import Mapping
from datetime import date, datetime
from functools import cache
from numbers import Integral, Real
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

_SAID: Mapping[Any, str] = {
    int: "a whole number",
    float: "a number",
    bool: "True or False",
    str: "a text",
    os.PathLike: "a path",
    date: "a datetime.date",
    types.NoneType: "None",
}


@cache
def field_types(of: type) -> Mapping[str, Any]:
    """The type of each field."""
    return get_type_hints(of)


def plain_value(value: Any) -> Any:
    """The value, with tuples for lists, since what is frozen must have a hash, and Python's numbers for NumPy's."""
    if isinstance(value, (list, tuple)):
        return tuple(map(plain_value, value))
    if isinstance(value, (int, float)) or not isinstance(value, Real):
        return value
    return int(value) if isinstance(value, Integral) else float(value)


def is_of_type(value: Any, hint: Any) -> bool:
    """Whether a value is of the type: a bool is no number, an int is a float, a moment is no day."""
    origin, parts = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return any(is_of_type(value, part) for part in parts)
    if origin is Literal:
        return isinstance(value, str)
    if origin is tuple:
        wanted = parts[:1] * len(value) if isinstance(value, tuple) and parts[1:] == (...,) else parts
        return isinstance(value, tuple) and len(value) == len(wanted) and all(map(is_of_type, value, wanted))
    if hint in (int, float):
        return isinstance(value, (int, hint)) and not isinstance(value, bool)
    return isinstance(value, origin or hint) and not isinstance(value, datetime)


def said_of_type(hint: Any) -> str:
    """The type in words."""
    origin, parts = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return " or ".join(map(said_of_type, parts))
    if origin is tuple and parts[1:] == (...,):
        return f"a tuple whose members are each {said_of_type(parts[0])}"
    if origin is tuple:
        return f"a pair of {' and '.join(map(said_of_type, parts))}"
    return _SAID.get(origin or hint, "a text" if origin is Literal else f"a {getattr(hint, '__name__', hint)}")
