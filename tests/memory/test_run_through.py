"""The checker that goes through every turn: it finds what a wrong plan of a loop would overwrite."""

from __future__ import annotations

import pytest

from tests.memory.loops import looped, placement_of
from tflite_memopt.cascade.loop import LoopForm
from tflite_memopt.errors import InfeasibleError
from tflite_memopt.ir.model import Model, Tensor
from tflite_memopt.memory.arrange import ModelPlacement
from tflite_memopt.memory.layout import offsets_in_force
from tflite_memopt.memory.run_through import check_loops, run_through

FORMS: tuple[LoopForm, ...] = ("clamped", "masked")


def moved(placement: ModelPlacement, tensors: set[Tensor], by: int) -> list[int]:
    """The offsets in force with some tensors elsewhere."""
    offsets = list(offsets_in_force(placement.layout, placement.offsets))
    for number, tensor in enumerate(placement.layout.tensors):
        if tensor in tensors:
            offsets[number] += by
    return offsets


def named(model: Model, *names: str) -> set[Tensor]:
    found = {tensor for graph in model.graphs for tensor in graph.tensors if tensor.name in names}
    assert len(found) >= len(names)
    return found


@pytest.mark.parametrize("form", FORMS)
def test_a_plan_of_a_loop_passes(form: LoopForm) -> None:
    model = looped(form)
    check_loops(model, placement_of(model))


@pytest.mark.parametrize("form", FORMS)
def test_an_image_one_step_nearer_to_the_result_is_overwritten(form: LoopForm) -> None:
    model = looped(form)
    placement = placement_of(model)
    images = {group.tensors for group in placement.layout.loops.carried if group.is_constant}
    (image,) = images
    with pytest.raises(InfeasibleError, match=r"reads 'image.*', whose byte \d+ has been overwritten"):
        run_through(model, placement.layout, moved(placement, set(image), -16))


def test_rows_of_a_turn_in_the_result_are_overwritten() -> None:
    model = looped("clamped")
    placement = placement_of(model)
    body = model.graphs[2]
    result = next(offset for tensor, offset in placement.offsets.items() if tensor is model.main.outputs[0])
    made = body.operators[-2].inputs[1]
    assert made is not None
    by = result - placement.offsets[made]
    with pytest.raises(InfeasibleError, match="has been overwritten"):
        run_through(model, placement.layout, moved(placement, {made}, by))


def test_a_row_that_no_turn_writes_is_found() -> None:
    model = looped("clamped")
    placement = placement_of(model)
    loop = placement.layout.loops.loops[0]
    (update,) = [op for op in loop.begins if op.name == "DYNAMIC_UPDATE_SLICE"]
    # The last turn writes where the first one did.
    loop.begins[update] = (*loop.begins[update][:-1], loop.begins[update][0])  # type: ignore[index]
    with pytest.raises(InfeasibleError, match="reads bytes of 'conv1' that nothing has written"):
        run_through(model, placement.layout, moved(placement, set(), 0))


def test_what_is_carried_at_two_offsets_is_copied_and_right() -> None:
    # TFLM copies a slot whose tensors lie apart: the checker does as well.
    model = looped("masked")
    placement = placement_of(model)
    (kept,) = named(model, "conv0/last/kept")
    offsets = moved(placement, {kept}, placement.memory.arena_bytes)
    layout = placement.layout
    number = layout.tensors.index(kept)
    assert offsets[number] % 16 == 0
    larger = [*layout.items]
    assert larger[number].size > 0
    run_through(model, layout, offsets)
