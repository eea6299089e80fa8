"""A plan must make no library's arena larger: tensors lie low while a library needs much scratch."""

from __future__ import annotations

from dataclasses import replace

from tests.model_builder import ModelBuilder
from tflite_memopt.kernels.profiles import profile_named
from tflite_memopt.memory.arrange import arrange, fitted
from tflite_memopt.memory.layout import head_in_force, heads_with, memory_layout
from tflite_memopt.memory.reserve import LibraryNeed, needs_by_library
from tflite_memopt.model.ir.model import Model, Operator
from tflite_memopt.operators.requests import Abi, Requests
from tflite_memopt.options import Options

REFERENCE = profile_named("reference")
OPTIONS = Options(objective="head", verify=False)
SCRATCH = 50_000


def greedy(operator: Operator, abi: Abi) -> Requests:
    """A library whose last convolution wants much scratch."""
    found = REFERENCE.requests(operator, abi)
    return replace(found, scratch=(SCRATCH,)) if operator.outputs[0].name == "conv2" else found


def greedier_still(operator: Operator, abi: Abi) -> Requests:
    """A second library, whose scratch for the same convolution begins elsewhere."""
    found = greedy(operator, abi)
    return replace(found, scratch=tuple(size + 64 for size in found.scratch))


def narrowing() -> Model:
    """The tensors of the last operator are small."""
    b = ModelBuilder()
    wide = b.conv(b.input("x", (1, 16, 16, 4)), 16, seed=1)
    return b.finish(b.conv(b.conv(wide, 4, seed=2), 2, seed=3))


def test_tensors_lie_low_where_a_library_needs_much_scratch() -> None:
    model = narrowing()
    library = replace(REFERENCE, name="greedy", requests=greedy)
    greedier = replace(REFERENCE, name="greedier", requests=greedier_still)
    profile = replace(REFERENCE, libraries=(REFERENCE, library, greedier))
    found = arrange(model, profile, OPTIONS.search)
    x, (wide, narrow, last) = model.main.inputs[0], (operator.outputs[0] for operator in model.main.operators)
    high = {wide: 0, x: wide.nbytes, narrow: wide.nbytes, last: 0}
    found = replace(found, placement=replace(found.placement, offsets=high))
    after = needs_by_library(model, found.placement.offsets, profile, found.placement.order)
    small = narrow.nbytes + last.nbytes
    enough = {name: LibraryNeed(need.head, need.required, need.measured) for name, need in after.items()}
    enough["greedy"] = replace(enough["greedy"], head=SCRATCH + small + 64)
    enough["greedier"] = replace(enough["greedier"], head=SCRATCH + small + 192)
    assert after["greedy"].head > enough["greedy"].head
    fitting = fitted(model, found, enough, profile, OPTIONS.search)
    assert fitting is not None
    again = needs_by_library(model, fitting.placement.offsets, profile, fitting.placement.order)
    assert fitting.needs == again
    assert again["greedy"].head <= enough["greedy"].head
    assert again["greedier"].head <= enough["greedier"].head
    assert again["reference"].head <= enough["reference"].head


def test_heads_of_several_libraries_are_those_of_their_layouts() -> None:
    model = narrowing()
    libraries = [replace(REFERENCE, requests=each) for each in (REFERENCE.requests, greedy, greedier_still)]
    placement = arrange(model, REFERENCE, OPTIONS.search).placement
    for planned in (placement.offsets, {}):
        layouts = [memory_layout(model, library, placement.order) for library in libraries]
        heads = [head_in_force(layout, planned) for layout in layouts]
        assert list(heads_with(model, libraries, planned, placement.order)) == heads
        assert len(set(heads)) > 1
