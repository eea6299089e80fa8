"""Channels that no weight reads are deleted, and nothing else changes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.model_builder import ModelBuilder
from tests.rewrite.patterns import assert_same_bits
from tflite_memopt import Options, optimize
from tflite_memopt.evidence.proof import Status, prove
from tflite_memopt.evidence.proof.facts import RESCALED
from tflite_memopt.model.io.reader import read_model
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.model.ir.check import check_model
from tflite_memopt.model.ir.model import Model, Operator, Tensor
from tflite_memopt.model.ir.tensors import values
from tflite_memopt.search.rewrite.dead_channels import drop_dead_channels

_LAYERS = ("conv", "wide", "depthwise", "pool", "residual", "concat", "reshape", "pad_free")


def without(model: Model, operator: Operator, channels: list[int]) -> None:
    """Set the weights of an operator for some channels of its input to 0."""
    weights = operator.inputs[1]
    assert weights is not None
    array = values(weights)
    assert array is not None
    changed = array.copy()
    changed[..., channels] = 0
    weights.buffer.data = np.frombuffer(changed.tobytes(), np.uint8)


@st.composite
def networks(draw: st.DrawFn) -> Model:
    b = ModelBuilder()
    y = b.conv(b.input("x", (1, 8, 8, 3)), draw(st.integers(2, 9)), kernel=3, seed=1)
    for seed, layer in enumerate(draw(st.lists(st.sampled_from(_LAYERS), max_size=6)), 2):
        y = _grown(b, y, layer, seed)
    model = b.finish(b.conv(y, 4, seed=90))
    for operator in model.main.operators[1:]:
        if operator.name == "CONV_2D":
            depth = operator.inputs[0].shape[-1]  # type: ignore[union-attr]
            without(model, operator, draw(st.lists(st.integers(0, depth - 1), max_size=depth)))
    return model


def _grown(b: ModelBuilder, y: Tensor, layer: str, seed: int) -> Tensor:
    depth = y.shape[3]
    if layer == "depthwise":
        return b.depthwise(y, seed=seed)
    if layer == "pool" and y.shape[1] > 1:
        return b.average_pool(y, 2)
    if layer == "residual":
        return b.add(y, b.conv(y, depth, seed=seed))
    if layer == "concat":
        return b.concat([y, b.conv(y, 3, seed=seed)])
    if layer == "reshape":
        return b.reshape(b.reshape(y, (1, y.shape[1] * y.shape[2], 1, depth)), y.shape)
    return b.conv(y, depth + 3 if layer == "wide" else 5, kernel=3, seed=seed)


@pytest.mark.slow
@settings(max_examples=20)
@given(networks(), st.sampled_from((1, 4, 8)))
def test_the_result_is_the_same_for_all_inputs(model: Model, block: int) -> None:
    original = write_model(model)
    before = read_model(original)
    dead = drop_dead_channels(model, block)
    check_model(model)
    assert prove(before, read_model(write_model(model))).status is Status.PROVED
    assert (not dead.uses) == (write_model(before) == write_model(model))


@settings(max_examples=20)
@given(networks())
def test_the_file_leaves_open_what_the_original_leaves_open(model: Model) -> None:
    """An NPU's compiler leaves each operator to the CPU whose tensors have an open side beyond the batch."""
    for tensor in model.main.tensors:
        if tensor.shape and not tensor.is_constant:
            tensor.extras = {"shapeSignature": np.asarray((-1, *tensor.shape[1:]), np.int32)}
    drop_dead_channels(model)
    for tensor in read_model(write_model(model)).main.tensors:
        signature = tensor.extras.get("shapeSignature")
        assert signature is None or tuple(signature) == (-1, *tensor.shape[1:])


@settings(max_examples=20)
@given(networks())
def test_each_channel_that_stays_is_read(model: Model) -> None:
    """The slow way: a random value in one channel of a tensor in the middle reaches a sum that is read."""
    drop_dead_channels(model)
    assert not drop_dead_channels(model).uses
    for operator in model.main.operators[1:]:
        tensor = operator.inputs[0]
        assert tensor is not None
        readers = [use.operator for use in tensor.uses if use.slot == 0]
        if tensor.shape[-1] == 1 or any(each.name != "CONV_2D" for each in readers):
            continue
        read = np.zeros(tensor.shape[-1], bool)
        for each in readers:
            weights = values(each.inputs[1])  # type: ignore[arg-type]
            assert weights is not None
            read |= (weights != 0).any((0, 1, 2))
        # Tensors joined by an operator keep a channel that one of them needs.
        assert read.all() or tensor.producer is None or tensor.producer.name != "CONV_2D"


def dead_half() -> Model:
    b = ModelBuilder()
    y = b.depthwise(b.conv(b.input("x", (1, 8, 8, 3)), 16, kernel=3, seed=1), seed=2)
    model = b.finish(b.conv(y, 4, seed=3))
    without(model, model.main.operators[2], list(range(1, 16, 2)))
    return model


def test_the_same_bits_on_both_runtimes() -> None:
    model = dead_half()
    original = write_model(model)
    dead = drop_dead_channels(model)
    assert [use.rule for use in dead.uses] == ["dead_channels: 8 of 20 channels"]
    assert [tensor.shape[-1] for tensor in (op.outputs[0] for op in model.main.operators)] == [8, 8, 4]
    assert_same_bits(original, write_model(model), [0], 0)


def silent_half() -> Model:
    """Every other channel is far below 0 before its RELU for any input, and its readers have weights for it."""
    b = ModelBuilder()
    y = b.depthwise(b.conv(b.input("x", (1, 8, 8, 3)), 16, kernel=3, seed=1), seed=2)
    model = b.finish(b.conv(y, 4, seed=3))
    for operator in model.main.operators[:2]:
        bias = operator.inputs[2]
        assert bias is not None
        bias.buffer.data = np.frombuffer(np.asarray([500, -500_000] * 8, np.int32).tobytes(), np.uint8)
    return model


@pytest.mark.parametrize(("block", "kept"), [(1, 8), (4, 8), (32, 16)])
def test_channels_that_are_the_zero_point_for_all_inputs_are_deleted(block: int, kept: int) -> None:
    model = silent_half()
    original = write_model(model)
    dead = drop_dead_channels(model, block)
    check_model(model)
    assert [op.outputs[0].shape[-1] for op in model.main.operators] == [kept, kept, 4]
    proof = prove(read_model(original), read_model(write_model(model)))
    assert proof.status is Status.PROVED, proof
    if dead.uses:
        assert RESCALED in proof.facts
        assert_same_bits(original, write_model(model), [0], 0)


def test_silent_channels_that_fill_a_block_are_read_with_weights_of_0() -> None:
    """So that the proof holds where stripes hide a range."""
    model = silent_half()
    original = write_model(model)
    bias = model.main.operators[0].inputs[2]
    assert bias is not None
    drop_dead_channels(model, 12)
    kept = values(model.main.operators[2].inputs[1])  # type: ignore[arg-type]
    assert kept is not None
    assert kept.shape[-1] == 12
    assert int((kept == 0).all((0, 1, 2)).sum()) == 4
    result = optimize(original, Options(samples=3, effort="quick"))
    assert any(each.rule.startswith("dead_channels") for each in result.report.rewrites)
    assert result.report.proofs["result"].status == "proved"


@pytest.mark.parametrize(("block", "kept"), [(1, 3), (4, 4), (8, 8), (32, 16)])
def test_channels_that_fill_the_last_block_stay(block: int, kept: int) -> None:
    model = dead_half()
    without(model, model.main.operators[2], [1, 3, *range(5, 16)])
    original = write_model(model)
    drop_dead_channels(model, block)
    assert [op.outputs[0].shape[-1] for op in model.main.operators] == [kept, kept, 4]
    assert_same_bits(original, write_model(model), [0], 0)


def test_the_report_says_what_was_dead() -> None:
    report = optimize(write_model(dead_half()), Options(effort="quick", cascade=False)).report
    (dead,) = (use for use in report.rewrites if use.rule == "dead_channels: 8 of 20 channels")
    assert dead.saved_bytes > 0
    assert report.after.macs < report.before.macs


@pytest.mark.parametrize("outside", ["returned", "softmax", "dense over pixels"])
def test_what_others_read_whole_stays(outside: str) -> None:
    b = ModelBuilder()
    y = b.conv(b.input("x", (1, 4, 4, 3)), 8, seed=1)
    z = b.conv(y, 4, seed=2)
    other = {"returned": lambda: y, "softmax": lambda: b.softmax(y)}.get(outside)
    more = b.dense(b.reshape(y, (1, 128)), 2, seed=3) if other is None else other()
    model = b.finish(z, more)
    without(model, model.main.operators[1], [0, 5])
    assert not drop_dead_channels(model).uses
