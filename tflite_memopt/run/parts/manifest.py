"""Program.json of the files of parts: made when they are written, and again when it is asked whether it is theirs.

What a run alone knows is not made again: the names, the operators of each part before it was optimized, what the model
needs as one, and what was verified.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from typing import Any

from ...errors import EquivalenceError, ErrorKind
from ...evidence.equivalence.verification import infer_shapes
from ...firmware.description import Feed
from ...kernels.profile import KernelProfile
from ...kernels.since import PRESENT, newest_of
from ...memory.figures import memory_use
from ...memory.file import label_in_force, read_planned
from ...memory.layout import head_in_force, memory_layout
from ...memory.work import construction, instructions, moving, slowdowns
from ...model.io import offline_plan
from ...model.io.writer import write_model
from ...model.ir.model import Model, Tensor
from ...options import Options
from ...search.rewrite.loadable import mended
from ...version import __version__
from .files import MANIFEST, NOT_VERIFIED, VERSION, Crossing, PartFile, Program
from .fronts import with_ties
from .handover import Range
from .space import arena_of, counted_library, part_space

File = tuple[bytes, int]
"""A part, and how many operators of the original it computes."""


@dataclass(frozen=True)
class ProgramSource:
    """The model that a program computes, in the file ``data``; ``whole_bytes``, ``feed``: as in :class:`Program`.

    ``shaped``: the same with the shapes that LiteRT infers, by which its run time is counted; None where it has them.
    """

    name: str | None
    data: bytes
    whole_bytes: int
    feed: Feed | None = None
    shaped: bytes | None = None


def program_of(origin: ProgramSource, files: Sequence[File], target: str | None, profile: KernelProfile) -> Program:
    """Return the manifest of files, not verified; ``profile``: of the kernels that their plans are for."""
    models, feed = [read_planned(data) for data, _ in files], origin.feed
    original = read_planned(origin.shaped or origin.data)
    calls, crossing = [1] * len(models), len(models[-1].main.outputs)
    if feed is not None:
        with_ties(models[0], feed)
        calls[0] = feed.calls
        crossing = len(models[1].main.inputs if len(models) > 1 else original.main.outputs)
    parts = [
        _part_file(number, data, model, operators, profile)
        for number, ((data, operators), model) in enumerate(zip(files, models, strict=True))
    ]
    if feed is not None:
        taken = tuple(parts[0].inputs[at] for at in feed.inputs)
        parts[0] = replace(parts[0], inputs=taken, outputs=parts[0].outputs[:crossing])
    spaces = {each.name: arena_of(models, each) for each in profile.libraries or (profile,)}
    moved = max(sum(handover.nbytes for handover in handovers) for _, handovers in spaces.values())
    since = newest_of(*models)
    return Program(
        version=VERSION,
        made_by=f"tflite_memopt {__version__}",
        source=origin.name,
        source_bytes=len(origin.data),
        source_sha256=sha256(origin.data).hexdigest(),
        target=target,
        kernels=profile.name,
        arena_bytes={library: arena for library, (arena, _) in spaces.items()},
        whole_bytes=origin.whole_bytes,
        slowdown=slowdowns(instructions(original, profile), work_of(models, calls, moved, profile)),
        verified=NOT_VERIFIED,
        parts=tuple(parts),
        feed=feed,
        tflm_since=None if since is None else since.isoformat(),
    )


def work_of(models: Sequence[Model], calls: Sequence[int], moved: int, profile: KernelProfile) -> dict[str, int]:
    """Return the instructions of one run of a program, by the kernel library.

    moving ``moved`` bytes between parts
    + for each part, all its calls
    + for each of several parts, re-creating its interpreter
    """
    every = [instructions(model, profile) for model in models]
    total = dict.fromkeys(every[0], moving(moved))
    for model, times, by_library in zip(models, calls, every, strict=True):
        made = construction(model, profile) if len(models) > 1 else {}
        for library, count in by_library.items():
            total[library] += times * count + made.get(library, 0)
    return total


def _part_file(number: int, data: bytes, model: Model, operators: int, profile: KernelProfile) -> PartFile:
    library, planned = counted_library(profile), offline_plan.decode(model) or {}
    space, layout = part_space(model, library, planned), memory_layout(model, library)
    needs = dict(memory_use(model, memory_layout(model, profile), planned, profile).required_bytes)
    ends = _crossings(model.main.inputs, space.inputs), _crossings(model.main.outputs, space.outputs)
    name, digest, head = f"part{number}.tflite", sha256(data).hexdigest(), head_in_force(layout, planned)
    return PartFile(name, digest, operators, needs, *ends, head, space.tail)


def _crossings(tensors: Sequence[Tensor], places: Sequence[Range]) -> tuple[Crossing, ...]:
    pairs = zip(tensors, places, strict=True)
    return tuple(Crossing(tensor.name, tensor.nbytes, start) for tensor, (start, _) in pairs)


def check_program(original: bytes, program: Program, parts: Sequence[bytes]) -> None:
    """Raise EquivalenceError where the original and the parts say something else than the manifest.

    Raises ModelFormatError for a feed that is of another first part.
    """
    model = read_planned(original)
    found = mended(model)
    data = write_model(found.model) if found.uses else original
    labels = [label for label in map(label_in_force, map(read_planned, parts)) if label is not None]
    made_for = {(label.target, label.kernels) for label in labels}
    if not made_for <= {(program.target, program.kernels)}:
        raise _wrong("kernels", program.kernels, ", ".join(sorted({label.kernels for label in labels})))
    device = next((label.device for label in labels if label.device is not None), program.target)
    build = next((str(label.options["tflm"]) for label in labels if "tflm" in label.options), PRESENT.name)
    profile = Options(target=device, kernels=program.kernels, tflm=build).profile
    origin = ProgramSource(program.source, data, program.whole_bytes, program.feed)
    files = list(zip(parts, (part.operators for part in program.parts), strict=True))
    again = program_of(origin, files, program.target, profile)
    if again.slowdown != program.slowdown:
        shaped = infer_shapes(data, Options(), lambda _: None).data
        again = program_of(replace(origin, shaped=shaped), files, program.target, profile)
    again = replace(again, made_by=program.made_by, verified=program.verified)
    said, now = (dict(_fields(asdict(each))) for each in (program, again))
    for name in (*now, *said):
        if name not in said or name not in now or said[name] != now[name]:
            raise _wrong(name, said.get(name, "nothing"), now.get(name, "nothing"))


def _wrong(name: str, said: object, found: object) -> EquivalenceError:
    return EquivalenceError(
        f"{MANIFEST} says {said} for {name}, its files {found}: run optimize --parts again", ErrorKind.DAMAGED
    )


def _fields(value: Any, name: str = "") -> Iterator[tuple[str, object]]:
    """Yield the plain values of a manifest, each with the way to it."""
    if not isinstance(value, (Mapping, list, tuple)):
        yield name, value
        return
    yield f"the length of {name}", len(value)
    for key, each in value.items() if isinstance(value, Mapping) else enumerate(value):
        yield from _fields(each, f"{name}.{key}" if name else str(key))
