"""Lower bounds of stretches: against what each of them needs when it is searched."""

from __future__ import annotations

from itertools import combinations

import pytest

from tests.program.test_program_firmware import MODELS
from tflite_memopt import Options, optimize
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.run.candidate import Cache
from tflite_memopt.run.parts.stretch import StretchCosts
from tflite_memopt.run.parts.ways import other_ways

QUICK = Options(target="cortex-m7", verify=False, effort="quick", max_slowdown=0.5)


@pytest.mark.parametrize("name", MODELS)
def test_no_stretch_is_searched_to_less_than_its_bound(name: str) -> None:
    """But for another order and what rules take away: four hundredths."""
    costs = StretchCosts(MODELS[name](), QUICK, lambda _: None)
    every = list(combinations(costs.positions, 2))
    above_interface = 0
    for stretch in every[:: max(1, len(every) // 12)]:
        bound, price = costs.least_in_stripes(stretch), costs.measure(stretch, 0)
        assert price is not None
        assert bound <= 1.04 * price.need
        above_interface += bound > 1.04 * costs.least(stretch)
    assert above_interface


def test_a_longer_stretch_frees_what_crosses_an_end_of_a_single_operator() -> None:
    costs = StretchCosts(MODELS["separable"](), QUICK, lambda _: None)
    operators = costs.model.main.operators
    one = operators[1].outputs[0].nbytes
    assert costs.freed((0, 2), (0, 4)) == 0
    assert costs.freed((1, 2), (1, 4)) == one
    assert costs.freed((1, 2), (0, 4)) == one + operators[0].outputs[0].nbytes
    assert costs.freed((1, 2), (1, 2)) == 0


@pytest.mark.parametrize(("share", "is_searched"), [(0.3, False), (0.95, True)])
def test_one_file_with_any_changes_is_searched_where_its_bound_is_near_the_budget(
    share: float, is_searched: bool
) -> None:
    data, said, cache = write_model(MODELS["separable"]()), list[str](), Cache()
    need = optimize(data, QUICK, cache=cache).report.after.required_for_target
    options = Options(target="cortex-m7", verify=False, effort="quick", budget=int(share * need))
    whole = optimize(data, options, cache=cache)
    assert whole.report.within_budget is False
    ways = list(other_ways(data, options, whole, said.append, cache))
    assert ways
    assert any("--max-slowdown 100" in each for each in said) == is_searched
