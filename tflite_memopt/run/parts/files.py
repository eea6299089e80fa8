"""A program: parts of a model as .tflite files, and program.json with the tensors that parts pass to each other.

schema/program.schema.json describes program.json. All sizes are bytes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, is_dataclass
from hashlib import sha256
from pathlib import Path
from types import NoneType
from typing import Any, get_args, get_origin, get_type_hints

from ...errors import ErrorKind, ModelFormatError, UsageError
from ...firmware.description import Feed
from ...kernels.profiles import PROFILES
from ...model.io.files import read_file
from ...model.ir.check import MAX_ACTIVATION_BYTES, MAX_TENSOR_BYTES
from ...report.schema import need_pydantic

MANIFEST = "program.json"
VERSION = 2
NOT_VERIFIED = "not verified"
MOST_FILES = 30
"""Parts of a program: as many as the class Program of the firmware has bits for."""
PROVED = ", and proved for all inputs"
"""The end of what was verified, where a proof covers all inputs."""


@dataclass(frozen=True)
class Crossing:
    """A tensor that a part takes or gives: its name in the original, its bytes, and its offset in the plan of the part.

    ``offset`` is None where TFLM places it.
    """

    name: str
    bytes: int
    offset: int | None


@dataclass(frozen=True)
class PartFile:
    """One part. ``operators``: of the original, which it computes. ``required_bytes``: as in a report, by itself.

    ``head``, ``tail``: bytes of its tensors from the start of the arena, and of TFLM's structures at the end.
    """

    file: str
    sha256: str
    operators: int
    required_bytes: dict[str, int]
    inputs: tuple[Crossing, ...]
    outputs: tuple[Crossing, ...]
    head: int = 0
    tail: int = 0


@dataclass(frozen=True)
class Program:
    """The content of program.json.

    ``arena_bytes``: of the one arena, by kernel library, with the planner that ``codegen`` writes. ``whole_bytes``:
    what the model needs as one. ``slowdown``: the estimated instructions that a run takes more than the model as it
    came, making all interpreters included, as a fraction by kernel library. ``verified``: how far outputs are equal, on
    how many inputs, and where. ``feed``: how the first part takes its input in rows; None: whole. ``tflm_since``: the
    date of the oldest TFLM that has all operators, YYYY-MM-DD; None where any has them.
    """

    version: int
    made_by: str
    source: str | None
    source_bytes: int
    source_sha256: str
    target: str | None
    kernels: str
    arena_bytes: dict[str, int]
    whole_bytes: int
    slowdown: dict[str, float]
    verified: str
    parts: tuple[PartFile, ...]
    feed: Feed | None = None
    tflm_since: str | None = None

    @property
    def arena(self) -> int:
        """The arena to reserve: with the target's kernels, or with the library that is counted, which comes first."""
        return next(iter(self.arena_bytes.values()))

    @property
    def head(self) -> int:
        """Bytes of the largest head of its parts, whose tensors share them."""
        return max(part.head for part in self.parts)

    @property
    def equality(self) -> str:
        """``verified`` in a sentence."""
        if self.verified == NOT_VERIFIED:
            return self.verified
        return (
            f"verified {self.verified}" if self.verified.endswith(PROVED) else f"not proved, verified {self.verified}"
        )


def programs_among(paths: Iterable[Path]) -> list[Path]:
    """Return the paths, in order, those of a program's parts replaced by the one of its folder."""
    return list(dict.fromkeys(path.parent if is_program(path.parent) else path for path in paths))


def to_json(program: Program) -> str:
    """Return the text of program.json."""
    return json.dumps(asdict(program), indent=2) + "\n"


def schema_text() -> str:
    """Return the text of schema/program.schema.json. Needs pydantic, as the other schemas do."""
    made = need_pydantic().TypeAdapter(Program).json_schema(mode="serialization")
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": f"tflite-memopt {MANIFEST}"}
    return json.dumps({**head, **{key: value for key, value in made.items() if key != "title"}}, indent=2) + "\n"


def is_program(path: Path) -> bool:
    """Return whether the path is a folder that holds a program."""
    return path.is_dir() and (path / MANIFEST).is_file()


def read_program(folder: Path) -> tuple[Program, tuple[bytes, ...]]:
    """A program, and the bytes of its parts. Raises UsageError or ModelFormatError for a folder that is not whole."""
    if not is_program(folder):
        raise UsageError(
            f"'{folder}' holds no {MANIFEST}: name a folder that optimize --parts wrote", ErrorKind.NOT_A_FILE
        )
    text = read_file(folder / MANIFEST)
    try:
        program = program_in(json.loads(text))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ModelFormatError(
            f"'{folder / MANIFEST}' is not a program of this version: {error}", ErrorKind.FORMAT
        ) from error
    parts = []
    for part in program.parts:
        path = folder / part.file
        if not path.is_file():
            raise UsageError(f"'{path}' is missing: run optimize --parts again", ErrorKind.NOT_A_FILE)
        data = read_file(path)
        if sha256(data).hexdigest() != part.sha256:
            raise UsageError(f"'{path}' belongs to another run than '{folder / MANIFEST}': run optimize --parts again")
        parts.append(data)
    return program, tuple(parts)


def program_in(found: Any) -> Program:
    """Return the program of a JSON value. Raises ValueError, KeyError, TypeError, or AttributeError for another one."""
    if found["version"] != VERSION:
        raise ValueError(f"version {found['version']}, not {VERSION}")
    program: Program = _made(found, Program, MANIFEST)
    parts = program.parts
    if not 0 < len(parts) <= MOST_FILES or any(Path(part.file).name != part.file for part in parts):
        raise ValueError(f"its parts are not files in the same folder, at most {MOST_FILES}")
    if not program.arena_bytes or not program.arena_bytes.keys() <= PROFILES.keys():
        raise ValueError("it has no arena, or that of an unknown kernel library")
    if program.feed is not None:
        _check_feed(program.feed)
    return program


def _made(value: Any, kind: Any, where: str) -> Any:
    """Return a value of JSON as one of the type of its field. Raises TypeError for another one."""
    inner = get_args(kind)
    if NoneType in inner:
        return None if value is None else _made(value, inner[0], where)
    if is_dataclass(kind) and isinstance(value, dict):
        hints = get_type_hints(kind)
        made: Any = kind
        return made(**{name: _made(each, hints.get(name, object), name) for name, each in value.items()})
    if get_origin(kind) is tuple and isinstance(value, list):
        return tuple(_made(each, inner[0], where) for each in value)
    if get_origin(kind) is dict and isinstance(value, dict):
        return {key: _made(each, inner[1], where) for key, each in value.items()}
    if not _is_of(value, kind):
        raise TypeError(f"{where} is {value!r}")
    return value


def _is_of(value: Any, kind: Any) -> bool:
    """Tell whether a value is of a type; integers are sizes and positions, other numbers fractions of run time."""
    if kind is int:
        return type(value) is int and 0 <= value <= MAX_TENSOR_BYTES
    if kind is float:
        return isinstance(value, (int, float)) and -1 <= value <= MAX_TENSOR_BYTES
    return isinstance(value, get_origin(kind) or kind)


def _check_feed(feed: Feed) -> None:
    """Raise ValueError for a feed that gives other rows than those of its image, or more than any arena has."""
    fills = [feed.padding, *(tie.fill for tie in feed.ties if tie.fill is not None)]
    has_all = min(feed.rows, feed.calls) > 0 <= feed.lead <= feed.calls * feed.rows - feed.height
    if not has_all or not all(0 <= fill < 256 for fill in fills):
        raise ValueError("its feed gives other rows than those of the image, or no bytes")
    if feed.calls * feed.rows * feed.row_bytes > MAX_ACTIVATION_BYTES or feed.calls * feed.step > MAX_TENSOR_BYTES:
        raise ValueError("its feed gives more rows than any image has")
