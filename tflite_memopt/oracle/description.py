"""A graph in a few lines: operators, shapes and types, without weights and without a file.

A family is a graph whose dimensions are arrays: entry i of each belongs to candidate i.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import UsageError
from ..ir.dtype import DType
from ..ir.model import Buffer, Graph, Model, OpCode, Operator, OperatorOptions, Quantization, Tensor

Sizes = npt.NDArray[np.int64]
Dimension = int | Sizes
_TYPES = {each.label: each for each in DType}
_MOST_VALUES = 64
"""Of constants that say what an operator does, such as where a slice begins."""
_MOST_MERGED = 64
"""Bytes of constants that the stage of stripes merges where they are equal."""


@dataclass(frozen=True)
class TensorSketch:
    """A tensor. ``type`` as NumPy calls it. ``is_constant``: it is in the file and takes no RAM.

    ``scales``: how many quantization scales it has, 0 for none, along ``axis``. ``values`` of a small constant on which
    it depends what an operator does, such as paddings, axes or where a slice begins.
    """

    shape: tuple[Dimension, ...]
    type: str = "int8"
    is_constant: bool = False
    scales: Dimension = 1
    values: tuple[int, ...] | None = None
    axis: int = 0

    @property
    def dtype(self) -> DType:
        """The type. Raises UsageError for an unknown name."""
        if self.type not in _TYPES:
            raise UsageError(f"unknown type '{self.type}'; choose one of {', '.join(_TYPES)}")
        return _TYPES[self.type]


@dataclass(frozen=True)
class OperatorSketch:
    """An operator by the names of the TFLite schema, such as ``CONV_2D``; its tensors by name, None for one left out.

    ``options`` are the fields of the schema's table that are not its defaults, such as ``padding``, 0 for SAME and 1
    for VALID, or ``strideH``. ``table`` is the table's name, such as ``Conv2DOptions``: only a file needs it.
    """

    name: str
    inputs: tuple[str | None, ...]
    outputs: tuple[str, ...]
    options: Mapping[str, Any] = field(default_factory=dict)
    table: str = ""


@dataclass(frozen=True)
class GraphSketch:
    """A graph in the order of its operators. Raises UsageError when a name stands for no tensor."""

    tensors: Mapping[str, TensorSketch]
    operators: tuple[OperatorSketch, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]

    def __post_init__(self) -> None:
        used = {name for each in self.operators for name in (*each.inputs, *each.outputs) if name is not None}
        unknown = used.union(self.inputs, self.outputs) - set(self.tensors)
        if unknown:
            raise UsageError(f"the graph has no tensor called {', '.join(sorted(unknown))}")

    @property
    def candidates(self) -> int:
        """How many candidates the family has; 1 where no dimension is an array. Raises UsageError when they differ."""
        counts = {each.size for each in self.varying()}
        if len(counts) > 1:
            raise UsageError(f"the family's arrays of dimensions have different lengths: {sorted(counts)}")
        return next(iter(counts), 1)

    def candidate(self, number: int) -> GraphSketch:
        """One candidate of the family, its dimensions integers."""
        return self._with(lambda dimension: _at(dimension, number))

    def candidates_at(self, numbers: Sizes) -> GraphSketch:
        """The family of some of the candidates."""
        return self._with(lambda dimension: dimension[numbers] if isinstance(dimension, np.ndarray) else dimension)

    def _with(self, pick: Callable[[Dimension], Dimension]) -> GraphSketch:
        """The sketch with what is picked of each dimension and each number of scales."""
        picked = {
            name: replace(each, shape=tuple(map(pick, each.shape)), scales=pick(each.scales))
            for name, each in self.tensors.items()
        }
        return replace(self, tensors=picked)

    def varying(self) -> list[Sizes]:
        """All dimensions and numbers of scales that are arrays."""
        return [each for each in self._dimensions() if isinstance(each, np.ndarray)]

    def _dimensions(self) -> Iterator[Dimension]:
        for each in self.tensors.values():
            yield from (*each.shape, each.scales)


def _at(dimension: Dimension, number: int) -> int:
    return int(dimension[number]) if isinstance(dimension, np.ndarray) else dimension


def sketch_from(fields: Mapping[str, Any]) -> GraphSketch:
    """The sketch that a dictionary describes: the fields of the dataclasses by name, lists in place of tuples.

    Raises UsageError when a field is missing or unknown.
    """
    try:
        tensors = {name: TensorSketch(**_with_tuples(each)) for name, each in fields["tensors"].items()}
        operators = tuple(OperatorSketch(**_with_tuples(each)) for each in fields["operators"])
        return GraphSketch(tensors, operators, tuple(fields["inputs"]), tuple(fields["outputs"]))
    except (KeyError, TypeError, AttributeError) as error:
        raise UsageError(f"this describes no graph: {error!r}; it needs tensors, operators, inputs, outputs") from error


def _with_tuples(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {key: tuple(each) if isinstance(each, list) else each for key, each in fields.items()}


def sketch_of(model: Model) -> GraphSketch:
    """The sketch of a model. Raises UsageError for one with several subgraphs or variables: no sketch has them."""
    graph = model.main
    if len(model.graphs) > 1 or any(tensor.is_variable for tensor in graph.tensors):
        raise UsageError("a sketch has one graph and no variables: give the model itself")
    names = {tensor: f"{number}:{tensor.name}" for number, tensor in enumerate(graph.tensors)}
    tensors = {names[tensor]: _sketched(tensor) for tensor in graph.tensors}
    operators = tuple(
        OperatorSketch(
            each.name,
            tuple(None if tensor is None else names[tensor] for tensor in each.inputs),
            tuple(names[tensor] for tensor in each.outputs),
            {} if each.options is None else dict(each.options.fields),
            "" if each.options is None else each.options.kind,
        )
        for each in graph.operators
    )
    ends = (tuple(names[tensor] for tensor in tensors) for tensors in (graph.inputs, graph.outputs))
    return GraphSketch(tensors, operators, *ends)


def _sketched(tensor: Tensor) -> TensorSketch:
    quantization = tensor.quantization
    scales, axis = (0, 0) if quantization is None else (quantization.scale.size, quantization.axis)
    values = None
    if tensor.is_constant and tensor.dtype in (DType.INT32, DType.INT64) and tensor.elements <= _MOST_VALUES:
        assert tensor.buffer.data is not None
        values = tuple(np.frombuffer(tensor.buffer.data.tobytes(), tensor.dtype.label).tolist())
    return TensorSketch(tensor.shape, tensor.dtype.label, tensor.is_constant, scales, values, axis)


def model_of(sketch: GraphSketch) -> Model:
    """The sketch as a model. Its large constants take no memory: they are one byte that is seen many times."""
    empty = Buffer()
    graph = Graph("main")
    model = Model(3, None, [graph], [], [empty])
    numbered = enumerate(sketch.tensors.items())
    made = {name: graph.add_tensor(tensor_of(name, each, empty, number)) for number, (name, each) in numbered}
    codes = {name: OpCode(name) for name in dict.fromkeys(each.name for each in sketch.operators)}
    model.opcodes.extend(codes.values())
    for each in sketch.operators:
        inputs = tuple(None if name is None else made[name] for name in each.inputs)
        options = OperatorOptions(each.table, each.options) if each.table or each.options else None
        graph.add_operator(Operator(codes[each.name], inputs, tuple(made[name] for name in each.outputs), options))
    graph.inputs = tuple(made[name] for name in sketch.inputs)
    graph.outputs = tuple(made[name] for name in sketch.outputs)
    return model


def tensor_of(name: str, sketch: TensorSketch, empty: Buffer, number: int = 0) -> Tensor:
    """One tensor; ``empty`` is the buffer of all that are no constants. ``number``: as for ``_data``."""
    shape, dtype = tuple(_at(d, 0) for d in sketch.shape), sketch.dtype
    tensor = Tensor(name, shape, dtype, empty, _quantization(_at(sketch.scales, 0), sketch.axis))
    if sketch.is_constant:
        tensor.buffer = Buffer(_data(sketch, tensor.elements * dtype.packed_bits // 8, number))
    return tensor


def _data(sketch: TensorSketch, nbytes: int, number: int) -> npt.NDArray[np.uint8]:
    """Small ones differ by the tensor's ``number``: what is not known is not equal, so that no stage merges it."""
    if sketch.values is None and nbytes > _MOST_MERGED:
        return np.broadcast_to(np.uint8(0), (nbytes,))
    if sketch.values is None:
        return np.resize(np.frombuffer(number.to_bytes(4, "little"), np.uint8), nbytes)
    return np.frombuffer(np.asarray(sketch.values, sketch.dtype.label).tobytes(), np.uint8)


def _quantization(scales: int, axis: int) -> Quantization | None:
    if not scales:
        return None
    return Quantization(np.ones(scales, np.float32), np.zeros(scales, np.int64), axis)
