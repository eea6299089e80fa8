"""Bytes of a .tflite file -> Model. Everything that is not interpreted is carried along untouched."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache, partial
from typing import Any, NoReturn, TypeVar

import numpy as np
from ai_edge_litert import schema_py_generated as schema

from ...errors import ErrorKind, ModelFormatError, UnsupportedModelError
from ..ir.model import Buffer, Graph, Model, OpCode, Operator, OperatorOptions, Quantization, Signature, Tensor
from . import associated_files
from .files import foreign_format
from .flatbuffer import IDENTIFIER, BoundedBytes, builtin_name, check_table_budget, dtype_of

LARGEST_FILE = 2**31 - 1
"""Bytes; a flatbuffer's offsets are signed 32-bit numbers."""
ABSENT = "#absent"
"""Key of ``extras`` that lists the interpreted fields that the file leaves out, to write them so again."""

# The fields that become attributes of the IR; all others travel in ``extras``.
_MODEL_FIELDS = (
    *("version", "description", "subgraphs", "operatorCodes", "buffers"),
    *("metadata", "metadataBuffer", "signatureDefs"),
)
_TENSOR_FIELDS = ("name", "shape", "type", "buffer", "quantization", "isVariable")
_OPERATOR_FIELDS = (
    *("opcodeIndex", "inputs", "outputs", "intermediates", "customOptions"),
    *("builtinOptions", "builtinOptionsType", "builtinOptions2", "builtinOptions2Type"),
    *("largeCustomOptionsOffset", "largeCustomOptionsSize"),
)

_DATA_SLOT = 4
"""``Buffer.data`` is the first field, and a vtable begins with two 16-bit sizes."""
_NOT_BEHIND = 1
"""Offsets of data behind the flatbuffer are larger, as in models of over 2 GB: 0 and 1 stand for none."""
_WRONG_VALUES = (struct.error, IndexError, ValueError, OverflowError, MemoryError)
"""Raised where a damaged file has wrong numbers. A TypeError of our own code is a fault of ours, and passes through."""
_WRONG_OFFSETS = (*_WRONG_VALUES, TypeError, AttributeError)
"""Raised by the generated code of the bindings where it follows a damaged offset."""
_T = TypeVar("_T")


def read_model(data: bytes) -> Model:
    """Parse a .tflite file.

    Raises ModelFormatError when the bytes are not a well-formed model and UnsupportedModelError when they
    use a part of the schema that the installed bindings do not know.
    """
    if data[4:8] != IDENTIFIER:
        _refuse(data)
    body, files = associated_files.split(data, partial(_end_of_buffers, data))
    if len(body) > LARGEST_FILE:
        raise UnsupportedModelError(
            f"the file has {len(body)} bytes: over 2 GB, no microcontroller can hold it", ErrorKind.TOO_LARGE
        )
    root = _unpacked(body)
    try:
        model = _Reader(root, body).model()
    except _WRONG_VALUES as error:
        raise ModelFormatError(f"the model's tables are damaged: {error}", ErrorKind.DAMAGED) from error
    if not files:
        associated_files.refuse_cut_archive(body, [buffer.data for buffer in model.buffers if buffer.data is not None])
    model.associated_files = files
    return model


@lru_cache(maxsize=4)  # a run reads its two files again and again: nothing here changes what is unpacked
def _unpacked(body: bytes) -> Any:
    return _followed(body, schema.ModelT.InitFromObj)


def _followed(body: bytes, follow: Callable[[Any], _T]) -> _T:
    """Return what ``follow`` gives for the accessor of a model. Raises ModelFormatError for damaged offsets."""
    try:
        table = schema.Model.GetRootAs(BoundedBytes(body), 0)
        check_table_budget(table, len(body))
        return follow(table)
    except _WRONG_OFFSETS as error:
        fault = f"truncated or damaged: its tables point beyond its {len(body):,} bytes"
        raise ModelFormatError(f"not a readable .tflite model ({fault})", ErrorKind.DAMAGED) from error


def _end_of_buffers(data: bytes) -> int:
    """Return the end of the last byte that a buffer or custom options of a model claim, in or behind the flatbuffer."""
    return max(_followed(data, lambda table: list(_ends(table))), default=0)


def _ends(table: Any) -> Iterator[int]:
    for index in range(table.BuffersLength()):
        buffer = table.Buffers(index)
        if buffer.DataLength():
            yield buffer._tab.Vector(buffer._tab.Offset(_DATA_SLOT)) + buffer.DataLength()
        if buffer.Offset() > _NOT_BEHIND:
            yield buffer.Offset() + buffer.Size()
    for graph in map(table.Subgraphs, range(table.SubgraphsLength())):
        for operator in map(graph.Operators, range(graph.OperatorsLength())):
            if operator.LargeCustomOptionsOffset() > _NOT_BEHIND:
                yield operator.LargeCustomOptionsOffset() + operator.LargeCustomOptionsSize()


def _refuse(data: bytes) -> NoReturn:
    """Name the format of a file that does not begin as a model does."""
    if not data:
        raise ModelFormatError("the file is empty, not a .tflite model", ErrorKind.FORMAT)
    known = foreign_format(data)
    if known is not None:
        raise ModelFormatError(f"not a .tflite model but {known}", ErrorKind.FORMAT)
    raise ModelFormatError(
        f"not a .tflite model: bytes 4 to 8 are {repr(data[4:8])[1:]}, not {repr(IDENTIFIER)[1:]} (a wrong file, or "
        "one cut short)",
        ErrorKind.FORMAT,
    )


def _text(value: bytes | str | None) -> str | None:
    return value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else value


def _extras(table: Any, interpreted: Iterable[str]) -> dict[str, Any]:
    known = set(interpreted)
    extras = {name: value for name, value in vars(table).items() if name not in known}
    absent = frozenset(name for name in known if getattr(table, name) is None)
    return {**extras, ABSENT: absent} if absent else extras


def _at(items: Sequence[_T], index: int, what: str, where: str) -> _T:
    if not 0 <= index < len(items):
        raise ModelFormatError(f"{where}: {what} index {index} is out of range, the model has {len(items)}")
    return items[index]


def _rows(values: Any) -> Any:
    """Return a vector as the object API gives it; an absent one as empty."""
    return () if values is None else values


class _Reader:
    def __init__(self, root: Any, body: bytes) -> None:
        self.root = root
        self.body = body
        self.behind: set[int] = set()
        self.buffers = [self._buffer(i, table) for i, table in enumerate(_rows(root.buffers))]
        self.opcodes = [self._opcode(i, table) for i, table in enumerate(_rows(root.operatorCodes))]

    def model(self) -> Model:
        root = self.root
        graphs = [self._graph(i, table) for i, table in enumerate(_rows(root.subgraphs))]
        if not graphs:
            raise ModelFormatError("the model has no subgraph, so there is nothing to run")
        legacy = root.metadataBuffer
        behind = (tensor for graph in graphs for tensor in graph.tensors if id(tensor.buffer) in self.behind)
        return Model(
            version=int(root.version),
            description=_text(root.description),
            graphs=graphs,
            opcodes=self.opcodes,
            buffers=self.buffers,
            metadata=[(_text(m.name) or "", self._buffer_at(m.buffer, "metadata")) for m in _rows(root.metadata)],
            legacy_metadata=None if legacy is None else [self._buffer_at(b, "metadata_buffer") for b in legacy],
            signatures=None if root.signatureDefs is None else [self._signature(s, graphs) for s in root.signatureDefs],
            extras=_extras(root, _MODEL_FIELDS),
            constants_behind=tuple(tensor.name for tensor in behind if tensor.is_constant),
        )

    def _buffer_at(self, index: int, where: str) -> Buffer:
        return _at(self.buffers, int(index), "buffer", where)

    def _buffer(self, index: int, table: Any) -> Buffer:
        data, offset, size = table.data, int(table.offset), int(table.size)
        if offset > _NOT_BEHIND:
            if offset + size > len(self.body):
                raise ModelFormatError(f"buffer {index} lies at bytes {offset} to {offset + size}, outside the file")
            data = np.frombuffer(self.body, np.uint8, size, offset)
        buffer = Buffer(None if data is None else np.asarray(data, dtype=np.uint8))
        if offset > 1:
            self.behind.add(id(buffer))
        return buffer

    def _opcode(self, index: int, table: Any) -> OpCode:
        code = max(int(table.builtinCode), int(table.deprecatedBuiltinCode))
        name = builtin_name(code)
        if name is None:
            raise UnsupportedModelError(
                f"operator code {index} is number {code}, unknown to the installed schema; update ai-edge-litert"
            )
        return OpCode(name, int(table.version), _text(table.customCode), _extras(table, ("version", "customCode")))

    def _graph(self, index: int, table: Any) -> Graph:
        where = f"subgraph {index}"
        graph = Graph(_text(table.name) or "", _extras(table, ("name", "tensors", "inputs", "outputs", "operators")))
        for number, tensor in enumerate(_rows(table.tensors)):
            graph.add_tensor(self._tensor(tensor, f"{where}, tensor {number}"))
        pick = self._picker(graph.tensors)
        graph.inputs = tuple(pick(i, f"{where}, inputs") for i in _rows(table.inputs))
        graph.outputs = tuple(pick(i, f"{where}, outputs") for i in _rows(table.outputs))
        for number, operator in enumerate(_rows(table.operators)):
            self._add_operator(graph, operator, f"{where}, operator {number}")
        return graph

    @staticmethod
    def _picker(tensors: Sequence[Tensor]) -> Callable[[Any, str], Tensor]:
        return lambda index, where: _at(tensors, int(index), "tensor", where)

    def _tensor(self, table: Any, where: str) -> Tensor:
        dtype = dtype_of(int(table.type))
        if dtype is None:
            raise UnsupportedModelError(f"{where}: element type {table.type} is unknown; update ai-edge-litert")
        return Tensor(
            name=_text(table.name) or "",
            shape=tuple(int(dim) for dim in _rows(table.shape)),
            dtype=dtype,
            buffer=self._buffer_at(table.buffer, where),
            quantization=self._quantization(table.quantization),
            is_variable=bool(table.isVariable),
            extras=_extras(table, _TENSOR_FIELDS),
        )

    @staticmethod
    def _quantization(table: Any) -> Quantization | None:
        if table is None:
            return None
        return Quantization(
            scale=np.asarray(_rows(table.scale), dtype=np.float32),
            zero_point=np.asarray(_rows(table.zeroPoint), dtype=np.int64),
            axis=int(table.quantizedDimension),
            extras=_extras(table, ("scale", "zeroPoint", "quantizedDimension")),
        )

    def _add_operator(self, graph: Graph, table: Any, where: str) -> None:
        opcode = _at(self.opcodes, int(table.opcodeIndex), "operator code", where)
        where = f"{where} ({opcode.label})"
        pick = self._picker(graph.tensors)
        operator = Operator(
            opcode=opcode,
            inputs=tuple(None if i == -1 else pick(i, f"{where}, inputs") for i in _rows(table.inputs)),
            outputs=tuple(pick(i, f"{where}, outputs") for i in _rows(table.outputs)),
            options=self._options(table.builtinOptions, table.builtinOptionsType, where),
            options2=self._options(table.builtinOptions2, table.builtinOptions2Type, where),
            custom_options=self._custom_options(table, where),
            intermediates=tuple(pick(i, f"{where}, intermediates") for i in _rows(table.intermediates)),
            extras=_extras(table, _OPERATOR_FIELDS),
        )
        taken = next((t for t in operator.outputs if t.producer is not None), None)
        if taken is not None or len(set(map(id, operator.outputs))) < len(operator.outputs):
            name = (taken or operator.outputs[0]).name
            raise ModelFormatError(f"{where}: output tensor '{name}' is written more than once")
        graph.add_operator(operator)

    @staticmethod
    def _options(table: Any, union: int, where: str) -> OperatorOptions | None:
        if table is None and int(union) == 0:
            return None
        if table is None:
            raise UnsupportedModelError(
                f"{where}: its options are of kind {union}, which is missing or unknown; update ai-edge-litert"
            )
        return OperatorOptions(type(table).__name__.removesuffix("T"), dict(vars(table)))

    def _custom_options(self, table: Any, where: str) -> np.ndarray[Any, np.dtype[np.uint8]] | None:
        offset, size = int(table.largeCustomOptionsOffset), int(table.largeCustomOptionsSize)
        if offset <= _NOT_BEHIND or not size:
            return None if table.customOptions is None else np.asarray(table.customOptions, dtype=np.uint8)
        if offset + size > len(self.body):
            raise ModelFormatError(f"{where}: custom options at bytes {offset} to {offset + size}, outside the file")
        return np.frombuffer(self.body, np.uint8, size, offset)

    def _signature(self, table: Any, graphs: Sequence[Graph]) -> Signature:
        key = _text(table.signatureKey) or ""
        where = f"signature '{key}'"
        graph = _at(graphs, int(table.subgraphIndex), "subgraph", where)

        def bindings(maps: Any) -> tuple[tuple[str, Tensor], ...]:
            rows = _rows(maps)
            return tuple((_text(m.name) or "", _at(graph.tensors, int(m.tensorIndex), "tensor", where)) for m in rows)

        extras = _extras(table, ("signatureKey", "subgraphIndex", "inputs", "outputs"))
        return Signature(key, graph, bindings(table.inputs), bindings(table.outputs), extras)
