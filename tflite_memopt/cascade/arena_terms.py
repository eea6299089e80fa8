"""TFLM's tail and planner temporaries as a sum: what they become when operators and tensors are added.

A replay of the allocator (``kernels/arena.py``) for 32 bits, in closed form: structures that are multiples of 4 bytes
come first, then the operators' persistent buffers, each aligned to 16. Works on numbers and on arrays of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from ..analysis.macs import model_macs
from ..graph.alignment import ARENA_ALIGNMENT, aligned
from ..ir.head import in_head
from ..ir.model import Model, Tensor
from ..kernels import arena
from ..kernels.profile import KernelProfile
from ..kernels.requests.table import requests_in

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
        more = arena.EVAL_TENSOR.w32 * tensors + arena.NODE_AND_REGISTRATION.w32 * operators + params
        grown = _up(self.structures + more) - aligned(self.structures) + buffers
        handles = arena.SCRATCH_HANDLE.w32 * requests
        # Pointers to the inputs are aligned, so that handles before them may cost nothing.
        return (
            self.tail
            + _up(self._planned_tail + grown + handles + self.inputs)
            - aligned(self._planned_tail + self.inputs)
        )

    @property
    def _planned_tail(self) -> int:
        """The tail when the plan is made."""
        return aligned(self.structures) + self.buffers + arena.SCRATCH_HANDLE.w32 * self.requests

    @property
    def least_tail(self) -> int:
        """A bound below the tail to which bytes can be added one by one, without a thought of alignment."""
        return self.tail - 2 * (ARENA_ALIGNMENT - 1)

    def temporaries_with(self, tensors: Number, planned: Number, requests: Number) -> Number:
        """The largest temporaries in bytes with so many more tensors, planned tensors and scratch requests."""
        scratch = self.requests + requests
        tables = _up(
            arena.SCRATCH_REQUEST.w32 * (scratch + arena.MAX_SCRATCH_PER_OPERATOR)
            + arena.POINTER.w32 * self.graphs
            + arena.ALLOCATION_INFO.w32 * (self.tensors + tensors + scratch)
        )
        found = tables + arena.PLANNED_BUFFER.w32 * (self.planned + planned + scratch)
        return np.maximum(found, self.prepared) if isinstance(found, np.ndarray) else max(found, self.prepared)

    def need(self, head: int, tail: int, temporaries: int) -> int:
        """The arena to reserve, in bytes, for a head of so many bytes."""
        return aligned(max(head + tail, temporaries + tail - self.interface))


def arena_terms(model: Model, profile: KernelProfile) -> ArenaTerms:
    """The terms of a model as it stands."""
    asked = requests_in(model, 32, profile.requests)
    tensors = [tensor for graph in model.graphs for tensor in graph.tensors]
    operators = sum(len(graph.operators) for graph in model.graphs)
    fixed = (arena.BUFFER_ALLOCATOR, arena.MEMORY_PLANNER, arena.MICRO_ALLOCATOR, arena.BUILTIN_DATA_ALLOCATOR)
    structures = sum(size.w32 for size in fixed) + arena.SUBGRAPH_ALLOCATIONS.w32 * len(model.graphs)
    structures += arena.EVAL_TENSOR.w32 * len(tensors) + arena.NODE_AND_REGISTRATION.w32 * operators
    structures += sum(aligned(each.params, each.params_alignment) for each in asked.values() if each.params)
    inits = [size for each in asked.values() for size in each.init]
    buffers = [*inits, *(size for each in asked.values() for size in each.prepare)]
    use = arena.arena_use(model, 0, profile.requests, 32)
    terms = ArenaTerms(
        operators=operators,
        tensors=len(tensors),
        planned=sum(map(in_head, tensors)),
        requests=sum(len(each.scratch) for each in asked.values()),
        graphs=len(model.graphs),
        structures=structures + sum(buffers[:1]),
        buffers=sum(map(aligned, buffers[1:])),
        inputs=arena.POINTER.w32 * len(model.main.inputs),
        tail=use.tail,
        interface=sum(map(_interface_bytes, (model.main.inputs, model.main.outputs))),
        prepared=0,
        macs=model_macs(model),
    )
    if terms.temporaries_with(0, 0, 0) >= use.temporaries:
        return terms
    return ArenaTerms(**{**terms.__dict__, "prepared": use.temporaries})


def _interface_bytes(tensors: tuple[Tensor, ...]) -> int:
    """What TFLM allocates for the TfLiteTensors of inputs or outputs."""
    total = arena.POINTER.w32 * len(tensors)
    for tensor in tensors:
        total += arena.TENSOR.w32
        quantization = tensor.quantization
        if quantization is not None and quantization.scale.size and quantization.zero_point.size:
            total += arena.AFFINE_QUANTIZATION.w32 + 4 * (1 + quantization.scale.size)
    return total
