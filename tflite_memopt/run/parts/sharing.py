"""Several networks in one arena, in the order given: those that stay alive stack their structures at its end.

| tensors of the network that runs        | structures of c | of b | of a |    a, b and c stay alive
| a network in parts: tensors, structures |
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from ...errors import ErrorKind, UsageError
from ...firmware.cpp_text import check_namespace
from ...firmware.describe import profile_of
from ...firmware.description import Networks, origin_of
from ...kernels.arena import allocator_tail, arena_beside_head
from ...kernels.profile import KernelProfile
from ...memory.file import naming, read_planned
from ...memory.layout import head_in_force, memory_layout
from ...model.analysis.side_effects import keeps_state
from ...model.io import offline_plan
from ...model.io.files import read_file
from ...model.ir.model import Model
from ...solvers.graph.alignment import aligned
from .files import read_program
from .firmware import Source, network_of, one_library
from .space import arena_of


@dataclass(frozen=True)
class Sharing:
    """Networks in one arena of ``arena`` bytes, for ``target``.

    ``alone``: the arena of each by itself. ``tail``: bytes of the structures of those that stay alive; ``anew``: the
    largest arena of the others, by themselves.
    """

    networks: tuple[Source, ...]
    alone: tuple[int, ...]
    tail: int
    anew: int
    arena: int
    target: str

    def firmware(self, name: str) -> Networks:
        """The description of the firmware, in a namespace; errors as for ``describe``."""
        check_namespace(name)
        if name in [network.name for network in self.networks]:
            raise UsageError(f"--name {name}: a network has this name; choose another one", ErrorKind.NAME)
        profile, kept = one_library(self.networks[0], self.target), [each.name for each in self.networks if each.kept]
        networks = tuple(
            network_of(each, self.target, profile, False, kept.index(each.name) if each.kept else None)
            for each in self.networks
        )
        data = b"".join(part for network in self.networks for part in network.parts)
        origin = origin_of([each.name for each in self.networks], len(data), sha256(data).hexdigest())
        return Networks(name, networks, self.arena, self.target, profile, origin, False, self.anew, self.tail)


def share(sources: Sequence[Path], one_at_a_time: bool = False, target: str | None = None) -> Sharing:
    """Model files, and folders that ``optimize --parts`` wrote, in one arena, counted to the byte.

    A whole model stays alive, with its state; a model in parts is re-created in each run. ``one_at_a_time``: a model
    without state is re-created as well, whenever another network has run. Raises UsageError for any other file,
    for two of one name, and without a target; UnsupportedModelError for a model that TFLM cannot run.
    """
    networks = tuple(_network(path, one_at_a_time) for path in sources)
    names = [network.name for network in networks]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise UsageError(f"two networks are called {twice}: rename a file", ErrorKind.NAME)
    planned = (each for each in networks if profile_of(each.parts[0], target).target is not None)
    profile = one_library(next(planned, networks[0]), target)
    alone = tuple(arena_of(network.models, profile)[0] for network in networks)
    anew = max((need for need, network in zip(alone, networks, strict=True) if not network.kept), default=0)
    kept = [network.models[0] for network in networks if network.kept]
    if not kept:
        return Sharing(networks, alone, 0, anew, anew, str(profile.target))
    head = max(anew, *(head_in_force(memory_layout(each, profile), offline_plan.decode(each) or {}) for each in kept))
    tail, peak = _stacked(kept, profile)
    return Sharing(networks, alone, tail, anew, aligned(max(peak, head + tail)), str(profile.target))


def _network(path: Path, one_at_a_time: bool) -> Source:
    name = re.sub("[^A-Za-z0-9]+", "_", path.stem if path.is_file() else path.absolute().name).strip("_")
    check_namespace(name)
    if path.is_dir():
        program, parts = read_program(path)
        if program.feed is not None:
            raise UsageError(
                f"'{path}' takes its image in rows: several networks in one arena take their inputs whole",
                ErrorKind.FORM,
            )
        files = tuple(part.file for part in program.parts)
    else:
        parts, files = (read_file(path),), (path.name,)
    with naming(path.name):
        models = [read_planned(part) for part in parts]
    return Source(name, files, parts, len(parts) == 1 and (_keeps_state(models[0]) or not one_at_a_time))


def _keeps_state(model: Model) -> bool:
    return any(keeps_state(operator) for operator in model.all_operators)


def _stacked(models: Sequence[Model], profile: KernelProfile) -> tuple[int, int]:
    """Bytes of the structures of models that one allocator makes in this order, and of the arena that this needs.

    | tensors of whichever runs |  ....  | third | second | first | allocator |
    | temporaries of the one that is made |
    """
    tail, peak = allocator_tail(profile.abi), 0
    for model in models:
        residue = tail % 16  # structures are aligned to 16 bytes at most
        made = arena_beside_head(model, profile.requests, profile.abi, planner="table", beside=residue)
        tail, peak = tail - residue + made.tail, max(peak, tail - residue + made.before_plan)
    return tail, peak
