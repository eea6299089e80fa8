"""The edits of Graph keep producers and uses right, or refuse and change nothing."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.faults import raises
from tests.model_builder import ModelBuilder
from tests.models import ALL, branches, dense_model, split_model
from tests.profiles import examples
from tflite_memopt.errors import ErrorKind, InfeasibleError
from tflite_memopt.model.ir.check import check_model
from tflite_memopt.model.ir.model import Buffer, DType, Graph, Model, OpCode, Operator, Tensor, Use

ADD = OpCode("ADD")


def _links(graph: Graph) -> dict[int, tuple[Operator | None, list[Use]]]:
    return {id(tensor): (tensor.producer, list(tensor.uses)) for tensor in graph.tensors}


def _new(name: str) -> Tensor:
    return Tensor(name, (1, 8, 8, 4), DType.INT8, Buffer())


def test_adding_an_operator_links_every_slot() -> None:
    graph = branches().main
    x, y = graph.inputs[0], graph.add_tensor(_new("y"))
    before = len(x.uses)
    operator = graph.add_operator(Operator(ADD, (x, None, x), (y,)), 0)
    assert graph.operators[0] is operator
    assert y.producer is operator
    assert x.uses[before:] == [Use(operator, 0), Use(operator, 2)]
    assert list(operator.present_inputs()) == [x, x]


def test_a_second_producer_is_refused_and_changes_nothing() -> None:
    model = branches()
    graph = model.main
    free = graph.add_tensor(_new("free"))
    before, operators = _links(graph), list(graph.operators)
    for outputs in ((free, graph.outputs[0]), (free, free)):
        with raises(InfeasibleError, ErrorKind.TWO_PRODUCERS):
            graph.add_operator(Operator(ADD, (graph.inputs[0],), outputs))
        assert _links(graph) == before
        assert list(graph.operators) == operators
    check_model(model)


def test_removing_an_operator_unlinks_every_slot() -> None:
    builder = ModelBuilder()
    x = builder.input("x", (1, 4))
    y = builder.add(x, x)
    z = builder.add(x, y)
    graph = builder.finish(z).main
    graph.remove_operator(graph.operators[0])
    (last,) = graph.operators
    assert y.producer is None
    assert x.uses == [Use(last, 0)]
    assert y.uses == [Use(last, 1)]
    assert y in graph.tensors


def test_an_operator_put_back_restores_the_links() -> None:
    for build in ALL.values():
        model = build()
        graph = model.main
        for position, operator in enumerate(list(graph.operators)):
            graph.remove_operator(operator)
            graph.add_operator(operator, position)
        check_model(model)
        assert graph.operators[0].name == build().main.operators[0].name


def test_setting_one_slot_leaves_the_others() -> None:
    builder = ModelBuilder()
    x, other = builder.input("x", (1, 4)), builder.input("other", (1, 4))
    y = builder.add(x, x)
    model = builder.finish(y)
    operator = model.main.operators[0]
    model.main.set_input(operator, 1, other)
    assert operator.inputs == (x, other)
    assert (x.uses, other.uses) == ([Use(operator, 0)], [Use(operator, 1)])
    model.main.set_input(operator, 0, None)
    assert list(operator.inputs) == [None, other]
    assert x.uses == []
    model.main.set_input(operator, 0, other)
    assert sorted(use.slot for use in other.uses) == [0, 1]
    check_model(model)


def test_replacing_uses_moves_readers_and_graph_outputs() -> None:
    model = split_model()
    graph = model.main
    add = graph.operators[1]
    old, new = add.inputs[0], graph.operators[0].outputs[1]
    assert old is not None
    graph.outputs = (old, add.outputs[0], old)
    graph.replace_uses(old, new)
    assert add.inputs[0] is new
    assert graph.outputs == (new, add.outputs[0], new)
    assert old.uses == []
    assert new.uses == [Use(add, 0)]
    check_model(model)


def test_replacing_a_tensor_by_itself_changes_nothing() -> None:
    model = branches()
    for tensor in model.main.tensors:
        model.main.replace_uses(tensor, tensor)
    check_model(model)
    assert len(model.main.inputs[0].uses) == 2


@pytest.mark.parametrize("pick", [lambda g: g.inputs[0], lambda g: g.outputs[0], lambda g: g.tensors[2]])
def test_a_tensor_in_use_is_not_removed(pick: Callable[[Graph], Tensor]) -> None:
    model = dense_model()
    unused = model.main.add_tensor(_new("unused"))
    with raises(InfeasibleError, ErrorKind.LINKS):
        model.main.remove_tensors([unused, pick(model.main)])
    assert unused in model.main.tensors
    check_model(model)


def test_an_interface_tensor_that_no_operator_touches_is_not_removed() -> None:
    builder = ModelBuilder()
    x, idle = builder.input("x", (1, 4)), builder.input("idle", (1, 4))
    model = builder.finish(builder.add(x, x), idle)
    with raises(InfeasibleError, ErrorKind.LINKS, "'idle'"):
        model.main.remove_tensors([idle])
    model.main.outputs = model.main.outputs[:1]
    with raises(InfeasibleError, ErrorKind.LINKS, "'idle'"):
        model.main.remove_tensors([idle])
    check_model(model)


def test_unused_tensors_are_removed_in_place() -> None:
    model = dense_model()
    names = [tensor.name for tensor in model.main.tensors]
    first, second = model.main.add_tensor(_new("a")), model.main.add_tensor(_new("b"))
    model.main.remove_tensors(iter([second, first, second]))
    assert [tensor.name for tensor in model.main.tensors] == names


def test_reordering_says_what_runs_at_each_step() -> None:
    model = branches()
    old = list(model.main.operators)
    model.main.reorder([1, 2, 0, 3])
    assert list(model.main.operators) == [old[1], old[2], old[0], old[3]]
    check_model(model)


@pytest.mark.parametrize("order", [[], [0, 1, 2], [0, 1, 2, 2], [1, 2, 3, 4], [0, 1, 2, 3, 4], [-1, 0, 1, 2]])
def test_an_order_that_is_no_permutation_is_refused(order: list[int]) -> None:
    graph = branches().main
    before = list(graph.operators)
    with raises(InfeasibleError, ErrorKind.ORDER):
        graph.reorder(order)
    assert list(graph.operators) == before


def _edit(model: Model, kind: str, draw: st.DataObject) -> None:
    graph = model.main
    operator = draw.draw(st.sampled_from(list(graph.operators)))
    early = [t for t in graph.tensors if t.shape == (1, 8, 8, 4) and (t in graph.inputs)]
    if kind == "add":
        y = graph.add_tensor(_new(f"new{len(graph.tensors)}"))
        pair = draw.draw(st.tuples(st.sampled_from(early), st.sampled_from([*early, None])))
        graph.add_operator(Operator(ADD, pair, (y,)), draw.draw(st.integers(0, len(graph.operators))))
    elif kind == "remove" and not any(tensor.uses for tensor in operator.outputs):
        graph.remove_operator(operator)
        graph.outputs = tuple(tensor for tensor in graph.outputs if tensor not in operator.outputs)
        graph.remove_tensors(operator.outputs)
    elif kind == "set":
        slot = draw.draw(st.integers(0, len(operator.inputs) - 1))
        graph.set_input(operator, slot, draw.draw(st.sampled_from([*early, None])))
    elif kind == "replace":
        graph.replace_uses(draw.draw(st.sampled_from(graph.tensors)), early[0])


@examples(100)
@given(st.lists(st.sampled_from(["add", "remove", "set", "replace"]), max_size=12), st.data())
def test_random_edits_keep_the_model_sound(kinds: list[str], draw: st.DataObject) -> None:
    model = branches()
    for kind in kinds:
        if model.main.operators:
            _edit(model, kind, draw)
        check_model(model)
