"""Plans proved byte by byte: what a planner makes passes, and what reads overwritten bytes does not."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.memory.loops import looped, placement_of, places_at
from tests.model_builder import ModelBuilder
from tests.models import ALL
from tests.test_random_models import random_rows
from tests.tflm import needs_wheel, run_tflm
from tflite_memopt.errors import InfeasibleError
from tflite_memopt.evidence.equivalence.adapter import RunJob
from tflite_memopt.evidence.proof import Places, Proof, Status, prove_plan
from tflite_memopt.memory.arrange import ModelPlacement
from tflite_memopt.memory.layout import offsets_in_force
from tflite_memopt.model.io import offline_plan
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.model.ir.model import DType, Model, Tensor
from tflite_memopt.search.cascade.loop import LoopForm
from tflite_memopt.solvers.plan.check import check_in_force

FORMS: tuple[LoopForm, ...] = ("clamped", "masked")
FILLS = (0x5A, 0x33)
"""Bytes that memory holds before."""


def placed(model: Model, kernels: str) -> tuple[Places, ModelPlacement]:
    placement = placement_of(model, kernels)
    return places_at(model, placement, kernels), placement


def moved(places: Places, by: Mapping[Tensor, int]) -> Places:
    return replace(places, offsets={tensor: at + by.get(tensor, 0) for tensor, at in places.offsets.items()})


@pytest.mark.parametrize("kernels", ["portable", "reference", "cmsis-nn"])
@pytest.mark.parametrize("name", sorted(ALL))
def test_what_a_planner_makes_is_proved(name: str, kernels: str) -> None:
    model = ALL[name]()
    proof = prove_plan(model, placed(model, kernels)[0])
    assert proof.status is Status.PROVED, proof


@pytest.mark.parametrize("kernels", ["portable", "reference"])
@pytest.mark.parametrize("form", FORMS)
def test_loops_are_gone_through_turn_by_turn(form: LoopForm, kernels: str) -> None:
    model = looped(form)
    proof = prove_plan(model, placed(model, kernels)[0])
    assert proof.status is Status.PROVED, proof


@pytest.mark.parametrize("form", FORMS)
def test_an_image_one_step_nearer_to_the_result_is_overwritten(form: LoopForm) -> None:
    model = looped(form)
    places, placement = placed(model, "portable")
    (image,) = (group for group in placement.layout.loops.carried if model.main.inputs[0] in group)
    proof = prove_plan(model, moved(places, dict.fromkeys(image, -16)))
    assert proof.status is Status.DIFFERENT
    assert proof.reason is not None
    assert "image" in proof.reason


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(st.integers(0, 40), st.sampled_from(["portable", "reference"]), st.integers(0, 2**32 - 1))
def test_a_moved_tensor_is_judged_as_the_check_of_plans_judges_it(seed: int, kernels: str, choice: int) -> None:
    """A plan that the check of relations accepts is proved; the proof may accept more, where values are the same."""
    model = random_rows(seed)
    places, placement = placed(model, kernels)
    draw = random.Random(choice)
    tensor = draw.choice(list(places.offsets))
    at = 16 * draw.randint(0, 40)
    changed = moved(places, {tensor: at - places.offsets[tensor]})
    offsets = list(offsets_in_force(placement.layout, placement.offsets))
    offsets[placement.layout.tensors.index(tensor)] = at
    proof = prove_plan(model, changed)
    try:
        check_in_force(placement.layout.problem, tuple(offsets))
    except InfeasibleError:
        return
    assert proof.status is Status.PROVED, proof


def test_everything_at_one_place_is_refused() -> None:
    for seed in range(8):
        model = random_rows(seed)
        places, _ = placed(model, "reference")
        proof = prove_plan(model, replace(places, offsets=dict.fromkeys(places.offsets, 0)))
        assert proof.status is Status.DIFFERENT


def two_layers() -> Model:
    b = ModelBuilder()
    return b.finish(b.conv(b.conv(b.input("x", (1, 4, 4, 4)), 4, kernel=3, seed=1), 4, seed=2))


def test_an_output_over_its_input_needs_an_order_of_its_kernel() -> None:
    """A convolution of 3x3 reads a row and a pixel back: 20 of the 64 bytes."""
    model = two_layers()
    x, y, z = model.main.inputs[0], *(operator.outputs[0] for operator in model.main.operators)

    def at(distance: int, library: str) -> Proof:
        return prove_plan(model, Places({x: distance, y: 0, z: 128}, library))

    assert at(32, "reference").status is Status.PROVED
    for refused in (at(16, "reference"), at(32, "portable"), at(32, "nobody's")):
        assert refused.reason is not None


def test_a_place_is_a_multiple_of_16() -> None:
    model = two_layers()
    x, y, z = model.main.inputs[0], *(operator.outputs[0] for operator in model.main.operators)
    for at in (120, -16):
        refused = prove_plan(model, Places({x: 0, y: 64, z: at}))
        assert refused.status is Status.DIFFERENT
        assert "16" in str(refused)


def updated(place: int, is_known: bool) -> tuple[Proof, bytes]:
    """A row that is computed at a place and put into a tensor; the proof of the plan, and what TFLM computes.

    ``is_known``: where the row goes, or the model takes it.
    """
    b = ModelBuilder()
    operand, row = b.input("operand", (1, 4, 16)), b.input("row", (1, 1, 16))
    other, y = b.tensor("other", (1, 1, 16)), b.tensor("y", (1, 4, 16))
    b.operator("ADD", (row, row), (other,), "AddOptions")
    to = np.asarray([0, 3, 0], np.int32)
    start = b.constant("start", to) if is_known else b.input("start", (3,), DType.INT32)
    b.operator("DYNAMIC_UPDATE_SLICE", (operand, other, start), (y,))
    model, places = b.finish(y), {operand: 0, row: 64, other: place, y: 0}
    if not is_known:
        places[start] = 96
    offline_plan.attach(model, places)
    sample = [np.full(tensor.shape, 7, np.int8) for tensor in (operand, row)]
    run = run_tflm(RunJob(write_model(model), [sample if is_known else [*sample, to]], 1 << 16))
    return prove_plan(model, Places(places, "portable")), run.outputs[0][0].tobytes()


@needs_wheel
@pytest.mark.parametrize("is_known", [True, False])
def test_an_update_in_place_writes_its_box_alone(is_known: bool) -> None:
    """It does not heal a row of its operand that something else has overwritten."""
    (proof, right), (refused, wrong) = updated(80, is_known), updated(16, is_known)
    assert proof.status is Status.PROVED
    assert refused.status is Status.DIFFERENT
    assert "overwritten" in str(refused)
    assert right != wrong


def padded_batches(pad: int) -> Model:
    b = ModelBuilder()
    x = b.input("x", (1, 4, 4, 2))
    y = b.tensor("y", (4, (4 + 2 * pad) // 2, (4 + 2 * pad) // 2, 2))
    operands = [b.constant("blocks", np.asarray([2, 2], np.int32)), b.constant("pads", np.full((2, 2), pad, np.int32))]
    b.operator("SPACE_TO_BATCH_ND", (x, *operands), (y,), "SpaceToBatchNDOptions")
    return b.finish(y)


@needs_wheel
@pytest.mark.parametrize("pad", [0, 2])
def test_what_a_kernel_fills_with_anything_is_named(pad: int) -> None:
    """SPACE_TO_BATCH_ND of TFLM has a byte for its padding that it never sets."""
    model = padded_batches(pad)
    x, y = model.main.inputs[0], model.main.outputs[0]
    proof = prove_plan(model, Places({x: 0, y: 64}, "reference"))
    sample = [np.arange(32, dtype=np.int8).reshape(x.shape)]
    jobs = [RunJob(write_model(model), [sample], 1 << 16, fill=fill) for fill in FILLS]
    found = {run_tflm(job).outputs[0][0].tobytes() for job in jobs}
    assert (proof.status, len(found)) == ((Status.PROVED, 1) if not pad else (Status.UNKNOWN, len(FILLS)))
    assert pad == 0 or "SPACE_TO_BATCH_ND" in str(proof)


def test_scratch_is_kept_clear() -> None:
    model = two_layers()
    first, second = model.main.operators
    x, y, z = model.main.inputs[0], first.outputs[0], second.outputs[0]
    places = Places({x: 0, y: 64, z: 128}, scratch={first: [(128, 160)]})
    assert prove_plan(model, places).status is Status.PROVED
    assert prove_plan(model, replace(places, scratch={first: [(63, 70)]})).status is Status.DIFFERENT
    later = replace(places, offsets={x: 0, y: 64, z: 0}, scratch={second: [(64, 65)]})
    assert prove_plan(model, later).status is Status.DIFFERENT


def carried() -> Model:
    """An input that is the last output of the invocation before."""
    b = ModelBuilder()
    x, state = b.input("x", (1, 4, 4, 4)), b.input("state", (1, 4, 4, 4))
    y = b.add(x, state)
    return b.finish(b.conv(y, 4, seed=1), y)


def test_a_tied_input_must_be_there_in_the_next_invocation() -> None:
    model = carried()
    (x, state), (out, y) = model.main.inputs, model.main.outputs
    assert prove_plan(model, Places({x: 0, state: 64, y: 128, out: 0})).status is Status.PROVED
    tied = Places({x: 0, state: 64, y: 128, out: 0}, ties=((1, 1),))
    assert prove_plan(model, tied).status is Status.DIFFERENT  # nobody copies it to where it is read
    in_place = Places({x: 0, state: 64, y: 64, out: 0}, "reference", ties=((1, 1),))
    assert prove_plan(model, in_place).status is Status.PROVED
    over = replace(in_place, offsets={x: 0, state: 64, y: 64, out: 112})
    assert prove_plan(model, over).status is Status.DIFFERENT


def test_a_model_that_is_broken_anywhere_is_no_fault_of_its_plan() -> None:
    b = ModelBuilder()
    x, y = b.input("x", (1, 4)), b.tensor("y", (1, 4))
    operands = (x, *(b.constant(name, np.asarray(at, np.int32)) for name, at in (("begin", [0, 1]), ("size", [1, 4]))))
    b.operator("SLICE", operands, (y,), "SliceOptions")
    model = b.finish(y)
    proof = prove_plan(model, Places({x: 0, y: 16}))
    assert proof.status is Status.UNKNOWN
    assert "SLICE" in str(proof)


def test_a_plan_that_goes_on_for_gigabytes_is_not_followed() -> None:
    model = ALL["mobile_chain"]()
    places, _ = placed(model, "reference")
    proof = prove_plan(model, moved(places, {model.main.outputs[0]: 1 << 40}))
    assert proof.status is Status.UNKNOWN
    assert model.main.outputs[0].name in str(proof)


def test_an_input_that_is_listed_twice_holds_what_was_given_last() -> None:
    b = ModelBuilder()
    x = b.input("x", (1, 8))
    model = b.finish(b.add(x, x))
    model.main.inputs = (x, x)
    assert prove_plan(model, placed(model, "reference")[0]).proved
