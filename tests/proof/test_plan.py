"""Plans proved byte by byte: what a planner makes passes, and what reads overwritten bytes does not."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scripts.makers.model_builder import ModelBuilder
from tests.memory.loops import looped, placement_of, places_at
from tests.models import ALL
from tests.test_random_models import random_rows
from tflite_memopt.cascade.loop import LoopForm
from tflite_memopt.errors import InfeasibleError
from tflite_memopt.ir.model import Model, Operator, Tensor
from tflite_memopt.memory.arrange import ModelPlacement
from tflite_memopt.memory.layout import offsets_in_force
from tflite_memopt.plan.check import check_in_force
from tflite_memopt.proof import Places, Status, prove_plan

FORMS: tuple[LoopForm, ...] = ("clamped", "masked")


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
    (image,) = {group.tensors for group in placement.layout.loops.carried if group.is_constant}
    proof = prove_plan(model, moved(places, dict.fromkeys(image, -16)))
    assert proof.status is Status.DIFFERENT
    assert proof.reason is not None
    assert "image" in proof.reason


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


def test_an_output_over_its_input_needs_a_permission() -> None:
    model = two_layers()
    x, y, z = model.main.inputs[0], *(operator.outputs[0] for operator in model.main.operators)

    def at_least(distance: int) -> Places:
        def permits(operator: Operator, read: Tensor, written: Tensor, found: int) -> bool:
            return (operator.outputs[0], read, written) == (written, read, written) and found >= distance

        return Places({x: 32, y: 0, z: 64}, permits)

    assert prove_plan(model, at_least(32)).status is Status.PROVED
    refused = prove_plan(model, at_least(33))
    assert refused.reason is not None
    assert "which it still reads" in refused.reason


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
    in_place = Places({x: 0, state: 64, y: 64, out: 0}, lambda *found: found[3] == 0, ties=((1, 1),))
    assert prove_plan(model, in_place).status is Status.PROVED
    over = replace(in_place, offsets={x: 0, state: 64, y: 64, out: 96})
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
