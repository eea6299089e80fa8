"""Orders of kernels against the kernels: one operator on TFLM with an output at every distance from an input.

What an order permits must be right there; and an order that says a little more than the true one permits what is not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.kernels.one_operator import MAKERS, alone
from tests.model_builder import ModelBuilder
from tests.tflm import needs_wheel, run_models
from tflite_memopt.evidence.equivalence.inputs import seeded_inputs
from tflite_memopt.evidence.proof import Places, orders, plan, prove_plan
from tflite_memopt.evidence.proof.orders import LIBRARIES, NEVER, Order
from tflite_memopt.model.io import offline_plan
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.model.ir.editor import SAME, VALID
from tflite_memopt.model.ir.model import DType, Model, Tensor
from tflite_memopt.operators.window import CONVOLUTIONS, POOLS
from tflite_memopt.solvers.graph.alignment import aligned

ARENA, SAMPLES = 1 << 15, 3
_WINDOWS = {
    f"{name} {kernel}x{kernel} stride {stride} {padding}": (name, kernel, stride, padding)
    for name in (*CONVOLUTIONS, *POOLS)
    for kernel in (1, 2, 3)
    for stride in (1, 2)
    for padding in (SAME, VALID)
}


def window(name: str, kernel: int, stride: int, padding: int) -> Model:
    b = ModelBuilder()
    x = b.input("x", (1, 5, 4, 3))
    if name == "CONV_2D":
        return b.finish(b.conv(x, 4, kernel, stride, padding))
    if name == "DEPTHWISE_CONV_2D":
        return b.finish(b.depthwise(x, kernel, stride, padding, 2))
    trim = kernel - 1 if padding == VALID else 0
    y = b.tensor("y", (1, -(-(5 - trim) // stride), -(-(4 - trim) // stride), 3))
    fields = {"padding": padding, "strideH": stride, "strideW": stride}
    b.operator(name, (x,), (y,), "Pool2DOptions", **fields, filterHeight=kernel, filterWidth=kernel)
    return b.finish(y)


def softmax() -> Model:
    b = ModelBuilder()
    return b.finish(b.softmax(b.input("x", (3, 16))))


def moved(name: str) -> Model:
    """Moves of boxes from the middle, and an update."""
    b = ModelBuilder()
    x = b.input("x", (1, 4, 3, 4))
    ints = [b.constant(f"c{at}", np.asarray(each, np.int32)) for at, each in enumerate(_OPERANDS[name])]
    if name.startswith("DYNAMIC"):
        y = b.tensor("y", (1, 4, 3, 4))
        b.operator("DYNAMIC_UPDATE_SLICE", (x, b.input("u", (1, 2, 3, 4)), *ints), (y,))
        return b.finish(y)
    kind = name.split(" ")[0]
    shape = {"SLICE": (1, 2, 2, 4), "STRIDED_SLICE": (1, 2, 2, 4), "PAD": (1, 5, 5, 4)}[kind]
    y = b.tensor("y", shape)
    table = {"SLICE": "SliceOptions", "STRIDED_SLICE": "StridedSliceOptions", "PAD": "PadOptions"}[kind]
    b.operator(kind, (x, *ints), (y,), table)
    return b.finish(y)


_OPERANDS: dict[str, list[Any]] = {
    "SLICE": [(0, 1, 1, 0), (1, 2, 2, 4)],
    "STRIDED_SLICE": [(0, 1, 1, 0), (1, 3, 3, 4), (1, 1, 1, 1)],
    "STRIDED_SLICE of every other": [(0, 0, 0, 0), (1, 4, 3, 4), (1, 2, 2, 1)],
    "PAD": [((0, 0), (1, 0), (1, 1), (0, 0))],
    "DYNAMIC_UPDATE_SLICE": [(0, 1, 0, 0)],
}
MODELS: dict[str, Callable[[], Model]] = {
    **{
        f"{name} {dtype.label}": lambda name=name, dtype=dtype: alone(name, dtype)  # type: ignore[misc]
        for name in MAKERS
        for dtype in (DType.INT8, DType.FLOAT32)
    },
    **{label: lambda given=given: window(*given) for label, given in _WINDOWS.items()},  # type: ignore[misc]
    **{name: lambda name=name: moved(name) for name in _OPERANDS},  # type: ignore[misc]
    "SOFTMAX of rows": lambda: softmax(),
}


def distances(model: Model, source: Tensor) -> Iterator[dict[Tensor, int]]:
    """Places of an operator's tensors: the first output at every distance from a source, all others apart."""
    output = model.main.operators[0].outputs[0]
    step = min(source.dtype.arena_bytes, output.dtype.arena_bytes)
    for distance in range(-source.nbytes, output.nbytes + 1, step):
        places = {output: max(0, -distance), source: max(0, distance)}
        end = aligned(max(at + tensor.nbytes for tensor, at in places.items()))
        for tensor in model.main.tensors:
            if tensor not in places and not tensor.is_constant:
                places[tensor] = end
                end += aligned(tensor.nbytes)
        yield places


def permitted(model: Model, places: dict[Tensor, int]) -> bool:
    return prove_plan(model, Places(places, "reference"), invocations=1, seed=b"seed").proved


def wrong_on_tflm(model: Model, every: list[dict[Tensor, int]]) -> list[int] | None:
    """Which of the places TFLM computes wrongly at; None where it does not run the operator."""
    files = {}
    for number, places in enumerate([apart(model), *every]):
        offline_plan.attach(model, places)
        files[str(number)] = write_model(model)
    runs = run_models("tflm", files, seeded_inputs(model, SAMPLES, 0), ARENA)
    if not runs["0"].ran:
        return None
    wanted = runs["0"].arrays
    return [
        number
        for number in range(len(every))
        if any(wanted[name].tobytes() != found.tobytes() for name, found in runs[str(number + 1)].arrays.items())
    ]


def apart(model: Model) -> dict[Tensor, int]:
    places, end = dict[Tensor, int](), 0
    for tensor in model.main.tensors:
        if not tensor.is_constant:
            places[tensor], end = end, end + aligned(tensor.nbytes)
    return places


@pytest.mark.few(10)
@needs_wheel
@pytest.mark.parametrize("name", MODELS)
def test_what_an_order_permits_is_right_on_the_kernel(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "ALIGNMENT", 1)
    model = MODELS[name]()
    for source in model.main.inputs:
        every = list(distances(model, source))
        safe = [number for number, places in enumerate(every) if permitted(model, places)]
        wrong = wrong_on_tflm(model, [every[number] for number in safe])
        if wrong is None:
            continue  # TFLM has no such kernel for this type
        assert not wrong, [
            (every[safe[at]][source], every[safe[at]][model.main.operators[0].outputs[0]]) for at in wrong
        ]


def bolder(order: Order) -> Order:
    """An order that writes a little later than the true one."""
    levels = np.unique(order.writes)
    step = int(np.diff(levels).min()) if levels.size > 1 else 1
    return replace(order, writes=np.where(order.writes == NEVER, NEVER, order.writes + step + (step == 2)))


BOLD = (
    *("ADD int8", "MUL float32", "RELU int8", "LOGISTIC float32", "SELECT_V2 int8", "QUANTIZE int8", "SOFTMAX of rows"),
    *("FULLY_CONNECTED int8", "RESIZE_BILINEAR int8", "RESIZE_NEAREST_NEIGHBOR int8", "PAD", "SLICE", "STRIDED_SLICE"),
    *(label for label in _WINDOWS if "1x1 stride 1 0" in label or "3x3 stride 1 0" in label),
)


@pytest.mark.few(3)
@needs_wheel
@pytest.mark.parametrize("name", BOLD)
def test_an_order_that_says_more_is_wrong_on_the_kernel(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The test above would notice: of what the bolder order permits besides, something is wrong on TFLM."""
    monkeypatch.setattr(plan, "ALIGNMENT", 1)
    model, true = MODELS[name](), orders.order_of

    def bold(*given: Any) -> Order | None:
        found = true(*given)
        return None if found is None else bolder(found)

    monkeypatch.setattr(plan, "order_of", bold)
    found = []
    for source in model.main.inputs:
        every = list(distances(model, source))
        found += wrong_on_tflm(model, [places for places in every if permitted(model, places)]) or []
    assert found


def test_libraries_are_those_of_the_profiles() -> None:
    from tflite_memopt.kernels.profiles import PROFILES

    assert set(LIBRARIES) == set(PROFILES)
