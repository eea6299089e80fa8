"""The sentences of a report: what they say is what the figures say."""

from __future__ import annotations

import re
from dataclasses import replace
from io import StringIO

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console, RenderableType

import tflite_memopt
from tests.model_builder import ModelBuilder
from tests.models import irregular_model, mobile_chain, quantized_at_the_boundary
from tflite_memopt import Options, Report
from tflite_memopt.errors import printable
from tflite_memopt.evidence.equivalence.verdict import Basis, Verdict
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.model.ir.change import RewriteUse
from tflite_memopt.report.answer import DeviceUse, answer_of
from tflite_memopt.report.document import text_of
from tflite_memopt.report.documents import analysis_document, brief_of, report_document
from tflite_memopt.report.model import Advice
from tflite_memopt.report.summary import headline, price_of, summary_of
from tflite_memopt.report.words import (
    by_library,
    change_in_percent,
    counted,
    in_short,
    in_words,
    short_name,
)

OPTIONS = Options(verify=False, cascade=False)
EQUAL = Verdict(3, True, 0.0, None)


@pytest.fixture(scope="module")
def report() -> Report:
    return tflite_memopt.optimize(write_model(mobile_chain()), replace(OPTIONS, kernels="reference")).report


def proved(report: Report, **verdicts: Verdict) -> Report:
    return replace(report, equivalence=verdicts, basis=Basis("tflm" in verdicts, None))


def within(report: Report, budget: int | None = None, device: DeviceUse | None = None) -> Report:
    """The report of the same result under a budget, or on a device."""
    needs = report.libraries
    answer = answer_of(needs["after"], before=needs["before"], budget=budget, device=device)
    return replace(report, budget=budget, device=device, answer=answer)


def shown(what: RenderableType) -> str:
    stream = StringIO()
    Console(file=stream, width=200).print(what)
    return stream.getvalue()


def test_the_headline_says_before_after_proof_and_fit(report: Report) -> None:
    before, after = (each.required_bytes["32"] for each in (report.before, report.after))
    line = headline(proved(report, litert=EQUAL, tflm=EQUAL))
    share = round(100 * (after - before) / before)
    figures = f"RAM {before:,} -> {after:,} bytes ({share:+d} %)"
    rest = "verified bit-exact on 3 inputs (LiteRT and TFLM's reference kernels)"
    assert line == f"{figures} at the same run time, {rest}"


def test_the_headline_claims_no_more_than_was_checked(report: Report) -> None:
    assert "NOT verified (--no-verify)" in headline(report)
    unable = Verdict(0, None, 0.0, "not installed")
    only_graph = headline(proved(report, litert=EQUAL, runner=unable))
    assert "verified bit-exact on 3 inputs (LiteRT, the plan itself was not run)" in only_graph
    assert "NOT verified: no runtime could run both models" in headline(proved(report, litert=unable))
    assert "outputs APPROXIMATE" in headline(proved(report, tflm=replace(EQUAL, exactness="approximates")))
    within = headline(proved(report, tflm=replace(EQUAL, exactness="reassociates"), litert=EQUAL))
    assert "verified equal within a stated tolerance on 3 inputs" in within


def test_the_first_line_is_about_the_device_that_was_named(report: Report) -> None:
    need, device = report.after.required_bytes["32"], DeviceUse("pico", "RP2040", 264 << 10, 2 << 20)
    assert headline(within(report, device=device)).endswith(f"; needs {need:,} of the pico's 264 KB")
    small = replace(device, name="tiny", ram_bytes=1024)
    assert headline(within(report, device=small)).endswith(
        f"DOES NOT FIT the tiny's 1 KB: {need - 1024:,} bytes too many"
    )


def test_a_device_fits_to_the_last_byte(report: Report) -> None:
    need = report.after.required_bytes["32"]
    for ram, fits in ((need, True), (need - 1, False)):
        line = headline(within(report, device=DeviceUse("it", "it", ram, None)))
        assert ("DOES NOT FIT" in line) != fits
        assert fits or line.endswith(": 1 byte too many")


def test_the_first_line_names_kernels_that_did_not_run(report: Report) -> None:
    said = "(TFLM's reference kernels, not CMSIS-NN)"
    assert said in headline(proved(replace(report, kernels="cmsis-nn-dsp"), tflm=EQUAL))
    assert "not CMSIS-NN" not in headline(proved(report, tflm=EQUAL))


def test_the_budget_takes_the_place_of_the_device(report: Report) -> None:
    need = report.after.required_bytes["32"]
    assert headline(within(report, need)).endswith(f"fits {in_words(need)} with 0 bytes to spare")
    tight = headline(within(report, need - 1))
    assert tight.endswith(f"DOES NOT FIT {in_words(need - 1)}: 1 byte too many")
    before = report.before.required_bytes["32"]
    large = headline(within(report, before))
    assert large.endswith(f"fits {in_words(before)}, as it did before, with {before - need:,} bytes to spare")


def with_another_library(report: Report, needs: tuple[int, int]) -> Report:
    """The report where firmware may also link another library, with which the model needs so much before and after."""
    sides = zip(("before", "after"), needs, strict=True)
    libraries = {
        side: {**report.libraries[side], "cmsis-nn": replace(report.libraries[side]["reference"], required=need)}
        for side, need in sides
    }
    return within(replace(report, libraries=libraries))


def test_the_library_that_needs_the_most_is_named(report: Report) -> None:
    anywhere = with_another_library(report, (20_000, 20_000))
    line = headline(anywhere)
    assert f"-> {report.after.required_for_target:,} bytes" in line
    assert " with TFLM's own kernels at " in line
    assert line.endswith("; 20,000 with cmsis-nn: pass --target")
    there = replace(anywhere, target="cortex-m4", kernels="portable")
    assert headline(there).endswith("; 20,000 with cmsis-nn")
    assert anywhere.answer.more_than_before == {}


def test_a_result_that_needs_more_with_a_library_says_so(report: Report) -> None:
    worse = with_another_library(report, (19_984, 20_000))
    assert headline(worse).endswith("; 20,000 with cmsis-nn, more than the 19,984 of the original: pass --target")
    assert worse.answer.more_than_before == {"cmsis-nn": (19_984, 20_000)}


@pytest.mark.parametrize(("budget", "fits"), [(20_000, True), (19_999, False)])
def test_without_a_target_the_verdict_is_of_the_worst_library(report: Report, budget: int, fits: bool) -> None:
    judged = within(with_another_library(report, (20_000, 20_000)), budget)
    assert report.after.required_for_target < budget
    assert judged.within_budget == fits
    said = "fits 20,000 bytes with any kernels" if fits else "DOES NOT FIT 19,999 bytes with cmsis-nn: 1 byte too many"
    assert said in headline(judged)


@pytest.mark.parametrize(
    ("budget", "said"),
    [
        (3000, "fits 3,000 bytes with 0 bytes to spare; 2,900 with codegen's planner"),
        (2999, "fits 2,999 bytes with codegen's planner only (2,900 bytes)"),
        (2900, "fits 2,900 bytes with codegen's planner only (2,900 bytes)"),
        (2899, "DOES NOT FIT 2,899 bytes: 101 bytes too many; 2,900 with codegen's planner"),
    ],
)
def test_a_budget_says_by_which_planner_it_fits(report: Report, budget: int, said: str) -> None:
    needs = {"cmsis-nn": replace(report.libraries["after"]["reference"], required=3000, table=2900)}
    judged = within(replace(report, libraries=dict.fromkeys(("before", "after"), needs)), budget)
    assert judged.within_budget == (budget >= 2900)
    assert headline(judged).replace(", as it did before,", "").endswith(f"; {said}")


@pytest.mark.parametrize(("target", "has_target"), [(None, False), ("cortex-m4", True)])
def test_an_analysis_asks_for_a_target_where_none_is_named(target: str | None, has_target: bool) -> None:
    said = tflite_memopt.analyze(write_model(mobile_chain(32)), kernels="portable", target=target).summary.headline
    assert " with esp-nn-s3" in said
    assert ("pass --target" in said) != has_target


def test_the_head_alone_is_called_so() -> None:
    report = tflite_memopt.optimize(write_model(mobile_chain()), replace(OPTIONS, objective="head")).report
    assert headline(report).startswith(f"head of the arena {report.before.arena_bytes:,} -> ")


def test_names_are_printed_on_one_line() -> None:
    assert printable("a\nRAM 10 bytes\x1b[2J\x07é\udcff") == "a\\nRAM 10 bytes\\x1b[2J\\x07é?"
    model = mobile_chain()
    for tensor in model.main.tensors:
        tensor.name += "\nRAM 10 bytes\x1b[2J"
    report = tflite_memopt.optimize(write_model(model), replace(OPTIONS, verify=False)).report
    analysis = tflite_memopt.analyze(write_model(model))
    shown = "\n".join((brief_of(report), *report.summary.limits, *analysis.summary.limits))
    assert "\x1b" not in shown
    assert not any(line.startswith("RAM 10") for line in shown.splitlines())


def test_limits_and_advice_follow_the_figures() -> None:
    report = tflite_memopt.optimize(write_model(quantized_at_the_boundary()), OPTIONS).report
    assert "--io int8" in [each.option for each in report.summary.advice]
    integers = tflite_memopt.optimize(write_model(quantized_at_the_boundary()), replace(OPTIONS, io="int8")).report
    assert "--io int8" not in [each.option for each in integers.summary.advice]
    irregular = tflite_memopt.optimize(write_model(irregular_model()), replace(OPTIONS, rewrite=False)).report
    assert {"--changes stripes"} <= {each.option for each in irregular.summary.advice}
    step = irregular.after.peak
    assert step is not None
    assert any(f"operator {step.index} {step.operator}" in line for line in irregular.summary.limits)


def test_a_batch_of_one_is_advised_where_the_head_is_most_of_the_arena() -> None:
    for side, is_most in ((16, True), (2, False)):
        b = ModelBuilder()
        x = b.input("x", (4, side, side, 3))
        report = tflite_memopt.optimize(write_model(b.finish(b.conv(x, 4, kernel=1))), Options(verify=False)).report
        assert (report.after.arena_bytes > report.after.tail_for_target) == is_most
        assert ("batch of 1" in [each.option for each in report.summary.advice]) == is_most


def test_no_smaller_head_is_advised_where_the_planner_of_tflm_needs_more() -> None:
    b = ModelBuilder()
    y = b.input("x", (1, 8))
    for _ in range(6):
        y = b.dense(y, 8)
    report = tflite_memopt.optimize(write_model(b.finish(y)), Options(verify=False)).report
    assert report.after.temporaries_for_target > report.after.arena_bytes
    assert report.summary.advice == ()
    assert any("fewer tensors help, or a plan that the firmware carries" in line for line in report.summary.limits)


def test_the_price_is_the_run_time_with_each_library(report: Report) -> None:
    more = {"reference": 103, "cmsis-nn-mve": 120}
    before, after = (dict.fromkeys(more, 100), more)
    slower = replace(
        report,
        before=replace(report.before, instructions=before),
        after=replace(report.after, instructions=after),
    )
    assert " at up to +20.0 % run time, " in headline(slower)
    assert price_of(slower).startswith(
        "run time +20.0 % with cmsis-nn-mve, +3.0 % with reference (instructions, estimated)"
    )


def test_a_library_that_was_not_measured_is_priced_as_another_one_and_that_is_said() -> None:
    said = by_library({"reference": 0.04}, "esp-nn-s3")
    assert said == "run time +4.0 % (instructions, estimated as with reference kernels: esp-nn-s3 was not measured)"
    assert in_short({"reference": 0.04}) == "+4.0 % run time"
    assert in_short({}) == in_short({"reference": 0.0}) == "the same run time"
    assert in_short({"cmsis-nn": 0.04, "reference": -0.01}) == "up to +4.0 % run time"
    assert in_short({"cmsis-nn": -0.03, "reference": -0.1}) == "-3.0 % run time or better"


def test_an_analysis_says_what_to_do_next() -> None:
    summary = tflite_memopt.analyze(write_model(mobile_chain())).summary
    assert summary.headline.startswith("RAM ")
    assert [each.option for each in summary.advice] == ["tflite-memopt optimize"]


def test_sizes_in_words() -> None:
    said = {65536: "64 KB", 1000: "1,000 bytes", 2 << 20: "2 MB", 1536 * 1024: "1536 KB"}
    assert {size: in_words(size) for size in said} == said


@pytest.mark.slow
@given(st.text(max_size=200), st.integers(8, 60))
def test_a_short_name_is_short(name: str, longest: int) -> None:
    assert len(short_name(name, longest)) <= longest


def test_short_names_keep_what_tells_tensors_apart() -> None:
    fused = "model/activation_3/Relu;model/batch_normalization_3/FusedBatchNormV3;model/conv2d/BiasAdd/ReadVariableOp"
    assert short_name(fused) == "model/activation_3/Relu"
    assert short_name("model/block_1_expand_relu/Relu6/stripe12of12/trimmed") == "Relu6/stripe12of12/trimmed"
    assert short_name("x" * 30 + "y" * 30) == "x" * 20 + "…" + "y" * 19
    assert short_name("\udcff") == "?"


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (1000, 1000, ""),
        (0, 5, ""),
        (1000, 880, "-12 %"),
        (22_832, 22_736, "-0.4 %"),
        (100_000, 99_990, "less by under 0.1 %"),
        (100_000, 100_010, "more by under 0.1 %"),
    ],
)
def test_a_change_is_never_nothing_with_a_sign(before: int, after: int, said: str) -> None:
    assert change_in_percent(before, after) == said


def test_one_is_singular() -> None:
    assert [counted(number, "output") for number in (0, 1, 2, 1500)] == [
        "0 outputs",
        "1 output",
        "2 outputs",
        "1,500 outputs",
    ]


def test_what_is_saved_is_said_once_and_is_true(report: Report) -> None:
    saved = report.before.required_for_target - report.after.required_for_target
    assert saved > 0
    assert [line for line in report.summary.changes if "less" in line] == [
        f"all of this together: {saved:,} bytes less"
    ]
    assert not any("saves" in line for line in report.summary.changes)
    worse = replace(report, after=report.before)
    assert not any("all of this together" in line for line in summary_of(worse, ()).changes)


@pytest.mark.parametrize(
    ("rule", "stripes", "said"),
    [
        (
            "cascade in 4 stripes (recompute, pad)",
            "4 stripes (recompute, pad)",
            "b runs a few rows at a time, in 4 stripes",
        ),
        (
            "cascade in a clamped loop",
            "a clamped loop, 2 rows per iteration",
            "a few rows at a time, in a loop, 2 rows",
        ),
        ("dead_channels: 3 of 8 channels", None, "removed 3 of 8 channels that nothing uses (a/b)"),
        ("lean_reshape + flattened_input", None, "simpler operators that compute the same (a/b)"),
    ],
)
def test_changes_are_in_plain_words(report: Report, rule: str, stripes: str | None, said: str) -> None:
    (change, *_) = summary_of(replace(report, rewrites=(RewriteUse(rule, ("a/b",), "exact", 0, stripes),)), ()).changes
    assert said in change
    assert not re.search("_|clamped|recompute|cascade", change)


def test_memory_reuse_is_said_in_words(report: Report) -> None:
    (line,) = [line for line in report.summary.changes if line.startswith("memory reuse: ")]
    views = sum(use.kind == "view" for use in report.sharing)
    over = len(report.sharing) - views
    assert bool(re.search(rf"{counted(views, 'output')} (is a view|are views) of", line)) == (views > 0)
    assert bool(re.search(rf"{counted(over, 'output')} overwrites? ", line)) == (over > 0)


def test_tensors_at_the_peak_that_overlap_say_so(report: Report) -> None:
    step = report.after.peak
    assert step is not None
    total = sum(tensor.bytes for tensor in step.live) + step.scratch_bytes
    apart = replace(step, bytes=total)
    said = f"they overlap: {total:,} bytes in {total - 16:,} bytes of the arena"
    for peak, overlaps in ((replace(step, bytes=total - 16), True), (apart, False)):
        text = shown(text_of(report_document(replace(report, after=replace(report.after, peak=peak)))))
        assert (said in text) == overlaps


def test_the_tail_is_one_number_wherever_it_is_said(report: Report) -> None:
    need = report.after.required_for_target
    tight = within(report, need - 1)
    text = shown(text_of(report_document(replace(tight, summary=summary_of(tight, ())), is_short=True)))
    tails = set(re.findall(r", ([\d,]+) for TFLM's own structures|the tail takes ([\d,]+) more", text))
    assert len({first or second for first, second in tails}) == 1
    assert report.after.tail_for_target == need - report.after.arena_bytes


def test_little_is_the_first_line_the_price_what_to_register_and_warnings(report: Report) -> None:
    lines = brief_of(replace(report, warnings=("of the weather",))).splitlines()
    assert lines[0] == report.summary.headline
    assert lines[1].startswith("price: ")
    assert lines[2].startswith("register ")
    assert lines[3:] == ["warning: of the weather"]


def test_the_answer_is_short_and_all_figures_are_a_flag_away() -> None:
    made = tflite_memopt.optimize(write_model(irregular_model()), replace(OPTIONS, cascade=True)).report
    answer, everything = (
        shown(text_of(report_document(made, "out.tflite", is_short=short))) for short in (True, False)
    )
    assert len(answer.splitlines()) <= 12
    assert answer.startswith(made.summary.headline)
    assert f"flash out.tflite: reserve {made.answer.reserve:,} bytes with TFLM's own kernels, " in answer
    assert "│" not in answer
    assert "at the peak, after" in everything
    assert all(each.option in everything for each in made.summary.advice)


def test_twelve_lines_keep_every_warning_and_leave_out_limits_and_advice(report: Report) -> None:
    advice = tuple(Advice(f"--option{number}", "does more") for number in range(4))
    full = replace(report.summary, limits=tuple(f"bound {number}" for number in range(6)), advice=advice)
    for warnings in range(7):
        told = replace(report, summary=full, warnings=tuple(f"of fault {number}" for number in range(warnings)))
        lines = shown(text_of(report_document(told, is_short=True))).splitlines()
        assert len(lines) <= max(12, warnings + 8)
        assert sum("of fault" in line for line in lines) == warnings
        assert any("bound 0" in line for line in lines)
        assert any("flash the result" in line for line in lines)
        assert any("more to try" in line for line in lines)


def test_an_optimized_file_is_counted_for_what_it_was_made_for() -> None:
    made = tflite_memopt.optimize(write_model(mobile_chain()), replace(OPTIONS, target="cortex-m4"))
    analysis = tflite_memopt.analyze(made.model)
    assert (analysis.target, analysis.kernels) == ("cortex-m4", "cmsis-nn-dsp")
    assert replace(analysis.memory, tflm=made.report.after.tflm) == made.report.after
    assert analysis.bounds.schedule <= analysis.memory.arena_bytes
    assert "as counted here" in shown(text_of(analysis_document(analysis)))
    assert analysis.summary.advice == ()
    assert analysis.planned_for is not None
    assert analysis.planned_for.overlaps
    other = tflite_memopt.analyze(made.model, kernels="portable")
    assert (other.target, other.kernels) == (None, "portable")
    text = shown(text_of(analysis_document(other)))
    assert "counted here for any target with portable kernels" in text
    assert "lower bound" not in text
