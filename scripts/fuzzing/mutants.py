"""Mutants of a model: one field of its file changed, any that the schema has.

Fields are found by reflection: every attribute of every table of the object API, in the file or not, so that one which
a new schema adds is changed as well.
"""

from __future__ import annotations

import copy
import random
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

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
    if site.name in ("builtinOptionsType", "builtinOptions2Type"):
        _retype(holder, site.name, draw)
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
    setattr(holder, site.name, _other(value, site.name, draw))


def _retype(holder: Any, name: str, draw: random.Random) -> None:
    """Options of another kind, with their defaults."""
    union = schema.BuiltinOptions if name == "builtinOptionsType" else schema.BuiltinOptions2
    kinds = {number: kind for kind, number in vars(union).items() if not kind.startswith("_")}
    number = draw.choice(sorted(kinds))
    made = getattr(schema, f"{kinds[number]}T", None)
    setattr(holder, name, number)
    setattr(holder, name.removesuffix("Type"), None if made is None else made())


def _other(value: Any, name: str, draw: random.Random) -> Any:
    for kinds, change in _CHANGES:
        if isinstance(value, kinds):
            return change(value, draw)
    if _is_table(value):
        return draw.choice((None, type(value)()))
    return draw.choice(_ABSENT.get(name, (_numbers, _text)))()


def _numbers() -> Any:
    return np.asarray([1], np.int32)


def _halves() -> Any:
    return np.asarray([0.5], np.float32)


def _text() -> Any:
    return b"x"


_ABSENT: dict[str, tuple[Callable[[], Any], ...]] = {
    "quantization": (lambda: _quantized(),),
    "sparsity": (schema.SparsityParametersT,),
    "details": (schema.CustomQuantizationT,),
    **dict.fromkeys(("scale", "min", "max"), (_halves,)),
    "zeroPoint": (lambda: np.asarray([3], np.int64),),
    "data": (lambda: np.zeros(64, np.uint8),),
    "customOptions": (lambda: np.zeros(4, np.uint8),),
}
"""What a field that is absent may become; vectors of numbers, or text, are what most of them are."""


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
