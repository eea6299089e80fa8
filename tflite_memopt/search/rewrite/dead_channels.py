r"""Delete channels of integers that no non-zero weight reads, or that are the zero point for all inputs.

    x --> CONV_2D --> y, of which channel c is read with weights that are all 0        =>  y without channel c,
                      y --> DEPTHWISE_CONV_2D --> z --> CONV_2D (w[..., c] = 0)             and all weights that make it

    x --> CONV_2D + RELU --> y, of which channel c is 0 for any x                      =>  w[..., c] = 0, and as above
                             y --> CONV_2D (w)

A weight of 0 adds ``0 * (q - zero_point)`` to an integer sum: the sum is the same without the channel, to the bit, in
any order and with any kernels. So does any weight times a channel that holds the zero point alone, which interval
arithmetic tells (``model/analysis/ranges.py``). In float the sum of fewer terms may be rounded in another order, so
that only integer operators take part. Trained networks have such channels where a ReLU died or a pruner set weights to
0. Kernels are fastest where the number of channels is a multiple of a *block*, so that as many channels as fill the
last block stay.

Tensors whose channels correspond one to one form a group with one mask. The masks are the least fixed point of two
rules: a channel is read if the graph returns it or an operator outside of the table touches it, and if a weight other
than 0 multiplies it for a channel that is read. So channels that only feed each other around a residual connection are
deleted as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ...model.analysis.ranges import Mask, silent_channels
from ...model.ir.change import DEAD_CHANNELS, Changed, changed
from ...model.ir.editor import add_buffer
from ...model.ir.model import DType, Graph, Model, Operator, OperatorOptions, Quantization, Tensor
from ...model.ir.tensors import QUANTIZED, integers, is_per_channel, values
from ...operators.table import BY_CHANNEL, OPERATORS, SUMS_OF_CHANNELS
from ...operators.window import CONVOLUTIONS, DEPTHWISE, POOLS, RESIZES
from .channels import rescales_in_double

_SAME = (
    *(*POOLS, *RESIZES, "PAD", "MEAN", "SUM", "RESHAPE"),
    *(name for name in BY_CHANNEL if OPERATORS[name].overwrites != "any input"),
)
"""Kinds that compute each channel of the first output from the same channel of the first input alone."""
_ELEMENTWISE = ("ADD", "SUB", "MUL", "MAXIMUM", "MINIMUM")


def drop_dead_channels(model: Model, block: int = 1) -> Changed:
    """Delete the channels of the entry graph that nothing reads."""
    masks = _Masks(model.main)
    masks.settle(block)
    every = [op for op in model.main.operators if op.name in SUMS_OF_CHANNELS and op.outputs[0].shape]
    made = [op for op in every if masks.is_free(op.outputs[0])]
    removed = sum(int((~masks.of(op.outputs[0])).sum()) for op in made)
    if not removed:
        return Changed(model)
    fewer = [op.outputs[0].name for op in made if not masks.of(op.outputs[0]).all()]
    channels = sum(op.outputs[0].shape[-1] for op in every)
    for operator in model.main.operators:
        _shrink_operands(model, operator, masks)
    for tensor in model.main.tensors:
        if masks.has(tensor):
            tensor.shape = (*tensor.shape[:-1], int(masks.of(tensor).sum()))
            signature = tensor.extras.get("shapeSignature")
            if signature is not None:
                tensor.extras = {**tensor.extras, "shapeSignature": np.asarray((*signature[:-1], tensor.shape[-1]))}
    return changed(model, f"{DEAD_CHANNELS}: {removed:,} of {channels:,} channels", fewer)


class _Masks:
    """The channels that are read, for each group of tensors whose channels correspond."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._above: dict[Tensor, Tensor] = {}
        self._masks: dict[Tensor, Mask] = {}
        self._fixed: set[Tensor] = set()
        self._silent = silent_channels(graph)
        for operator in graph.operators:
            for tensor in _tied(operator):
                self._join(operator.outputs[0], tensor)
        for tensor in (*graph.inputs, *graph.outputs, *(each for each in graph.tensors if each.is_variable)):
            self._fix(tensor)
        for operator in graph.operators:
            touched = _beside(operator) if _data(operator) else (*operator.present_inputs(), *operator.outputs)
            for tensor in touched:
                self._fix(tensor)

    def has(self, tensor: Tensor) -> bool:
        """Return whether some channels of the tensor are deleted."""
        return self.is_free(tensor) and not tensor.is_constant and not self.of(tensor).all()

    def is_free(self, tensor: Tensor) -> bool:
        """Return whether channels of the tensor may be deleted."""
        return bool(tensor.shape) and self._top(tensor) not in self._fixed

    def of(self, tensor: Tensor) -> Mask:
        """Return the mask of a tensor, shared by its group."""
        top = self._top(tensor)
        if top not in self._masks:
            self._masks[top] = np.full(top.shape[-1] if top.shape else 1, top in self._fixed)
        return self._masks[top]

    def silent(self, tensor: Tensor) -> Mask:
        """Return the channels that are the zero point for all inputs."""
        return self._silent.get(tensor, np.zeros(tensor.shape[-1], bool))

    def settle(self, block: int) -> None:
        """Compute the least fixed point, then fill the last block of channels and what these are computed from."""
        while self._grow():
            pass
        # Readers first: what fills a block of theirs reads channels that then need no filling.
        for operator in reversed(self._graph.operators):
            # A dense layer of one channel has its rescaling rounded in another way than one with several scales.
            least = 2 if operator.name == "FULLY_CONNECTED" and rescales_in_double(operator) else 1
            for tensor in operator.outputs:
                if self.is_free(tensor):
                    mask = self.of(tensor)
                    kept = int(mask.sum())
                    added = np.flatnonzero(~mask)[: -(-max(least, kept) // block) * block - kept]
                    mask[added] = True
                    while added.size and self._grow():
                        pass

    def _grow(self) -> bool:
        grown = False
        for operator in reversed(self._graph.operators):
            for tensor, read in self._read(operator):
                mask = self.of(tensor)
                grown |= bool((read & ~mask).any())
                mask |= read
        return grown

    def _read(self, operator: Operator) -> Iterator[tuple[Tensor, Mask]]:
        """Yield the channels that the operator reads of its inputs, and those of its output."""
        data = _data(operator)
        if not data:
            return
        output = operator.outputs[0]
        if operator.name in SUMS_OF_CHANNELS:
            weights = values(operator.required(1))
            assert weights is not None
            others = tuple(range(1, weights.ndim - 1))
            read = (weights[self.of(output)] != 0).any(axis=(0, *others))
            yield data[0], read & ~self.silent(data[0])
        elif operator.name == "CONCATENATION":
            yield output, np.concatenate([self.of(tensor) for tensor in data])
            first = 0
            for tensor in data:
                end = first + tensor.shape[-1]
                yield tensor, self.of(output)[first:end].copy()
                first = end

    def _top(self, tensor: Tensor) -> Tensor:
        while tensor in self._above:
            tensor = self._above[tensor]
        return tensor

    def _join(self, one: Tensor, other: Tensor) -> None:
        first, second = self._top(one), self._top(other)
        if first is not second:
            self._above[second] = first

    def _fix(self, tensor: Tensor) -> None:
        self._fixed.add(self._top(tensor))


def _data(operator: Operator) -> tuple[Tensor, ...]:
    """Return the inputs whose channels may be deleted with the output's; none for an operator outside of this table.

    kind                          data                   where
    ADD, MUL ... (_ELEMENTWISE)   all computed inputs    they have the shape of the output
    CONCATENATION                 all inputs             it joins channels, of computed tensors, of each once
    CONV_2D, FULLY_CONNECTED      the first              weights and bias are plain constants
    DEPTHWISE_CONV_2D             the first              each channel has one filter
    _SAME                         the first              channels stay where they are
    """
    if len(operator.outputs) != 1 or not _has_channels(operator.outputs[0]):
        return ()
    inputs = tuple(operator.present_inputs())
    if operator.name in _ELEMENTWISE:
        return _elementwise_data(inputs, operator.outputs[0])
    if not inputs or inputs[0].is_constant or not _has_channels(inputs[0]):
        return ()
    if operator.name == "CONCATENATION":
        return inputs if _joins_channels(operator, inputs) else ()
    can_lose = _OF_THE_FIRST.get(operator.name)
    return inputs[:1] if can_lose is not None and can_lose(operator) else ()


def _has_channels(tensor: Tensor) -> bool:
    return tensor.dtype in QUANTIZED and bool(tensor.shape)


def _elementwise_data(inputs: Sequence[Tensor], output: Tensor) -> tuple[Tensor, ...]:
    computed = tuple(tensor for tensor in inputs if not tensor.is_constant)
    is_alike = all(tensor.shape == output.shape for tensor in computed)
    constants = [tensor for tensor in inputs if tensor.is_constant]
    return computed if is_alike and _is_constant_of(constants, output.shape[-1]) else ()


def _joins_channels(operator: Operator, inputs: Sequence[Tensor]) -> bool:
    rank = len(operator.outputs[0].shape)
    is_last = operator.option("axis", 0) % rank == rank - 1
    return is_last and len(set(inputs)) == len(inputs) and not any(tensor.is_constant for tensor in inputs)


def _tied(operator: Operator) -> Sequence[Tensor]:
    """Return the inputs whose channels go to the same channels of the output."""
    return () if operator.name in (*SUMS_OF_CHANNELS, "CONCATENATION") else _data(operator)


def _beside(operator: Operator) -> Iterator[Tensor]:
    """Yield computed inputs that are no data, such as a shape."""
    data = _data(operator)
    return (tensor for tensor in operator.present_inputs() if not tensor.is_constant and tensor not in data)


def _is_plain_sum(operator: Operator) -> bool:
    """Return whether the weights are constants without zero point, one for each channel of the input, in one group."""
    source, output, weights = operator.required(0), operator.outputs[0], operator.required(1)
    rank = 4 if operator.name in CONVOLUTIONS else 2
    if (
        operator.option("weightsFormat", 0)
        or values(weights) is None
        or len(weights.shape) != rank
        or weights.shape[-1] != source.shape[-1]
    ):
        return False
    if weights.quantization is not None and weights.quantization.zero_point.any():
        return False
    bias = list(operator.present_inputs())[2:]
    return weights.shape[0] == output.shape[-1] and _is_constant_of(bias, output.shape[-1])


def _is_constant_of(tensors: Any, channels: int) -> bool:
    """Return whether all are constants in plain bytes, with one value for each channel or one for all."""
    return all(values(each) is not None and (not each.shape or each.shape[-1] in (1, channels)) for each in tensors)


def _has_a_filter_each(operator: Operator) -> bool:
    """Return whether a depthwise convolution has one filter for each channel, a constant, and such a bias."""
    source, *constants = operator.present_inputs()
    channels = operator.outputs[0].shape[-1]
    return source.shape[-1] == channels == operator.required(1).shape[-1] and _is_constant_of(constants, channels)


def _keeps_channels(operator: Operator) -> bool:
    source, output = operator.required(0), operator.outputs[0]
    if source.shape[-1] != output.shape[-1]:
        return False
    if operator.name == "PAD":
        amounts = integers(operator.inputs[1])
        return amounts is not None and not amounts[-2:].any()
    if operator.name in ("MEAN", "SUM"):
        axes = integers(operator.inputs[1])
        return axes is not None and len(source.shape) - 1 not in axes % len(source.shape)
    if operator.name == "RESHAPE":
        return len(operator.inputs) < 2 or integers(operator.inputs[1]) is not None
    return operator.name != "QUANTIZE" or not any(map(is_per_channel, (source.quantization,)))


_OF_THE_FIRST: Mapping[str, Callable[[Operator], bool]] = {
    **dict.fromkeys(_SAME, _keeps_channels),
    **dict.fromkeys(SUMS_OF_CHANNELS, _is_plain_sum),
    DEPTHWISE: _has_a_filter_each,
}
"""For kinds that read channels of their first input alone, whether an operator of the kind may lose some."""


def _shrink_operands(model: Model, operator: Operator, masks: _Masks) -> None:
    """Give an operator constants for the channels that stay."""
    data = _data(operator)
    if not data:
        return
    output = operator.outputs[0]
    kept = masks.of(output) if masks.has(output) else None
    for slot, tensor in enumerate(operator.inputs):
        if tensor is None or not tensor.is_constant or tensor in data:
            continue
        axes: dict[int, Mask] = {}
        if operator.name in SUMS_OF_CHANNELS and slot == 1:
            tensor = _without(model, tensor, masks.silent(data[0]))
            model.main.set_input(operator, slot, tensor)
            axes |= {} if kept is None else {0: kept}
            axes |= {len(tensor.shape) - 1: masks.of(data[0])} if masks.has(data[0]) else {}
        elif operator.name in (*SUMS_OF_CHANNELS, DEPTHWISE, *_ELEMENTWISE) and kept is not None:
            axes = {len(tensor.shape) - 1: kept} if tensor.shape and tensor.shape[-1] == kept.size else {}
        if axes:
            model.main.set_input(operator, slot, _cut(model, tensor, axes))
    if operator.name == "RESHAPE" and kept is not None:
        _reshape_to(model, operator, (*output.shape[:-1], int(kept.sum())))


def _without(model: Model, weights: Tensor, silent: Mask) -> Tensor:
    """Return the weights with 0 for the channels that add nothing: of those that stay, to fill a block, too."""
    array = values(weights)
    assert array is not None
    if not array[..., silent].any():
        return weights
    return model.main.add_tensor(
        replace(weights, buffer=add_buffer(model, np.where(silent, array.dtype.type(0), array)))
    )


def _cut(model: Model, tensor: Tensor, axes: Mapping[int, Mask]) -> Tensor:
    array = values(tensor)
    assert array is not None
    quantization = tensor.quantization
    for axis, mask in axes.items():
        array = np.compress(mask, array, axis)
        if quantization is not None and is_per_channel(quantization) and quantization.axis == axis:
            quantization = _quantization_of(quantization, mask)
    made = replace(tensor, shape=array.shape, buffer=add_buffer(model, array), quantization=quantization)
    return model.main.add_tensor(made)


def _quantization_of(quantization: Quantization, mask: Mask) -> Quantization:
    zero_point = quantization.zero_point
    return Quantization(
        quantization.scale[mask], zero_point[mask] if zero_point.size == mask.size else zero_point, quantization.axis
    )


def _reshape_to(model: Model, operator: Operator, shape: tuple[int, ...]) -> None:
    if len(operator.inputs) > 1 and (operand := operator.inputs[1]) is not None:
        array = np.asarray(shape, "<i4")
        made = replace(operand, shape=array.shape, dtype=DType.INT32, buffer=add_buffer(model, array))
        model.main.set_input(operator, 1, model.main.add_tensor(made))
    if operator.options is not None and operator.options.fields.get("newShape") is not None:
        fields = {**operator.options.fields, "newShape": np.asarray(shape, np.int32)}
        operator.options = OperatorOptions(operator.options.kind, fields)
