"""check_model sees every broken link and size, whoever broke it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import tflite_memopt
from tests.faults import raises
from tests.model_builder import ModelBuilder
from tests.models import ALL, branches, dense_model, if_model, split_model
from tflite_memopt.errors import ErrorKind, ModelFormatError, UnsupportedModelError
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.model.ir.check import MAX_ACTIVATION_BYTES, MAX_TENSOR_BYTES, check_model, describe
from tflite_memopt.model.ir.model import Buffer, DType, Graph, Model, OperatorOptions, Tensor, Use


@pytest.mark.parametrize("build", ALL.values(), ids=ALL.keys())
def test_a_sound_model_passes(build: Callable[[], Model]) -> None:
    check_model(build())


def _lost_producer(graph: Graph) -> None:
    graph.tensors[1].producer = None


def _wrong_producer(graph: Graph) -> None:
    graph.tensors[1].producer = graph.operators[1]


def _producer_of_an_input(graph: Graph) -> None:
    graph.inputs[0].producer = graph.operators[0]


def _lost_use(graph: Graph) -> None:
    graph.inputs[0].uses.pop()


def _use_too_many(graph: Graph) -> None:
    graph.inputs[0].uses.append(Use(graph.operators[3], 0))


def _wrong_slot(graph: Graph) -> None:
    graph.inputs[0].uses[0] = Use(graph.operators[0], 1)


def _use_twice(graph: Graph) -> None:
    graph.inputs[0].uses.append(graph.inputs[0].uses[0])


def _edited_inputs(graph: Graph) -> None:
    graph.operators[3].inputs = (graph.inputs[0], graph.inputs[0])


LINKS = (_lost_producer, _wrong_producer, _producer_of_an_input, _lost_use, _use_too_many, _wrong_slot, _use_twice)


@pytest.mark.parametrize("damage", [*LINKS, _edited_inputs], ids=lambda damage: damage.__name__.strip("_"))
def test_a_wrong_link_is_found(damage: Callable[[Graph], None]) -> None:
    model = branches()
    damage(model.main)
    with raises(ModelFormatError, ErrorKind.LINKS, "subgraph 0"):
        check_model(model)


def test_a_tensor_of_another_graph_is_found() -> None:
    stranger = Tensor("stranger", (1, 8, 8, 4), DType.INT8, Buffer())
    model = branches()
    model.main.set_input(model.main.operators[3], 0, stranger)
    with raises(ModelFormatError, ErrorKind.FOREIGN_TENSOR, "operator 3 (ADD, 'add3')", "'stranger'"):
        check_model(model)
    for name in ("inputs", "outputs"):
        model = branches()
        setattr(model.main, name, (stranger,))
        with raises(ModelFormatError, ErrorKind.FOREIGN_TENSOR, "'stranger'"):
            check_model(model)
    model = branches()
    model.main.operators[0].intermediates = (stranger,)
    with raises(ModelFormatError, ErrorKind.FOREIGN_TENSOR, "operator 0 ", "'stranger'"):
        check_model(model)


def test_two_producers_are_found() -> None:
    model = split_model()
    model.main.operators[1].outputs = model.main.operators[0].outputs[1:2]
    with raises(ModelFormatError, ErrorKind.TWO_PRODUCERS, "operator 1 (ADD, 'part1')"):
        check_model(model)


def test_an_order_against_the_data_flow_is_found() -> None:
    model = branches()
    model.main.reorder([3, 0, 1, 2])
    with raises(ModelFormatError, ErrorKind.ORDER):
        check_model(model)


def test_damage_in_a_called_subgraph_is_found() -> None:
    model = if_model()
    model.graphs[2].tensors[1].producer = None
    with raises(ModelFormatError, ErrorKind.LINKS, "subgraph 2"):
        check_model(model)


def test_variables_and_empty_tensors_may_be_read_unwritten() -> None:
    for name in ("is_variable", "shape"):
        builder = ModelBuilder()
        x, state = builder.input("x", (1, 4)), builder.tensor("state", (1, 4))
        model = builder.finish(builder.add(x, state))
        with raises(ModelFormatError, ErrorKind.UNWRITTEN, "'state'"):
            check_model(model)
        setattr(state, name, True if name == "is_variable" else (0, 4))
        check_model(model)


def test_the_largest_tensor_passes_and_one_byte_more_does_not() -> None:
    model = dense_model()
    model.main.tensors[0].shape = (MAX_ACTIVATION_BYTES,)
    check_model(model)
    model.main.tensors[0].shape = (MAX_ACTIVATION_BYTES + 1,)
    with raises(UnsupportedModelError, ErrorKind.TOO_LARGE, f"{MAX_ACTIVATION_BYTES:,}"):
        check_model(model)
    model.main.tensors[0].shape = (MAX_TENSOR_BYTES + 1,)
    with raises(UnsupportedModelError, ErrorKind.TOO_LARGE, f"{MAX_TENSOR_BYTES:,}"):
        check_model(model)


def test_a_small_file_with_a_huge_input_is_refused_by_every_command() -> None:
    builder = ModelBuilder()
    x, y = builder.input("x", (1, 2**31 - 1)), builder.tensor("y", (1, 2**31 - 1))
    builder.operator("RELU", (x,), (y,))
    data = write_model(builder.finish(y))
    for command in (tflite_memopt.analyze, tflite_memopt.optimize, tflite_memopt.ram_of):
        with raises(UnsupportedModelError, ErrorKind.TOO_LARGE, "2,147,483,647 bytes"):
            command(data)


@pytest.mark.parametrize(
    ("dtype", "held"), [(DType.INT4, 3), (DType.INT8, 5), (DType.INT16, 10), (DType.FLOAT32, 20), (DType.INT64, 40)]
)
def test_a_constant_needs_all_its_packed_bits(dtype: DType, held: int) -> None:
    model = dense_model()
    buffer = Buffer(np.ones(held, np.uint8))
    model.main.add_tensor(Tensor("five", (5,), dtype, buffer))
    check_model(model)
    buffer.data = np.ones(held - 1, np.uint8)
    with raises(ModelFormatError, ErrorKind.BUFFER, "'five'", f" {held - 1} bytes", f" {held}"):
        check_model(model)


def test_a_sparse_constant_may_hold_fewer_bytes() -> None:
    model = dense_model()
    tensor = Tensor("sparse", (100,), DType.INT8, Buffer(np.ones(1, np.uint8)), extras={"sparsity": object()})
    model.main.add_tensor(tensor)
    check_model(model)
    tensor.extras = {"sparsity": None}
    with raises(ModelFormatError, ErrorKind.BUFFER, "'sparse'"):
        check_model(model)


def test_recursion_through_another_subgraph_is_found() -> None:
    model = if_model()
    builder = ModelBuilder()
    builder.operator("CALL_ONCE", (), (), "CallOnceOptions", initSubgraphIndex=0)
    model.graphs[2].add_operator(builder.graph.operators[0], 0)
    with raises(UnsupportedModelError, ErrorKind.RECURSION, "[0, 2]"):
        check_model(model)


def test_a_caller_without_options_is_refused() -> None:
    model = if_model()
    model.main.operators[0].options = OperatorOptions("IfOptions", {"elseSubgraphIndex": 1})
    with raises(ModelFormatError, ErrorKind.NO_SUCH_SUBGRAPH, " -1"):
        check_model(model)
    model.main.operators[0].options = None
    with raises(ModelFormatError, ErrorKind.NO_SUCH_SUBGRAPH, " -1"):
        check_model(model)


def test_an_operator_without_outputs_can_be_named() -> None:
    builder = ModelBuilder()
    operator = builder.operator("CALL_ONCE", (), ())
    assert describe(4, 2, operator) == "subgraph 4, operator 2 (CALL_ONCE, 'no output')"


def test_an_output_that_nothing_writes_is_refused() -> None:
    b = ModelBuilder()
    b.input("x", (1, 4))
    model = b.finish(b.tensor("lost", (1, 4)))
    with raises(ModelFormatError, ErrorKind.UNWRITTEN, "'lost'"):
        check_model(model)


@pytest.mark.parametrize("field", ["strideH", "dilationWFactor"])
def test_a_window_that_does_not_move_is_refused(field: str) -> None:
    b = ModelBuilder()
    model = b.finish(b.conv(b.input("x", (1, 4, 4, 2)), 3, kernel=3))
    options = model.main.operators[0].options
    assert options is not None
    model.main.operators[0].options = OperatorOptions(options.kind, {**options.fields, field: 0})
    with raises(ModelFormatError, ErrorKind.WINDOW, field):
        check_model(model)
    model.main.operators[0].options = None
    with raises(ModelFormatError, ErrorKind.WINDOW, "CONV_2D"):
        check_model(model)


def test_weights_without_a_value_are_refused() -> None:
    b = ModelBuilder()
    model = b.finish(b.conv(b.input("x", (1, 4, 4, 2)), 3, kernel=3))
    weights = next(tensor for tensor in model.main.tensors if tensor.name.endswith("weights"))
    weights.shape = (3, 3, 0, 2)
    with raises(ModelFormatError, ErrorKind.EMPTY, "[3, 3, 0, 2]"):
        check_model(model)
