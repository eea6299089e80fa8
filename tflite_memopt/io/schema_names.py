"""Numbers of the TFLite schema to names and back, from the maintained bindings."""

from __future__ import annotations

from functools import cache
from typing import Any

from ai_edge_litert import schema_py_generated as schema

from ..ir.dtype import DType


def _names(enum_class: type) -> dict[int, str]:
    return {value: name for name, value in vars(enum_class).items() if not name.startswith("_")}


@cache
def _builtin_names() -> dict[int, str]:
    return _names(schema.BuiltinOperator)


@cache
def _dtype_names() -> dict[int, str]:
    return _names(schema.TensorType)


def builtin_name(code: int) -> str | None:
    """Schema name of a builtin operator code; None when the bindings do not know the code."""
    return _builtin_names().get(code)


def builtin_code(name: str) -> int:
    """Builtin operator code of a schema name."""
    return int(getattr(schema.BuiltinOperator, name))


def dtype_of(code: int) -> DType | None:
    """Element type of a schema TensorType number; None when it is unknown."""
    return DType.__members__.get(_dtype_names().get(code, ""))


def dtype_code(dtype: DType) -> int:
    """Schema TensorType number of an element type."""
    return int(getattr(schema.TensorType, dtype.name))


def options_code(kind: str, second: bool) -> int:
    """Union number of an options table, for ``builtin_options`` or (``second``) ``builtin_options_2``."""
    union = schema.BuiltinOptions2 if second else schema.BuiltinOptions
    return int(getattr(union, kind))


def new_options(kind: str) -> Any:
    """A fresh object-API table of this kind with the schema's defaults."""
    return getattr(schema, f"{kind}T")()
