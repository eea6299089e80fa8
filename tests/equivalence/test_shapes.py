"""Static shapes that hold for no run: found, put right, proved; and shapes that depend on values, refused."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from tests.equivalence.test_baseline import dilated_with_a_batch_of_one, looked_at
from tests.faults import raises
from tests.model_builder import ModelBuilder
from tests.models import mobile_chain
from tests.tflm import litert_and_tflm
from tflite_memopt import Options, optimize
from tflite_memopt.errors import ErrorKind, UnsupportedModelError
from tflite_memopt.evidence.equivalence.runner import Interpreters
from tflite_memopt.evidence.equivalence.shapes import shaped_by_litert
from tflite_memopt.model.io import offline_plan
from tflite_memopt.model.io.reader import read_model
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.model.ir.model import DType, Model, Tensor


@pytest.fixture(scope="module")
def interpreters() -> Iterator[Interpreters]:
    with litert_and_tflm() as found:
        yield found


def blocks_of(model: Model) -> list[tuple[int, ...]]:
    return [tensor.shape for tensor in model.main.tensors if tensor.name in ("blocks", "depthwise1")]


def test_inferred_shapes_take_the_place_of_wrong_ones(interpreters: Interpreters) -> None:
    found = looked_at(dilated_with_a_batch_of_one(), interpreters)
    assert found.shaped.names == ("blocks", "depthwise1")
    assert (1, 4, 4, 2) in blocks_of(read_model(found.data))
    assert (1, 4, 4, 2) not in blocks_of(read_model(found.shaped.data))
    assert (4, 4, 4, 2) in blocks_of(found.model)
    assert not found.runs_right_on_tflm


def test_a_plan_for_wrong_shapes_is_dropped(interpreters: Interpreters) -> None:
    model = dilated_with_a_batch_of_one()
    offline_plan.attach(model, dict.fromkeys(model.main.outputs, 0))
    data = write_model(model)
    assert offline_plan.decode(read_model(data)) is not None
    assert offline_plan.decode(shaped_by_litert(data, read_model(data), interpreters).model) is None


def test_a_model_with_right_shapes_stays_as_it_came(interpreters: Interpreters) -> None:
    data = write_model(mobile_chain())
    model = read_model(data)
    assert shaped_by_litert(data, model, interpreters).data is data


@pytest.mark.parametrize("verify", [True, False])
def test_the_result_has_the_inferred_shapes_and_says_so(verify: bool) -> None:
    """Without the rule about dilation, so that the blocks are still there."""
    data = write_model(dilated_with_a_batch_of_one())
    result = optimize(data, Options(verify=verify, rewrite=False, cascade=False))
    assert (1, 4, 4, 2) not in blocks_of(read_model(result.model))
    (use,) = (use for use in result.report.rewrites if use.rule == "inferred_shapes")
    assert (use.operators, use.exactness) == (("blocks", "depthwise1"), "exact")
    if verify:
        assert {name: verdict.equal for name, verdict in result.report.equivalence.items()} == {
            "litert": True,
            "tflm": True,
        }
        assert "TFLM computes this model wrongly" in " ".join(result.report.warnings)


def test_a_dilated_convolution_is_restored_and_tflm_computes_what_litert_does() -> None:
    result = optimize(write_model(padded_blocks()), Options(samples=4))
    assert [operator.name for operator in read_model(result.model).main.operators] == ["DEPTHWISE_CONV_2D"]
    assert result.report.basis.plan_executed
    assert result.report.equivalence["litert"].equal
    on_tflm = result.report.equivalence["tflm"]
    # TFLM pads the original's blocks with whatever its memory holds: it is held against LiteRT.
    assert on_tflm.equal
    assert on_tflm.exactness == "exact"


def padded_blocks() -> Model:
    """SAME padding, batch size right in the file."""
    b = ModelBuilder()
    x = b.input("x", (1, 8, 8, 2))
    block = b.constant("block", np.asarray([2, 2], np.int32))
    paddings = b.constant("paddings", np.full((2, 2), 2, np.int32))
    blocks = b.tensor("blocks", (4, 6, 6, 2))
    b.operator("SPACE_TO_BATCH_ND", (x, block, paddings), (blocks,), "SpaceToBatchNDOptions")
    y = b.tensor("y", (1, 8, 8, 2))
    made = b.depthwise(blocks, padding=1, seed=1)
    crops = b.constant("crops", np.zeros((2, 2), np.int32))
    b.operator("BATCH_TO_SPACE_ND", (made, block, crops), (y,), "BatchToSpaceNDOptions")
    return b.finish(y)


def places_of_positive_values() -> tuple[Model, Tensor]:
    b = ModelBuilder()
    x = b.input("x", (8,), DType.FLOAT32)
    zero = b.constant("zero", np.zeros(1, np.float32))
    condition, places = b.tensor("condition", (8,), DType.BOOL), b.tensor("places", (4, 1), DType.INT64)
    b.operator("GREATER", (x, zero), (condition,), "GreaterOptions")
    b.operator("WHERE", (condition,), (places,), "WhereOptions")
    return b.finish(places), places


def test_a_shape_that_depends_on_values_is_refused_by_name(interpreters: Interpreters) -> None:
    model, _ = places_of_positive_values()
    with raises(UnsupportedModelError, ErrorKind.DYNAMIC, "operator 1 (WHERE", "'places'"):
        looked_at(model, interpreters)
