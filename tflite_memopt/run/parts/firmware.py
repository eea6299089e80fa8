"""Programs in, the description of their firmware out: parts with their plans as tables, one arena, the moves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from ...errors import ErrorKind, UsageError
from ...firmware.cpp_text import check_namespace
from ...firmware.describe import describe, profile_of
from ...firmware.description import Feed, Network, Networks, PartModel, origin_of
from ...kernels.profile import KernelProfile
from ...memory.file import read_planned
from ...model.ir.model import Model
from .files import Program
from .fronts import with_ties
from .handover import Handover
from .space import arena_of


@dataclass(frozen=True)
class Source:
    """The models of a network. ``name``: of its C++ namespace and folder. ``files``: of the parts, for comments.

    ``kept``: it is one model whose interpreter stays alive. ``feed``: how its first part takes its input in rows.
    ``outputs``: how many outputs of the last part are the model's; None: all.
    """

    name: str
    files: tuple[str, ...]
    parts: tuple[bytes, ...]
    kept: bool = False
    feed: Feed | None = None
    outputs: int | None = None

    @cached_property
    def models(self) -> tuple[Model, ...]:
        """The parts as they are planned."""
        first, *others = map(read_planned, self.parts)
        return (first if self.feed is None else with_ties(first, self.feed), *others)


def describe_program(
    program: Program, parts: Sequence[bytes], target: str | None = None, name: str = "model", force: bool = False
) -> Networks:
    """Return the firmware of a program, for its own target or for ``target``.

    Tensors that cross a cut stay in the arena, so that every part has its plan as a table. The rest, and what is
    raised, as for ``describe``.
    """
    check_namespace(name)
    names, outputs = tuple(part.file for part in program.parts), len(program.parts[-1].outputs)
    source = Source(name, names, tuple(parts), feed=program.feed, outputs=outputs)
    target = target or program.target
    if target is None:
        raise UsageError(
            "a program's arena is for one kernel library: name your chip or core with --target", ErrorKind.NO_TARGET
        )
    profile = one_library(source, target)
    network = network_of(source, target, profile, True, force=force)
    origin = origin_of(() if program.source is None else (program.source,), program.source_bytes, program.source_sha256)
    return Networks(name, (network,), network.arena, target, profile, origin, is_one=True)


def one_library(source: Source, target: str | None) -> KernelProfile:
    """The kernels for which a network's arena is counted. Raises UsageError where there is more than one library."""
    profile = profile_of(source.parts[0], target)
    if profile.target is None:
        raise UsageError(
            "an arena is for one kernel library: name your chip or core with --target", ErrorKind.NO_TARGET
        )
    if profile.libraries:
        raise UsageError("an arena is for one kernel library: omit --kernels", ErrorKind.EXCLUDED)
    return profile


def network_of(
    source: Source, target: str, profile: KernelProfile, is_one: bool, kept: int | None = None, force: bool = False
) -> Network:
    """Return the firmware of a network: the only one, or one of several in a folder of its own.

    ``kept``: its place among those that stay alive, None where it does not. Raises as ``describe``.
    """
    folder, member = ("", "program") if is_one else (f"{source.name}/", f"networks.{source.name}")
    arena, moves = arena_of(source.models, profile)
    parts, moved = list[PartModel](), 0
    for number, (data, each) in enumerate(zip(source.parts, [Handover((), ()), *moves], strict=True)):
        one = describe(data, target, f"{source.name}_part{number}", source.files[number], force, "table")
        parts.append(PartModel(one, f"{folder}part{number}", each.before, each.after, moved))
        moved += len(each.before) + len(each.after)
    outputs = source.models[-1].main.outputs[: source.outputs]  # of a front, others are for the next call
    return Network(source.name, member, tuple(parts), arena, kept, source.feed, tuple(outputs))
