"""Ranges are derived twice, and each derivation refutes the other where one of its rules is broken."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from itertools import islice
from typing import Any

import numpy as np
import pytest

from scripts.fuzzing.ranges import DERIVATIONS, network, outside
from tests.model_builder import ModelBuilder, per_channel
from tests.rewrite.patterns import ARENA, LITERT, TFLM
from tests.tflm import run_models
from tflite_memopt.evidence.equivalence.inputs import seeded_inputs
from tflite_memopt.evidence.proof import Status, prove
from tflite_memopt.evidence.proof import ranges as of_the_proof
from tflite_memopt.model.analysis import ranges as of_rewrites
from tflite_memopt.model.io.reader import read_model
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.model.ir.editor import VALID
from tflite_memopt.model.ir.model import DType, Graph, Model, Tensor
from tflite_memopt.model.ir.tensors import affine_of, values
from tflite_memopt.search.rewrite.dead_channels import drop_dead_channels

Mask = np.ndarray[Any, np.dtype[np.bool_]]
Claims = Mapping[Tensor, Mask]
SEED = 85
_MANY, _FEW = 150, 2


# Every rule broken in turn: sums get weights of 0 for what a broken derivation takes for the zero point.


@cache
def drawn() -> tuple[bytes, ...]:
    """Random networks, each tensor of which a sum of products reads."""
    return tuple(write_model(_read_by_sums(network(number, SEED)[0])) for number in range(_MANY))


def _read_by_sums(model: Model) -> Model:
    b = ModelBuilder()
    b.model, b.graph = model, model.main
    made = []
    for at, tensor in enumerate(model.main.outputs):
        filters = np.full((2, tensor.shape[-1]), 3, np.int8)
        weights = b.constant(f"reader{at}/weights", filters, per_channel(np.full(2, 0.01, np.float32), 0))
        y = b.tensor(f"reader{at}", (tensor.elements // tensor.shape[-1], 2), scale=0.5)
        b.operator("FULLY_CONNECTED", (tensor, weights), (y,), "FullyConnectedOptions")
        made.append(y)
    return b.finish(*made)


def wrong_pairs(claimed: Callable[[Graph], Claims], known: Callable[[Graph], Claims]) -> Iterator[tuple[Model, Model]]:
    """Networks, and what a rewrite would make of them that believes claims which the sound derivation does not make."""
    for data in drawn():
        before, after = read_model(data), read_model(data)
        sound, claims = known(after.main), claimed(after.main)
        is_changed = False
        for operator in after.main.operators:
            if not operator.outputs[0].name.startswith("reader"):
                continue
            tensor, weights = operator.required(0), operator.required(1)
            mask = claims.get(tensor)
            if mask is None:
                continue
            wrong = mask & ~sound.get(tensor, np.zeros_like(mask))
            if wrong.any():
                array = values(weights)
                assert array is not None
                weights.buffer.data = np.frombuffer(np.where(wrong, np.int8(0), array).tobytes(), np.uint8)
                is_changed = True
        if is_changed:
            yield before, read_model(write_model(after))


_RANGES: Mapping[str, Callable[[Any, Any, int], tuple[Any, Any]]] = {
    "constant": lambda low, high, _: (0 * low, 0 * high),
    "negated": lambda low, high, _: (-high, -low),
    "clamped at zero": lambda low, high, _: (np.minimum(low, 0), np.minimum(high, 0)),
    "zero point ignored": lambda low, high, point: (low + point, high + point),
    "widened": lambda low, high, _: (low - 3, high + 3),
}
"""What a broken rule says, of distances from the zero point; the last one says less than it could."""


def broken(rules: Any, kind: str, fault: str) -> Any:
    """A rule of one of the derivations whose answer is changed."""
    rule, change = rules[kind], _RANGES[fault]

    def rule_with_a_fault(operator: Any, known: Any) -> Any:
        found = rule(operator, known)
        affine = affine_of(operator.outputs[0])
        if found is None or affine is None:
            return found
        point = affine.zero_point
        if isinstance(found, of_rewrites.Range):
            return of_rewrites.Range(*change(found.low, found.high, point))
        low, high = change(found.least - point, found.most - point, point)
        return of_the_proof.Stored(low + point, high + point)

    return rule_with_a_fault


@pytest.mark.few(12)
@pytest.mark.parametrize("fault", _RANGES)
@pytest.mark.parametrize("kind", of_rewrites.RULES)
def test_the_proof_refutes_a_broken_rule_of_the_rewrite(kind: str, fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(of_rewrites.RULES, kind, broken(of_rewrites.RULES, kind, fault))
    pairs = list(islice(wrong_pairs(of_rewrites.silent_channels, of_the_proof.silent_channels), _FEW))
    assert fault != "constant" or pairs, "no network shows the fault"
    assert fault != "widened" or not pairs
    for before, after in pairs:
        assert prove(before, after).status is not Status.PROVED


@pytest.mark.few(12)
@pytest.mark.parametrize("fault", _RANGES)
@pytest.mark.parametrize("kind", of_the_proof.RULES)
def test_the_rewrites_ranges_veto_a_broken_rule_of_the_proof(
    kind: str, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(of_the_proof.RULES, kind, broken(of_the_proof.RULES, kind, fault))
    pairs = list(islice(wrong_pairs(of_the_proof.silent_channels, of_rewrites.silent_channels), _FEW))
    assert fault != "constant" or pairs, "no network shows the fault"
    for before, after in pairs:
        assert prove(before, after).status is not Status.PROVED
    with monkeypatch.context() as patch:
        patch.setattr(of_rewrites, "silent_channels", of_the_proof.silent_channels)
        without_veto = [prove(before, after).status for before, after in pairs]
    assert not pairs or Status.PROVED in without_veto


@pytest.mark.parametrize("name", DERIVATIONS)
def test_every_tensor_of_random_networks_is_inside_of_its_interval(name: str) -> None:
    """On both wheels; ``scripts/fuzz ranges`` runs more of them."""
    for number in range(40):
        model, samples = network(number, SEED)
        model = read_model(write_model(model))
        claim = DERIVATIONS[name](model)
        for runtime in (LITERT, TFLM):
            (run,) = run_models(runtime, {"model": write_model(model)}, samples, ARENA).values()
            assert outside(model, run, claim) == []


# What was wrong once: a channel that is one number, not the zero point, behind movers of bytes and behind activations.

CONSTANT = (1, 4)
"""Of six channels: the number is 127, or -128."""


def loud(b: ModelBuilder, activation: int, is_high: bool, zero_point: int = 10) -> Tensor:
    """A convolution of an image, two channels of which are at an end of 8 bits whatever the input."""
    y = b.conv(b.input("x", (1, 4, 4, 3)), 6, kernel=3, padding=VALID, activation=activation, seed=3)
    assert y.quantization is not None
    y.quantization.zero_point[:] = zero_point
    bias = y.producer.inputs[2]  # type: ignore[union-attr]
    held = values(bias)  # type: ignore[arg-type]
    assert held is not None
    made = held.copy()
    made[list(CONSTANT)] = 2_000_000 if is_high else -2_000_000
    bias.buffer.data = np.frombuffer(made.tobytes(), np.uint8)  # type: ignore[union-attr]
    return y


def mover(name: str, x: Tensor, b: ModelBuilder, scale: float, zero_point: int) -> Tensor:
    """The operator between ``x`` and a tensor of another quantization."""
    shapes = {"PAD": (1, 3, 2, 6), "RESHAPE": (1, 4, 1, 6), "SQUEEZE": (2, 2, 6), "TRANSPOSE": (1, 2, 2, 6)}
    shapes |= {"SLICE": (1, 1, 2, 6), "CONCATENATION": (1, 4, 2, 6), "EXPAND_DIMS": (1, 1, 2, 2, 6)}
    y = b.tensor("moved", shapes.get(name, (1, 2, 2, 6)), scale=scale, zero_point=zero_point)
    given: dict[str, list[Any]] = {
        "PAD": [((0, 0), (1, 0), (0, 0), (0, 0))],
        "TRANSPOSE": [(0, 2, 1, 3)],
        "SLICE": [(0, 1, 0, 0), (1, 1, 2, 6)],
        "EXPAND_DIMS": [1],
    }
    constants = [b.constant(f"c{at}", np.asarray(each, np.int32)) for at, each in enumerate(given.get(name, []))]
    fields: dict[str, Any] = {}
    table = None
    if name.endswith("POOL_2D"):
        table, fields = "Pool2DOptions", dict.fromkeys(("filterHeight", "filterWidth", "strideH", "strideW"), 1)
    if name == "RESHAPE":
        table, fields = "ReshapeOptions", {"newShape": np.asarray(y.shape, np.int32)}
        constants = [b.constant("shape", np.asarray(y.shape, np.int32))]
    if name == "SQUEEZE":
        table, fields = "SqueezeOptions", {"squeezeDims": np.asarray([0], np.int32)}
    if name == "CONCATENATION":
        table, fields = "ConcatenationOptions", {"axis": 1}
    b.operator(name, (x, x) if name == "CONCATENATION" else (x, *constants), (y,), table, **fields)
    return y


def read(b: ModelBuilder, x: Tensor) -> Model:
    """A sum that is far from both ends."""
    y = b.tensor("sum", (x.elements // 6, 4), scale=4.0)
    array = np.random.default_rng(5).integers(-60, 60, (4, 6)).astype(np.int8)
    weights = b.constant("filters", array, per_channel(np.full(4, 0.02, np.float32), 0))
    b.operator("FULLY_CONNECTED", (x, weights), (y,), "FullyConnectedOptions")
    return b.finish(y)


def assert_right(model: Model) -> None:
    """What is left of a model computes the same on both runtimes, and a proof agrees."""
    original = write_model(model)
    before = read_model(original)
    drop_dead_channels(model)
    result = write_model(model)
    assert prove(before, read_model(result)).status is not Status.DIFFERENT
    samples = seeded_inputs(before, 6, 0)
    for runtime in (LITERT, TFLM):
        runs = run_models(runtime, {"one": original, "other": result}, samples, ARENA)
        one, other = runs["one"], runs["other"]
        assert one.ran == other.ran
        for a, b in zip(one.outputs.get(0, []), other.outputs.get(0, []), strict=True):
            assert a.tobytes() == b.tobytes()


MOVERS = (
    *("RESHAPE", "SQUEEZE", "EXPAND_DIMS", "TRANSPOSE", "SLICE", "PAD", "CONCATENATION"),
    *("MAX_POOL_2D", "AVERAGE_POOL_2D", "RELU6", "RELU", "QUANTIZE"),
)


@pytest.mark.few(12)
@pytest.mark.parametrize(("scale", "zero_point"), [(0.05, 127), (0.05, -128), (0.05, 10), (0.03, 10), (0.08, -20)])
@pytest.mark.parametrize("is_high", [True, False])
@pytest.mark.parametrize("name", MOVERS)
def test_a_constant_channel_behind_a_mover_of_bytes(name: str, is_high: bool, scale: float, zero_point: int) -> None:
    b = ModelBuilder()
    # In its own quantization the channel is far from 0; in the other one it may be the zero point.
    assert_right(read(b, mover(name, loud(b, 0, is_high), b, scale, zero_point)))


@pytest.mark.few(12)
@pytest.mark.parametrize("activation", [0, 1, 2, 3])
@pytest.mark.parametrize("is_high", [True, False])
@pytest.mark.parametrize("name", ["CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "ADD", "MAX_POOL_2D"])
def test_a_constant_channel_behind_each_fused_activation(name: str, is_high: bool, activation: int) -> None:
    """It is clamped below or above what it holds, and ADD does not join 0 to its interval."""
    b = ModelBuilder()
    x = loud(b, activation if name == "CONV_2D" else 0, is_high)
    fields = {"fusedActivationFunction": activation}
    y = x if name == "CONV_2D" else b.tensor("y", (4, 6) if name == "FULLY_CONNECTED" else x.shape, zero_point=10)
    if name == "DEPTHWISE_CONV_2D":
        y = b.depthwise(x, 1)
        y.producer.options.fields.update(fields)  # type: ignore[union-attr]
    elif name == "FULLY_CONNECTED":
        filters = b.constant("w", np.eye(6, dtype=np.int8), per_channel(np.full(6, 0.9, np.float32), 0))
        b.operator(name, (x, filters), (y,), "FullyConnectedOptions", **fields)
    elif name == "ADD":
        b.operator(name, (x, x), (y,), "AddOptions", **fields)
    elif name == "MAX_POOL_2D":
        sizes = dict.fromkeys(("filterHeight", "filterWidth", "strideH", "strideW"), 1)
        b.operator(name, (x,), (y,), "Pool2DOptions", **sizes, **fields)
    total = b.tensor("total", y.shape, DType.INT8, scale=0.2, zero_point=100)
    b.operator("ADD", (y, y), (total,), "AddOptions")
    assert_right(read(b, total))
