"""Rules about floats between DEQUANTIZE and QUANTIZE: what is a function of stored integers is computed of these."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ...model.ir.model import DType, Operator, Tensor
from ...model.ir.tensors import Affine, affine_of, quantized_alike
from ...operators.boxes import RESHAPES
from ...operators.editor import Editor
from ...operators.table import OPERATORS
from .engine import Answer, Match, Pattern, Proposal, Rule, is_shape_computed, leave_out, source_of

Table = npt.NDArray[Any]
"""What becomes of each integer that a tensor may hold."""
_STORED = {DType.INT8: np.int8, DType.INT16: np.int16}
"""The types that are followed."""
_MOVING = ("TRANSPOSE", *RESHAPES, "SLICE", "STRIDED_SLICE", "SPLIT", "SPLIT_V", "UNPACK")
_CHOOSING = ("REDUCE_MAX", "REDUCE_MIN")
_CLAMPS: Mapping[str, tuple[float, float]] = {"RELU": (0, np.inf), "RELU6": (0, 6), "RELU_N1_TO_1": (-1, 1)}
_LARGEST_QUOTIENT = 1 << 20
"""Of a number and a scale: kernels convert it to 32 bits."""
_LEAST_RATIO, _MOST_RATIO = 0.5, 1 << 15
"""Of two scales: below, QUANTIZE of integers rounds twice; above, its product may have more than 32 bits."""
_MOST_BROADCAST = 4
"""Dimensions in which MAXIMUM and MINIMUM broadcast."""


def _later_dequantize(match: Match) -> Answer:
    operator, widen = match.anchor, match["widen"]
    source, wide = widen.inputs[0], widen.outputs[0]
    if source is None or _affine(source) is None or not _ends_in_quantize(match, operator.outputs):
        return None
    if operator.name in RESHAPES and is_shape_computed(operator):
        return None
    if match.is_shared(wide):
        return f"'{wide.name}' is needed by others too"
    if not OPERATORS[operator.name].tflm.takes(source.dtype):
        return f"TFLM has none of {source.dtype.label}"

    def write(edit: Editor) -> None:
        inputs = [source if tensor is wide else tensor for tensor in operator.inputs]
        stored = [edit.activation(f"{each.name}/stored", each.shape, source) for each in operator.outputs]
        options = operator.options
        kind, fields = (None, {}) if options is None else (options.kind, options.fields)
        edit.operator(operator.name, inputs, stored, kind, **fields)
        for integers, output in zip(stored, operator.outputs, strict=True):
            edit.twin(widen, (integers,), (output,))

    return Proposal(write)


def _affine(tensor: Tensor) -> Affine | None:
    """The scale and zero point of integers that are computed and followed: kernels of 16 bits ask for 0."""
    found = None if tensor.is_constant or tensor.dtype not in _STORED else affine_of(tensor)
    least, most = (-128, 127) if tensor.dtype is DType.INT8 else (0, 0)
    is_followed = found is not None and 0 < found.scale < np.inf and least <= found.zero_point <= most
    return found if is_followed else None


def _ends_in_quantize(match: Match, made: Sequence[Tensor]) -> bool:
    """Tell whether all that reads tensors moves, chooses, or clamps their elements, and quantizes them in the end."""
    waiting = list(made)
    while waiting:
        tensor = waiting.pop()
        readers = [use.operator for use in tensor.uses if use.operator.name != "QUANTIZE"]
        if match.is_returned(tensor) or any(each.name not in (*_MOVING, *_CHOOSING, *_CLAMPS) for each in readers):
            return False
        waiting += [output for reader in readers for output in reader.outputs]
    return True


LATER_DEQUANTIZE = Rule(
    "later_dequantize",
    Pattern("moved", (*_MOVING, *_CHOOSING), any_input=Pattern("widen", ("DEQUANTIZE",))),
    _later_dequantize,
)
"""Move or choose integers, and dequantize what is left of them.

    q (int8) -- DEQUANTIZE -- REDUCE_MAX -- QUANTIZE        =>        q -- REDUCE_MAX -- DEQUANTIZE -- QUANTIZE

Exact: scales are positive, so that DEQUANTIZE of the largest integer is the largest of the numbers. It is done where
all that reads the numbers quantizes them again: quantizers leave REDUCE_MAX and SPLIT in float.
"""


def _integer_clamp(match: Match) -> Answer:
    output, island = match.anchor.outputs[0], _island(match.anchor)
    if island is None:
        return None
    source, clamps, old, new = island
    limits = np.iinfo(_STORED[source.dtype])
    stored = np.arange(limits.min, limits.max + 1)
    wanted = _quantized(_clamped(_dequantized(stored, old), clamps), new, stored)
    if wanted is None:
        return "a value is about halfway between two integers, where kernels may round either way"
    is_alike = quantized_alike(source.quantization, output.quantization)
    if is_alike and np.array_equal(wanted, stored):
        return leave_out(source_of(source, output), output)
    made = stored if is_alike else _requantized(stored, old, new)
    if made is None:
        return "the scales are too far apart for QUANTIZE of integers to round once"
    if not np.array_equal(wanted, np.clip(made, wanted.min(), wanted.max())):
        return "QUANTIZE of integers rounds otherwise"
    steps: dict[str, int | None] = {} if is_alike else {"QUANTIZE": None}
    steps |= _clamps_of(wanted, made, new, stored, {each.name for each in clamps})
    if len(output.shape) > _MOST_BROADCAST and any(limit is not None for limit in steps.values()):
        return f"TFLM's MAXIMUM and MINIMUM have at most {_MOST_BROADCAST} dimensions"
    if not all(OPERATORS[kind].tflm.takes(source.dtype) for kind in steps):
        return f"TFLM has no {' and '.join(steps)} of {source.dtype.label}"
    return Proposal(lambda edit: _write(edit, source, output, steps))


def _island(narrow: Operator) -> tuple[Tensor, list[Operator], Affine, Affine] | None:
    """Return the integers that are dequantized, what clamps the floats, the last one first, and both quantizations."""
    output, clamps, at = narrow.outputs[0], list[Operator](), narrow.inputs[0]
    while at is not None and at.producer is not None and at.producer.name in _CLAMPS:
        clamps.append(at.producer)
        at = at.producer.inputs[0]
    widen = None if at is None else at.producer
    source = None if widen is None or widen.name != "DEQUANTIZE" else widen.inputs[0]
    if source is None or output.dtype is not source.dtype:
        return None
    old, new = _affine(source), _affine(output)
    return None if old is None or new is None else (source, clamps, old, new)


def _clamps_of(
    wanted: Table, made: Table, affine: Affine, stored: Table, used: Collection[str]
) -> Mapping[str, int | None]:
    """Return the operators that clamp ``made`` to what is wanted, with the limits of those that read one.

    Kinds in ``used`` come first: their kernels are linked already.
    """
    ends, have = ((int(each.min()), int(each.max())) for each in (wanted, made))
    if ends == have:
        return {}
    least, six = max(have[0], affine.zero_point), _quantized(np.asarray([6]), affine, stored)
    alone = {"RELU": (least, have[1])} | ({} if six is None else {"RELU6": (least, min(have[1], int(six[0])))})
    fits = [kind for kind, left in alone.items() if left == ends]
    if fits:
        return {min(fits, key=lambda kind: kind not in used): None}
    limits = {"MAXIMUM": ends[0]} if ends[0] > have[0] else {}
    return limits | ({"MINIMUM": ends[1]} if ends[1] < have[1] else {})


def _write(edit: Editor, source: Tensor, output: Tensor, steps: Mapping[str, int | None]) -> None:
    for number, (kind, limit) in enumerate(steps.items(), 1):
        written = output
        if number < len(steps):
            written = edit.activation(f"{output.name}/unclamped", output.shape, output)
        bounds = []
        if limit is not None:
            value = np.asarray(limit, _STORED[output.dtype])
            bounds.append(edit.constant(f"{output.name}/limit", value, output.quantization))
        table = "QuantizeOptions" if kind == "QUANTIZE" else "MaximumMinimumOptions" if bounds else None
        edit.operator(kind, (source, *bounds), (written,), table)
        source = written


def _dequantized(stored: Table, affine: Affine) -> Table:
    """Return the floats, each rounded once: the product is exact in float64."""
    return (affine.scale * (stored - float(affine.zero_point))).astype(np.float32)


def _clamped(numbers: Table, clamps: list[Operator]) -> Table:
    for clamp in reversed(clamps):
        numbers = np.clip(numbers, *map(np.float32, _CLAMPS[clamp.name]))
    return numbers


def _quantized(numbers: Table, affine: Affine, stored: Table) -> Table | None:
    """Return the integers of numbers; None where one may be rounded either way."""
    quotients = numbers.astype(np.float64) / affine.scale
    return _rounded(quotients, affine.zero_point, stored) if np.abs(quotients).max() < _LARGEST_QUOTIENT else None


def _requantized(stored: Table, old: Affine, new: Affine) -> Table | None:
    """Return what QUANTIZE makes of integers; None where it rounds twice, or may round either way."""
    ratio = old.scale / new.scale
    is_followed = _LEAST_RATIO <= ratio <= _MOST_RATIO
    return _rounded(ratio * (stored - old.zero_point), new.zero_point, stored) if is_followed else None


def _rounded(quotients: Table, zero_point: int, stored: Table) -> Table | None:
    """Return quotients rounded, of which kernels compute some with an error of 2**-21 of the range of the type."""
    least, most = int(stored[0]), int(stored[-1])
    near = quotients[(quotients > least - 1 - zero_point) & (quotients < most + 1 - zero_point)]
    if near.size and np.abs(near - np.floor(near) - 0.5).min() < stored.size / (1 << 21):
        return None
    found: Table = np.clip(np.rint(quotients) + zero_point, least, most).astype(np.int64)
    return found


INTEGER_CLAMP = Rule("integer_clamp", Pattern("narrow", ("QUANTIZE",)), _integer_clamp)
"""Quantize integers anew and clamp them, in place of the floats that they stand for.

    q (int8) -- DEQUANTIZE -- RELU6 -- QUANTIZE -- r        =>        q -- QUANTIZE -- r

with RELU, RELU6, or MAXIMUM and MINIMUM of integers behind it where r has integers beyond those of the clamp. Nothing
is left of DEQUANTIZE and QUANTIZE with one scale and zero point.

Exact: all integers of the type are tried out. What is rounded must not be about halfway between two integers, where
kernels multiply by an inverse, or by a multiplier of 31 bits; and of integers QUANTIZE must round once.
"""
