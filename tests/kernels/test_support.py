"""What TFLM has kernels for: the table against the wheel, and what is said of a model that TFLM cannot run."""

from __future__ import annotations

import numpy as np
import pytest

import tflite_memopt
from tests.faults import raises
from tests.kernels.one_operator import LAYERS, LEFT_OUT, MAKERS, alone, with_weights
from tests.model_builder import ModelBuilder
from tests.models import ALL
from tests.tflm import run_models
from tflite_memopt import Options
from tflite_memopt.errors import ErrorKind, UnsupportedModelError
from tflite_memopt.evidence.equivalence.adapter import ModelRun
from tflite_memopt.evidence.equivalence.inputs import seeded_inputs
from tflite_memopt.kernels.support import TflmSupport, said_of, support_of
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.model.ir.model import DType, Graph, Model, OpCode, Operator, Tensor
from tflite_memopt.operators.table import OPERATORS

TRIED = (*(DType.FLOAT32, DType.FLOAT16, DType.INT8, DType.INT16, DType.INT32, DType.INT64, DType.UINT8, DType.BOOL),)
ASKS_FOR_MORE = {
    *(("LOGISTIC", each) for each in (DType.INT8, DType.INT16)),
    *(("RSQRT", each) for each in (DType.INT8, DType.INT16)),
    *(("SOFTMAX", each) for each in (DType.INT8, DType.INT16)),
    *(("LOG_SOFTMAX", DType.INT8), ("PRELU", DType.INT16), ("TANH", DType.INT16)),
}
"""Operators that TFLM has for a type, with a scale or an operand that these models do not have."""


def on_tflm(models: dict[str, Model]) -> dict[str, ModelRun]:
    samples = {label: seeded_inputs(model, 1, 0) for label, model in models.items()}
    return run_models("tflm", {label: write_model(model) for label, model in models.items()}, samples, 1 << 20)


@pytest.mark.slow
def test_the_table_and_tflm_agree_on_every_operator_and_type() -> None:
    cases = {
        f"{name} {dtype.label}": (name, dtype) for name in MAKERS for dtype in TRIED if (name, dtype) not in LEFT_OUT
    }
    models = {label: alone(*case) for label, case in cases.items()}
    typed = {name for name, kind in OPERATORS.items() if kind.tflm.types is not None}
    # These have operands of their own; tests/kernels/test_runtimes.py has them.
    others = {"ADD_N", "CAST", "DYNAMIC_UPDATE_SLICE", "EMBEDDING_LOOKUP", "FILL", "PADV2", "SVDF"}
    assert {label.split()[0] for label in models} >= typed - others - {"UNIDIRECTIONAL_SEQUENCE_LSTM"}
    for label, run in on_tflm(models).items():
        said = support_of(models[label]).runs
        assert said or not run.ran, f"{label} runs, and the table says that it cannot"
        if cases[label] not in ASKS_FOR_MORE:
            in_table = cases[label][0] in typed
            assert run.ran or not said or not in_table, f"{label} does not run: {run.error}"


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("of_weights", [DType.INT8, DType.UINT8])
def test_float_activations_take_no_integer_weights(name: str, of_weights: DType) -> None:
    model = with_weights(name, DType.FLOAT32, of_weights)
    assert [each.kind for each in support_of(model).reasons] == ["weights_only"]
    assert not on_tflm({"model": model})["model"].ran


@pytest.mark.parametrize("name", ALL)
def test_what_runs_is_not_refused(name: str) -> None:
    assert support_of(ALL[name]()) == TflmSupport(True)


def test_a_reason_is_said_once_with_its_first_operator_and_how_many_there_are() -> None:
    b = ModelBuilder()
    x = b.input("x", (1, 4, 4, 4), DType.UINT8)
    middle, y = (b.tensor(name, x.shape, DType.UINT8) for name in ("middle;fused", "y"))
    b.operator("RELU", (x,), (middle,))
    b.operator("RELU", (middle,), (y,))
    support = support_of(b.finish(y))
    (reason,) = support.reasons
    assert (reason.kind, reason.index, reason.operators, reason.types) == ("uint8", 0, 2, ("uint8",))
    said = said_of(support)
    assert said.startswith(
        "TFLM cannot run this model: TFLM no longer has kernels for uint8 activations, convert to int8"
    )
    assert "(2 operators, the first is operator 0 RELU 'middle': uint8)" in said


@pytest.mark.parametrize(
    ("name", "custom", "kind"),
    [
        ("ATAN2", None, "missing"),
        ("WHERE", None, "shapes"),
        ("UNSORTED_SEGMENT_PROD", None, "shapes"),
        ("CUSTOM", "FlexErf", "flex"),
        ("CUSTOM", "Mine", None),
    ],
)
def test_operators_that_tflm_lacks(name: str, custom: str | None, kind: str | None) -> None:
    b = ModelBuilder()
    x, y = b.input("x", (2,), DType.FLOAT32), b.tensor("y", (2,), DType.FLOAT32)
    b.graph.add_operator(Operator(OpCode(name, 1, custom), (x,), (y,)))
    assert [each.kind for each in support_of(b.finish(y)).reasons] == ([] if kind is None else [kind])


@pytest.mark.parametrize(
    ("name", "custom", "types", "layer"),
    [
        ("REDUCE_ANY", None, (DType.BOOL, DType.BOOL), "keras.layers.Masking, mask_zero=True"),
        ("UNPACK", None, (DType.BOOL, DType.BOOL), "keras.layers.Masking, mask_zero=True"),
        ("GELU", None, (DType.FLOAT32, DType.FLOAT32), "keras.activations.hard_silu, torch.nn.Hardswish"),
        ("ONE_HOT", None, (DType.INT32, DType.FLOAT32), "CategoryEncoding"),
        ("BITCAST", None, (DType.FLOAT32, DType.INT32), "keras.ops.argmax"),
        ("CUSTOM", "FlexTensorListReserve", (DType.INT32, DType.FLOAT32), "keras.Input(..., batch_size=1)"),
        ("LESS", None, (DType.INT16, DType.BOOL), "convert to int8 or float"),
    ],
)
def test_the_layer_to_replace_has_its_name_in_keras(
    name: str, custom: str | None, types: tuple[DType, DType], layer: str
) -> None:
    b = ModelBuilder()
    x, y = b.input("x", (2,), types[0]), b.tensor("y", (2,), types[1])
    b.graph.add_operator(Operator(OpCode(name, 1, custom), (x,), (y,)))
    assert layer in said_of(support_of(b.finish(y)))


def test_positions_are_in_32_bits_and_called_subgraphs_count() -> None:
    b = ModelBuilder()
    condition, x = b.input("condition", (1,), DType.BOOL), b.input("x", (1, 4), DType.FLOAT32)
    y = b.tensor("y", (1,), DType.INT64)
    b.operator("IF", (condition, x), (y,), "IfOptions", thenSubgraphIndex=1, elseSubgraphIndex=1)
    model = b.finish(y)
    b.new_graph("called")
    inner, position = b.input("inner", (1, 4), DType.FLOAT32), b.tensor("position", (1,), DType.INT64)
    axis = b.constant("axis", np.asarray(1, np.int32))
    b.operator("ARG_MAX", (inner, axis), (position,), "ArgMaxOptions", outputType=4)
    b.finish(position)
    (reason,) = support_of(model).reasons
    assert (reason.kind, reason.subgraph) == ("positions", 1)
    assert "of subgraph 1" in said_of(support_of(model))


def test_what_tflm_said_stands_in_for_what_the_file_does_not_show() -> None:
    assert said_of(TflmSupport(False, (), "operator 3 fails")) == "TFLM cannot run this model: operator 3 fails"


def computed_size(b: ModelBuilder, size: Tensor) -> Model:
    x, begin = b.input("x", (1, 4), DType.FLOAT32), b.constant("begin", np.zeros(2, np.int32))
    y = b.tensor("y", (1, 1), DType.FLOAT32)
    b.operator("SLICE", (x, begin, size), (y,), "SliceOptions")
    return b.finish(y)


def test_a_size_that_is_computed_from_values_is_read_from_the_file() -> None:
    """TFLM plans the shape in the file: a loop of Keras 3 hangs, or computes other values than LiteRT."""
    b = ModelBuilder()
    model = computed_size(b, b.input("size", (2,), DType.INT32))
    model.graphs.insert(0, Graph("main"))
    assert support_of(model).runs  # nobody calls it
    model.graphs.pop(0)
    (found,) = support_of(model).reasons
    assert (found.kind, found.subgraph, found.operator) == ("computed_size", 0, "SLICE")
    with raises(UnsupportedModelError, ErrorKind.NO_KERNEL, "SLICE"):
        tflite_memopt.optimize(write_model(model), Options(verify=False))


def test_a_size_that_follows_from_shapes_is_none_that_is_computed() -> None:
    b = ModelBuilder()
    image, shape = b.input("image", (1, 1), DType.FLOAT32), b.tensor("shape", (2,), DType.INT32)
    b.operator("SHAPE", (image,), (shape,), "ShapeOptions")
    assert support_of(computed_size(b, shape)).runs


@pytest.mark.parametrize("dropped", [0b11, 0b10])
def test_an_index_that_is_computed_is_no_constant(dropped: int) -> None:
    """Also where it takes all dimensions away: Prepare asks for constants (strided_slice_common.cc)."""
    b = ModelBuilder()
    x, index = b.input("x", (4, 4), DType.FLOAT32), b.input("index", (2,), DType.INT32)
    y = b.tensor("y", (), DType.FLOAT32)
    ones = b.constant("ones", np.ones(2, np.int32))
    b.operator("STRIDED_SLICE", (x, index, index, ones), (y,), "StridedSliceOptions", shrinkAxisMask=dropped)
    model = b.finish(y)
    assert [each.kind for each in support_of(model).reasons] == ["computed"]
    assert not on_tflm({"model": model})["model"].ran


@pytest.mark.parametrize("names", [("a", "a"), ("a", "b")])
def test_a_variable_that_nothing_assigns_has_no_weights(names: tuple[str, str]) -> None:
    b = ModelBuilder()
    x, y = b.input("x", (4,), DType.FLOAT32), b.tensor("y", (4,), DType.FLOAT32)
    handles = [b.tensor(f"handle{at}", (), DType.RESOURCE) for at in range(2)]
    for handle, name in zip(handles, names, strict=True):
        b.operator("VAR_HANDLE", (), (handle,), "VarHandleOptions", container=b"", sharedName=name.encode())
    b.operator("ASSIGN_VARIABLE", (handles[0], x), ())
    b.operator("READ_VARIABLE", (handles[1],), (y,))
    kinds = [each.kind for each in support_of(b.finish(y)).reasons]
    assert kinds == ([] if names[0] == names[1] else ["unassigned"])


def with_a_second_graph(name: str, dtype: DType) -> Model:
    """A RELU, and a subgraph with one operator that nothing calls."""
    b = ModelBuilder()
    x, y = b.input("in", (1, 4), DType.FLOAT32), b.tensor("out", (1, 4), DType.FLOAT32)
    b.operator("RELU", (x,), (y,))
    b.finish(y)
    b.new_graph("second")
    b.finish(*MAKERS[name](b, dtype))
    return b.model


@pytest.mark.parametrize("name", ["FULLY_CONNECTED", "CONV_2D", "SOFTMAX", "ADD", "AVERAGE_POOL_2D", "GATHER"])
def test_a_subgraph_that_nothing_calls_is_no_obstacle_without_scratch_memory(name: str) -> None:
    model = with_a_second_graph(name, DType.FLOAT32)
    assert support_of(model).runs
    assert on_tflm({"model": model})["model"].ran


@pytest.mark.parametrize(
    ("name", "dtype"),
    [("MEAN", DType.FLOAT32), ("TRANSPOSE_CONV", DType.INT8), ("CONV_2D", DType.INT8), ("ARG_MAX", DType.INT16)],
)
def test_a_subgraph_that_nothing_calls_is_one_with_scratch_memory_in_any_library(name: str, dtype: DType) -> None:
    """CMSIS-NN's kernels ask for scratch where TFLM's own do not. What has no kernel is refused in any subgraph."""
    kinds = [each.kind for each in support_of(with_a_second_graph(name, dtype)).reasons]
    assert kinds == (["int16"] if dtype is DType.INT16 else ["uncalled"])


def test_an_operand_without_elements_has_its_values() -> None:
    """As converters write the shape of a scalar: no bytes, and so no buffer."""
    b = ModelBuilder()
    x, y = b.input("x", (1, 1), DType.INT32), b.tensor("y", (), DType.INT32)
    b.operator("RESHAPE", (x, b.tensor("shape", (0,), DType.INT32)), (y,), "ReshapeOptions")
    model = b.finish(y)
    assert support_of(model).runs
    assert on_tflm({"model": model})["model"].ran


@pytest.mark.parametrize(("axes", "kinds"), [((1, -4), []), ((1, 6), ["axis"]), ((-5,), ["axis"])])
@pytest.mark.parametrize("dtype", [DType.FLOAT32, DType.INT8])
def test_no_axis_is_reduced_that_the_input_does_not_have(axes: tuple[int, ...], kinds: list[str], dtype: DType) -> None:
    b = ModelBuilder()
    x, y = b.input("x", (1, 4, 4, 2), dtype), b.tensor("y", (1, 1, 4, 2), dtype)
    b.operator("MEAN", (x, b.constant("axes", np.asarray(axes, np.int32))), (y,), "ReducerOptions", keepDims=True)
    assert [each.kind for each in support_of(b.finish(y)).reasons] == kinds


def test_what_moves_values_gives_them_in_their_own_type() -> None:
    b = ModelBuilder()
    x, y = b.input("x", (1, 4)), b.tensor("y", (1, 4), DType.INT16)
    begin, size = (b.constant(f"c{at}", np.asarray(values, np.int32)) for at, values in enumerate(((0, 0), (1, 4))))
    b.operator("SLICE", (x, begin, size), (y,), "SliceOptions")
    support = support_of(b.finish(y))
    assert [each.kind for each in support.reasons] == ["types"]
    assert "TFLM has no kernel for these types" in said_of(support)
