"""A network of one hop computes what the window computes: which rows slide, any network by proof and over calls."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cascade.networks import EVERY, TYPES, random_network
from tests.model_builder import ModelBuilder
from tests.profiles import examples
from tests.tflm import litert_and_tflm
from tflite_memopt.evidence.equivalence.adapter import RunJob
from tflite_memopt.evidence.equivalence.baseline import arena_for
from tflite_memopt.evidence.equivalence.inputs import verification_inputs
from tflite_memopt.evidence.equivalence.runner import Interpreters
from tflite_memopt.evidence.equivalence.sequences import run_streamed, windows_of
from tflite_memopt.evidence.proof import Status, prove_plan, prove_streamed, stream_of
from tflite_memopt.kernels.targets import profile_for
from tflite_memopt.memory.arrange import arrange
from tflite_memopt.memory.file import attach_plan, places_in_force, read_planned
from tflite_memopt.memory.problems import tie_positions, with_ties
from tflite_memopt.model.io.reader import read_model
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.model.ir.change import NOTHING_DECIDED
from tflite_memopt.model.ir.editor import SAME, VALID
from tflite_memopt.model.ir.model import DType, Graph, Model, Operator, Tensor
from tflite_memopt.operators.rows import Rows
from tflite_memopt.operators.table import row_map_of
from tflite_memopt.options import Options
from tflite_memopt.search.cascade.slide import Slid, Sliding, keepable, shares, slid, sliding

Row = tuple[object, ...]
"""What a row is computed of: two rows with the same are equal for all signals."""


def row_of(graph: Graph, first: int) -> Callable[[Tensor, int], Row]:
    """The rows of all tensors for the window that begins with row ``first`` of a signal."""
    source = graph.inputs[0]

    @cache
    def found(tensor: Tensor, at: int) -> Row:
        if tensor is source:
            return ("signal", first + at)
        operator = tensor.producer
        assert operator is not None
        row_map = row_map_of(operator)
        assert not isinstance(row_map, str)
        start, end = row_map.rows.reads(at, at + 1)
        read = [
            found(each, place) if 0 <= place < each.shape[1] else ("padding",)
            for each in row_map.images(operator)
            for place in range(start, end)
        ]
        return (id(operator), *read)

    return found


@examples(60)
@given(seed=st.integers(0, 10**6), layers=st.integers(1, 5), height=st.integers(8, 30), hop=st.integers(1, 6))
def test_the_rows_that_slide_are_those_that_the_next_window_has(seed: int, layers: int, height: int, hop: int) -> None:
    model = random_network(seed, DType.INT8, layers, height, ("conv", "depthwise", "average", "pad", "add", "relu"))
    graph = model.main
    found = sliding(graph, graph.inputs[0], hop)
    now, later = row_of(graph, 0), row_of(graph, hop)
    for operator in found.steps:
        output, interior = operator.outputs[0], found.interiors[operator.outputs[0]]
        height, rows = output.shape[1], interior.rows
        same = [at for at in range(interior.step, height) if now(output, at) == later(output, at - interior.step)]
        inside = [at for at in range(height) if "padding" not in repr(now(output, at))]
        assert inside == list(range(rows.start, rows.end))
        assert {*range(rows.start + interior.step, rows.end)} <= {*same}


def in_hops(model: Model, hop: int, choose: Callable[[list[int]], list[int]]) -> Slid | None:
    """The model of one hop that keeps some of the layers; None where none can be kept."""
    graph = model.main
    found = sliding(graph, graph.inputs[0], hop)
    every = [graph.operators.index(operator) for operator in keepable(graph, found)]
    return slid(model, 0, hop, choose(every)) if every else None


def planned(made: Slid) -> bytes:
    """The file with its plan, by which TFLM finds what is kept."""
    profile = profile_for(None, None)
    model = with_ties(made.model, made.ties, profile)
    placement = arrange(model, profile, Options(ties=made.ties, effort="quick").search, 0.01).placement
    model.main.reorder(placement.order)
    attach_plan(model, profile, placement, model, NOTHING_DECIDED, {"ties": made.ties})
    return write_model(model)


def assert_equal_over_hops(model: Model, made: Slid, interpreters: Interpreters, hops: int) -> None:
    data = planned(made)
    step = read_planned(data)
    assert prove_plan(step, places_in_force(step, profile_for(None, None))).proved
    windows = windows_of(verification_inputs(model, 3, 0), 0, step.main.inputs[0].elements, hops)
    for name in ("litert", "tflm"):
        wanted = interpreters[name].run(RunJob(write_model(model), windows, arena_for(model)))
        ties = tie_positions(step, made.ties)
        stream = stream_of("hop", step, model, ties)
        assert stream is not None
        ran = run_streamed(interpreters[name], data, stream, windows, model.main.outputs, arena_for(step))
        assert (wanted.error, ran.error) == (None, None), name
        for at, values in wanted.outputs.items():
            same = [one.tobytes() == other.tobytes() for one, other in zip(values, ran.outputs[at], strict=True)]
            assert all(same), (name, at, same.index(False))


@pytest.fixture(scope="module")
def interpreters() -> Iterator[Interpreters]:
    with litert_and_tflm() as running:
        yield running


@pytest.mark.slow
@examples(200)
@given(
    seed=st.integers(0, 10**6),
    dtype=st.sampled_from(TYPES),
    layers=st.integers(1, 7),
    height=st.integers(8, 40),
    hop=st.integers(1, 6),
    keeps=st.integers(0, 255),
)
def test_any_network_of_a_sequence_slides(
    seed: int, dtype: DType, layers: int, height: int, hop: int, keeps: int, interpreters: Interpreters
) -> None:
    model = from_file(random_network(seed, dtype, layers, height, EVERY))
    if hop >= height:
        return
    made = in_hops(model, hop, lambda every: [at for n, at in enumerate(every) if keeps >> n & 1 or keeps > 200])
    if made is None:
        return
    step = read_model(write_model(made.model))
    stream = stream_of("hop", step, model)
    assert stream is not None
    assert made.calls == stream.count == -(-height // hop)
    proof = prove_streamed("hop", model, step, tie_positions(step, made.ties))
    assert proof.status is Status.PROVED, str(proof)
    assert_equal_over_hops(model, made, interpreters, 100)


def network(padding: int) -> Model:
    """Three convolutions over a window of 24 rows, of which each reads three, and a dense layer on all that is left."""
    b = ModelBuilder()
    x = b.input("x", (1, 24, 1, 4))
    for seed in range(3):
        x = b.conv(x, 4, kernel=3, seed=seed, padding=padding) if padding == SAME else valid(b, x, seed)
    flat = b.reshape(x, (1, x.elements))
    return b.finish(b.dense(flat, 3))


def valid(b: ModelBuilder, x: Tensor, seed: int) -> Tensor:
    filters, bias = b._weights(f"v{seed}", (4, 3, 1, 4), 0, 4, seed)
    y = b.tensor(f"valid{seed}", (1, x.shape[1] - 2, 1, 4))
    b.operator("CONV_2D", (x, filters, bias), (y,), "Conv2DOptions", padding=VALID, strideH=1, strideW=1)
    return y


def from_file(model: Model) -> Model:
    return read_model(write_model(model))


def rows_made(found: Sliding, graph: Graph, keep: list[Operator]) -> Mapping[str, list[Rows]]:
    made = shares(graph, found, keep)
    return {each.outputs[0].name: [job.computed for job in made[each.outputs[0]].jobs] for each in found.steps}


def test_without_padding_each_row_is_computed_once() -> None:
    graph = network(VALID).main
    found = sliding(graph, graph.inputs[0], 2)
    assert list(rows_made(found, graph, list(found.steps)).values()) == [[Rows(20, 22)], [Rows(18, 20)], [Rows(16, 18)]]
    assert [each.rows for each in found.interiors.values()] == [Rows(0, 24), Rows(0, 22), Rows(0, 20), Rows(0, 18)]


def test_edges_grow_from_layer_to_layer_and_are_computed_anew() -> None:
    graph = network(SAME).main
    found = sliding(graph, graph.inputs[0], 1)
    assert [each.rows for each in found.interiors.values()] == [Rows(0, 24), Rows(1, 23), Rows(2, 22), Rows(3, 21)]
    made = list(rows_made(found, graph, list(found.steps)).values())
    assert made == [[Rows(0, 1), Rows(22, 24)], [Rows(0, 2), Rows(21, 24)], [Rows(0, 3), Rows(20, 24)]]


def test_what_is_not_kept_is_computed_again() -> None:
    graph = network(VALID).main
    found = sliding(graph, graph.inputs[0], 1)
    last = list(found.steps)[-1]
    assert list(rows_made(found, graph, [last]).values()) == [[Rows(17, 22)], [Rows(17, 20)], [Rows(17, 18)]]
    assert list(rows_made(found, graph, []).values()) == [[Rows(0, 22)], [Rows(0, 20)], [Rows(0, 18)]]


def test_a_kept_tensor_in_the_place_of_another_one_is_another_model() -> None:
    model = from_file(network(VALID))
    made = in_hops(model, 1, list)
    assert made is not None
    step = read_model(write_model(made.model))
    right = tie_positions(step, made.ties)
    assert prove_streamed("hop", model, step, right).status is Status.PROVED
    alike = [
        (a, b) for a in right for b in right if a < b and step.main.inputs[a[1]].shape == step.main.inputs[b[1]].shape
    ]
    (first, second), *_ = alike
    crossed = [tie for tie in right if tie not in (first, second)]
    crossed += [(first[0], second[1]), (second[0], first[1])]
    assert prove_streamed("hop", model, step, crossed).status is Status.DIFFERENT


def test_sliding_ends_where_a_stride_does_not_divide_the_hop() -> None:
    rng = random.Random(0)
    b = ModelBuilder()
    x = b.input("x", (1, 24, 1, 4))
    y = b.conv(x, 4, kernel=3, seed=rng.randrange(9))
    z = b.depthwise(y, stride=2, seed=2)
    graph = b.finish(z).main
    found = sliding(graph, graph.inputs[0], 1)
    assert [each.outputs[0] for each in found.steps] == [y]
    (why,) = found.ends.values()
    assert [name for name in ("by 1,", "stride, 2") if name not in why] == []
    assert [each.outputs[0] for each in sliding(graph, graph.inputs[0], 2).steps] == [y, z]
