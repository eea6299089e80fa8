"""Equal constants become one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.dump import dump_model
from tests.model_builder import ModelBuilder, per_channel
from tests.profiles import examples
from tests.rewrite.patterns import ARENA, F32, LITERT, TFLM, names_of
from tests.two_models import compare_models
from tflite_memopt.evidence.equivalence.inputs import seeded_inputs
from tflite_memopt.model.io.reader import read_model
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.model.ir.check import check_model
from tflite_memopt.model.ir.copying import share_constants
from tflite_memopt.model.ir.model import Model, Signature, Tensor
from tflite_memopt.model.ir.tensors import per_tensor

GOLDEN = """graph 0 main
  %0 x: int8[1, 4]
  %1 reshape0: int8[2, 2]
  %2 reshape0/shape: int32[2] const
  %3 reshape1: int8[2, 2]
  inputs %0
  0: %1 = RESHAPE(%0, %2) {newShape=[2, 2]}
  1: %3 = RESHAPE(%1, %2) {newShape=[2, 2]}
  outputs %3
"""


def convolutions(seeds: list[int]) -> Model:
    """Convolutions of one size one after the other; equal seeds make equal weights and biases, per channel."""
    b = ModelBuilder()
    x = b.input("x", (1, 5, 5, 4))
    for seed in seeds:
        x = b.depthwise(b.conv(x, 4, kernel=3, seed=seed), seed=seed)
    return b.finish(x)


@pytest.mark.parametrize("runtime", [LITERT, TFLM])
def test_operators_that_share_weights_compute_the_same_bits(runtime: str) -> None:
    model = convolutions([1, 2, 1, 2, 1])
    original, tensors = write_model(model), len(model.main.tensors)
    assert len(names_of(share_constants(model))) == 3 * 4
    check_model(model)
    shared = write_model(model)
    assert len(read_model(shared).main.tensors) == tensors - 12
    assert compare_models(runtime, original, shared, seeded_inputs(model, 3, 0), ARENA).equal


@given(seeds=st.lists(st.integers(0, 3), max_size=6))
@examples(30)
def test_as_many_tensors_and_buffers_are_left_as_there_are_values(seeds: list[int]) -> None:
    model = convolutions(seeds)
    share_constants(model)
    check_model(model)
    constants = [tensor for tensor in model.main.tensors if tensor.is_constant]
    assert len(constants) == 4 * len(set(seeds))
    assert len(model.buffers) == 1 + len(constants)


def test_the_golden_dump() -> None:
    b = ModelBuilder()
    model = b.finish(b.reshape(b.reshape(b.input("x", (1, 4)), (2, 2)), (2, 2)))
    assert names_of(share_constants(model)) == ("reshape1/shape",)
    assert dump_model(model) == GOLDEN


def two_constants() -> tuple[ModelBuilder, Model, Tensor, Tensor]:
    b = ModelBuilder()
    x = b.input("x", (1, 4))
    first, second = (b.constant(name, np.arange(4, dtype=np.int8), per_tensor(0.05, 0)) for name in ("c", "d"))
    return b, b.finish(b.add(b.add(x, first), second)), first, second


def test_equal_bytes_of_another_meaning_share_their_bytes_alone() -> None:
    for change in (
        lambda tensor: setattr(tensor, "quantization", per_tensor(0.06, 0)),
        lambda tensor: setattr(tensor, "quantization", per_tensor(0.05, 1)),
        lambda tensor: setattr(tensor, "quantization", per_channel(np.full(4, 0.05, np.float32), 0)),
        lambda tensor: setattr(tensor, "quantization", None),
        lambda tensor: setattr(tensor, "shape", (1, 4)),
        lambda tensor: [setattr(tensor, "dtype", F32), setattr(tensor, "shape", (1,))],  # type: ignore[func-returns-value]
        lambda tensor: setattr(tensor, "extras", {"sparsity": object()}),
    ):
        _, model, first, second = two_constants()
        change(second)
        buffers = len(model.buffers)
        assert not share_constants(model).uses
        assert first.buffer is second.buffer
        assert len(model.buffers) == buffers - 1


def test_names_of_the_interface_stay() -> None:
    _, model, _, second = two_constants()
    model.main.outputs = (*model.main.outputs, second)
    assert not share_constants(model).uses
    _, model, _, second = two_constants()
    model.signatures = [Signature("s", model.main, (), (("d", second),))]
    assert not share_constants(model).uses


def test_bytes_of_metadata_stay_in_the_file() -> None:
    _, model, _, second = two_constants()
    model.metadata = [("m", second.buffer)]
    share_constants(model)
    assert model.metadata[0][1] in model.buffers
    write_model(model)


def test_graphs_share_bytes_but_no_tensors() -> None:
    b, model, first, _ = two_constants()
    b.new_graph("other")
    again = b.constant("e", np.arange(4, dtype=np.int8), per_tensor(0.05, 0))
    b.finish(b.add(b.input("x", (1, 4)), again))
    assert names_of(share_constants(model)) == ("d",)
    assert again in model.graphs[1].tensors
    assert again.buffer is first.buffer
    check_model(model)
