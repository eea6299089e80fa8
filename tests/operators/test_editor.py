"""The editor: where it writes, what it names, and what it uses again."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.dump import dump_model
from tests.model_builder import ModelBuilder
from tests.models import ALL, branches
from tests.profiles import examples
from tflite_memopt.model.ir.check import check_model
from tflite_memopt.model.ir.model import DType, Model, OpCode
from tflite_memopt.model.ir.tensors import per_tensor
from tflite_memopt.operators.editor import Editor


@pytest.mark.parametrize("build", ALL.values())
def test_an_operator_replaced_by_its_twin_leaves_the_same_model(build: Callable[[], Model]) -> None:
    model = build()
    before = dump_model(model)
    for graph in model.graphs:
        for position, operator in enumerate(list(graph.operators)):
            edit = Editor(model, graph, position + 1)
            edit.remove(operator)
            assert edit.position == position
            twin = edit.twin(operator, operator.inputs, operator.outputs)
            assert graph.operators[position] is twin
            assert edit.position == position + 1
    check_model(model)
    assert dump_model(model) == before


@examples(100)
@given(st.sampled_from(["branches", "mobile_chain", "concat_model"]), st.data())
def test_operators_come_in_order_before_the_position(name: str, data: st.DataObject) -> None:
    """A chain written after the operator that makes its input, read by all who read that."""
    model = ALL[name]()
    graph = model.main
    start = data.draw(st.integers(1, len(graph.operators)))
    x = graph.operators[start - 1].outputs[0]
    readers = {use.operator for use in x.uses}
    edit = Editor(model, graph, start)
    after = list(graph.operators[start:])
    last, written = x, []
    for _ in range(data.draw(st.integers(1, 4))):
        y = edit.activation(x.name, x.shape, x)
        written.append(edit.operator("RELU", (last,), (y,)))
        last = y
    uses = [use for use in x.uses if use.operator in readers]
    for use in uses:
        graph.set_input(use.operator, use.slot, last)
    graph.outputs = tuple(last if tensor is x else tensor for tensor in graph.outputs)
    assert list(graph.operators[start : start + len(written)]) == written
    assert list(graph.operators[start + len(written) :]) == after
    assert len({tensor.name for tensor in graph.tensors}) == len(graph.tensors)
    check_model(model)


def test_removing_an_operator_behind_the_position_does_not_move_it() -> None:
    model = branches()
    edit = Editor(model, model.main, 1)
    edit.remove(model.main.operators[-1])
    assert edit.position == 1
    edit.remove(model.main.operators[0])
    assert edit.position == 0


def test_new_tensors_are_like_another_and_have_no_data() -> None:
    model = branches()
    graph = model.main
    x = graph.inputs[0]
    edit = Editor(model, graph, 0)
    plain = edit.activation("new", (2, 3), x)
    other = edit.activation("new", (2, 3), x, per_tensor(0.5, 3))
    assert (plain.name, other.name) == ("new", "new_2")
    assert plain.dtype is x.dtype
    assert plain.quantization is x.quantization
    assert other.quantization is not None
    assert other.quantization.scale[0] == 0.5
    assert plain.buffer is model.buffers[0]
    assert not plain.is_constant
    assert edit.activation("new", (1,), x).name == "new_3"


def test_a_constant_is_made_once() -> None:
    model = branches()
    edit = Editor(model, model.main, 0)
    tensors, buffers = len(model.main.tensors), len(model.buffers)
    ones, quantization = np.ones(4, np.int8), per_tensor(0.1, 0)
    first = edit.constant("ones", ones)
    assert edit.constant("again", ones.copy()) is first
    different = (
        edit.constant("quantized", ones, quantization),
        edit.constant("shape", ones.reshape(2, 2)),
        edit.constant("type", np.frombuffer(ones.tobytes(), np.int32)),
        edit.constant("values", ones * 2),
    )
    assert len({first, *different}) == 5
    assert len(model.main.tensors) == tensors + 5
    assert len(model.buffers) == buffers + 5
    assert edit.constant("quantized", ones, quantization) is different[0]
    assert first.buffer.data is not None
    assert first.buffer.data.tolist() == [1, 1, 1, 1]
    assert [each.dtype for each in (first, different[2])] == [DType.INT8, DType.INT32]


def test_a_slice_is_stored_as_a_constant_of_its_own() -> None:
    model = branches()
    whole = np.arange(24, dtype=np.int16).reshape(2, 3, 4)
    tensor = Editor(model, model.main, 0).constant("slice", whole[..., 1:3])
    assert tensor.shape == (2, 3, 2)
    assert tensor.buffer.data is not None
    assert np.array_equal(tensor.buffer.data.view(np.int16).reshape(2, 3, 2), whole[..., 1:3])


@pytest.mark.parametrize(("dtype", "version"), [(DType.FLOAT32, 1), (DType.INT8, 2), (DType.INT16, 3)])
def test_operator_codes_have_the_version_of_the_type_and_are_used_again(dtype: DType, version: int) -> None:
    b = ModelBuilder()
    x = b.input("x", (1, 4), dtype)
    model = b.finish(x)
    model.opcodes.append(OpCode("CONCATENATION", 4))
    edit = Editor(model, model.main, 0)
    made = [edit.operator("PAD", (x,), (edit.activation("y", (1, 4), x),)) for _ in range(2)]
    assert made[0].opcode is made[1].opcode
    assert made[0].opcode.version == version
    join = edit.operator("CONCATENATION", (x,), (edit.activation("y", (1, 4), x),), "ConcatenationOptions", axis=1)
    assert join.opcode.version == 4
    assert join.options is not None
    assert join.options.fields == {"axis": 1}


def test_a_twin_can_have_other_options_and_leaves_those_of_the_original() -> None:
    model = branches()
    conv = model.main.operators[0]
    before = dict(conv.options.fields) if conv.options else {}
    edit = Editor(model, model.main, 0)
    x = model.main.inputs[0]
    twin = edit.twin(conv, conv.inputs, (edit.activation("y", (1, 8, 8, 4), x),), fusedActivationFunction=0)
    assert twin.options is not None
    assert twin.options.fields == {**before, "fusedActivationFunction": 0}
    assert conv.options is not None
    assert conv.options.fields == before
    assert before["fusedActivationFunction"] != 0
