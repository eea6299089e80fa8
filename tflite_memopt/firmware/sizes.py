"""How large the arena of a firmware must be, for each layout of structures that its compiler may choose."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..graph.alignment import aligned
from ..ir.model import Model, Tensor
from ..kernels.arena import TwoArenasUse, arena_use, two_arenas_use
from ..kernels.profile import KernelProfile
from ..kernels.requests.model import ILP32, ILP32_SHORT_ENUMS, LP64, Abi
from ..memory.in_force import head_in_force
from ..memory.layout import memory_layout

LAYOUTS: Mapping[str, Abi] = {"short": ILP32_SHORT_ENUMS, "int": ILP32, "wide": LP64}
"""32 bits with enums as small as their values, 32 bits with enums of 4 bytes, 64 bits."""


_LARGER_NODE = {"short": 12, "int": 12, "wide": 24}
_LARGER_TENSOR = {"short": 32, "int": 24, "wide": 48}
"""Bytes that a TfLiteNode and a TfLiteTensor have more without TF_LITE_STATIC_MEMORY, by layout.

As GCC 12 lays out tensorflow/lite/core/c/common.h of tflite-micro 90b983c2, and of 7948b85 of its Arduino library.
"""
_ROUNDING = 16


@dataclass(frozen=True)
class ArenaBytes:
    """Bytes to reserve for one layout of structures: one arena, or two.

    ``two``: the arena of tensors and scratch, which wants the fastest memory, and the persistent one.
    """

    one: int
    two: TwoArenasUse


@dataclass(frozen=True)
class ArenaSizes:
    """By layout, what is enough for every library; ``by_library``: one arena in bytes, on 32 bits, for each of them.

    ``head``: the tensors and scratch of the largest of them. ``exact``: False when an operator is not in the tables.
    """

    layouts: dict[str, ArenaBytes]
    by_library: dict[str, int]
    head: int
    exact: bool


def arena_sizes(model: Model, planned: Mapping[Tensor, int], profile: KernelProfile) -> ArenaSizes:
    """The sizes for the libraries of a profile, ``planned`` the offsets in the file, or none.

    Libraries that were only read, and not measured, count where the profile is one of them.
    """
    libraries = [each for each in profile.libraries if each.measured_at is not None] or [profile]
    heads = {each.name: head_in_force(memory_layout(model, each), planned) for each in libraries}
    layouts = {name: _largest(model, libraries, heads, abi) for name, abi in LAYOUTS.items()}
    uses = {each.name: arena_use(model, heads[each.name], each.requests, profile.abi) for each in libraries}
    return ArenaSizes(
        layouts,
        {name: use.required for name, use in uses.items()},
        max(heads.values()),
        all(use.exact for use in uses.values()),
    )


def larger_structures(model: Model) -> dict[str, int]:
    """By layout, the bytes at most that a build without TF_LITE_STATIC_MEMORY needs more.

    That is a node for each operator, a tensor for each input and output, and those that a kernel looks at at once.
    """
    operators = [operator for graph in model.graphs for operator in graph.operators]
    looked_at = max((len(each.inputs) + len(each.outputs) for each in operators), default=0)
    tensors = len(model.main.inputs) + len(model.main.outputs) + looked_at
    return {
        name: aligned(len(operators) * _LARGER_NODE[name] + tensors * _LARGER_TENSOR[name], _ROUNDING) + _ROUNDING
        for name in LAYOUTS
    }


def _largest(model: Model, libraries: Sequence[KernelProfile], heads: Mapping[str, int], abi: Abi) -> ArenaBytes:
    one = [arena_use(model, heads[each.name], each.requests, abi).required for each in libraries]
    two = [two_arenas_use(model, heads[each.name], each.requests, abi) for each in libraries]
    return ArenaBytes(max(one), TwoArenasUse(max(use.head for use in two), max(use.tail for use in two)))
