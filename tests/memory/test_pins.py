"""Pins: kept, permitted where a relation permits them, refused by name otherwise."""

from __future__ import annotations

import pytest

from scripts.makers.model_builder import ModelBuilder
from tests.models import streaming_model
from tflite_memopt.errors import UsageError
from tflite_memopt.ir.model import DType, Model, Tensor
from tflite_memopt.ir.tensors import per_tensor
from tflite_memopt.kernels.profile import KernelProfile
from tflite_memopt.kernels.profiles import PORTABLE, REFERENCE
from tflite_memopt.memory.arrange import arrange
from tflite_memopt.memory.layout import memory_layout
from tflite_memopt.options import Options


def two_views() -> Model:
    """A reshape of the input: both tensors may lie at one place."""
    b = ModelBuilder()
    x = b.input("x", (1, 4, 4, 8))
    flat = b.reshape(x, (1, 128))
    return b.finish(b.dense(flat, 4))


def pins_of(model: Model, *offsets: int) -> tuple[tuple[str, int], ...]:
    """The input and the reshaped one at these offsets."""
    reshape = model.main.operators[0]
    return tuple(zip((model.main.inputs[0].name, reshape.outputs[0].name), offsets, strict=True))


def test_pins_that_a_relation_permits_are_taken() -> None:
    model = two_views()
    pins = pins_of(model, 64, 64)
    placement = arrange(model, PORTABLE, Options(pins=pins)).placement
    assert {tensor.name: offset for tensor, offset in placement.offsets.items() if tensor.name in dict(pins)} == dict(
        pins
    )


@pytest.mark.parametrize("profile", [PORTABLE, REFERENCE])
def test_pins_that_nothing_permits_are_refused_by_name(profile: KernelProfile) -> None:
    model = two_views()
    with pytest.raises(UsageError, match=r"pin 'x=64' collides with '.*=80': both are alive at once"):
        arrange(model, profile, Options(pins=pins_of(model, 64, 80)))


def test_a_pin_that_tflm_would_not_heed_is_refused() -> None:
    model = streaming_model()
    variable = Tensor("variable", (1, 8), DType.INT8, model.buffers[0], per_tensor(0.05, 0), is_variable=True)
    target = next(iter(memory_layout(model, PORTABLE).timeline.tensors))
    at, inner = model.main.tensors.index(target), model.graphs[1].tensors
    inner.extend(Tensor(f"filler{i}", (0,), DType.INT8, model.buffers[0]) for i in range(at))
    inner.insert(at, variable)
    with pytest.raises(UsageError, match=f"pin '{target.name}=0': TFLM places this tensor itself"):
        memory_layout(model, PORTABLE, ((target.name, 0),))
