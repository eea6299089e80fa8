"""The sentences of a report: what they say is what the figures say."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tflite_memopt
from tests.models import irregular_model, mobile_chain, quantised_at_the_boundary
from tflite_memopt import Options, Report
from tflite_memopt.equivalence.verdict import Basis, Verdict
from tflite_memopt.io.writer import write_model
from tflite_memopt.report.names import short_name
from tflite_memopt.report.sizes import COMMON_SIZES, in_words, smallest_fitting
from tflite_memopt.report.summary import headline

OPTIONS = Options(verify=False, cascade=False)
EQUAL = Verdict(3, True, 0.0, None)


@pytest.fixture(scope="module")
def report() -> Report:
    return tflite_memopt.optimize(write_model(mobile_chain()), replace(OPTIONS, kernels="reference")).report


def proved(report: Report, **verdicts: Verdict) -> Report:
    return replace(report, equivalence=verdicts, basis=Basis("tflm" in verdicts, None, None))


def test_the_headline_says_before_after_proof_and_fit(report: Report) -> None:
    before, after = (each.required_bytes["32"] for each in (report.before, report.after))
    line = headline(proved(report, litert=EQUAL, tflm=EQUAL))
    share = round(100 * (after - before) / before)
    figures = f"RAM {before:,} -> {after:,} bytes ({share:+d} %)"
    assert line == f"{figures}, outputs equal, checked on TFLM and LiteRT; fits 8 KB"


def test_the_headline_claims_no_more_than_was_checked(report: Report) -> None:
    assert "equality NOT proved (--no-verify)" in headline(report)
    unable = Verdict(0, None, 0.0, "not installed")
    only_graph = headline(proved(report, litert=EQUAL, tensorflow=unable))
    assert "checked on LiteRT, the plan itself was not run" in only_graph
    assert "no runtime could judge" in headline(proved(report, litert=unable))
    assert "outputs APPROXIMATE" in headline(proved(report, tflm=replace(EQUAL, exactness="approximates")))
    within = headline(proved(report, tflm=replace(EQUAL, exactness="reassociates"), litert=EQUAL))
    assert "outputs equal within a stated tolerance" in within


def test_the_budget_takes_the_place_of_common_sizes(report: Report) -> None:
    need = report.after.required_bytes["32"]
    assert headline(replace(report, budget=need, within_budget=True)).endswith(f"fits {in_words(need)}")
    tight = headline(replace(report, budget=need - 1, within_budget=False))
    assert tight.endswith(f"DOES NOT FIT {in_words(need - 1)}: 1 bytes too many")


def test_libraries_that_need_a_larger_size_are_named(report: Report) -> None:
    more = {"cmsis-nn": replace(report.libraries["after"]["reference"], required=20_000)}
    line = headline(replace(report, libraries={**report.libraries, "after": more}))
    assert "32 KB with other measured ones" in line


def test_the_head_alone_is_called_so() -> None:
    report = tflite_memopt.optimize(write_model(mobile_chain()), replace(OPTIONS, objective="head")).report
    assert headline(report).startswith(f"head of the arena {report.before.arena_bytes:,} -> ")


def test_limits_and_advice_follow_the_figures() -> None:
    report = tflite_memopt.optimize(write_model(quantised_at_the_boundary()), OPTIONS).report
    assert "--io int8" in [each.option for each in report.summary.advice]
    integers = tflite_memopt.optimize(write_model(quantised_at_the_boundary()), replace(OPTIONS, io="int8")).report
    assert "--io int8" not in [each.option for each in integers.summary.advice]
    irregular = tflite_memopt.optimize(write_model(irregular_model()), replace(OPTIONS, rewrite=False)).report
    assert {"without --no-cascade", "without --no-rewrite"} <= {each.option for each in irregular.summary.advice}
    step = irregular.after.peak
    assert step is not None
    assert any(f"operator {step.index} {step.operator}" in line for line in irregular.summary.limits)


def test_an_analysis_says_what_to_do_next() -> None:
    summary = tflite_memopt.analyze(write_model(mobile_chain())).summary
    assert summary.headline.startswith("RAM ")
    assert [each.option for each in summary.advice] == ["tflite-memopt optimize"]


@given(st.integers(0, 10_000_000))
def test_the_smallest_common_size_is_the_smallest(need: int) -> None:
    size = smallest_fitting(need)
    fitting = [each for each in COMMON_SIZES if each >= need]
    assert size == (min(fitting) if fitting else None)


def test_sizes_in_words() -> None:
    said = {65536: "64 KB", 1000: "1,000 bytes", 2 << 20: "2 MB", 1536 * 1024: "1536 KB"}
    assert {size: in_words(size) for size in said} == said


@given(st.text(max_size=200), st.integers(8, 60))
def test_a_short_name_is_short(name: str, longest: int) -> None:
    assert len(short_name(name, longest)) <= longest


def test_short_names_keep_what_tells_tensors_apart() -> None:
    fused = "model/activation_3/Relu;model/batch_normalization_3/FusedBatchNormV3;model/conv2d/BiasAdd/ReadVariableOp"
    assert short_name(fused) == "model/activation_3/Relu"
    assert short_name("model/block_1_expand_relu/Relu6/stripe12of12/trimmed") == "Relu6/stripe12of12/trimmed"
    assert short_name("x" * 30 + "y" * 30) == "x" * 20 + "…" + "y" * 19
    assert short_name("\udcff") == "?"
