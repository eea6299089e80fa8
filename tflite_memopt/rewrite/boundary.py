r"""The model takes and gives integers itself: QUANTIZE after inputs and DEQUANTIZE before outputs are removed.

    x (float32) --> QUANTIZE --> q (int8) --> op        =>   x (int8) --> op
    op --> q (int8) --> DEQUANTIZE --> y (float32)      =>   op --> y (int8)

The same for QUANTIZE between integers of one scale, such as uint8 and int8. Exactness: exact for the values that the
integers stand for, ``scale * (q - zero_point)``. It is no rule of the table, because it changes the interface: the
application quantizes, so only ``--io int8`` asks for it. Position and name of every input and output stay, and so do
signatures with their argument names. Metadata of tflite-support needs no change: it names no types, and its
normalization is that of the real values for quantized and float models alike (metadata_schema.fbs,
``NormalizationOptions``).
"""

from __future__ import annotations

from dataclasses import dataclass

from ..ir.change import BOUNDARY, Refusal
from ..ir.dtype import DType
from ..ir.model import Graph, Model, Operator, Tensor
from ..ir.names import label
from ..ir.origin import origin_of
from ..ir.quantization import affine_of

_INTEGERS = (DType.INT8, DType.UINT8, DType.INT16)


@dataclass(frozen=True)
class Boundary:
    """Names of the inputs and outputs that are integers now, and of those that could not be, with reasons."""

    changed: tuple[str, ...]
    refused: tuple[Refusal, ...]


def take_integers(model: Model) -> Boundary:
    """Remove what converts at the inputs and outputs of the entry graph; the model is changed.

    The tensors of the old types stay behind without reader and writer.
    """
    graph = model.main
    changed, refused = [], []
    inputs = [tensor for tensor in dict.fromkeys(graph.inputs) if _is_converted_input(tensor)]
    outputs = [tensor for tensor in dict.fromkeys(graph.outputs) if _is_converted_output(tensor)]
    for outer in dict.fromkeys((*inputs, *outputs)):
        found = _at_input(graph, outer) if outer in inputs else _at_output(graph, outer)
        if isinstance(found, str):
            refused.append(Refusal(BOUNDARY, outer.name, found))
            continue
        changed.append(outer.name)
        for converter in found.converters:
            graph.remove_operator(converter)
            if converter.outputs[0] not in (outer, found.inner):
                graph.replace_uses(converter.outputs[0], found.inner)
        _take_place(model, outer, found.inner)
    return Boundary(tuple(changed), tuple(refused))


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
    """Why integers cannot stand for the tensor's values, bytes or shape."""
    if inner.dtype not in _INTEGERS or affine_of(inner) is None:
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
    inner.origin = origin_of(inner)
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
