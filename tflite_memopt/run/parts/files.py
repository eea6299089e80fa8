"""A program: parts of a model as .tflite files, and program.json with the tensors that parts pass to each other.

schema/program.schema.json describes program.json. All sizes are bytes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import Any

from ...errors import ErrorKind, ModelFormatError, UsageError
from ...firmware.description import Feed, Tie
from ...model.io.files import read_file
from ...report.extras import need

MANIFEST = "program.json"
VERSION = 2
NOT_VERIFIED = "not verified"
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
    made = need("pydantic").TypeAdapter(Program).json_schema(mode="serialization")
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
    except (ValueError, KeyError, TypeError, AttributeError) as error:
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


def program_in(fields: Any) -> Program:
    """Return the program of a JSON value. Raises ValueError, KeyError, TypeError, or AttributeError for another one."""
    if fields["version"] != VERSION:
        raise ValueError(f"version {fields['version']}, not {VERSION}")
    parts = tuple(
        PartFile(**{**part, **{side: _crossings(part[side]) for side in ("inputs", "outputs")}})
        for part in fields["parts"]
    )
    if not parts or any(Path(part.file).name != part.file for part in parts):
        raise ValueError("its parts are not files in the same folder")
    feed = fields.get("feed")
    if feed is not None:
        inputs = tuple(feed.get("inputs", (0,)))
        feed = Feed(**{**feed, "ties": tuple(Tie(**each) for each in feed["ties"]), "inputs": inputs})
        _check_feed(feed)
    return Program(**{**fields, "parts": parts, "feed": feed})


def _check_feed(feed: Feed) -> None:
    """Raise ValueError for a feed that gives other rows than those of its image."""
    ties = ((tie.input, tie.output, tie.bytes, tie.offset) for tie in feed.ties)
    fills = [feed.padding, *(tie.fill for tie in feed.ties if tie.fill is not None)]
    counts = (feed.height, feed.row_bytes, feed.rows, feed.lead, feed.calls, feed.step, *feed.inputs)
    if any(type(each) is not int for each in (*counts, *fills, *chain.from_iterable(ties))):
        raise ValueError("its feed has something else than integers")
    has_all = min(feed.rows, feed.calls) > 0 <= feed.lead <= feed.calls * feed.rows - feed.height
    if not has_all or not all(0 <= fill < 256 for fill in fills):
        raise ValueError("its feed gives other rows than those of the image, or no bytes")


def _crossings(fields: list[Mapping[str, Any]]) -> tuple[Crossing, ...]:
    return tuple(Crossing(**each) for each in fields)
