r"""Rewrites of the interface, which only ``--io`` asks for: they are no rules, because the application changes, too.

The model takes and gives integers itself (``int8``): QUANTIZE after inputs and DEQUANTIZE before outputs are removed.

    x (float32) --> QUANTIZE --> q (int8) --> op        =>   x (int8) --> op
    op --> q (int8) --> DEQUANTIZE --> y (float32)      =>   op --> y (int8)

The same for QUANTIZE between integers of one scale, such as uint8 and int8. Exactness: exact for the values that the
integers stand for, ``scale * (q - zero_point)``: the application quantizes.

The model takes and gives images, or sequences, with their channels last (``channels-last``), as cameras deliver them
and as TFLM computes; PyTorch's have them first. The TRANSPOSE between goes.

    x (N, C, H, W) --> TRANSPOSE --> (N, H, W, C) --> op      =>   x (N, H, W, C) --> op
    op --> (N, H, W, C) --> TRANSPOSE --> y (N, C, H, W)      =>   op --> y (N, H, W, C)

Exact: the same elements, which the application gives in the other order. Operators between, such as QUANTIZE or a PAD,
are made to read what is not transposed by ``lowered_transpose``.

Position and name of every input and output stay, and so do signatures with their argument names. Metadata of
tflite-support needs no change for integers: it names no types, and its normalization is that of the real values for
quantized and float models alike (metadata_schema.fbs, ``NormalizationOptions``).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from ...errors import ErrorKind, UsageError
from ...model.ir.change import BOUNDARY, CHANNELS_LAST, Changed, Refusal, changed
from ...model.ir.copying import copy_model, drop_dead_tensors
from ...model.ir.editor import label
from ...model.ir.model import DType, Graph, Model, Operator, Tensor
from ...model.ir.tensors import QUANTIZED, affine_of, is_quantized, with_channels_last
from ...operators.editor import Editor
from ...options import ALL_PORTS
from .engine import Driver, Rule
from .shapes import DEAD_OPERATORS, IDENTITY
from .transposes import CONSECUTIVE_TRANSPOSES, LOWERED_TRANSPOSE, origin_of, transposes_in

_OF_INTERFACE = (*QUANTIZED, DType.UINT8)
"""Types that a caller may quantize for."""


def take_integers(model: Model) -> Changed:
    """Remove what converts at the inputs and outputs of the entry graph.

    The tensors of the old types stay behind without reader and writer.
    """
    graph = model.main
    done, refused = [], []
    inputs = [tensor for tensor in dict.fromkeys(graph.inputs) if _is_converted_input(tensor)]
    outputs = [tensor for tensor in dict.fromkeys(graph.outputs) if _is_converted_output(tensor)]
    for outer in dict.fromkeys((*inputs, *outputs)):
        found = _at_input(graph, outer) if outer in inputs else _at_output(graph, outer)
        if isinstance(found, str):
            refused.append(Refusal(BOUNDARY, outer.name, found))
            continue
        done.append(outer.name)
        for converter in found.converters:
            graph.remove_operator(converter)
            if converter.outputs[0] not in (outer, found.inner):
                graph.replace_uses(converter.outputs[0], found.inner)
        _take_place(model, outer, found.inner)
    return changed(model, BOUNDARY, done, refused)


@dataclass(frozen=True)
class _Conversion:
    """The integers of an input or output, and the operators that make them of it, or it of them."""

    inner: Tensor
    converters: tuple[Operator, ...]


def _is_converted_input(tensor: Tensor) -> bool:
    return tensor.dtype is DType.FLOAT32 or any(use.operator.name == "QUANTIZE" for use in tensor.uses)


def _is_converted_output(tensor: Tensor) -> bool:
    if tensor.dtype is DType.FLOAT32:
        return True
    writer = tensor.producer
    source = None if writer is None or writer.name != "QUANTIZE" else writer.inputs[0]
    return source is not None and source.dtype is not DType.FLOAT32


def _at_input(graph: Graph, outer: Tensor) -> _Conversion | str:
    converters = tuple(use.operator for use in outer.uses)
    others = [operator for operator in converters if operator.name != "QUANTIZE"]
    if others:
        return f"{_named(others[0])} reads it as {outer.dtype.label}"
    if not converters:
        return "no QUANTIZE reads it"
    if outer in graph.outputs:
        return "the model returns it too"
    inner, *rest = [operator.outputs[0] for operator in converters]
    if any((each.dtype, affine_of(each)) != (inner.dtype, affine_of(inner)) for each in rest):
        return "its QUANTIZE operators have different parameters"
    if any(each in graph.outputs for each in (inner, *rest)):
        return "the model returns its integers as they are"
    return _reason_against(outer, inner) or _Conversion(inner, converters)


def _at_output(graph: Graph, outer: Tensor) -> _Conversion | str:
    writer = outer.producer
    if writer is None or writer.name not in ("DEQUANTIZE", "QUANTIZE"):
        source = "no operator" if writer is None else _named(writer)
        return f"it comes from {source}, not from DEQUANTIZE"
    if outer.uses:
        return f"{_named(outer.uses[0].operator)} reads it as {outer.dtype.label}"
    inner = writer.inputs[0]
    if inner is None or inner.producer is None:
        name = "nothing" if inner is None else f"'{inner.name}'"
        return f"its integers come from no operator: {name} is an input, a constant or a variable"
    if inner in graph.outputs:
        return f"the model returns its integers already, as '{inner.name}'"
    return _reason_against(outer, inner) or _Conversion(inner, (writer,))


def _reason_against(outer: Tensor, inner: Tensor) -> str | None:
    """Return the reason why integers cannot stand for the tensor's values, bytes or shape."""
    if inner.dtype not in _OF_INTERFACE or affine_of(inner) is None:
        return f"'{inner.name}' is {inner.dtype.label}, or not quantized with one scale"
    if inner.nbytes > outer.nbytes:
        return f"it would grow from {outer.dtype.label} to {inner.dtype.label}"
    if inner.shape != outer.shape:
        return f"'{inner.name}' has another shape"
    scales = [found.scale for found in map(affine_of, (outer, inner)) if found is not None]
    if outer.dtype is not DType.FLOAT32 and (len(scales) < 2 or scales[0] != scales[1]):
        # LiteRT rounds once and TFLM twice when it multiplies by a ratio of scales.
        return "the scales on both sides differ, which runtimes round differently"
    return None


def _take_place(model: Model, outer: Tensor, inner: Tensor) -> None:
    """Make ``inner`` what the interface calls by the name of ``outer``, in the graph and in its signatures."""
    graph = model.main
    inner.name, outer.name = outer.name, inner.name

    def exchanged(tensor: Tensor) -> Tensor:
        return inner if tensor is outer else tensor

    graph.inputs = tuple(map(exchanged, graph.inputs))
    graph.outputs = tuple(map(exchanged, graph.outputs))
    for signature in model.signatures or ():
        signature.inputs = tuple((name, exchanged(tensor)) for name, tensor in signature.inputs)
        signature.outputs = tuple((name, exchanged(tensor)) for name, tensor in signature.outputs)


def _named(operator: Operator) -> str:
    return f"{operator.opcode.label} '{label(operator)}'"


_LEAST_RANK = 3
_RULES: tuple[tuple[Rule, ...], ...] = (
    (DEAD_OPERATORS, IDENTITY, CONSECUTIVE_TRANSPOSES),
    (DEAD_OPERATORS, IDENTITY, CONSECUTIVE_TRANSPOSES, LOWERED_TRANSPOSE),
)
"""Tried one after another: operators stay where they are if that is enough."""


def take_channels_last(model: Model, names: Collection[str]) -> Changed:
    """Give inputs and outputs of the entry graph their channels last, where that saves a TRANSPOSE.

    ``names``: of those that are asked for, or ALL_PORTS. Raises UsageError for a name that the interface does not have.
    """
    ports = [*dict.fromkeys((*model.main.inputs, *model.main.outputs))]
    known = [port.name for port in ports]
    strange = next((name for name in names if name != ALL_PORTS and name not in known), None)
    if strange is not None:
        said = ", ".join(f"'{name}'" for name in known)
        raise UsageError(
            f"--io channels-last={strange}: no input or output has this name; there are {said}", ErrorKind.NAME
        )
    done, refused = [], []
    for name in dict.fromkeys(known):
        if name not in names and ALL_PORTS not in names:
            continue
        reason = _reason_against_turning(model, name) or _turn(model, name)
        if reason is None:
            done.append(name)
        else:
            refused.append(Refusal(CHANNELS_LAST, name, reason))
    if ALL_PORTS in names and done:
        refused = [each for each in refused if each.operator in names]  # nobody has asked for these
    return changed(model, CHANNELS_LAST, done, refused)


def _reason_against_turning(model: Model, name: str) -> str | None:
    """Return the reason why the firmware could not tell that an input or output has changed, or what it means."""
    ports = [port for port in dict.fromkeys((*model.main.inputs, *model.main.outputs)) if port.name == name]
    shape = ports[0].shape
    if len(ports) > 1 or not name:
        return "others have its name, too"
    if len(shape) < _LEAST_RANK:
        return f"it has {len(shape)} dimensions, none of which is that of channels beside a batch and places"
    if with_channels_last(shape) == shape:
        return f"its shape {list(shape)} is the same with channels last, so that nothing would show the change"
    if is_quantized(ports[0].quantization) and affine_of(ports[0]) is None:
        return "it has several scales"
    if ports[0] in model.main.inputs and ports[0] in model.main.outputs:
        return "the model returns it as it is"
    return None


def _turn(model: Model, name: str) -> str | None:
    """Give one input or output its channels last, or return why not."""
    for rules in _RULES:
        as_it_is, trial = copy_model(model), copy_model(model)
        Driver(as_it_is, is_trial=True).apply_everywhere(rules)
        _with_transpose(trial, name, rules)
        if transposes_in(trial) < min(map(transposes_in, (model, as_it_is))):
            _with_transpose(model, name, rules)
            return None
    return "no TRANSPOSE to or from channels last would go"


def _with_transpose(model: Model, name: str, rules: tuple[Rule, ...]) -> None:
    """Give it its channels last and a TRANSPOSE that undoes this, and let rules take out what then is idle."""
    graph = model.main
    outer = next(port for port in (*graph.inputs, *graph.outputs) if port.name == name)
    is_input, rank = outer in graph.inputs, len(outer.shape)
    edit = Editor(model, graph, 0 if is_input else len(graph.operators))
    inner = edit.activation(f"{name}/channels_last", with_channels_last(outer.shape), outer)
    axes = (0, rank - 1, *range(1, rank - 1)) if is_input else (0, *range(2, rank), 1)
    ends = (inner, outer) if is_input else (outer, inner)
    order = edit.constant(f"{name}/order", np.asarray(axes, np.int32))
    edit.operator("TRANSPOSE", (ends[0], order), ends[1:], "TransposeOptions")
    _take_place(model, outer, inner)
    Driver(model, is_trial=True).apply_everywhere(rules)
    origin = None if is_input else origin_of(inner)
    if origin is not None and _can_be_returned(graph, origin.source, inner) and origin.keeps_order:
        _take_place(model, inner, origin.source)
        Driver(model, is_trial=True).apply_everywhere((DEAD_OPERATORS,))
    drop_dead_tensors(model)


def _can_be_returned(graph: Graph, source: Tensor, output: Tensor) -> bool:
    return source.shape == output.shape and source.producer is not None and source not in graph.outputs
