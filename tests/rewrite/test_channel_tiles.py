"""Channels in tiles: the same bits of operators that make some channels at a time, and where the search uses them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.dump import dump_model
from tests.model_builder import ModelBuilder, per_channel
from tests.rewrite.patterns import F32, I8, I16, Branch, assert_exact, refusals, weights_quantization
from tflite_memopt import Options, optimize
from tflite_memopt.memory.arrange import cost_of
from tflite_memopt.memory.work import WorkLimit, instructions, slowest
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.model.ir.change import Changed
from tflite_memopt.model.ir.editor import add_buffer
from tflite_memopt.model.ir.model import Buffer, DType, Model, Tensor
from tflite_memopt.model.ir.tensors import nibbles, packed, per_tensor, values
from tflite_memopt.search.rewrite.channels import channel_tiles, tile_sizes
from tflite_memopt.search.rewrite.engine import Driver
from tflite_memopt.search.rewrite.tiles import KnownTiles, TileSearch

BIASES = {F32: np.float32, I8: np.int32, I16: np.int64}


def read(branch: Branch, y: Tensor) -> None:
    """An operator that needs the whole, so that what is compared is what the tiles are joined to."""
    z = branch.tensor((1, int(np.prod(y.shape))), y.dtype)
    z.quantization = y.quantization
    branch.run("RESHAPE", (y, branch.ints(*z.shape)), z, "ReshapeOptions")


def constants(branch: Branch, shape: tuple[int, ...], dtype: DType, axis: int) -> list[Tensor]:
    """Weights, and at times a bias, of the channels of an axis."""
    channels = shape[axis]
    values = branch.values(shape, F32 if dtype is F32 else I8)
    scales = None if dtype is F32 else weights_quantization(branch, channels, axis)
    weights = branch.constant(values if dtype is F32 else np.maximum(values, -127), scales)
    rng = np.random.default_rng(branch.random.getrandbits(32))
    return [weights, branch.constant(rng.integers(-900, 900, channels).astype(BIASES[dtype]))]


def convolution(branch: Branch) -> None:
    pick = branch.random
    dtype, kernel, stride = pick.choice((F32, I8, I8, I16)), pick.choice((1, 3)), pick.choice((1, 2))
    is_depthwise = pick.random() < 0.3
    depth, channels = 1 if is_depthwise else pick.randint(1, 5), pick.choice((3, 5, 8, 16))
    x = branch.input((pick.choice((1, 2)), 6, 5, depth), dtype, **branch.quantization(dtype))
    y = branch.tensor((x.shape[0], -(-6 // stride), -(-5 // stride), channels), dtype, **branch.quantization(dtype))
    fields: dict[str, Any] = {"padding": 0, "strideH": stride, "strideW": stride}
    fields |= {"fusedActivationFunction": pick.choice((0, 1))}
    if is_depthwise:
        operands = constants(branch, (1, kernel, kernel, channels), dtype, 3)
        kind, fields["depthMultiplier"] = "DepthwiseConv2DOptions", channels
        branch.builder.operator("DEPTHWISE_CONV_2D", (x, *operands), (y,), kind, **fields)
    else:
        operands = constants(branch, (channels, kernel, kernel, depth), dtype, 0)
        branch.builder.operator("CONV_2D", (x, *operands), (y,), "Conv2DOptions", **fields)
    read(branch, y)


def in_four_bits(branch: Branch) -> None:
    """A convolution, whose weights have 4 bits where it is one of int8: tiles may begin in the middle of a byte."""
    convolution(branch)
    made = branch.builder.graph.operators[-2]
    weights = made.inputs[1]
    assert weights is not None
    whole = values(weights)
    if made.name == "CONV_2D" and made.outputs[0].dtype is I8 and whole is not None:
        weights.dtype = DType.INT4
        weights.buffer = add_buffer(branch.builder.model, packed(np.maximum(whole >> 4, -7)))


def dense(branch: Branch) -> None:
    pick = branch.random
    dtype, depth, channels = pick.choice((F32, I8, I16)), pick.randint(1, 9), pick.choice((7, 8, 16))
    x = branch.input((pick.randint(1, 3), depth), dtype, **branch.quantization(dtype))
    y = branch.tensor((x.shape[0], channels), dtype, **branch.quantization(dtype))
    operands = constants(branch, (channels, depth), dtype, 0)
    branch.builder.operator("FULLY_CONNECTED", (x, *operands), (y,), "FullyConnectedOptions")
    read(branch, y)


def lookup(branch: Branch) -> None:
    pick = branch.random
    dtype, words, channels = pick.choice((F32, I8)), pick.randint(2, 9), pick.choice((3, 5, 8))
    ids = branch.constant(np.asarray([[pick.randint(0, 2) for _ in range(words)]], np.int32))
    y = branch.tensor((1, words, channels), dtype, **branch.quantization(dtype))
    table = branch.constant(branch.values((3, channels), dtype), y.quantization)
    branch.builder.operator("GATHER", (table, ids), (y,), "GatherOptions", axis=0)
    x = branch.input(y.shape, dtype, **branch.quantization(dtype))
    branch.run("MAXIMUM", (x, x), branch.builder.tensor(branch.name("z"), y.shape, dtype), "MaximumMinimumOptions")
    read(branch, y)


@pytest.mark.parametrize(("pattern", "count"), [(convolution, 20), (in_four_bits, 20), (dense, 8), (lookup, 6)])
def test_the_same_bits(pattern: Any, count: int) -> None:
    assert_exact(channel_tiles(3), pattern, 0, count)


@pytest.mark.parametrize("shape", [(2, 3), (3, 3)])
def test_values_of_four_bits_are_packed_and_unpacked(shape: tuple[int, ...]) -> None:
    whole = (np.arange(np.prod(shape)) - 4).astype(np.int8).reshape(shape)
    tensor = Tensor("w", shape, DType.INT4, Buffer(packed(whole)))
    found = nibbles(tensor)
    assert found is not None
    assert found.tolist() == whole.tolist()
    assert nibbles(Tensor("w", (9, 9), DType.INT4, tensor.buffer)) is None


def test_sizes_are_whole_vectors_where_they_can_be() -> None:
    assert tile_sizes(40, 3) == (16, 12, 12)
    assert tile_sizes(10, 3) == (4, 3, 3)
    assert tile_sizes(8, 3) == (3, 3, 2)


GOLDEN = """graph 0 main
  %0 x: int8[1, 2, 2, 1]
  %1 conv0: int8[1, 2, 2, 3]
  %2 conv0/weights: int8[3, 1, 1, 1] const
  %3 conv0/bias: int32[3] const
  %4 pool1: int8[1, 1, 1, 3]
  %5 conv0/part0: int8[1, 2, 2, 1]
  %6 conv0/weights/part0: int8[1, 1, 1, 1] const
  %7 conv0/bias/part0: int32[1] const
  %8 conv0/part1: int8[1, 2, 2, 1]
  %9 conv0/weights/part1: int8[1, 1, 1, 1] const
  %10 conv0/bias/part1: int32[1] const
  %11 conv0/part2: int8[1, 2, 2, 1]
  %12 conv0/weights/part2: int8[1, 1, 1, 1] const
  %13 conv0/bias/part2: int32[1] const
  inputs %0
  0: %5 = CONV_2D(%0, %6, %7) {fusedActivationFunction=1, padding=0, strideH=1, strideW=1}
  1: %8 = CONV_2D(%0, %9, %10) {fusedActivationFunction=1, padding=0, strideH=1, strideW=1}
  2: %11 = CONV_2D(%0, %12, %13) {fusedActivationFunction=1, padding=0, strideH=1, strideW=1}
  3: %1 = CONCATENATION(%5, %8, %11) {axis=3}
  4: %4 = AVERAGE_POOL_2D(%1) {filterHeight=2, filterWidth=2, padding=1, strideH=2, strideW=2}
  outputs %4
"""


def changed(name: str) -> Model:
    """A convolution that something is wrong with."""
    b = ModelBuilder()
    x = b.input("x", (1, 4, 4, 2))
    y = b.conv(x, 6)
    operator = y.producer
    assert operator is not None
    weights = operator.inputs[1]
    assert weights is not None
    if name == "grouped":
        x.shape = (1, 4, 4, 4)
    elif name == "axis":
        weights.quantization = per_channel(np.full(2, 0.1, np.float32), 3)
    elif name == "types":
        y.dtype = DType.UINT8
    elif name == "returned":
        return b.finish(y)
    elif name == "few":
        operator = b.conv(b.conv(x, 1), 2).producer
    z = b.tensor("z", (1, 96), y.dtype)
    b.operator("RESHAPE", (y, b.constant("shape", np.asarray([1, 96], np.int32))), (z,), "ReshapeOptions")
    return b.finish(z, *(operator.outputs if name == "few" and operator is not None else ()))


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("grouped", "it is grouped: its channels depend on some of the input's"),
        ("types", "its types are not those of the kernels"),
        ("returned", "'conv0' is returned as a whole, or not read"),
        (
            "axis",
            "its weights or its bias are computed, packed, or quantized in another way than by output channel",
        ),
    ],
)
def test_refusals(name: str, reason: str) -> None:
    assert refusals(changed(name), channel_tiles(2)) == [reason]


def test_other_refusals() -> None:
    b = ModelBuilder()
    x = b.input("x", (1, 4, 4, 2))
    one = b.tensor("two", (1, 4, 4, 2))
    table = b.constant("table", np.zeros((1, 4, 4, 2), np.int8), per_tensor(0.05, 0))
    b.operator("GATHER", (table, b.input("ids", (1,), DType.INT32)), (one,), "GatherOptions", axis=0)
    narrow = b.conv(x, 1)
    wide = b.depthwise(x)
    model = b.finish(b.add(one, wide), b.add(narrow, narrow))
    assert refusals(model, channel_tiles(2)) == [
        "its weights or its bias are computed, packed, or quantized in another way than by output channel",
        "it cannot be made in 2 tiles: it has 1 channels, and TFLM joins 10",
        "its channels depend on one of the input's each",
    ]


def test_no_tile_of_a_dense_layer_has_one_of_several_scales_alone() -> None:
    """One scale is multiplied in float32, several in float64: the multipliers may differ in the last bit."""
    b = ModelBuilder()
    y = b.dense(b.input("x", (1, 8)), 3)
    weights = y.producer.inputs[1] if y.producer is not None else None
    assert weights is not None
    weights.quantization = per_channel(np.linspace(0.001, 0.003, 3, dtype=np.float32), 0)
    assert refusals(b.finish(b.softmax(y)), channel_tiles(2)) == [
        "'dense0' has a scale for each channel, and one alone is rounded in another way"
    ]


def text_model() -> Model:
    """An embedding, its mean and a classifier: no rows to cut, since the mean is over all words."""
    b = ModelBuilder()
    ids = b.input("ids", (1, 64), DType.INT32)
    values = np.random.default_rng(1).integers(-127, 128, (20, 32)).astype(np.int8)
    words = b.tensor("words", (1, 64, 32))
    b.operator("GATHER", (b.constant("table", values, per_tensor(0.05, 0)), ids), (words,), "GatherOptions", axis=0)
    mean = b.tensor("mean", (1, 32), scale=0.01)
    b.operator("MEAN", (words, b.constant("axes", np.asarray([1], np.int32))), (mean,), "ReducerOptions")
    return b.finish(b.dense(mean, 2))


def test_the_search_makes_an_embedding_in_tiles() -> None:
    options = Options(samples=2, objective="head", kernels="reference", verify=False, max_slowdown=1.0)
    data = write_model(text_model())
    report = optimize(data, options).report
    assert [use.rule for use in report.rewrites] == ["8 channel_tiles + split_spatial"]
    assert report.before.arena_bytes >= 64 * 32
    assert report.after.arena_bytes < report.before.arena_bytes // 3  # the words themselves, and a tile
    assert report.after.macs == report.before.macs
    left = optimize(data, replace(options, budget=report.before.arena_bytes)).report
    assert not left.rewrites


@pytest.mark.parametrize(
    ("limit", "rules"),
    [(0.01, []), (0.03, ["4 channel_tiles + split_spatial"]), (0.1, ["8 channel_tiles + split_spatial"])],
)
def test_there_are_as_many_tiles_as_the_limit_on_run_time_allows(limit: float, rules: list[str]) -> None:
    options = Options(objective="head", kernels="reference", verify=False, max_slowdown=limit)
    report = optimize(write_model(text_model()), options).report
    assert [use.rule for use in report.rewrites] == rules
    assert slowest(report.before.instructions, report.after.instructions) <= limit


def test_what_is_known_of_tiles_is_what_a_new_search_finds() -> None:
    model, options = text_model(), Options(objective="head", kernels="reference", verify=False)
    work = WorkLimit(instructions(model, options.profile), 1.0, options.profile)
    known, other = (
        TileSearch(options.profile, lambda *_: Changed(model, (), ()), options.search, None, 0, work, lambda _: None)
        for _ in range(2)
    )
    first, again, anew = (each.find_tiles(model, model, (2, 3, 8), 10_000) for each in (known, known, other))
    assert first.sites == again.sites == anew.sites
    assert first.sites
    assert first.cost == again.cost == anew.cost
    assert dump_model(first.model) == dump_model(again.model) == dump_model(anew.model)
    assert len(known.known.gone) == len(known.known.found) == 1
    assert first.model is not again.model


def test_what_is_known_of_tiles_is_not_the_answer_under_other_options() -> None:
    """One cache may serve runs whose rewritten models are equal, whatever they were asked."""
    model, known = text_model(), KnownTiles()
    options = Options(objective="head", kernels="reference", verify=False)
    work = instructions(model, options.profile)
    slower = {name: 2 * each for name, each in work.items()}
    others = [replace(options, **each) for each in ({"objective": "total"}, {"seed": 1}, {"allow_approximate": True})]
    for asked, before in ((options, work), (options, work), (options, slower), *((each, work) for each in others)):
        limit = WorkLimit(before, 1.0, asked.profile)
        run = asked.profile, lambda *_: Changed(model, (), ()), asked.search, None, 0, limit, lambda _: None, known
        TileSearch(*run).find_tiles(model, model, (2, 3, 8), 10_000)
    assert (len(known.gone), len(known.found)) == (2, 5)


def expanded(dtype: DType) -> Model:
    """Two pointwise convolutions with a wide image between them."""
    b = ModelBuilder()
    rng = np.random.default_rng(2)
    x = b.input("x", (1, 4, 4, 8), dtype)
    for number, (depth, channels) in enumerate(((8, 64), (64, 8))):
        y = b.tensor(f"y{number}", (1, 4, 4, channels), dtype, scale=0.05)
        values = rng.integers(-127, 128, (channels, 1, 1, depth)).astype(np.int8)
        if dtype is DType.INT8:
            weights = b.constant(f"w{number}", values, per_tensor(0.002, 0))
        else:
            weights = b.constant(f"w{number}", values.astype(np.float32) / 500)
        bias = np.zeros(channels, BIASES[dtype])
        b.operator("CONV_2D", (x, weights, b.constant(f"b{number}", bias)), (y,), "Conv2DOptions", strideH=1, strideW=1)
        x = y
    return b.finish(x)


@pytest.mark.slow
@pytest.mark.parametrize(("dtype", "exactness"), [(F32, "reassociates"), (I8, "approximates")])
def test_partial_sums_of_tiles_are_proved(dtype: DType, exactness: str) -> None:
    options = Options(samples=2, objective="head", kernels="reference", cascade=False, max_slowdown=1.0)
    data = write_model(expanded(dtype))
    if dtype is I8:
        assert not optimize(data, replace(options, verify=False)).report.rewrites
        options = replace(options, allow_approximate=True)
    report = optimize(data, options).report
    (use,) = report.rewrites
    assert (use.rule.split(" + ")[-1], use.exactness) == ("partial_convolution", exactness)
    assert report.after.arena_bytes < report.before.arena_bytes * 3 // 4
    assert report.equivalence["litert"].equal
    assert report.equivalence["tflm"].equal


def test_the_drawing() -> None:
    b = ModelBuilder()
    b.finish(b.average_pool(b.conv(b.input("x", (1, 2, 2, 1)), 3), 2))
    driver = Driver(b.model)
    driver.apply_everywhere((channel_tiles(3),))
    assert dump_model(b.model) == GOLDEN


def gated(returned: bool = False) -> Model:
    """Four gates that are cut out of one convolution, as in a convolutional LSTM."""
    b = ModelBuilder()
    made, gates = b.conv(b.input("x", (1, 12, 12, 4)), 32, 3), []
    for gate in range(4):
        part = b.tensor(f"gate{gate}", (1, 12, 12, 8))
        part.quantization = made.quantization
        said = {"begin": (0, 0, 0, 8 * gate), "size": part.shape}
        limits = (b.constant(f"{part.name}/{name}", np.asarray(at, np.int32)) for name, at in said.items())
        b.operator("SLICE", (made, *limits), (part,), "SliceOptions")
        gates.append(part)
    y = b.add(b.add(gates[0], gates[1]), b.add(gates[2], gates[3]))
    return b.finish(y, *((made,) if returned else ()))


def test_gates_cut_out_of_a_convolution_are_its_tiles() -> None:
    options = Options(samples=2, cascade=False, max_slowdown=1.0)
    found = optimize(write_model(gated()), options)
    assert "4 channel_tiles + slice_of_concatenation" in [use.rule for use in found.report.rewrites]
    assert found.report.proofs["result"].status == "proved"
    assert {found.report.equivalence[name].equal for name in ("litert", "tflm")} == {True}
    assert found.report.after.arena_bytes < 0.7 * found.report.before.arena_bytes
    kept = optimize(write_model(gated(returned=True)), replace(options, verify=False)).report.rewrites
    assert "channel_tiles" not in " ".join(use.rule for use in kept)


def test_tiles_beyond_the_limit_on_run_time_are_none_even_where_no_tiles_need_more_than_is_to_be_beaten() -> None:
    model, options = text_model(), Options(kernels="reference", objective="head")
    need = cost_of(model, options.profile, options.search).need
    for extra, is_found in ((1.0, True), (0.0, False)):
        work = WorkLimit(instructions(model, options.profile), extra, options.profile)
        search = TileSearch(options.profile, lambda *_: Changed(model), options.search, None, 0, work, lambda _: None)
        found = search.find_tiles(model, model, (2, 3, 8), need - 64)
        assert bool(found.sites) == is_found
        assert work.is_kept_by(found.model)
