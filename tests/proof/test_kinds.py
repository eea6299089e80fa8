"""The table of kinds: complete, and true to the kernels."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from tests.cascade.networks import KEEPING_ROWS, OPERATORS, random_network
from tests.model_builder import ModelBuilder
from tests.rewrite.patterns import ARENA, F32, I8, I32, Branch
from tests.tflm import run_models
from tflite_memopt.evidence.proof import Keys, Run, inputs_of, orders
from tflite_memopt.evidence.proof.kinds import KINDS
from tflite_memopt.evidence.proof.run import EFFECTS
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.model.ir.model import DType, Model, Tensor
from tflite_memopt.model.ir.tensors import per_tensor
from tflite_memopt.operators.table import OPERATORS as TABLE
from tflite_memopt.operators.table import REFERENCE

Array = np.ndarray[Any, Any]


def test_the_table_has_every_kind_that_tflm_has() -> None:
    builtin = {name for name in REFERENCE if name == name.upper() and name not in ("CIRCULAR_BUFFER", "TFLM_DECODE")}
    assert builtin - set(KINDS) - EFFECTS.keys() == set(), "not in evidence/proof/contracts.py"
    assert set(KINDS) & EFFECTS.keys() == set()


def moves(branch: Branch) -> None:
    """One operator that moves integers, each kind in its turn."""
    number, ints = branch.number, branch.ints
    x = branch.input((2, 4, 6, 8), I32)
    pads = branch.constant(np.asarray([[0, 0], [1, 2], [0, 3], [1, 1]], np.int32))
    blocks = branch.constant(np.asarray([[0, 0], [0, 0]], np.int32))
    cases: list[tuple[str, tuple[Tensor, ...], tuple[int, ...], str | None, dict[str, Any]]] = [
        ("RESHAPE", (x, ints(8, 48)), (8, 48), "ReshapeOptions", {}),
        ("SLICE", (x, ints(0, 1, 2, 3), ints(2, -1, 3, 4)), (2, 3, 3, 4), "SliceOptions", {}),
        (
            "STRIDED_SLICE",
            (x, ints(0, -1, 1, 0), ints(2, 9, 6, 8), ints(1, 1, 2, 3)),
            (2, 3, 3),
            "StridedSliceOptions",
            {"shrinkAxisMask": 2, "endMask": 5},
        ),
        (
            "STRIDED_SLICE",
            (x, ints(1, 0, 0, 0), ints(0, 4, 6, 8), ints(-1, 1, 1, 1)),
            (1, 4, 6, 8),
            "StridedSliceOptions",
            {},
        ),
        ("CONCATENATION", (x, x), (2, 8, 6, 8), "ConcatenationOptions", {"axis": 1}),
        ("PACK", (x, x), (2, 4, 2, 6, 8), "PackOptions", {"axis": 2, "valuesCount": 2}),
        ("PAD", (x, pads), (2, 7, 9, 10), "PadOptions", {}),
        ("PADV2", (x, pads, ints(7)), (2, 7, 9, 10), "PadV2Options", {}),
        ("TRANSPOSE", (x, ints(3, 0, 2, 1)), (8, 2, 6, 4), "TransposeOptions", {}),
        ("REVERSE_V2", (x, ints(2)), (2, 4, 6, 8), "ReverseV2Options", {}),
        ("TILE", (x, ints(1, 2, 1, 3)), (2, 8, 6, 24), "TileOptions", {}),
        ("GATHER", (x, ints(3, 0, 3)), (2, 4, 3, 8), "GatherOptions", {"axis": 2}),
        (
            "GATHER",
            (x, branch.constant(np.asarray([[1, 5], [0, 2]], np.int32))),
            (2, 4, 2, 8),
            "GatherOptions",
            {"axis": 2, "batchDims": 1},
        ),
        ("SPACE_TO_BATCH_ND", (x, ints(2, 3), blocks), (12, 2, 2, 8), "SpaceToBatchNDOptions", {}),
        ("BATCH_TO_SPACE_ND", (x, ints(2, 1), blocks), (1, 8, 6, 8), "BatchToSpaceNDOptions", {}),
        ("SPACE_TO_DEPTH", (x,), (2, 2, 3, 32), "SpaceToDepthOptions", {"blockSize": 2}),
        ("DEPTH_TO_SPACE", (x,), (2, 8, 12, 2), "DepthToSpaceOptions", {"blockSize": 2}),
        ("EXPAND_DIMS", (x, ints(-2)), (2, 4, 6, 1, 8), "ExpandDimsOptions", {}),
        ("DYNAMIC_UPDATE_SLICE", (x, branch.input((1, 2, 3, 8), I32), ints(1, 2, 3, 0)), x.shape, None, {}),
        ("ADD", (x, x), x.shape, "AddOptions", {}),
        ("MUL", (x, ints(3)), x.shape, "MulOptions", {}),
        ("FLOOR_DIV", (x, ints(-7)), x.shape, "FloorDivOptions", {}),
        ("FLOOR_MOD", (x, ints(-7)), x.shape, "FloorModOptions", {}),
        ("MAXIMUM", (x, ints(5)), x.shape, "MaximumMinimumOptions", {}),
        ("NEG", (x,), x.shape, "NegOptions", {}),
    ]
    name, inputs, shape, kind, fields = cases[number % len(cases)]
    branch.run(name, inputs, branch.tensor(shape, I32), kind, **fields)


def test_known_integers_are_moved_and_computed_as_kernels_do() -> None:
    builder, outputs = ModelBuilder(), list[Tensor]()
    for number in range(25):
        branch = Branch(builder, random.Random(number), number)
        moves(branch)
        outputs += branch.outputs
    model = builder.finish(*outputs)
    draw = np.random.default_rng(0)
    sample = [draw.integers(-(2**31), 2**31, t.shape).astype(np.int32) for t in model.main.inputs]
    run = run_models("litert", {"model": write_model(model)}, [sample], ARENA)["model"]
    assert run.ran, run.reason
    keys = Keys(b"seed")
    for at, found in enumerate(Run(model, keys).invoke(sample)):
        assert np.array_equal(keys.constant(found), keys.constant(run.outputs[at][0])), outputs[at].producer


@pytest.mark.few(12)
@pytest.mark.parametrize("dtype", [I8, F32])
@pytest.mark.parametrize("kind", sorted({*OPERATORS, *KEEPING_ROWS}))
def test_an_output_element_depends_on_no_more_than_a_proof_says(kind: str, dtype: DType) -> None:
    """Change one element: all that changes on LiteRT changes in the ring."""
    for seed in (1,):
        model = random_network(seed, dtype, 2, kinds=(kind,))
        keys = Keys(b"seed")
        rings = inputs_of(keys, model.main.inputs)
        before = Run(model, keys).invoke(rings)
        draw = np.random.default_rng(seed)
        samples = [_drawn(model, draw) for _ in range(3)]
        places = [int(draw.integers(each.size)) for each in samples[0]]
        changed = [[_other(each, at) for each, at in zip(sample, places, strict=True)] for sample in samples]
        run = run_models("litert", {"model": write_model(model)}, [*samples, *changed], ARENA)["model"]
        assert run.ran, run.reason
        for ring, at in zip(rings, places, strict=True):
            ring.flat[at] ^= np.uint64(1 << 40)
        after = Run(model, keys).invoke(rings)
        for number, (one, other) in enumerate(zip(before, after, strict=True)):
            values = run.outputs[number]
            moved = [a != b for a, b in zip(values[:3], values[3:], strict=True)]
            assert not (np.logical_or.reduce(moved) & (one == other)).any()


def rows_and_hybrids() -> Model:
    """Kinds that see a whole row: normalizations, sums along an axis, floats that are quantized while they run."""
    b = ModelBuilder()
    x = b.input("x", (2, 3, 4, 8), F32)
    picks = b.input("picks", (3,), I32)
    draw = np.random.default_rng(0)
    outputs = list[Tensor]()

    def layer(name: str, shape: tuple[int, ...], kind: str, *inputs: Tensor, **fields: Any) -> None:
        y = b.tensor(f"{name}{len(outputs)}", shape, F32)
        b.operator(name, inputs, (y,), kind, **fields)
        outputs.append(y)

    def ints(*values: int) -> Tensor:
        return b.constant(f"c{len(b.graph.tensors)}", np.asarray(values, np.int32))

    def weights(*shape: int) -> Tensor:
        values = draw.integers(-127, 128, shape).astype(np.int8)
        return b.constant(f"w{len(b.graph.tensors)}", values, per_tensor(0.01, 0))

    bias = b.constant("bias", draw.normal(size=5).astype(np.float32))
    layer("SOFTMAX", x.shape, "SoftmaxOptions", x, beta=1.0)
    layer("LOG_SOFTMAX", x.shape, "LogSoftmaxOptions", x)
    layer("L2_NORMALIZATION", x.shape, "L2NormOptions", x)
    layer("CUMSUM", x.shape, "CumsumOptions", x, ints(1), exclusive=True)
    layer("REDUCE_MAX", (2, 8), "ReducerOptions", x, ints(1, 2))
    layer("SUM", (2, 3, 1, 8), "ReducerOptions", x, ints(2), keepDims=True)
    layer("GATHER", (2, 3, 3, 8), "GatherOptions", x, picks, axis=2)
    layer("FULLY_CONNECTED", (24, 5), "FullyConnectedOptions", x, weights(5, 8), bias)
    fields = {"strideH": 1, "strideW": 1}
    layer("CONV_2D", (2, 3, 4, 5), "Conv2DOptions", x, weights(5, 3, 3, 8), bias, **fields)
    return b.finish(*outputs)


def test_rows_depend_on_no_more_than_a_proof_says() -> None:
    """As above; ``picks`` stay within the dimension that they pick from."""
    model, keys, draw = rows_and_hybrids(), Keys(b"seed"), np.random.default_rng(1)
    samples = []
    for at in (0, 37, 100, 191):
        x: Array = draw.normal(size=(2, 3, 4, 8)).astype(np.float32)
        picks: Array = draw.integers(0, 4, 3).astype(np.int32)
        samples += [(at, [x, picks], [_other(x, at), picks])]
    both = [*(before for _, before, _ in samples), *(after for _, _, after in samples)]
    run = run_models("litert", {"model": write_model(model)}, both, ARENA)["model"]
    assert run.ran, run.reason
    for number, (at, (_, picks), _) in enumerate(samples):
        for known in (False, True):
            rings: list[Array] = list(inputs_of(keys, model.main.inputs))
            rings[1] = picks if known else rings[1]
            before = Run(model, keys).invoke(rings)
            rings[0] = rings[0].copy()
            rings[0].flat[at] ^= np.uint64(1 << 40)
            for output, (one, other) in enumerate(zip(before, Run(model, keys).invoke(rings), strict=True)):
                values = run.outputs[output]
                moved = values[number] != values[number + len(samples)]
                assert not (moved & (one == other)).any(), (model.main.outputs[output].name, known)


def _drawn(model: Model, draw: np.random.Generator) -> list[Array]:
    def values(tensor: Tensor) -> Array:
        if tensor.dtype is F32:
            return draw.normal(size=tensor.shape).astype(np.float32)
        return draw.integers(-100, 100, tensor.shape).astype(tensor.dtype.label)

    return [values(tensor) for tensor in model.main.inputs]


def _other(values: Array, at: int) -> Array:
    changed: Array = values.copy()
    changed.flat[at] += 27 if values.dtype.kind == "i" else np.float32(3)
    return changed


def test_the_proof_knows_the_order_of_every_kind_whose_output_may_overwrite_an_input() -> None:
    """It has a table of its own; without a kind it refuses plans that the planner makes."""
    known = {*orders._SHARED, *orders._REFERENCE}
    assert {name for name, kind in TABLE.items() if kind.overwrites} - known == set(), "not in evidence/proof/orders.py"
