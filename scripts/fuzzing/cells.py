"""The cells of the table of what runtimes make of a file: models of one operator.

A cell has a key in words, which says all of it: the same key is the same model and the same inputs. Cells that end a
runtime's process, or make it read beyond a constant, are not made, but told of in ``LEFT_OUT``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial

import numpy as np

from scripts.fuzzing import conversions, elementwise, layers, moved
from scripts.fuzzing.cell import I32, TYPES, Cell, Key
from scripts.fuzzing.oracle import constant_of
from tests.models import if_model, streaming_model, while_model
from tflite_memopt.model.io.reader import read_model
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.model.ir.model import Buffer, Model, OpCode, Operator, Tensor

_WITH_SUBGRAPHS = (
    Cell(Key("CALL_ONCE", "int8"), streaming_model),
    Cell(Key("IF", "float32"), if_model),
    Cell(Key("WHILE", "int32, float32"), while_model),
)


def cells() -> list[Cell]:
    """All cells, each key once; then the first of each kind and type with its constant operands computed."""
    found = {cell.key: cell for family in (elementwise, layers, moved, conversions) for cell in family.cells()}
    seen: set[tuple[str, str]] = set()
    for cell in [*found.values()]:
        if cell.key[:2] not in seen:
            seen.add(cell.key[:2])
            found |= {each.key: each for each in _computed(cell)}
    return [*found.values(), *_WITH_SUBGRAPHS]


def _computed(cell: Cell) -> Iterator[Cell]:
    """The cell with operands computed that it has as constants: by the network's input, or from constants."""
    model = cell.make()
    if len(model.main.operators) > 1:
        return
    for at, tensor in enumerate(model.main.tensors):
        if not tensor.is_constant or not tensor.uses or tensor.dtype.label not in TYPE_LABELS:
            continue
        slot = tensor.uses[0].slot
        options = ", ".join(filter(None, (cell.key.options, f"operand {slot} computed")))
        values = constant_of(tensor).reshape(tensor.shape)
        yield Cell(cell.key._replace(options=options), partial(_as_input, cell.make, at), cell.domain, (values,))
        if tensor.dtype is I32 and tensor.quantization is None:
            key = cell.key._replace(options=f"{options} from constants")
            yield Cell(key, partial(_from_constants, cell.make, at), cell.domain)


TYPE_LABELS = frozenset(each.label for each in TYPES)


def _as_input(make: Callable[[], Model], at: int) -> Model:
    model = read_model(write_model(make()))
    tensor = model.main.tensors[at]
    tensor.buffer = Buffer(None)
    model.main.inputs = (*model.main.inputs, tensor)
    return model


def _from_constants(make: Callable[[], Model], at: int) -> Model:
    """The constant as the sum of itself and zeros."""
    model = read_model(write_model(make()))
    tensor = model.main.tensors[at]
    use = tensor.uses[0]
    zeros = Tensor(f"{tensor.name}/zeros", tensor.shape, tensor.dtype, Buffer(np.zeros(tensor.nbytes, np.uint8)))
    total = Tensor(f"{tensor.name}/sum", tensor.shape, tensor.dtype, Buffer(None))
    model.main.tensors += [zeros, total]
    model.main.set_input(use.operator, use.slot, total)
    model.main.add_operator(Operator(OpCode("ADD", 1, None), (tensor, zeros), (total,)), 0)
    return model


ANY = "any"
_ON_TFLM, _ON_LITERT = ("equal", "equal", "crashes"), ("crashes", "equal", "equal")
_WIDTH = "a bias of the other width"
LEFT_OUT: Mapping[Key, tuple[str, str, str]] = {
    Key("ATAN2", "float32", "", "", "a broadcast"): ("beyond", "beyond", "refuses"),
    Key("CONV_2D", "float32, float16", "", "4"): ("beyond", "beyond", "refuses"),
    Key("CONV_2D", "float32, int2", ANY, "4"): ("beyond", "beyond", "refuses"),
    Key("CONV_2D", "int16, int8, int32", ANY, "4", _WIDTH): ("beyond", "beyond", "1"),
    Key("DEPTHWISE_CONV_2D", "float32, int8", "per tensor", "4"): ("beyond", "beyond", "refuses"),
    Key("DEPTHWISE_CONV_2D", "int16, int4", ANY, "4"): ("beyond", "beyond", "refuses"),
    Key("FULLY_CONNECTED", "int16, int8, int32", ANY, "2", _WIDTH): ("equal", "beyond", "equal"),
    Key("DEPTHWISE_CONV_2D", "int16, int8, int32", ANY, "4", _WIDTH): ("refuses", "refuses", "beyond"),
    Key("DEPTHWISE_CONV_2D", ANY, ANY, "4", "no bias"): _ON_LITERT,
    Key("PRELU", "float32", "", "5 and more"): _ON_TFLM,
    Key("SLICE", ANY, ANY, "6"): _ON_TFLM,
    Key("SOFTMAX", "int8, int16", "as written", "4"): ("equal", "crashes", "refuses"),
    Key("SVDF", "float32, float32, float32", "", "2", "no bias"): _ON_TFLM,
    Key("TRANSPOSE_CONV", "int16, int8, int32", ANY, "4", _WIDTH): ("beyond", "beyond", "beyond"),
}
"""Cells that end the process of a runtime, or make it read beyond a constant, and what LiteRT, its reference kernels,
and TFLM make of them. They are told of here, and nothing makes them."""
