"""Graphs with one thing wrong: a weight, a bias, a scale, a zero point, an order of inputs, a padding."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from scripts.mutation.mutant import Mutant
from tflite_memopt.io.reader import read_model
from tflite_memopt.io.writer import write_model
from tflite_memopt.ir.model import Model, Operator, Quantization, Tensor
from tflite_memopt.ir.tensors import values

_WEIGHTED = {"CONV_2D": 1, "DEPTHWISE_CONV_2D": 1, "FULLY_CONNECTED": 1, "TRANSPOSE_CONV": 1, "SVDF": 1}
"""Operators with weights, and their slot; the bias is in the slot behind weights and data."""
_WINDOWS = ("CONV_2D", "DEPTHWISE_CONV_2D", "MAX_POOL_2D", "AVERAGE_POOL_2D", "TRANSPOSE_CONV")
_SCALE_NUDGE = np.float32(1.01)

Change = Callable[[Model], "str | None"]
"""Makes one change and says where; None when it is none."""


def graph_mutants(data: bytes, per_kind: int, seed: int) -> Iterator[Mutant]:
    """At most ``per_kind`` mutants of each kind, drawn by the seed; all of them when it is 0."""
    for kind, sites in _KINDS.items():
        chances = list(sites(read_model(data)))
        random.Random(f"{kind} {seed}").shuffle(chances)
        for change in chances[: per_kind or None]:
            model = read_model(data)
            where = change(model)
            if where is not None:
                yield Mutant(kind, where, write_model(model), _touched(model, where))


def _touched(model: Model, where: str) -> tuple[int, ...]:
    """Operators of the entry graph that read or write a tensor of this name."""
    return tuple(
        step
        for step, operator in enumerate(model.main.operators)
        if any(tensor.name == where for tensor in (*operator.present_inputs(), *operator.outputs))
    )


def _weights(model: Model) -> Iterator[tuple[int, Operator]]:
    """Positions of operators of the entry graph whose weights are plain constants."""
    for step, operator in enumerate(model.main.operators):
        slot = _WEIGHTED.get(operator.name)
        tensor = None if slot is None or slot >= len(operator.inputs) else operator.inputs[slot]
        if tensor is not None and values(tensor) is not None:
            yield step, operator


def _zeroed_channels(model: Model) -> Iterator[Change]:
    for step, operator in _weights(model):
        weights = _input(operator, _WEIGHTED[operator.name])
        axis = _channel_axis(operator, weights)
        for channel in range(weights.shape[axis]):
            yield lambda other, step=step, axis=axis, channel=channel: _zero(other, step, axis, channel)  # type: ignore[misc]


def _zero(model: Model, step: int, axis: int, channel: int) -> str | None:
    operator = model.main.operators[step]
    tensor = _input(operator, _WEIGHTED[operator.name])
    changed = _read(tensor)
    chosen = tuple(slice(channel, channel + 1) if at == axis else slice(None) for at in range(changed.ndim))
    if not changed[chosen].any():
        return None
    changed[chosen] = 0
    return _write(tensor, changed)


def _moved_weights(model: Model) -> Iterator[Change]:
    for step, operator in _weights(model):
        slot = _WEIGHTED[operator.name]
        rng = random.Random(step)
        for _ in range(_chances(_input(operator, slot))):
            place = rng.randrange(_input(operator, slot).elements)
            yield lambda other, step=step, slot=slot, place=place: _move(other, step, slot, place)  # type: ignore[misc]


def _moved_biases(model: Model) -> Iterator[Change]:
    for step, operator in _weights(model):
        slot = len(operator.inputs) - 1
        bias = operator.inputs[slot] if slot > _WEIGHTED[operator.name] else None
        if bias is not None and values(bias) is not None:
            for place in range(bias.elements):
                yield lambda other, step=step, slot=slot, place=place: _move(other, step, slot, place)  # type: ignore[misc]


def _move(model: Model, step: int, slot: int, place: int) -> str | None:
    """By one step: the next integer, or the next float."""
    tensor = _input(model.main.operators[step], slot)
    changed = _read(tensor)
    flat = changed.reshape(-1)
    if changed.dtype.kind == "f":
        flat[place] = np.nextafter(flat[place], changed.dtype.type(np.inf))
    else:
        flat[place] += 1 if flat[place] < np.iinfo(changed.dtype).max else -1
    return _write(tensor, changed)


def _nudged_scales(model: Model) -> Iterator[Change]:
    for index, tensor in enumerate(model.main.tensors):
        found = tensor.quantization
        if found is not None and found.scale.size and (tensor.producer is not None or tensor.uses):
            yield lambda other, index=index: _nudge(other, index, scale=True)  # type: ignore[misc]


def _nudged_zero_points(model: Model) -> Iterator[Change]:
    for index, tensor in enumerate(model.main.tensors):
        found = tensor.quantization
        is_read = tensor.producer is not None or tensor.uses
        if found is not None and found.zero_point.size == 1 and not tensor.is_constant and is_read:
            yield lambda other, index=index: _nudge(other, index, scale=False)  # type: ignore[misc]


def _nudge(model: Model, index: int, scale: bool) -> str | None:
    tensor = model.main.tensors[index]
    found = tensor.quantization
    assert found is not None
    if scale:
        scales = found.scale.copy()
        scales[0] *= _SCALE_NUDGE
        tensor.quantization = Quantization(scales, found.zero_point, found.axis, found.extras)
    else:
        points = found.zero_point + (1 if found.zero_point[0] < 0 else -1)
        tensor.quantization = Quantization(found.scale, points, found.axis, found.extras)
    return tensor.name


def _swapped_concatenations(model: Model) -> Iterator[Change]:
    for step, operator in enumerate(model.main.operators):
        if operator.name == "CONCATENATION":
            for first in range(len(operator.inputs)):
                for second in range(first + 1, len(operator.inputs)):
                    if _input(operator, first).shape == _input(operator, second).shape:
                        yield lambda other, step=step, pair=(first, second): _swap(other, step, *pair)  # type: ignore[misc]


def _swap(model: Model, step: int, first: int, second: int) -> str | None:
    operator = model.main.operators[step]
    a, b = _input(operator, first), _input(operator, second)
    if a is b:
        return None
    model.main.set_input(operator, first, b)
    model.main.set_input(operator, second, a)
    return operator.outputs[0].name


def _changed_paddings(model: Model) -> Iterator[Change]:
    for step, operator in enumerate(model.main.operators):
        if operator.name in _WINDOWS and operator.options is not None:
            yield lambda other, step=step: _toggle(other, step)  # type: ignore[misc]
        if operator.name in ("PAD", "PADV2") and values(_input(operator, 1)) is not None:
            yield lambda other, step=step: _shift_padding(other, step)  # type: ignore[misc]


def _toggle(model: Model, step: int) -> str | None:
    operator = model.main.operators[step]
    assert operator.options is not None
    padding = 1 - int(operator.option("padding", 0))
    operator.options = replace(operator.options, fields={**operator.options.fields, "padding": padding})
    return operator.outputs[0].name


def _shift_padding(model: Model, step: int) -> str | None:
    tensor = _input(model.main.operators[step], 1)
    amounts = _read(tensor)
    for row in amounts.reshape(-1, 2):
        if row[0] != row[1]:
            row[:] = row[::-1].copy()
            return _write(tensor, amounts)
        if row[0]:
            row += np.asarray([1, -1], row.dtype)
            return _write(tensor, amounts)
    return None


def _channel_axis(operator: Operator, weights: Tensor) -> int:
    return len(weights.shape) - 1 if operator.name == "DEPTHWISE_CONV_2D" else 0


def _chances(weights: Tensor) -> int:
    """How many single weights of a tensor are tried: as many as it has channels."""
    return max(weights.shape[0], weights.shape[-1])


def _input(operator: Operator, slot: int) -> Tensor:
    tensor = operator.inputs[slot]
    assert tensor is not None
    return tensor


def _read(tensor: Tensor) -> npt.NDArray[Any]:
    found = values(tensor)
    assert found is not None
    copied: npt.NDArray[Any] = found.copy()
    return copied


def _write(tensor: Tensor, changed: npt.NDArray[Any]) -> str:
    """Other tensors may share the buffer: they change too, as in a file that is damaged there."""
    tensor.buffer.data = np.frombuffer(changed.tobytes(), np.uint8)
    return tensor.name


_KINDS: dict[str, Callable[[Model], Iterator[Change]]] = {
    "channel zeroed": _zeroed_channels,
    "weight moved": _moved_weights,
    "bias moved": _moved_biases,
    "scale nudged": _nudged_scales,
    "zero point nudged": _nudged_zero_points,
    "inputs swapped": _swapped_concatenations,
    "padding changed": _changed_paddings,
}
