"""Pieces and the ranges they are made of."""

from __future__ import annotations

import numpy as np
import pytest

from tests.models import concat_model, mobile_chain
from tflite_memopt import EquivalenceError, Options, optimize
from tflite_memopt.equivalence.correspondence import Link, links_between
from tflite_memopt.equivalence.failure import Subject
from tflite_memopt.equivalence.static_diff import first_stored_difference, interface_differences
from tflite_memopt.equivalence.verification import verify_result
from tflite_memopt.io.reader import read_model
from tflite_memopt.io.writer import write_model
from tflite_memopt.ir.copying import share_constants
from tflite_memopt.ir.model import Model, Origin, Quantization, Signature, Tensor, piece_of


def test_a_piece_is_compared_with_its_range() -> None:
    whole = np.arange(24).reshape(1, 4, 3, 2)
    link = Link(0, 0, (0, 1, 0, 0))
    found = link.range_of(whole, np.zeros((1, 2, 3, 2)))
    assert found is not None
    assert found.tolist() == whole[:, 1:3].tolist()
    assert link.range_of(whole, np.zeros((1, 4, 3, 2))) is None
    assert link.range_of(whole, np.zeros((4, 3, 2))) is None
    assert Link(0, 0).range_of(whole, np.zeros((4, 6))) is not None
    assert Link(0, 0).range_of(whole, np.zeros((4, 5))) is None


def test_pieces_of_pieces_add_up() -> None:
    model = mobile_chain()
    whole = model.main.inputs[0]
    whole.origin = Origin("other", (0, 2, 0, 1))
    assert piece_of(whole, 1, 3) == Origin("other", (0, 5, 0, 1))
    assert piece_of(whole, -1, 1) == Origin("other", (0, 2, 0, 2))


def test_names_that_stand_for_two_things_stand_for_nothing() -> None:
    before, after = mobile_chain(), mobile_chain()
    every = len(links_between(before.main, after.main, {}))
    assert every == len(before.main.tensors)
    after.main.tensors[3].name = after.main.tensors[4].name
    assert len(links_between(before.main, after.main, {})) == every - 2


def test_every_stripe_is_compared_and_a_wrong_one_is_named() -> None:
    data = write_model(mobile_chain(48))
    options = Options(samples=3, objective="head", kernels="reference")
    result = optimize(data, options)
    assert any(use.rule.startswith("cascade") for use in result.report.rewrites)
    optimized = read_model(result.model)
    pieces = {
        tensor.name: Origin(tensor.name.split("/stripe")[0], (0, 0, 0, 0))
        for tensor in optimized.main.tensors
        if "/stripe2of" in tensor.name and tensor.producer is not None and tensor.producer.name == "CONV_2D"
    }
    assert pieces
    wrong = Subject(data, data, result.model, pieces=pieces)
    with pytest.raises(EquivalenceError, match=r"not equal on litert: tensor '.*/stripe2of.*' differs by up to"):
        verify_result(wrong, Options(runtimes=("litert",), samples=2), lambda _: None)


def test_constants_and_scales_are_compared_without_a_run() -> None:
    original = concat_model()
    assert first_stored_difference(original, concat_model(), {}) is None
    shared = concat_model()
    share_constants(shared)
    assert first_stored_difference(original, shared, {}) is None
    weights = next(tensor for tensor in original.main.tensors if tensor.name == "conv1/weights")
    changed = named(concat_model(), "conv1/weights")
    data = changed[1].buffer.data
    assert data is not None
    changed[1].buffer.data = data ^ np.asarray([0] * (data.size - 1) + [1], np.uint8)
    assert first_stored_difference(original, changed[0], {}) == (
        "the constant 'conv1/weights' does not hold the original's values"
    )
    assert weights.quantization is not None
    model, tensor = named(concat_model(), "conv1/weights")
    tensor.quantization = Quantization(weights.quantization.scale * np.float32(2), weights.quantization.zero_point)
    assert "the quantization of tensor 'conv1/weights'" in (first_stored_difference(original, model, {}) or "")


def test_a_cut_constant_is_compared_with_its_channels() -> None:
    original, (model, tensor) = concat_model(), named(concat_model(), "conv1/weights")
    assert tensor.buffer.data is not None
    tensor.name, tensor.shape = "cut", (3, *tensor.shape[1:])
    row = tensor.buffer.data.size // 8
    tensor.buffer.data = tensor.buffer.data[2 * row : 5 * row]
    scales = tensor.quantization
    assert scales is not None
    assert scales.scale.size in (1, 8)
    if scales.scale.size == 8:
        tensor.quantization = Quantization(scales.scale[2:5], scales.zero_point[2:5], scales.axis)
    assert first_stored_difference(original, model, {"cut": Origin("conv1/weights", (2, 0, 0, 0))}) is None
    assert first_stored_difference(original, model, {"cut": Origin("conv1/weights", (1, 0, 0, 0))}) is not None


def test_the_interface_is_names_scales_and_signatures() -> None:
    original, other = mobile_chain(), mobile_chain()
    assert interface_differences(original, other) == ()
    other.main.inputs[0].name = "picture"
    other.main.outputs[0].quantization = None
    other.signatures = [Signature("serve", other.main, (("a", other.main.inputs[0]),), ())]
    said = interface_differences(original, other)
    assert "input 0 is called 'image' in one, 'picture' in the other" in said[0]
    assert "is quantized otherwise" in said[1]
    assert "the signatures are [] in one, ['serve'] in the other" in said[2]


def named(model: Model, name: str) -> tuple[Model, Tensor]:
    return model, next(tensor for tensor in model.main.tensors if tensor.name == name)
