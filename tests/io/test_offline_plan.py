"""TFLM's offline plan: encoding, the one entry in the metadata, and plans that do not fit."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.faults import raises
from tests.models import ALL, branches, dense_model, if_model
from tflite_memopt.errors import ErrorKind, ModelFormatError
from tflite_memopt.model.io.offline_plan import METADATA_NAME, attach, decode, detach, encode
from tflite_memopt.model.io.reader import read_model
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.model.ir.model import Buffer, Model


def _with_plan(words: list[int]) -> Model:
    model = dense_model()
    model.metadata.append((METADATA_NAME, Buffer(np.frombuffer(np.asarray(words, "<i4").tobytes(), np.uint8))))
    return model


@pytest.mark.parametrize("build", ALL.values(), ids=ALL.keys())
def test_a_plan_survives_the_file(build: Callable[[], Model]) -> None:
    model = build()
    offsets = {tensor: 16 * i for i, tensor in enumerate(model.all_tensors) if not tensor.is_constant}
    attach(model, offsets)
    again = read_model(write_model(model))
    plan = decode(again)
    assert plan is not None
    places = {tensor: number for number, tensor in enumerate(again.all_tensors)}
    assert {places[tensor]: offset for tensor, offset in plan.items()} == {
        number: offsets[tensor] for number, tensor in enumerate(model.all_tensors) if tensor in offsets
    }


def test_the_words_are_those_that_tflm_reads() -> None:
    model = if_model()
    count = len(model.all_tensors)
    words = np.frombuffer(encode(model, {model.graphs[1].tensors[0]: 64}), "<i4").tolist()
    assert words[:3] == [1, 3, count]
    assert words[3:] == [64 if i == len(model.main.tensors) else -1 for i in range(count)]


def test_tensors_left_to_tflm_are_left_out() -> None:
    model = _with_plan([1, 1, 4, 0, -1, -1, -1])
    assert decode(model) == {model.main.tensors[0]: 0}


def test_a_model_without_a_plan_has_none() -> None:
    assert decode(branches()) is None


def test_the_last_plan_is_in_force() -> None:
    model = _with_plan([1, 1, 4, 0, 16, -1, -1])
    model.metadata += _with_plan([1, 1, 4, 32, 0, -1, -1]).metadata
    assert decode(model) == dict(zip(model.main.tensors[:2], (32, 0), strict=True))


def test_attaching_again_replaces_the_plan_and_its_buffer() -> None:
    model = dense_model()
    other = Buffer(np.ones(3, np.uint8))
    model.metadata.append(("other", other))
    attach(model, {model.main.tensors[0]: 0})
    once = len(write_model(model))
    buffers = len(model.buffers)
    for offset in (16, 32, 48):
        attach(model, {model.main.tensors[0]: offset})
    assert [name for name, _ in model.metadata] == ["other", METADATA_NAME]
    assert model.metadata[0][1] is other
    assert len(model.buffers) == buffers
    assert len(write_model(model)) == once
    assert decode(model) == {model.main.tensors[0]: 48}


def test_every_older_plan_of_a_file_goes() -> None:
    model = _with_plan([1, 1, 4, 0, -1, -1, -1])
    model.metadata += _with_plan([1, 1, 4, 32, 0, -1, -1]).metadata
    model = read_model(write_model(model))
    buffers = len(model.buffers)
    attach(model, {})
    assert len(model.metadata) == 1
    assert len(model.buffers) == buffers - 1
    assert decode(model) == {}


def test_detaching_keeps_a_buffer_that_something_else_uses() -> None:
    model = dense_model()
    attach(model, {})
    shared = model.metadata[0][1]
    model.metadata.append(("other", shared))
    detach(model)
    assert model.metadata == [("other", shared)]
    assert any(buffer is shared for buffer in model.buffers)


def test_detaching_without_a_plan_changes_nothing() -> None:
    model = dense_model()
    before = write_model(model)
    detach(model)
    assert write_model(model) == before


@pytest.mark.parametrize(
    "words", [[1, 1, 3, 0, 0, 0], [1, 1, 5, 0, 0, 0, 0, 0], [1, 1, 4, 0, 0, 0], [1, 1, -1], [1, 1, 0]]
)
def test_a_plan_for_another_graph_is_refused(words: list[int]) -> None:
    with raises(ModelFormatError, ErrorKind.DAMAGED):
        decode(_with_plan(words))


@pytest.mark.parametrize("data", [None, b"", bytes(8), bytes(13)])
def test_a_plan_too_short_or_torn_is_refused(data: bytes | None) -> None:
    model = dense_model()
    model.metadata.append((METADATA_NAME, Buffer(None if data is None else np.frombuffer(data, np.uint8))))
    with raises(ModelFormatError, ErrorKind.DAMAGED):
        decode(model)
