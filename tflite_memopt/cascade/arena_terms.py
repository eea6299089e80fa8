"""TFLM's tail and planner temporaries as a sum: what they become when operators and tensors are added.

A replay of the allocator (``kernels/arena.py``) in closed form: structures come first, then the operators' persistent
buffers, each aligned to 16. Works on numbers and on arrays of them. With short enums some structures are no multiples
of a word, so that figures may be a few bytes too small; with 4-byte enums they are exact, but for one case: the first
persistent buffer shares its 16 bytes with the structures before it, and where a region begins with the model's first
operator, that of a PAD may come before the operator's own. The tail can then be 16 bytes off. It can be as well where
structures are smaller than a word (RESIZE, BATCH_MATMUL), of which two may share one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
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
from ..kernels.requests.model import Abi, Requests
from ..kernels.requests.table import requests_in

_WORD = 4
Number = TypeVar("Number", int, npt.NDArray[np.int64])


def _up(size: Number) -> Number:
    return -(-size // ARENA_ALIGNMENT) * ARENA_ALIGNMENT


@dataclass(frozen=True)
class ArenaTerms:
    """A model's counts and bytes. ``structures``: what comes before the first persistent buffer, and that buffer.

    ``buffers``: the other persistent buffers. ``inputs``: pointers to the model's inputs, which come after scratch
    handles. ``interface``: bytes of the tail that are taken when the head is in place. ``prepared``: the largest
    temporaries before the planner's; 0 where the planner's are larger.
    """

    abi: Abi
    operators: int
    tensors: int
    planned: int
    requests: int
    graphs: int
    structures: int
    buffers: int
    inputs: int
    tail: int
    interface: int
    prepared: int
    macs: int

    def tail_with(
        self, operators: Number, tensors: Number, params: Number, buffers: Number, requests: Number
    ) -> Number:
        """The tail in bytes with so many more operators, tensors and scratch requests, and bytes of their own."""
        more = arena.EVAL_TENSOR.on(self.abi) * tensors + arena.NODE_AND_REGISTRATION.on(self.abi) * operators + params
        grown = _up(self.structures + more) - aligned(self.structures) + buffers
        handles = arena.SCRATCH_HANDLE.on(self.abi) * requests
        # Pointers to the inputs are aligned, so that handles before them may cost nothing.
        return (
            self.tail
            + _up(self._planned_tail + grown + handles + self.inputs)
            - aligned(self._planned_tail + self.inputs)
        )

    @property
    def _planned_tail(self) -> int:
        """The tail when the plan is made."""
        return aligned(self.structures) + self.buffers + arena.SCRATCH_HANDLE.on(self.abi) * self.requests

    def more(self, operators: Number, tensors: Number, planned: Number, requests: Number) -> tuple[Number, Number]:
        """(tail, temporaries) in bytes that so many more take at least, operators without what they ask for."""
        tail = arena.EVAL_TENSOR.on(self.abi) * tensors + arena.NODE_AND_REGISTRATION.on(self.abi) * operators
        tail = tail + arena.SCRATCH_HANDLE.on(self.abi) * requests
        both = arena.ALLOCATION_INFO.on(self.abi) * (tensors + requests)
        temporaries = both + arena.PLANNED_BUFFER.on(self.abi) * (planned + requests)
        return tail, temporaries + arena.SCRATCH_REQUEST.on(self.abi) * requests

    @property
    def least_tail(self) -> int:
        """A bound below the tail to which bytes can be added one by one, without a thought of alignment."""
        return self.tail - 2 * (ARENA_ALIGNMENT - 1)

    def temporaries_with(self, tensors: Number, planned: Number, requests: Number) -> Number:
        """The largest temporaries in bytes with so many more tensors, planned tensors and scratch requests."""
        scratch = self.requests + requests
        tables = _up(
            arena.SCRATCH_REQUEST.on(self.abi) * (scratch + arena.MAX_SCRATCH_PER_OPERATOR)
            + arena.POINTER.on(self.abi) * self.graphs
            + arena.ALLOCATION_INFO.on(self.abi) * (self.tensors + tensors + scratch)
        )
        found = tables + arena.PLANNED_BUFFER.on(self.abi) * (self.planned + planned + scratch)
        return np.maximum(found, self.prepared) if isinstance(found, np.ndarray) else max(found, self.prepared)

    def need(self, head: int, tail: int, temporaries: int) -> int:
        """The arena to reserve, in bytes, for a head of so many bytes."""
        return aligned(max(head + tail, temporaries + tail - self.interface))


def arena_terms(model: Model, profile: KernelProfile, loops: Sequence[Loop] | None = None) -> ArenaTerms:
    """The terms of a model as it stands; ``loops``: its own, where they are known."""
    abi = profile.abi
    asked = requests_in(model, abi, profile.requests)
    tensors = [tensor for graph in model.graphs for tensor in graph.tensors]
    operators = sum(len(graph.operators) for graph in model.graphs)
    fixed = (arena.BUFFER_ALLOCATOR, arena.MEMORY_PLANNER, arena.MICRO_ALLOCATOR, arena.BUILTIN_DATA_ALLOCATOR)
    structures = sum(size.on(abi) for size in fixed) + arena.SUBGRAPH_ALLOCATIONS.on(abi) * len(model.graphs)
    structures += arena.EVAL_TENSOR.on(abi) * len(tensors) + arena.NODE_AND_REGISTRATION.on(abi) * operators
    structures += sum(map(params_bytes, asked.values()))
    inits = [size for each in asked.values() for size in each.init]
    buffers = [*inits, *(size for each in asked.values() for size in each.prepare)]
    use = arena.arena_use(model, 0, profile.requests, abi)
    terms = ArenaTerms(
        abi=abi,
        operators=operators,
        tensors=len(tensors),
        planned=sum(map(in_head, tensors)),
        requests=sum(len(each.scratch) for each in asked.values()),
        graphs=len(model.graphs),
        structures=structures + sum(buffers[:1]),
        buffers=sum(map(aligned, buffers[1:])),
        inputs=arena.POINTER.on(abi) * len(model.main.inputs),
        tail=use.tail,
        interface=sum(_interface_bytes(tensors, abi) for tensors in (model.main.inputs, model.main.outputs)),
        prepared=0,
        macs=model_macs(model, loops),
    )
    if terms.temporaries_with(0, 0, 0) >= use.temporaries:
        return terms
    return replace(terms, prepared=use.temporaries)


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
