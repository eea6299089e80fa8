"""Model -> bytes of a .tflite file. This is where objects get their numbers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from ai_edge_litert import schema_py_generated as schema

from ..ir.model import Buffer, Extras, Graph, Model, OpCode, Operator, OperatorOptions, Quantization, Signature, Tensor
from . import associated_files
from .flatbuffer import IDENTIFIER, AligningBuilder, SharedTable, builtin_code
from .reader import ABSENT

_LAST_OLD_BUILTIN = 127
"""``PLACEHOLDER_FOR_GREATER_OP_CODES``: the value of the old one-byte field for newer operators."""


def write_model(model: Model) -> bytes:
    """Serialize a model: every buffer starts on a multiple of 16 bytes, associated files are appended."""
    builder = AligningBuilder(1 << 16)
    builder.Finish(_Writer(model).root().Pack(builder), IDENTIFIER)
    return associated_files.append(bytes(builder.Output()), model.associated_files)


def _fill(table: Any, extras: Any, **fields: Any) -> Any:
    """Set fields of an object-API table; an interpreted field that was absent and is still empty stays so."""
    absent = extras.get(ABSENT, frozenset())
    for name, value in extras.items():
        if name != ABSENT:
            setattr(table, name, value)
    for name, value in fields.items():
        still_absent = name in absent and (value is None or (hasattr(value, "__len__") and len(value) == 0))
        setattr(table, name, None if still_absent else value)
    return table


def _encoded(text: str | None) -> bytes | None:
    return None if text is None else text.encode("utf-8", "surrogateescape")


def _vector(numbers: Iterable[int]) -> Any:
    return np.asarray(list(numbers), dtype=np.int32)


class _Writer:
    def __init__(self, model: Model) -> None:
        self.model = model
        operators = model.all_operators
        self.opcodes = _numbered([*model.opcodes, *(op.opcode for op in operators)])
        tensors = model.all_tensors
        metadata = [buffer for _, buffer in model.metadata]
        self.buffers = _numbered([*model.buffers, *(tensor.buffer for tensor in tensors), *metadata])
        self.graphs = _numbered(model.graphs)
        self._shared: dict[tuple[Any, ...], SharedTable] = {}

    def root(self) -> Any:
        model = self.model
        legacy, signatures = model.legacy_metadata, model.signatures
        return _fill(
            schema.ModelT(),
            model.extras,
            version=model.version,
            description=_encoded(model.description),
            operatorCodes=[self._opcode(code) for code in self.opcodes],
            subgraphs=[self._graph(graph) for graph in model.graphs],
            buffers=[_fill(schema.BufferT(), buffer.extras, data=buffer.data) for buffer in self.buffers],
            metadata=[self._metadata(name, buffer) for name, buffer in model.metadata],
            metadataBuffer=None if legacy is None else _vector(self.buffers[buffer] for buffer in legacy),
            signatureDefs=None if signatures is None else [self._signature(s) for s in signatures],
        )

    def _metadata(self, name: str, buffer: Buffer) -> Any:
        return _fill(schema.MetadataT(), {}, name=_encoded(name), buffer=self.buffers[buffer])

    @staticmethod
    def _opcode(opcode: OpCode) -> Any:
        extras = dict(opcode.extras)
        if "builtinCode" not in extras:
            code = builtin_code(opcode.name)
            extras |= {"builtinCode": code, "deprecatedBuiltinCode": min(code, _LAST_OLD_BUILTIN)}
        return _fill(schema.OperatorCodeT(), extras, version=opcode.version, customCode=_encoded(opcode.custom_code))

    def _graph(self, graph: Graph) -> Any:
        numbers = _numbered(graph.tensors)
        return _fill(
            schema.SubGraphT(),
            graph.extras,
            name=_encoded(graph.name),
            tensors=[self._tensor(tensor) for tensor in graph.tensors],
            inputs=_vector(numbers[tensor] for tensor in graph.inputs),
            outputs=_vector(numbers[tensor] for tensor in graph.outputs),
            operators=[self._operator(operator, numbers) for operator in graph.operators],
        )

    def _tensor(self, tensor: Tensor) -> Any:
        quantization, signature = tensor.quantization, tensor.extras.get("shapeSignature")
        table = _fill(
            schema.TensorT(),
            # The bindings write an array as it lies in memory: one of 64 bits would be read as twice as many numbers.
            tensor.extras if signature is None else {**tensor.extras, "shapeSignature": _vector(signature)},
            name=_encoded(tensor.name),
            shape=_vector(tensor.shape),
            type=getattr(schema.TensorType, tensor.dtype.name),
            buffer=self.buffers[tensor.buffer],
            quantization=self._quantization(quantization),
            isVariable=tensor.is_variable,
        )
        own = (tensor.name, tensor.shape, tensor.dtype, table.buffer, id(table.quantization), tensor.is_variable)
        return self._once(("tensor", *own, *_contents(tensor.extras)), table)

    def _quantization(self, quantization: Quantization | None) -> Any:
        if quantization is None:
            return None
        table = _fill(
            schema.QuantizationParametersT(),
            quantization.extras,
            scale=quantization.scale,
            zeroPoint=quantization.zero_point,
            quantizedDimension=quantization.axis,
        )
        points = quantization.scale.tobytes(), quantization.zero_point.tobytes()
        return self._once(("quantization", *points, quantization.axis, *_contents(quantization.extras)), table)

    def _once(self, key: tuple[Any, ...], table: Any) -> SharedTable:
        """Return the table, or one like it that is in the file already."""
        return self._shared.setdefault(key, SharedTable(table))

    def _operator(self, operator: Operator, numbers: dict[Tensor, int]) -> Any:
        table = _fill(
            schema.OperatorT(),
            operator.extras,
            opcodeIndex=self.opcodes[operator.opcode],
            inputs=_vector(-1 if tensor is None else numbers[tensor] for tensor in operator.inputs),
            outputs=_vector(numbers[tensor] for tensor in operator.outputs),
            intermediates=_vector(numbers[tensor] for tensor in operator.intermediates),
        )
        table.customOptions = operator.custom_options
        table.builtinOptionsType, table.builtinOptions = _options(operator.options, second=False)
        table.builtinOptions2Type, table.builtinOptions2 = _options(operator.options2, second=True)
        return table

    def _signature(self, signature: Signature) -> Any:
        numbers = _numbered(signature.graph.tensors)

        def maps(bindings: tuple[tuple[str, Tensor], ...]) -> list[Any]:
            return [_fill(schema.TensorMapT(), {}, name=_encoded(n), tensorIndex=numbers[t]) for n, t in bindings]

        return _fill(
            schema.SignatureDefT(),
            signature.extras,
            signatureKey=_encoded(signature.key),
            subgraphIndex=self.graphs[signature.graph],
            inputs=maps(signature.inputs),
            outputs=maps(signature.outputs),
        )


def _contents(extras: Extras) -> Iterator[tuple[str, object]]:
    """Yield a key that is equal for tables of equal contents; the same object where it is not seen through."""
    for name, value in sorted(extras.items()):
        if isinstance(value, np.ndarray) or value not in (None, 0):
            is_plain = isinstance(value, (int, float, str, bytes, frozenset))
            yield name, value if is_plain else id(value)


def _numbered(items: Iterable[Any]) -> dict[Any, int]:
    numbers: dict[Any, int] = {}
    for item in items:
        numbers.setdefault(item, len(numbers))
    return numbers


def _options(options: OperatorOptions | None, second: bool) -> tuple[int, Any]:
    if options is None:
        return 0, None
    kinds = schema.BuiltinOptions2 if second else schema.BuiltinOptions
    return getattr(kinds, options.kind), _fill(getattr(schema, f"{options.kind}T")(), options.fields)
