"""The heads of an attention split: the same values, and stripes along the queries."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.cascade.test_lower import assert_equal
from tests.dump import dump_model
from tests.model_builder import ModelBuilder, per_channel
from tests.rewrite.test_sequences_along_h import along_h
from tflite_memopt import Options
from tflite_memopt.kernels.profiles import PORTABLE
from tflite_memopt.memory.arrange import arrange
from tflite_memopt.memory.layout import memory_layout
from tflite_memopt.model.ir.check import check_model
from tflite_memopt.model.ir.copying import copy_model
from tflite_memopt.model.ir.model import DType, Model, Tensor
from tflite_memopt.model.ir.tensors import per_tensor
from tflite_memopt.operators.table import row_map_of
from tflite_memopt.search.cascade.region import regions_above
from tflite_memopt.search.cascade.search import promising_orders
from tflite_memopt.search.cascade.tiling import Tiling, Unrolled, apply_tilings
from tflite_memopt.search.rewrite.engine import Driver
from tflite_memopt.search.rewrite.sequences_along_h import SPLIT_ATTENTION_HEADS, sequences_along_h
from tflite_memopt.solvers.graph.limits import SearchLimit
from tflite_memopt.solvers.plan.bounds import max_breadth

F32, I8 = DType.FLOAT32, DType.INT8


class Attention:
    """A builder of attentions as Keras converts them; ``heads`` of 4 channels each."""

    def __init__(self, length: int, heads: int, dtype: DType = F32) -> None:
        self.b, self.dtype, self.heads, self.length = ModelBuilder(), dtype, heads, length
        self.random = np.random.default_rng(length)
        self.x = self.b.input("x", (1, length, 4 * heads), dtype)

    def values(self, name: str, shape: tuple[int, ...]) -> Tensor:
        if self.dtype is F32:
            return self.b.constant(name, self.random.normal(size=shape).astype(np.float32))
        return self.b.constant(name, self.random.integers(-127, 128, shape).astype(np.int8), per_tensor(0.01, 0))

    def tensor(self, name: str, shape: tuple[int, ...], scale: float = 0.05) -> Tensor:
        return self.b.tensor(f"{name}{len(self.b.graph.tensors)}", shape, self.dtype, scale)

    def dense(self, x: Tensor) -> Tensor:
        channels = 4 * self.heads
        y = self.tensor("dense", (1, self.length, channels))
        weights = [self.values(f"{y.name}/weights", (channels, channels))]
        if self.dtype is I8:
            bias = np.zeros(channels, np.int32)
            weights.append(self.b.constant(f"{y.name}/bias", bias, per_channel(np.asarray([5e-4], np.float32), 0)))
        self.b.operator("FULLY_CONNECTED", (x, *weights), (y,), "FullyConnectedOptions", keepNumDims=True)
        return y

    def shaped(self, x: Tensor, shape: tuple[int, ...]) -> Tensor:
        y, said = self.tensor("shaped", shape), np.asarray(shape, np.int32)
        operand = self.b.constant(f"{y.name}/shape", said)
        self.b.operator("RESHAPE", (x, operand), (y,), "ReshapeOptions", newShape=said)
        return y

    def turned(self, x: Tensor, order: tuple[int, ...]) -> Tensor:
        y = self.tensor("turned", tuple(x.shape[axis] for axis in order))
        self.b.operator("TRANSPOSE", (x, self.b.constant(f"{y.name}/order", np.asarray(order, np.int32))), (y,))
        return y

    def projected(self, x: Tensor, order: tuple[int, ...]) -> Tensor:
        """Heads of 4 channels, with a bias, and the dimensions in another order."""
        heads = self.shaped(self.dense(x), (1, self.length, self.heads, 4))
        y = self.tensor("biased", heads.shape)
        self.b.operator("ADD", (heads, self.values(f"{y.name}/bias", (self.heads, 4))), (y,), "AddOptions")
        return self.turned(y, order)

    def block(self, x: Tensor, scaled_by: tuple[int, ...] = ()) -> Tensor:
        queries, keys = (self.projected(x, (0, 2, 1, 3)) for _ in "qk")
        scores = self.tensor("scores", (1, self.heads, self.length, self.length))
        self.b.operator("BATCH_MATMUL", (queries, keys), (scores,), "BatchMatMulOptions", adjY=True)
        scaled = self.tensor("scaled", scores.shape)
        self.b.operator("MUL", (scores, self.values(f"{scaled.name}/factor", scaled_by)), (scaled,), "MulOptions")
        soft = self.b.tensor(f"soft{scaled.name}", scores.shape, self.dtype, 1 / 256, -128 if self.dtype is I8 else 0)
        self.b.operator("SOFTMAX", (scaled,), (soft,), "SoftmaxOptions", beta=1.0)
        found = self.tensor("found", (1, self.heads, self.length, 4))
        values = self.projected(x, (0, 2, 3, 1))
        self.b.operator("BATCH_MATMUL", (soft, values), (found,), "BatchMatMulOptions", adjY=True)
        y = self.shaped(self.turned(found, (0, 2, 1, 3)), x.shape)
        z = self.tensor("sum", x.shape)
        self.b.operator("ADD", (self.dense(y), x), (z,), "AddOptions")
        return z


def split(model: Model) -> Model:
    driver = Driver(copy_model(model))
    driver.apply_everywhere((SPLIT_ATTENTION_HEADS,))
    return driver.model


@pytest.mark.parametrize("heads", [1, 2, 3])
@pytest.mark.parametrize("dtype", [F32, I8])
def test_the_same_values_lying_and_along_h(heads: int, dtype: DType) -> None:
    net = Attention(6, heads, dtype)
    model = net.b.finish(net.block(net.block(net.x)))
    lying, laid = split(model), along_h(model)
    for each, place in ((lying, 2), (laid, 1)):
        names = [operator.name for operator in each.main.operators]
        products = [operator.outputs[0].shape for operator in each.main.operators if operator.name == "BATCH_MATMUL"]
        assert len(products) == 4 * heads
        assert all(shape[place] == 6 and shape[0] * shape[3 - place] == 1 for shape in products)
        assert names.count("TRANSPOSE") == 4  # of keys and of values
    assert_equal(model, lying, laid)


def test_both_rewrites_are_said() -> None:
    net = Attention(6, 2)
    found = sequences_along_h(net.b.finish(net.block(net.x)))
    assert [use.rule for use in found.uses] == ["split_attention_heads + sequences_along_h"]


def with_regions_in_a_row(model: Model) -> list[tuple[int, int]]:
    """Reorder so that each attention's queries are one region behind all that they need; returns the regions."""
    operators = list(model.main.operators)
    ways = [row_map_of(operator) for operator in operators]
    order: list[int] = []
    regions = []
    for at, operator in enumerate(operators):
        if operator.name == "CONCATENATION":
            *_, steps = regions_above(model.main, at, ways, 32)
            order += [step for step in range(at) if step not in (*steps, *order)]
            regions.append((len(order), len(order) + len(steps)))
            order += steps
    model.main.reorder((*order, *(step for step in range(len(operators)) if step not in order)))
    return regions


@pytest.mark.parametrize("dtype", [F32, I8])
def test_stripes_run_along_the_queries_of_every_block(dtype: DType) -> None:
    net = Attention(48, 2, dtype)
    laid = along_h(net.b.finish(net.block(net.block(net.x))))
    striped = copy_model(laid)
    regions = with_regions_in_a_row(striped)
    names = [operator.name for operator in striped.main.operators]
    assert [names[a:b].count("BATCH_MATMUL") for a, b in regions] == [4, 4]
    form = Unrolled((6, 12, 24, 36, 48), "recompute", "pad")
    apply_tilings(striped, [Tiling(a, b, form) for a, b in regions])
    check_model(striped)
    assert_equal(laid, striped)
    before, after = (memory_layout(each, PORTABLE).problem for each in (laid, striped))
    assert max_breadth(after) < max_breadth(before) // 2


@pytest.mark.slow
def test_blocks_that_repeat_are_regions_together() -> None:
    """The scores of a head bind, in two blocks alike: no order is better before both are regions."""
    net = Attention(24, 2)
    laid = along_h(net.b.finish(net.block(net.block(net.x))))
    laid.main.reorder(arrange(laid, PORTABLE, Options().search).placement.order)
    assert promising_orders(laid, PORTABLE, SearchLimit(10.0))


def changed(change: Callable[[Attention, Model], None]) -> Model:
    net = Attention(6, 2)
    model = net.b.finish(net.block(net.x))
    change(net, model)
    return model


def _returned(_: Attention, model: Model) -> None:
    scores = next(op.outputs[0] for op in model.main.operators if op.name == "BATCH_MATMUL")
    model.main.outputs = (*model.main.outputs, scores)


def _turned_otherwise(_: Attention, model: Model) -> None:
    for operator in model.main.operators:
        if operator.name == "TRANSPOSE":
            order = operator.inputs[1]
            assert order is not None
            order.buffer.data = np.frombuffer(np.asarray((0, 2, 1, 3), np.int32)[::-1].tobytes(), np.uint8)


@pytest.mark.parametrize("change", [_returned, _turned_otherwise])
def test_other_attentions_stay_whole(change: Callable[[Attention, Model], None]) -> None:
    model = changed(change)
    assert dump_model(split(model)) == dump_model(model)


def test_a_mask_stays_whole() -> None:
    masked = Attention(6, 2)
    model = masked.b.finish(masked.block(masked.x, scaled_by=(6, 6)))
    assert dump_model(split(model)) == dump_model(model)
