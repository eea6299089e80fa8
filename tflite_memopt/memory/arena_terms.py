"""TFLM's tail and planner temporaries as sums: what they become when operators and tensors are added.

A replay of the allocator (``kernels/arena.py``) in closed form, without its alignment, so that bytes can be added one
by one: structures come first, then the operators' persistent buffers, each aligned to 16. The tail can be 30 bytes
larger than such a sum, and a few bytes more with short enums, where some structures are no multiples of a word.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from ..analysis.loops import Loop
from ..analysis.macs import model_macs
from ..graph.alignment import ARENA_ALIGNMENT, aligned
from ..ir.head import in_head
from ..ir.model import Model, Tensor
from ..kernels import arena
from ..kernels.profile import KernelProfile
from ..kernels.requests import Abi, Requests, requests_in

_WORD = 4
Number = TypeVar("Number", int, npt.NDArray[np.int64])


@dataclass(frozen=True)
class ArenaTerms:
    """A model's bytes beside its head, and what it runs.

    ``parts_of_tail``: structures, buffers and scratch handles; ``tables``: the planner's temporaries. Regions add what
    they add to these. ``least_tail`` and ``least_temporaries``: bounds of the whole model to which bytes can be added.
    ``interface``: bytes of the tail that are taken when the head is in place.
    """

    abi: Abi
    parts_of_tail: int
    tables: int
    least_tail: int
    least_temporaries: int
    interface: int
    operators: int
    macs: int

    def more(self, operators: Number, tensors: Number, planned: Number, requests: Number) -> tuple[Number, Number]:
        """(tail, temporaries) in bytes that so many more take at least, operators without what they ask for."""
        tail = arena.EVAL_TENSOR.on(self.abi) * tensors + arena.NODE_AND_REGISTRATION.on(self.abi) * operators
        tail = tail + arena.SCRATCH_HANDLE.on(self.abi) * requests
        return tail, _tables(self.abi, tensors, planned, requests)


def arena_terms(model: Model, profile: KernelProfile, loops: Sequence[Loop] | None = None) -> ArenaTerms:
    """The terms of a model as it stands; ``loops``: its own, where they are known."""
    abi = profile.abi
    asked = requests_in(model, abi, profile.requests)
    tensors = [tensor for graph in model.graphs for tensor in graph.tensors]
    operators, requests = sum(len(graph.operators) for graph in model.graphs), _scratches(asked.values())
    fixed = (arena.BUFFER_ALLOCATOR, arena.MEMORY_PLANNER, arena.MICRO_ALLOCATOR, arena.BUILTIN_DATA_ALLOCATOR)
    structures = sum(size.on(abi) for size in fixed) + arena.SUBGRAPH_ALLOCATIONS.on(abi) * len(model.graphs)
    structures += arena.EVAL_TENSOR.on(abi) * len(tensors) + arena.NODE_AND_REGISTRATION.on(abi) * operators
    structures += sum(map(params_bytes, asked.values()))
    inits = [size for each in asked.values() for size in each.init]
    buffers = [*inits, *(size for each in asked.values() for size in each.prepare)]
    persistent = sum(buffers[:1]) + sum(map(aligned, buffers[1:]))  # the first shares its 16 bytes with structures
    tables = _tables(abi, len(tensors), sum(map(in_head, tensors)), requests)
    tables += arena.POINTER.on(abi) * len(model.graphs)
    interface = sum(_interface_bytes(tensors, abi) for tensors in (model.main.inputs, model.main.outputs))
    return ArenaTerms(
        abi=abi,
        parts_of_tail=structures + persistent + arena.SCRATCH_HANDLE.on(abi) * requests,
        tables=tables,
        least_tail=arena.arena_use(model, 0, profile.requests, abi).tail - 2 * (ARENA_ALIGNMENT - 1),
        least_temporaries=tables + arena.SCRATCH_REQUEST.on(abi) * arena.MAX_SCRATCH_PER_OPERATOR,
        interface=interface,
        operators=operators,
        macs=model_macs(model, loops),
    )


def _scratches(asked: Iterable[Requests]) -> int:
    return sum(len(each.scratch) for each in asked)


def _tables(abi: Abi, tensors: Number, planned: Number, requests: Number) -> Number:
    """The planner's temporaries for so many tensors, those in the head among them, and scratch requests."""
    infos = arena.ALLOCATION_INFO.on(abi) * (tensors + requests)
    buffers = arena.PLANNED_BUFFER.on(abi) * (planned + requests)
    return infos + buffers + arena.SCRATCH_REQUEST.on(abi) * requests


def params_bytes(asked: Requests) -> int:
    """Of the parser's structure. One of a few bytes is filled up to a word, as the next structure's place is."""
    return aligned(asked.params, max(_WORD, asked.params_alignment)) if asked.params else 0


def _interface_bytes(tensors: tuple[Tensor, ...], abi: Abi) -> int:
    """What TFLM allocates for the TfLiteTensors of inputs or outputs."""
    total = arena.POINTER.on(abi) * len(tensors)
    for tensor in tensors:
        total += arena.TENSOR.on(abi)
        quantization = tensor.quantization
        if quantization is not None and quantization.scale.size and quantization.zero_point.size:
            total += arena.AFFINE_QUANTIZATION.on(abi) + 4 * (1 + quantization.scale.size)
    return total
