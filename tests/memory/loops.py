"""A small model as a loop, and its plan."""

from __future__ import annotations

from tests.model_builder import ModelBuilder
from tflite_memopt.evidence.proof import Places, prove_plan
from tflite_memopt.kernels.profiles import PROFILES
from tflite_memopt.memory.arrange import ModelPlacement, arrange
from tflite_memopt.memory.layout import offsets_in_force, places_of
from tflite_memopt.model.ir.model import Model
from tflite_memopt.options import Options
from tflite_memopt.search.cascade.loop import LoopForm, loop_rows_of, lower_loop
from tflite_memopt.search.cascade.region import Region, region_of


def plain() -> Model:
    """Two SAME convolutions with many channels in between."""
    b = ModelBuilder()
    return b.finish(b.conv(b.conv(b.input("image", (1, 12, 8, 4)), 24, kernel=3, seed=1), 4, kernel=3, seed=2))


def looped(form: LoopForm, rows: int = 1) -> Model:
    """The same as one loop."""
    model = plain()
    region = region_of(model.main, model.main.operators)
    assert isinstance(region, Region)
    turns = loop_rows_of(region, rows, form)
    assert not isinstance(turns, str)
    lower_loop(model, model.main, region, turns)
    return model


def placement_of(model: Model, kernels: str = "portable") -> ModelPlacement:
    """The plan of a model, whose operators are put in its order."""
    options = Options(kernels=kernels, planner="greedy_by_size")
    placement = arrange(model, PROFILES[kernels], options.search).placement
    model.main.reorder(placement.order)
    return placement


def places_at(model: Model, placement: ModelPlacement, kernels: str) -> Places:
    """The places of a plan as the proof of plans takes them."""
    layout = placement.layout
    return places_of(model, layout, offsets_in_force(layout, placement.offsets), PROFILES[kernels])


def assert_plan_proved(model: Model, placement: ModelPlacement, kernels: str) -> None:
    """Every operator reads what belongs there, iteration by iteration."""
    proof = prove_plan(model, places_at(model, placement, kernels))
    assert proof.proved, proof
