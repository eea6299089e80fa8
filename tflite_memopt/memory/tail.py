"""What the tail is made of: TFLM's structures, and the buffers that kernels keep, by kind."""

from __future__ import annotations

from collections import Counter

from ..graph.alignment import aligned
from ..ir.model import Model
from ..kernels import arena
from ..kernels.profile import KernelProfile
from ..kernels.requests.table import requests_in
from .arena_terms import params_bytes
from .figures import TailPart


def tail_parts(model: Model, profile: KernelProfile, tail: int) -> tuple[TailPart, ...]:
    """``tail`` bytes in parts, the largest first.

    Structures are counted as ``kernels/arena.py`` allocates them. What remains is the allocator's own and alignment.
    """
    abi = profile.abi
    asked = requests_in(model, abi, profile.requests)
    tensors = sum(len(graph.tensors) for graph in model.graphs)
    nodes = arena.NODE_AND_REGISTRATION.on(abi) * len(asked) + sum(map(params_bytes, asked.values()))
    parts = [
        TailPart("structures of tensors", arena.EVAL_TENSOR.on(abi) * tensors, tensors),
        TailPart("structures of operators", nodes, len(asked)),
    ]
    kept: Counter[str] = Counter()
    number: Counter[str] = Counter()
    for operator, each in asked.items():
        kept[operator.opcode.label] += sum(map(aligned, (*each.init, *each.prepare)))
        number[operator.opcode.label] += 1
    parts += [TailPart(f"kernels of {kind}", kept[kind], number[kind]) for kind in kept if kept[kind]]
    rest = tail - sum(part.bytes for part in parts)
    parts.append(TailPart("allocator, inputs, outputs and alignment", max(0, rest), 1))
    return tuple(sorted(parts, key=lambda part: (-part.bytes, part.name)))
