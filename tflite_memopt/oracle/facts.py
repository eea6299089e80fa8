"""What a kernel asks for and permits at one operator, computed once for all operators that are alike."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..analysis.macs import operator_macs
from ..graph.alignment import aligned
from ..ir.model import Buffer, OpCode, Operator, OperatorOptions
from ..kernels.profile import KernelProfile
from ..memory.relations import saved_bytes
from .description import GraphSketch, OperatorSketch, Sizes, TensorSketch, tensor_of

Permit = tuple[int, int, bool, bool]


@dataclass(frozen=True)
class OperatorFacts:
    """Bytes, but for ``macs``. ``tail``: what stays in the arena; ``scratches``: of each scratch request, aligned.

    ``shared``: pairs of slots, of an input and an output (counted after all inputs), and what the two have in common at
    most. ``views``: slots of tensors that are ranges of others. ``permits``: (slot of an input, slot of an output,
    whether it is a view, whether its distance is exact) and the distance, as in ``KernelReuse``. ``kept``: equal for
    operators of which TFLM's allocator keeps the same in the tail.
    """

    tail: int
    scratches: tuple[int, ...]
    macs: int
    shared: tuple[tuple[int, int, int], ...]
    views: tuple[int, ...]
    permits: Mapping[Permit, int]
    kept: Hashable

    @property
    def scratch(self) -> int:
        """Of all requests."""
        return sum(self.scratches)

    @property
    def requests(self) -> int:
        """How many there are."""
        return len(self.scratches)


@dataclass
class FactTable:
    """The facts of operators by what decides them; grows with every operator that is new."""

    profile: KernelProfile
    known: dict[Hashable, dict[tuple[int, ...], OperatorFacts]] = field(default_factory=dict)

    def of(
        self, operator: OperatorSketch, tensors: Sequence[TensorSketch | None], kinds: Sequence[Sequence[int]] = ((),)
    ) -> list[OperatorFacts]:
        """The facts of one operator, of each of its kinds; ``tensors`` are those of its inputs and then of its outputs.

        A kind has a number for each dimension of the tensors that is an array, in their order.
        """
        shared = tuple(None if each is None else _key(each) for each in tensors)
        key = (operator.name, _frozen(operator.options), shared, _slots(operator))
        mine = self.known.setdefault(key, {})
        for kind in map(tuple, kinds):
            if kind not in mine:
                mine[kind] = _facts(operator, _of_kind(tensors, kind), self.profile)
        return [mine[tuple(kind)] for kind in kinds]


def _of_kind(tensors: Sequence[TensorSketch | None], kind: Sequence[int]) -> list[TensorSketch | None]:
    """The tensors with the numbers of a kind in place of arrays."""
    numbers = iter(kind)
    return [
        None
        if each is None
        else TensorSketch(
            tuple(next(numbers) if isinstance(d, np.ndarray) else d for d in each.shape),
            each.type,
            each.is_constant,
            1,
            each.values,
        )
        for each in tensors
    ]


def _slots(operator: OperatorSketch) -> tuple[int, ...]:
    """For each slot the first one that has the same tensor."""
    names = names_of(operator)
    return tuple(map(names.index, names))


def _key(tensor: TensorSketch) -> Hashable:
    shape = tuple(None if isinstance(d, np.ndarray) else d for d in tensor.shape)
    return shape, tensor.type, tensor.is_constant, tensor.values


def _frozen(options: Mapping[str, Any]) -> Hashable:
    plain = {key: value.tolist() if isinstance(value, np.ndarray) else value for key, value in options.items()}
    return tuple(sorted((key, repr(value)) for key, value in plain.items()))


def _facts(sketch: OperatorSketch, tensors: Sequence[TensorSketch | None], profile: KernelProfile) -> OperatorFacts:
    empty = Buffer()
    each_once = [None if each is None else tensor_of(str(slot), each, empty) for slot, each in enumerate(tensors)]
    made = [each_once[slot] for slot in _slots(sketch)]
    inputs, outputs = made[: len(sketch.inputs)], [each for each in made[len(sketch.inputs) :] if each is not None]
    operator = Operator(OpCode(sketch.name), tuple(inputs), tuple(outputs), OperatorOptions("", sketch.options))
    for tensor in outputs:
        tensor.producer = operator
    asked = profile.requests(operator, profile.abi)
    slots = {id(tensor): slot for slot, tensor in reversed(list(enumerate(made)))}
    reuses = [(slots[id(each.input)], slots[id(each.output)], each) for each in profile.relations(operator)]
    return OperatorFacts(
        # The parser's structure may share a word with the next one; buffers are aligned one by one.
        tail=asked.params + sum(map(aligned, (*asked.init, *asked.prepare))),
        scratches=tuple(map(aligned, asked.scratch)),
        macs=operator_macs(operator),
        shared=tuple((first, second, saved_bytes(each)) for first, second, each in reuses if each.kind != "view"),
        views=tuple(sorted({slot for *pair, each in reuses if each.kind == "view" for slot in pair})),
        permits={(first, second, each.kind == "view", each.exact): each.distance for first, second, each in reuses},
        kept=(replace(asked, scratch=(), temporaries=()), tuple(slots[id(each)] for each in asked.temporaries)),
    )


def facts_of(
    sketch: GraphSketch, operator: OperatorSketch, table: FactTable
) -> tuple[list[OperatorFacts], Sizes | None]:
    """The facts of all kinds of an operator, and the kind of each candidate where there are several."""
    tensors = [None if name is None else sketch.tensors[name] for name in names_of(operator)]
    varying = [d for each in tensors if each is not None for d in each.shape if isinstance(d, np.ndarray)]
    if not varying:
        return table.of(operator, tensors), None
    kinds, kind = distinct(varying)
    return table.of(operator, tensors, kinds), kind


def names_of(operator: OperatorSketch) -> tuple[str | None, ...]:
    """Its tensors by name, inputs first."""
    return (*operator.inputs, *operator.outputs)


def distinct(dimensions: Sequence[Sizes]) -> tuple[list[list[int]], Sizes]:
    """(the kinds, the kind of each candidate); candidates are of one kind where all dimensions are equal."""
    kinds, kind = np.unique(np.stack(dimensions), axis=1, return_inverse=True)
    return kinds.T.tolist(), kind.reshape(-1)
