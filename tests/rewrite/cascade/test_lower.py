"""Stripes compute the same bytes as the whole, on TFLM and on LiteRT."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.rewrite.cascade.networks import TYPES, random_network, regions
from tflite_memopt.equivalence import litert, tflm
from tflite_memopt.equivalence.adapter import Job
from tflite_memopt.equivalence.inputs import seeded_inputs
from tflite_memopt.io.writer import write_model
from tflite_memopt.ir.check import check_model
from tflite_memopt.ir.copying import copy_model
from tflite_memopt.ir.dtype import DType
from tflite_memopt.ir.model import Model
from tflite_memopt.rewrite.cascade.lower import lower
from tflite_memopt.rewrite.cascade.region import Region, region_of
from tflite_memopt.rewrite.cascade.stripes import even_cuts, stripes_of
from tflite_memopt.striping import MODES

ARENA = 4 << 20


def in_stripes(model: Model, region: Region, count: int, halo: str, edges: str) -> Model | str:
    """A copy of the model with the region in stripes, or the reason why it cannot be."""
    copied = copy_model(model)
    at = model.main.operators.index(region.operators[0])
    twin = region_of(copied.main, copied.main.operators[at : at + len(region.operators)])
    assert isinstance(twin, Region)
    stripes = stripes_of(twin, even_cuts(twin.exit.shape[1], count), halo, edges)
    if isinstance(stripes, str):
        return stripes
    lower(copied, copied.main, twin, stripes)
    check_model(copied)
    return copied


def assert_equal(model: Model, *others: Model) -> None:
    """The others compute the same bytes, on both interpreters."""
    samples = seeded_inputs(model, 2, 0)
    for run in (tflm.run_tflm, litert.run_litert):
        expected = run(Job(write_model(model), samples, ARENA)).arrays
        for other in others:
            found = run(Job(write_model(other), samples, ARENA)).arrays
            assert found.keys() == expected.keys()
            for key, array in expected.items():
                assert array.tobytes() == found[key].tobytes(), (run.__name__, key)


@settings(deadline=None, max_examples=120)
@given(
    seed=st.integers(0, 10**6),
    dtype=st.sampled_from(TYPES),
    layers=st.integers(1, 7),
    count=st.integers(2, 20),
    longest=st.booleans(),
)
def test_any_region_in_stripes_computes_the_same(
    seed: int, dtype: DType, layers: int, count: int, longest: bool
) -> None:
    model = random_network(seed, dtype, layers)
    found = sorted(regions(model), key=lambda region: -len(region.operators))
    found = [region for region in found if region.exit.shape[1] > 1]
    if not found:
        return
    region = found[0] if longest else found[seed % len(found)]
    striped = [in_stripes(model, region, count, halo, edges) for halo, edges in MODES]
    assert_equal(model, *(each for each in striped if isinstance(each, Model)))
