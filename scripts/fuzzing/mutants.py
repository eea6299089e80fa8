"""Mutants of a model: one field of its file changed, any that the schema has.

Fields are found by reflection: every attribute of every table of the object API, in the file or not, so that one which
a new schema adds is changed as well. A table that the file does not have is made by the type that the schema's classes
note beside the field, with a field or two of its own: external buffers, quantization by block, subtypes of variants.
"""

from __future__ import annotations

import copy
import inspect
import random
import re
import struct
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, cast

import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as schema

IDENTIFIER = b"TFL3"


@dataclass(frozen=True)
class Site:
    """A field of a table: ``path`` leads to the table, by attributes and positions; ``name`` is the field's."""

    path: tuple[str | int, ...]
    name: str
    table: str

    def __str__(self) -> str:
        return f"{self.table}.{self.name}"


def root_of(data: bytes) -> Any:
    """The tables of a file."""
    return schema.ModelT.InitFromObj(schema.Model.GetRootAs(data, 0))


def packed(root: Any) -> bytes:
    """The file of tables."""
    builder = flatbuffers.Builder(1024)
    builder.Finish(root.Pack(builder), file_identifier=IDENTIFIER)
    return bytes(builder.Output())


def sites_of(root: Any) -> list[Site]:
    """Every field of every table that a file has."""
    return list(_sites(root, ()))


def _sites(table: Any, path: tuple[str | int, ...]) -> Iterator[Site]:
    for name, value in vars(table).items():
        yield Site(path, name, type(table).__name__)
        if _is_table(value):
            yield from _sites(value, (*path, name))
        elif isinstance(value, list):
            for at, each in enumerate(value):
                if _is_table(each):
                    yield from _sites(each, (*path, name, at))


def _is_table(value: Any) -> bool:
    return hasattr(value, "Pack")


def mutant(root: Any, sites: Sequence[Site], draw: random.Random) -> tuple[Site, bytes] | None:
    """One field changed, and which; None where the change cannot be written. The tables stay as they are."""
    # Tables first, then fields: constants and options are as likely as the many names and numbers of tensors.
    table = draw.choice(sorted({site.table for site in sites}))
    site = draw.choice([each for each in sites if each.table == table])
    holder: Any = root
    for step in site.path:
        holder = holder[step] if isinstance(step, int) else getattr(holder, step)
    held = dict(vars(holder))
    try:
        _change(root, holder, site, draw)
        return site, packed(root)
    except (TypeError, ValueError, AttributeError, OverflowError, KeyError, IndexError, struct.error):
        return None  # no such number in this field's type
    finally:
        vars(holder).update(held)


def _change(root: Any, holder: Any, site: Site, draw: random.Random) -> None:
    value = getattr(holder, site.name)
    union = site.name.removesuffix("Type")
    if union != site.name and len(_tables_of(holder, union)) > 1:
        _retype(holder, union, draw)
        return
    if site.name in ("inputs", "outputs", "opcodeIndex") and draw.random() < 0.7 and site.path:
        limit = len(root.operatorCodes) if site.name == "opcodeIndex" else len(root.subgraphs[0].tensors)
        if site.name == "opcodeIndex":
            setattr(holder, site.name, draw.randrange(limit))
        elif value is not None and len(value):
            changed = np.array(value)
            changed[draw.randrange(changed.size)] = draw.randrange(-1, limit)
            setattr(holder, site.name, changed)
        return
    if value is None and site.name not in _ABSENT:
        _add(holder, site.name, draw)
    else:
        setattr(holder, site.name, _other(value, site.name, draw))


@cache
def _types_of(table: Hashable) -> Mapping[str, str]:
    """The type of each field, as the schema's class notes it, such as ``Optional[List[int]]``."""
    return dict(re.findall(r"self\.(\w+) = \w+  # type: (.+)", inspect.getsource(cast(type, table))))


def _tables_of(holder: Any, name: str) -> Sequence[type]:
    """The tables that a field may hold, or a list of: several of a union, in the order of their numbers."""
    words = re.findall(r"\w+T\b", _types_of(cast(Hashable, type(holder))).get(name, ""))
    return [getattr(schema, word) for word in words if hasattr(schema, word)]


def _retype(holder: Any, name: str, draw: random.Random) -> None:
    """A union of another kind, with its defaults, at times but for a field."""
    tables = _tables_of(holder, name)
    number = draw.randrange(len(tables) + 1)
    setattr(holder, f"{name}Type", number)
    setattr(holder, name, _table(tables[number - 1], draw) if number else None)


def _table(kind: type, draw: random.Random) -> Any:
    made = kind()
    for name in draw.sample(sorted(vars(made)), min(len(vars(made)), draw.randint(0, 2))):
        value = getattr(made, name)
        if value is None:
            _add(made, name, draw)
        else:
            setattr(made, name, _other(value, name, draw))
    return made


def _add(holder: Any, name: str, draw: random.Random) -> None:
    """Give a table a field that it does not have."""
    said = _types_of(cast(Hashable, type(holder))).get(name, "")
    tables = _tables_of(holder, name)
    if said.startswith("Union"):
        _retype(holder, name, draw)
    elif tables:
        made = _table(tables[0], draw)
        setattr(holder, name, [made] if "List" in said else made)
    elif "List" in said:
        setattr(holder, name, (_halves if "float" in said else _numbers)())
    else:
        setattr(holder, name, _text())


def _other(value: Any, name: str, draw: random.Random) -> Any:
    for kinds, change in _CHANGES:
        if isinstance(value, kinds):
            return change(value, draw)
    if _is_table(value):
        return draw.choice((None, type(value)()))
    return draw.choice(_ABSENT[name])()


def _numbers() -> Any:
    return np.asarray([1], np.int32)


def _halves() -> Any:
    return np.asarray([0.5], np.float32)


def _text() -> Any:
    return b"x"


_ABSENT: dict[str, tuple[Callable[[], Any], ...]] = {
    "quantization": (lambda: _quantized(),),
    **dict.fromkeys(("scale", "min", "max"), (_halves,)),
    "zeroPoint": (lambda: np.asarray([3], np.int64),),
    "data": (lambda: np.zeros(64, np.uint8),),
    "customOptions": (lambda: np.zeros(4, np.uint8),),
}
"""What a field that is absent becomes, where its type alone would make nothing of use."""


def _quantized() -> Any:
    made = schema.QuantizationParametersT()
    made.scale, made.zeroPoint = np.asarray([0.5], np.float32), np.asarray([3], np.int64)
    return made


def _flipped(value: Any, draw: random.Random) -> Any:
    del draw
    return not value


def _number(value: Any, draw: random.Random) -> Any:
    return draw.choice((value + 1, value - 1, value + 1, value - 1, 0, 1, 2, 3, -1, 2 * value, 255, 127))


def _float(value: Any, draw: random.Random) -> Any:
    single = np.float32(value)
    return float(
        draw.choice((np.nextafter(single, np.float32(9)), single * np.float32(1.01), 0, 1, -single, np.inf, np.nan))
    )


def _bytes(value: Any, draw: random.Random) -> Any:
    return draw.choice((b"", value + b"x", None, b"y"))


def _vector(value: Any, draw: random.Random) -> Any:
    changed = value.copy()
    way = draw.random()
    if not changed.size or way < 0.1:
        return draw.choice((None, np.append(changed, changed[-1:] if changed.size else 0).astype(value.dtype)))
    at = draw.randrange(changed.size)
    if way < 0.2:
        return np.delete(changed, at)
    if way < 0.3:
        other = draw.randrange(changed.size)
        changed[[at, other]] = changed[[other, at]]
    elif changed.dtype.kind == "f":
        changed[at] = _float(changed[at], draw)
    else:
        limits = np.iinfo(changed.dtype)
        changed[at] = min(max(int(_number(int(changed[at]), draw)), limits.min), limits.max)
    return changed


def _list(value: Any, draw: random.Random) -> Any:
    changed = list(value)
    if not changed:
        return None
    at, way = draw.randrange(len(changed)), draw.choice(("twice", "without", "swapped", "none"))
    if way == "twice":
        changed.insert(at, copy.copy(changed[at]))
    elif way == "without":
        del changed[at]
    elif way == "swapped":
        other = draw.randrange(len(changed))
        changed[at], changed[other] = changed[other], changed[at]
    else:
        return None
    return changed


_CHANGES: Sequence[tuple[Any, Callable[[Any, random.Random], Any]]] = (
    (bool, _flipped),
    ((int, np.integer), _number),
    ((float, np.floating), _float),
    ((bytes, str), _bytes),
    (np.ndarray, _vector),
    (list, _list),
)
