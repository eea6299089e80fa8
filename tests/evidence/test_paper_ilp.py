"""The pieces of `scripts/paper iterative_graph_optimization` and `cascading_rfc`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from scripts.papers import cascading, claims, graphs, ilp
from scripts.papers import ilp_page as pages
from scripts.papers import random_cells as stages
from scripts.papers.as_printed.ilp import PrintedParts
from tests.model_builder import ModelBuilder
from tflite_memopt.solvers.graph.limits import SearchLimit
from tflite_memopt.solvers.schedule.check import check_problem
from tflite_memopt.solvers.schedule.methods import solve
from tflite_memopt.solvers.schedule.problem import ScheduleProblem, Step

FORK = ScheduleProblem(
    (8, 16, 8, 16, 8, 8),
    (Step((0,), (1,)), Step((1,), (2,)), Step((0,), (3,)), Step((3,), (4,)), Step((2, 4), (5,))),
    (0,),
    (5,),
)


def small_model() -> Any:
    builder = ModelBuilder()
    x = builder.input("x", (1, 4, 4, 2))
    y = builder.conv(x, 3, kernel=3)
    return builder.finish(builder.add(y, y))


def test_a_plain_problem_has_a_tensor_for_each_activation() -> None:
    plain = graphs.plain_problem(small_model())
    assert plain == ScheduleProblem((32, 48, 48), (Step((0,), (1,)), Step((1,), (2,))), (0,), (2,))


def test_unfolded_a_convolution_is_followed_by_its_batch_norm_and_activation() -> None:
    unfolded = graphs.unfolded_problem(small_model())
    check_problem(unfolded)
    assert len(unfolded.steps) == 4
    assert unfolded.steps[1].inputs == unfolded.steps[0].outputs
    assert unfolded.steps[-1].inputs == unfolded.steps[-2].outputs
    assert unfolded.outputs == unfolded.steps[-1].outputs


def test_the_forms_of_a_random_stage_have_the_same_results() -> None:
    counts = {form: len(stages.random_stage(3, form, 12).steps) for form in ("vertex", "gathered", "pairs")}
    assert counts["vertex"] < counts["gathered"] < counts["pairs"]
    for form in counts:
        check_problem(stages.random_stage(3, form, 12))


def found_on_a_fork() -> Any:
    limit = SearchLimit(effort=0.01)
    run = ilp.solved("x", FORK, limit, PrintedParts(2))
    peaks, scale = ilp.peaks(FORK, limit), ilp.scale(FORK, FORK)
    return ilp.Found(
        dict.fromkeys(ilp.NETWORKS, peaks),
        dict.fromkeys(ilp.NETWORKS, scale),
        dict.fromkeys(ilp.NETWORKS, (5, 5)),
        dict.fromkeys(ilp.NETWORKS, 2),
        dict.fromkeys(ilp.NETWORKS, (run, run)),
        dict.fromkeys(ilp.LONGER, (run, run)),
        dict.fromkeys(ilp.NETWORKS, [ilp.ExactRuns(run, run, run)] * ilp.LARGEST),
        {name: {step: replace(run, variables=40, operators=4) for step in ilp.STEPS} for name in ilp.ABLATED},
        dict.fromkeys(ilp.ABLATED, 50),
        {name: [(run, run)] * 5 for name in ilp.SWEPT},
    )


def test_every_claim_of_the_paper_has_a_rerun_and_every_table_is_written() -> None:
    found = found_on_a_fork()
    assert found.peaks["Darts"].best == solve(FORK).peak_bytes
    tables = list(pages.tables(found, [ilp.stages("vertex", 2)]))
    text = "\n".join(claims.page(claims.paper_named("iterative_graph_optimization"), "x", pages.reruns(found), tables))
    assert all(title in text for title in ("Table IV", "Tables V and VI", "Figure 9"))


def test_the_example_of_the_rfc_has_the_sizes_that_it_prints_but_one() -> None:
    assert cascading.outputs_of(cascading.example()) == [18_432, 4_608]
    assert cascading.outputs_of(cascading.example(3))[1] == 3_872


def test_every_claim_of_the_rfc_has_a_rerun() -> None:
    run = cascading.Striped(90, 30, 1.0, 8, 1.0)
    found = dict.fromkeys(("example", "MobileNet", "VGG-16"), (run, run))
    judged = {each.key: each.holds for each in cascading.reruns(found)}
    assert set(judged) == set(claims.paper_named("cascading_rfc").claims)
    assert judged["vgg"]
    assert not judged["second"]
