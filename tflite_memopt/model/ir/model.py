"""Model, Graph, Operator, Tensor, Buffer: the objects that every stage works on.

Objects refer to objects; nothing here has an index, except where a list has a position. Edges are edited
only through the methods of :class:`Graph`, which keep ``Tensor.producer`` and ``Tensor.uses`` right.
Fields that the project does not interpret are kept in ``extras`` and written back untouched.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ...errors import ErrorKind, InfeasibleError


class DType(Enum):
    """An element type. The member's name is its name in the TFLite schema.

    The value is ``(label, arena_bytes, packed_bits)``: bytes of one element in TFLM's arena, and bits of one
    element in a constant buffer. They differ for the types smaller than a byte, which TFLM unpacks.
    ``arena_bytes`` is 0 for the types that TFLM does not place in the arena.
    Source: TFLM memory_helpers.cc, ``TfLiteTypeSizeOf``; a resource is a 4-byte handle.
    """

    FLOAT64 = ("float64", 8, 64)
    FLOAT32 = ("float32", 4, 32)
    FLOAT16 = ("float16", 2, 16)
    BFLOAT16 = ("bfloat16", 2, 16)
    FLOAT8_E4M3FN = ("float8_e4m3fn", 0, 8)
    FLOAT8_E5M2 = ("float8_e5m2", 0, 8)
    INT64 = ("int64", 8, 64)
    INT32 = ("int32", 4, 32)
    INT16 = ("int16", 2, 16)
    INT8 = ("int8", 1, 8)
    INT4 = ("int4", 1, 4)
    INT2 = ("int2", 0, 2)
    UINT64 = ("uint64", 8, 64)
    UINT32 = ("uint32", 4, 32)
    UINT16 = ("uint16", 2, 16)
    UINT8 = ("uint8", 1, 8)
    UINT4 = ("uint4", 0, 4)
    BOOL = ("bool", 1, 8)
    COMPLEX64 = ("complex64", 8, 64)
    COMPLEX128 = ("complex128", 16, 128)
    RESOURCE = ("resource", 4, 32)
    STRING = ("string", 0, 0)
    VARIANT = ("variant", 0, 0)

    label: str
    """Lower-case name for people; equal to numpy's name where numpy has the type."""
    arena_bytes: int
    """Bytes of one element in TFLM's arena; 0 when TFLM cannot hold the type."""
    packed_bits: int
    """Bits of one element in a constant buffer; 0 when elements have no fixed size."""

    def __init__(self, label: str, arena_bytes: int, packed_bits: int) -> None:
        self.label, self.arena_bytes, self.packed_bits = label, arena_bytes, packed_bits


Extras = Mapping[str, Any]
Bytes = npt.NDArray[np.uint8]
_NO_EXTRAS: Extras = {}


@dataclass(eq=False)
class Buffer:
    """A constant store. ``data`` is None for the empty buffer that activations refer to."""

    data: Bytes | None = None
    extras: Extras = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        """TFLM treats a missing and a zero-length data vector alike: the tensor is allocated."""
        return self.data is None or self.data.size == 0


@dataclass(eq=False)
class OpCode:
    """The builtin's name in the schema, or ``CUSTOM`` with a ``custom_code``."""

    name: str
    version: int = 1
    custom_code: str | None = None
    extras: Extras = field(default_factory=dict)

    @property
    def label(self) -> str:
        """Name for people: the custom code stands in for ``CUSTOM``."""
        return self.custom_code if self.name == "CUSTOM" and self.custom_code else self.name


@dataclass(frozen=True)
class OperatorOptions:
    """Parameters of an operator: the schema table's name without ``T`` and its fields by schema name."""

    kind: str
    fields: Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class Quantization:
    """Affine quantization: ``real = scale * (q - zero_point)``, per tensor or along ``axis``.

    ``scale`` is float32 of length 1 or of the size of ``axis``; ``zero_point`` is int64 of length 1 or as
    long as ``scale``. Both may be empty. Other fields of the table (min, max, details) are in ``extras``.
    """

    scale: npt.NDArray[np.float32]
    zero_point: npt.NDArray[np.int64]
    axis: int = 0
    extras: Extras = field(default_factory=dict)


class Use(NamedTuple):
    """One input slot that reads a tensor."""

    operator: Operator
    slot: int


@dataclass(eq=False)
class Tensor:
    """A value of an operator graph. ``shape`` is empty for a scalar.

    ``is_placeholder``: a variable that stands for a loop's result before the loop. Nobody reads its first value,
    so that it needs no bytes of its own and is planned with the result. Files do not say it.
    ``fixed_offset``: where an NPU's commands have it in the head, in bytes; the file's plan says it, and it must stay.
    ``is_piece``: a rewrite or a tiling made it as one of several pieces, which are not cut again. Files do not say it.
    """

    name: str
    shape: tuple[int, ...]
    dtype: DType
    buffer: Buffer
    quantization: Quantization | None = None
    is_variable: bool = False
    is_placeholder: bool = False
    fixed_offset: int | None = None
    extras: Extras = field(default_factory=dict)
    is_piece: bool = False
    producer: Operator | None = field(default=None, init=False, repr=False)
    uses: list[Use] = field(default_factory=list, init=False, repr=False)

    @property
    def elements(self) -> int:
        """Product of the dimensions; 1 for a scalar."""
        count = 1
        for dim in self.shape:
            count *= dim
        return count

    @property
    def nbytes(self) -> int:
        """Bytes in TFLM's arena, before alignment."""
        return self.elements * self.dtype.arena_bytes

    @property
    def file_bytes(self) -> int:
        """Bytes of a constant in the file: types of less than a byte are packed."""
        return -(-self.elements * self.dtype.packed_bits // 8)

    @property
    def is_constant(self) -> bool:
        """True when the values are in the file, so that the arena does not hold them."""
        return not self.buffer.is_empty


@dataclass(eq=False)
class Operator:
    """One operator. A missing optional input is None. Edit edges through :class:`Graph` only."""

    opcode: OpCode
    inputs: tuple[Tensor | None, ...]
    outputs: tuple[Tensor, ...]
    options: OperatorOptions | None = None
    options2: OperatorOptions | None = None
    custom_options: Bytes | None = None
    intermediates: tuple[Tensor, ...] = ()
    extras: Extras = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Builtin name in the schema, for example ``CONV_2D``, or ``CUSTOM``."""
        return self.opcode.name

    def option(self, name: str, default: Any = None) -> Any:
        """Value of one field of ``options``; ``default`` when the table or the field is absent."""
        return default if self.options is None else self.options.fields.get(name, default)

    def operand(self, slot: int) -> Tensor | None:
        """The tensor in an input slot; None where it is empty, or where the inputs end before it."""
        return self.inputs[slot] if slot < len(self.inputs) else None

    def required(self, slot: int) -> Tensor:
        """The tensor in an input slot that an operator of this kind never leaves empty."""
        tensor = self.inputs[slot]
        assert tensor is not None
        return tensor

    def present_inputs(self) -> Iterator[Tensor]:
        """Yield the inputs that are there, in order; a tensor read twice comes twice."""
        return (tensor for tensor in self.inputs if tensor is not None)


class Graph:
    """A subgraph: tensors, inputs, outputs, and operators in execution order.

    Invariant, kept by the methods: ``t.producer`` is the operator that lists ``t`` among its outputs, and
    ``t.uses`` holds exactly the input slots that read ``t``.
    """

    def __init__(self, name: str = "", extras: Extras = _NO_EXTRAS) -> None:
        self.name = name
        self.extras = extras
        self.tensors: list[Tensor] = []
        self.inputs: tuple[Tensor, ...] = ()
        self.outputs: tuple[Tensor, ...] = ()
        self._operators: list[Operator] = []

    @property
    def operators(self) -> Sequence[Operator]:
        """The operators in execution order. Edit through the methods."""
        return self._operators

    def add_tensor(self, tensor: Tensor) -> Tensor:
        """Append a tensor and return it."""
        self.tensors.append(tensor)
        return tensor

    def add_operator(self, operator: Operator, position: int | None = None) -> Operator:
        """Insert an operator before ``position`` (at the end when None) and link its tensors.

        Raises InfeasibleError, and changes nothing, when an output already has a producer or is listed twice.
        """
        for slot, tensor in enumerate(operator.outputs):
            producer = operator if tensor in operator.outputs[:slot] else tensor.producer
            if producer is not None:
                raise InfeasibleError(
                    f"tensor '{tensor.name}' would get a second producer, {operator.opcode.label}; "
                    f"it already comes from {producer.opcode.label}",
                    ErrorKind.TWO_PRODUCERS,
                )
        for tensor in operator.outputs:
            tensor.producer = operator
        for slot, tensor_or_none in enumerate(operator.inputs):
            if tensor_or_none is not None:
                tensor_or_none.uses.append(Use(operator, slot))
        self._operators.insert(len(self._operators) if position is None else position, operator)
        return operator

    def remove_operator(self, operator: Operator) -> None:
        """Remove an operator and unlink its tensors; the tensors stay in the graph."""
        self._operators.remove(operator)
        for tensor in operator.outputs:
            tensor.producer = None
        for tensor_or_none in {id(t): t for t in operator.present_inputs()}.values():
            tensor_or_none.uses = [use for use in tensor_or_none.uses if use.operator is not operator]

    def set_input(self, operator: Operator, slot: int, tensor: Tensor | None) -> None:
        """Make one input slot of ``operator`` read ``tensor`` instead."""
        old = operator.inputs[slot]
        if old is not None:
            old.uses.remove(Use(operator, slot))
        operator.inputs = (*operator.inputs[:slot], tensor, *operator.inputs[slot + 1 :])
        if tensor is not None:
            tensor.uses.append(Use(operator, slot))

    def replace_uses(self, old: Tensor, new: Tensor) -> None:
        """Make every reader of ``old``, the graph's outputs among them, read ``new``."""
        for use in list(old.uses):
            self.set_input(use.operator, use.slot, new)
        self.outputs = tuple(new if tensor is old else tensor for tensor in self.outputs)

    def remove_tensors(self, tensors: Iterable[Tensor]) -> None:
        """Drop tensors that nothing refers to. Raises InfeasibleError when one is still in use."""
        doomed = {id(tensor): tensor for tensor in tensors}
        interface = {id(tensor) for tensor in (*self.inputs, *self.outputs)}
        for tensor in doomed.values():
            if tensor.producer is not None or tensor.uses or id(tensor) in interface:
                raise InfeasibleError(f"tensor '{tensor.name}' is still in use and cannot be removed", ErrorKind.LINKS)
        self.tensors = [tensor for tensor in self.tensors if id(tensor) not in doomed]

    def reorder(self, order: Sequence[int]) -> None:
        """Set the execution order; ``order[s]`` is the present position of the operator to run at step s.

        Raises InfeasibleError when ``order`` is not a permutation.
        """
        if sorted(order) != list(range(len(self._operators))):
            raise InfeasibleError(
                f"graph '{self.name}': the new order is not a permutation of its operators", ErrorKind.ORDER
            )
        self._operators = [self._operators[position] for position in order]


@dataclass(eq=False)
class Signature:
    """A named entry point: argument names and the tensors of one graph that they stand for."""

    key: str
    graph: Graph
    inputs: tuple[tuple[str, Tensor], ...]
    outputs: tuple[tuple[str, Tensor], ...]
    extras: Extras = field(default_factory=dict)


@dataclass(frozen=True)
class AssociatedFile:
    """A file that travels with the model, such as a label list."""

    name: str
    data: bytes
    date_time: tuple[int, int, int, int, int, int] = (1980, 1, 1, 0, 0, 0)
    compressed: bool = False


@dataclass(eq=False)
class Model:
    """A whole model. ``graphs[0]`` is the entry; ``metadata`` maps names to buffers, in file order.

    ``ties``: outputs of the entry, by position, each with the input at whose place it lies: its value in the next
    invocation. Files do not say it.
    ``constants_behind``: names of tensors whose values lay behind the flatbuffer in the file (``Buffer.offset``). They
    are here as any others, and are written inline; TFLM reads none of them from such a file.
    """

    version: int
    description: str | None
    graphs: list[Graph]
    opcodes: list[OpCode]
    buffers: list[Buffer]
    metadata: list[tuple[str, Buffer]] = field(default_factory=list)
    legacy_metadata: list[Buffer] | None = None
    signatures: list[Signature] | None = None
    associated_files: tuple[AssociatedFile, ...] = ()
    extras: Extras = field(default_factory=dict)
    ties: tuple[tuple[int, int], ...] = ()
    constants_behind: tuple[str, ...] = ()

    @property
    def main(self) -> Graph:
        """The graph that an interpreter invokes."""
        return self.graphs[0]

    @property
    def all_operators(self) -> list[Operator]:
        """The operators of all graphs, in file order."""
        return [operator for graph in self.graphs for operator in graph.operators]

    @property
    def located_operators(self) -> list[tuple[int, int, Operator]]:
        """The same, with the position of the graph in the file, and of the operator in the graph."""
        return [(number, at, each) for number, one in enumerate(self.graphs) for at, each in enumerate(one.operators)]

    @property
    def all_tensors(self) -> list[Tensor]:
        """The tensors of all graphs, in file order: that of an offline plan's offsets."""
        return [tensor for graph in self.graphs for tensor in graph.tensors]

    @property
    def tied(self) -> tuple[tuple[Tensor, Tensor], ...]:
        """The ``ties`` as tensors: (output, input)."""
        return tuple((self.main.outputs[output], self.main.inputs[source]) for output, source in self.ties)
