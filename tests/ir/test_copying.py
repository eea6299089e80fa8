"""Copies of models: the same by their dump and their bytes, and apart from then on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.dump import dump_model
from tests.model_builder import ModelBuilder
from tests.models import ALL, dense_model
from tests.profiles import examples
from tests.test_random_models import random_model
from tflite_memopt.model.io.reader import read_model
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.model.ir.check import check_model
from tflite_memopt.model.ir.copying import copy_model, unlinked_twin
from tflite_memopt.model.ir.model import Buffer, Model, OperatorOptions


@pytest.mark.parametrize("build", ALL.values())
def test_a_copy_is_written_to_the_same_bytes(build: Callable[[], Model]) -> None:
    for model in (build(), read_model(write_model(build()))):
        copied = copy_model(model)
        check_model(copied)
        assert dump_model(copied) == dump_model(model)
        assert write_model(copied) == write_model(model)


@pytest.mark.parametrize("build", ALL.values())
def test_no_object_that_can_be_edited_is_shared(build: Callable[[], Model]) -> None:
    model = build()
    model.legacy_metadata = []
    copied = copy_model(model)
    for name in ("graphs", "opcodes", "buffers", "metadata", "legacy_metadata"):
        assert getattr(copied, name) is not getattr(model, name), name
    for old, new in zip(model.graphs, copied.graphs, strict=True):
        assert old is not new
        assert not set(old.tensors) & set(new.tensors)
        assert not set(old.operators) & set(new.operators)
        assert {use.operator for tensor in new.tensors for use in tensor.uses} <= set(new.operators)
        assert {tensor.producer for tensor in new.tensors} <= {None, *new.operators}


@pytest.mark.parametrize("build", ALL.values())
def test_every_field_is_copied_but_for_the_links(build: Callable[[], Model]) -> None:
    model = build()
    for old in model.main.tensors:
        twin, plain = unlinked_twin(old), replace(old)
        assert [getattr(twin, each.name) for each in fields(old)] == [getattr(plain, each.name) for each in fields(old)]
    linked = {"inputs", "outputs", "intermediates"}
    for before, after in zip(model.main.operators, copy_model(model).main.operators, strict=True):
        kept = [each.name for each in fields(before) if each.name not in linked]
        assert all(getattr(before, name) is getattr(after, name) for name in kept)


def test_weights_are_shared() -> None:
    model = dense_model()
    assert all(old is new for old, new in zip(model.buffers, copy_model(model).buffers, strict=True))


def test_signatures_speak_of_the_copy() -> None:
    model = dense_model()
    copied = copy_model(model)
    assert model.signatures is not None
    assert copied.signatures is not None
    ((old,), (new,)) = model.signatures, copied.signatures
    assert new.graph is copied.main
    assert [name for name, _ in new.inputs] == [name for name, _ in old.inputs]
    assert [tensor for _, tensor in new.inputs] == list(copied.main.inputs)
    assert [tensor for _, tensor in new.outputs] == list(copied.main.outputs)


def _edit(model: Model, number: int) -> None:
    """One edit of each kind there is, somewhere in the main graph."""
    graph = model.main
    operator = graph.operators[number % len(graph.operators)]
    tensor = graph.tensors[number % len(graph.tensors)]
    kind = number % 7
    if kind == 0:
        graph.remove_operator(operator)
    elif kind == 1:
        graph.replace_uses(tensor, graph.tensors[0])
    elif kind == 2:
        tensor.name, tensor.shape = "renamed", (9, *tensor.shape)
    elif kind == 3:
        tensor.quantization, tensor.buffer = None, Buffer()
    elif kind == 4:
        graph.reorder(list(range(len(graph.operators)))[::-1])
    elif kind == 5:
        operator.options = OperatorOptions("AddOptions", {"fusedActivationFunction": 1})
    else:
        model.buffers.append(Buffer())
        model.metadata.append(("note", model.buffers[-1]))
        model.signatures = None
        graph.inputs, graph.outputs = (), ()


@examples(150)
@given(st.sampled_from(list(ALL)), st.lists(st.integers(0, 999), min_size=1, max_size=6), st.booleans())
def test_edits_of_one_do_not_show_in_the_other(name: str, edits: list[int], of_copy: bool) -> None:
    model = ALL[name]()
    copied = copy_model(model)
    edited, kept = (copied, model) if of_copy else (model, copied)
    before, data = dump_model(kept), write_model(kept)
    for number in edits:
        if edited.main.operators:
            _edit(edited, number)
    assert dump_model(kept) == before
    assert write_model(kept) == data
    check_model(kept)


@examples(30)
@given(st.integers(0, 10**6))
def test_copies_of_random_networks(seed: int) -> None:
    model = random_model(seed)
    assert dump_model(copy_model(copy_model(model))) == dump_model(model)


def test_missing_inputs_and_intermediates_stay_where_they_are() -> None:
    b = ModelBuilder()
    x, inner = b.input("x", (1, 4)), b.tensor("inner", (1, 4))
    y = b.tensor("y", (1, 4))
    operator = b.operator("RELU", (None, x, None), (y,))
    operator.intermediates = (inner,)
    copied = copy_model(b.finish(y)).main
    (twin,) = copied.operators
    assert twin.inputs == (None, copied.tensors[0], None)
    assert twin.intermediates == (copied.tensors[1],)
