"""The pieces of `scripts/paper serenity`: how claims are judged, random orders, the rows of Table 2."""

from __future__ import annotations

from scripts.papers import cells, claims, serenity
from scripts.papers import random_cells as stages
from scripts.papers import serenity_why as whys
from scripts.papers.as_printed.serenity import StepLimit
from tflite_memopt.solvers.graph.limits import SearchLimit
from tflite_memopt.solvers.schedule.problem import ScheduleProblem, Step

TWO_BRANCHES = ScheduleProblem(
    (10, 40, 10, 40, 10, 10),
    (Step((0,), (1,)), Step((1,), (2,)), Step((0,), (3,)), Step((3,), (4,)), Step((2, 4), (5,))),
    (0,),
    (5,),
)
"""Both branches one after the other need 60 bytes, both large tensors at once 90."""


WHY = whys.Why(
    whys.Shares(2, (1.0, 2.0, 3.0), (0.0, 0.1, 0.2), 1),
    whys.Series(2, (1.0, 1.0, 1.0), (5, 6, 7)),
    [whys.Wiring(form, 10, 2, 9.0, 1, 1.1, 1.2, 1.3, 40) for form in whys.FORMS],
    [whys.Sweep(10, 2, 1, 1.1)],
    whys.Budgets(5, ["9 timeout"]),
)


def use(size: int, traffic: int, is_solved: bool = True) -> cells.OrderUse:
    return cells.OrderUse(size, size, (traffic,) * len(cells.CAPACITIES), 1.0, is_solved)


def cell(name: str, own: int, printed: int, ours: int) -> cells.Cell:
    plain = use(printed, printed), use(ours, ours)
    return cells.Cell(name, 9, use(own, own), *plain, 9, *plain)


ROWS = (*serenity.LEVELS, *serenity.REWRITTEN)
LEVEL = {key: serenity.Level(50.0, 10**9, key != "table2_program", 92) for key in ROWS}


def test_every_claim_is_judged_and_ratios_are_geometric_means() -> None:
    found = serenity.reruns(
        [cell("swiftnet A", 400, 100, 100), cell("randwire1 A", 100, 100, 50)],
        serenity.RandomOrders(0.04, 4.1),
        LEVEL,
        WHY,
    )
    by_key = {each.key: each for each in found}
    assert set(by_key) == set(claims.paper_named("serenity").claims)
    assert (by_key["factor"].rerun, by_key["factor"].ours) == ("2.00", "2.83")
    assert by_key["random_fit"].holds
    assert by_key["table2_program"].holds


def test_traffic_that_is_gone_is_seen() -> None:
    some = cells.Cell("swiftnet A", 9, use(9, 9), use(9, 9), use(9, 0), 9, use(9, 9), use(9, 0))
    by_key = {
        each.key: each for each in serenity.reruns([some, cell("x", 9, 9, 9)], serenity.RandomOrders(1, 1), LEVEL, WHY)
    }
    assert (by_key["eradicated"].rerun, by_key["eradicated"].ours) == ("0 of 2 cells", "1 of 2 cells")


def test_random_orders_are_counted_in_percent() -> None:
    drawn = serenity.random_orders(TWO_BRANCHES, 200)
    assert 0 < drawn.optimal < 100
    assert drawn.optimal <= drawn.fit <= 100


def test_table_2_has_three_rows_that_agree_on_a_small_network() -> None:
    found = serenity.levels(TWO_BRANCHES, SearchLimit(60.0), StepLimit(), serenity.LEVELS)
    assert list(found) == list(serenity.LEVELS)
    assert all(level.is_solved and level.states for level in found.values())


def test_cells_in_series_have_the_signatures_of_their_parts_added_up() -> None:
    assert whys.series(3).ratios == (1.0, 1.0, 1.0)


def test_a_stage_of_one_operator_a_vertex_gets_a_schedule() -> None:
    found = whys.wiring("vertex", 10_000, 1)
    assert (found.solved, found.operators) == (1, 33)
    assert found.factor == found.best_factor
    assert whys.sweep([stages.random_stage(0, "vertex")], 1).solved == 0


def test_budgets_as_printed_meet_below_the_optimum() -> None:
    found = whys.budgets("pairs", 0, 1_000)
    assert found.tried[0].endswith("timeout")
    assert all(int(each.split()[0]) < found.optimum for each in found.tried[1:])
