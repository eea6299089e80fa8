"""The page in a real browser: it draws, says nothing on the console, asks for nothing, and works with the keyboard."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import tflite_memopt
from scripts.makers.model_builder import ModelBuilder
from tests.models import mobile_chain
from tests.report.browser import MARKS, installed_chromium, opened
from tflite_memopt import Options, Report
from tflite_memopt.io.writer import write_model
from tflite_memopt.ir.model import Model
from tflite_memopt.report.model import Advice, Choice, Exploration, FrontPoint
from tflite_memopt.report.pictures.appearance import FILE, ROLES
from tflite_memopt.report.pictures.front import exploration_page, front_plot
from tflite_memopt.report.pictures.pages import analysis_page, comparison_page, report_page
from tflite_memopt.report.pictures.plot import plot_of

OPTIONS = Options(
    verify=False,
    kernels="reference",
    objective="head",
    max_extra_work=1.0,
    effort="quick",
    loops=False,
)
WIDTHS = {
    "desktop": {"width": 1280, "height": 900},
    "tablet": {"width": 800, "height": 1000},
    "phone": {"width": 360, "height": 740},
}
EXPLORED = Exploration(
    model="</title>&<script>.tflite",
    target=None,
    kernels="portable",
    effort="normal",
    before=FrontPoint(80_000, 73_728, 0.0, 1_000_000, 15, 32_000, "", ()),
    points=tuple(
        FrontPoint(
            40_000 + 1000 * n,
            30_000 - 100 * n,
            0.3 - 0.01 * n,
            1_300_000 - 60_000 * n,
            40 + n,
            36_000 + n,
            f"--limit {n}",
            (),
        )
        for n in range(5)
    ),
    searches=28,
    choice=Choice("total", 32 * 1024, 0, False, ("the head is set by </script>",), (Advice("--io int8", "helps"),)),
    warnings=("the clock",),
)


def in_chromium(test: Callable[..., None]) -> Callable[..., None]:
    """Mark a test that opens a page; skip it where there is no Chromium."""
    needs = pytest.mark.skipif(installed_chromium() is None, reason="no Chromium is installed")
    marked: Callable[..., None] = needs(pytest.mark.browser(test))
    return marked


@pytest.mark.slow
def test_a_page_says_what_it_is_for() -> None:
    data = write_model(mobile_chain())
    options = Options(verify=False, cascade=False, target="cortex-m4", budget=64 * 1024)
    made = tflite_memopt.optimize(data, options).report
    facts = facts_of(report_page(made))
    assert facts == {
        "target": "cortex-m4",
        "kernels": "cmsis-nn-dsp",
        "tflite-memopt": tflite_memopt.__version__,
        "budget": "64 KB of RAM",
        "options": "verify=False, cascade=False",
        "SHA-256 of the result": made.sha256["after"],
    }
    plain = facts_of(report_page(tflite_memopt.optimize(data, Options(cascade=False)).report))
    assert (plain["target"], plain["budget"], plain["options"]) == ("any", "none", "cascade=False")
    for page in (analysis_page(tflite_memopt.analyze(data)), exploration_page(EXPLORED, True)):
        assert facts_of(page).items() >= {"target": "any", "kernels": "portable"}.items()


def facts_of(page: bytes) -> dict[str, str]:
    return dict(re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", page.decode()))


@in_chromium
def test_the_answer_is_above_the_fold(pages: dict[str, Path], report: Report) -> None:
    before, after = (report.arena[side].required for side in ("before", "after"))
    with opened(pages["report"], viewport=WIDTHS["desktop"]) as found:
        assert f"{before:,}\nbytes of RAM before" in found.page.inner_text(".numbers")
        assert f"{after:,}\nbytes of RAM now" in found.page.inner_text(".numbers")
        widths = [
            sum(each.bounding_box()["width"] for each in row.query_selector_all(".of span"))
            for row in found.page.query_selector_all(".bars tr")
        ]
        assert len(widths) == 2  # no chip was named
        assert widths[1] / widths[0] == pytest.approx(after / before, rel=0.01)
        for chart in ("time-before", "time-after"):
            box = found.page.query_selector(f"#{chart} svg").bounding_box()
            assert box["y"] + box["height"] <= WIDTHS["desktop"]["height"]


@in_chromium
def test_the_legend_has_the_colors_that_are_there_and_no_others(pages: dict[str, Path], report: Report) -> None:
    with opened(pages["report"]) as found:
        for side, arena in report.arena.items():
            roles = {each.kind if each.sharing == "none" else each.sharing for each in arena.tensors}
            words = found.page.eval_on_selector_all(
                f"#arena-{side} .role-legend-label text", "all => all.map(each => each.textContent)"
            )
            assert set(words) == {ROLES[role] for role in (*roles, "tail")}


@in_chromium
@pytest.mark.parametrize("name", ["report", "analysis", "exploration"])
def test_it_prints_on_three_pages(pages: dict[str, Path], name: str) -> None:
    with opened(pages[name]) as found:
        assert found.page.pdf(format="A4").count(b"/Type /Page\n") <= 3


def striped() -> Model:
    """Large inside and small at both ends, so that stripes save most of the head."""
    b = ModelBuilder()
    y = b.conv(b.input("</script><b>x", (1, 32, 32, 2)), 16, kernel=3, seed=1)
    y = b.conv(b.depthwise(y, seed=2), 2, seed=3)
    return b.finish(b.average_pool(y, y.shape[1]))


def long_chain(operators: int) -> Model:
    """As many operators as asked for, of three kinds."""
    b = ModelBuilder()
    y = b.input("x", (1, 8, 8, 4))
    for number in range(operators // 3):
        y = b.add(b.depthwise(b.conv(y, 4, seed=number), seed=number), y)
    return b.finish(y)


@pytest.fixture(scope="module")
def report() -> Report:
    return replace(tflite_memopt.optimize(write_model(striped()), OPTIONS).report, model="</title>&<script>.tflite")


@pytest.fixture(scope="module")
def pages(report: Report, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder, data = tmp_path_factory.mktemp("pages"), write_model(mobile_chain())
    made = {
        "report": report_page(report),
        "analysis": analysis_page(tflite_memopt.analyze(data)),
        "comparison": comparison_page(tflite_memopt.compare(data, ("rpo", "best_first"), ("naive",))),
        "exploration": exploration_page(EXPLORED, True),
        "600": analysis_page(tflite_memopt.analyze(write_model(long_chain(600)))),
    }
    for name, text in made.items():
        (folder / f"{name}.html").write_bytes(text)
    return {name: folder / f"{name}.html" for name in made}


def marks(page: Any, chart: str) -> list[str]:
    found: list[str] = page.eval_on_selector_all(
        ", ".join(f"#{chart} {mark}" for mark in MARKS.split(", ")),
        "marks => marks.map(mark => mark.getAttribute('aria-label'))",
    )
    return found


@in_chromium
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", ["report", "analysis", "comparison", "exploration", "600"])
def test_it_draws_without_a_word_and_without_a_network(pages: dict[str, Path], name: str, width: str) -> None:
    with opened(pages[name], viewport=WIDTHS[width]) as found:
        charts = found.page.query_selector_all(".chart")
        assert charts
        assert all(chart.query_selector(MARKS) for chart in charts)
        assert found.page.evaluate("document.documentElement.scrollWidth") <= WIDTHS[width]["width"]
        assert found.said == []
        assert found.requests == [pages[name].as_uri()]
        assert found.page.query_selector("b") is None


@in_chromium
def test_every_tensor_and_operator_is_there_in_words(pages: dict[str, Path], report: Report) -> None:
    with opened(pages["report"]) as found:
        for side, arena in report.arena.items():
            said = marks(found.page, f"arena-{side}")
            assert len(said) == len(arena.tensors) + 1
            for tensor in arena.tensors:
                assert any(f"{tensor.bytes:,} bytes at {tensor.offset:,}" in each for each in said), tensor
            assert [each.split(":")[0] for each in marks(found.page, f"time-{side}")][:-1] == [
                f"operator {number}, {step.operator} {step.output}" for number, step in enumerate(arena.steps)
            ]
        assert found.page.title().startswith("</title>&<script>.tflite")


@in_chromium
def test_every_point_of_a_front_is_there_in_words(pages: dict[str, Path]) -> None:
    with opened(pages["exploration"]) as found:
        charts = [f"{price}-{ram}" for price in ("slowdown", "operators", "file_bytes") for ram in ("total", "head")]
        for chart in charts:
            said = marks(found.page, chart)
            assert len(said) == len(EXPLORED.points)
            assert all(f"--limit {n}" in said[n] for n in range(5))
        near = replace(EXPLORED, before=replace(EXPLORED.before, total=41_000, head=31_000))
        pages["exploration"].with_name("near.html").write_bytes(exploration_page(near, True))
    with opened(pages["exploration"].with_name("near.html")) as found:
        assert marks(found.page, "slowdown-total")[0].startswith("now: RAM 41,000 bytes, head 31,000")
        assert "budget: 32 KB" in found.page.inner_text("#slowdown-total")
        text = found.page.inner_text("main")
        assert "NO point fits 32 KB (total): point 1 is the nearest, 7,232 bytes too many" in text
        assert "what would help: --io int8: helps" in text


@in_chromium
def test_the_keyboard_goes_through_every_part(pages: dict[str, Path]) -> None:
    with opened(pages["analysis"]) as found:
        said = marks(found.page, "arena-now")
        found.page.focus("#arena-now")

        def after(key: str) -> str:
            found.page.keyboard.press(key)
            return str(found.page.inner_text("output[for='arena-now']"))

        assert [after("ArrowRight") for _ in said] == said
        assert after("ArrowRight") == said[-1]
        assert (after("Home"), after("End"), after("ArrowLeft")) == (said[0], said[-1], said[-2])
        assert len(found.page.query_selector_all("#arena-now .here")) == 1
        found.page.focus("#time-now")
        found.page.keyboard.press("Tab")
        assert found.page.evaluate("document.activeElement.id") == "arena-now"


@in_chromium
def test_the_mouse_shows_what_it_points_at(pages: dict[str, Path]) -> None:
    with opened(pages["analysis"]) as found:
        found.page.hover(f"#time-now {MARKS.split(', ')[0]} >> nth=2")
        shown = found.page.inner_text("#vg-tooltip-element")
        assert "operator" in shown
        assert "macs" in shown


@in_chromium
def test_dark_mode_and_paper_have_ink_that_can_be_read(pages: dict[str, Path]) -> None:
    def ink_and_paper(page: Any) -> tuple[float, float]:
        text = page.evaluate("getComputedStyle(document.querySelector('#time-now svg text')).fill")
        paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
        brightness = [sum(map(int, re.findall(r"\d+", color)[:3])) / 3 for color in (text, paper)]
        return brightness[0], brightness[1]

    for scheme in ("light", "dark"):
        with opened(pages["analysis"], color_scheme=scheme) as found:
            ink, paper = ink_and_paper(found.page)
            assert (ink > paper) == (scheme == "dark")
            assert abs(ink - paper) > 150
            found.page.emulate_media(media="print", color_scheme="light")
            ink, paper = ink_and_paper(found.page)
            assert (ink, paper) == (0, 255)


@pytest.mark.slow
def test_a_page_of_600_operators_is_below_5_mb(pages: dict[str, Path]) -> None:
    assert pages["600"].stat().st_size < 5_000_000


@pytest.mark.slow
def test_pictures_as_files(report: Report) -> None:
    svg = ElementTree.fromstring(plot_of(report.arena))
    words = {node.text for node in svg.iter() if node.text}
    titles = {f"{side}: {arena.required:,} bytes of RAM" for side, arena in report.arena.items()}
    assert titles | {f"head: {report.after.arena_bytes:,} bytes", ROLES["tail"]} <= words
    assert {FILE.bar, FILE.gap, *FILE.roles.values()} & {node.get("fill") for node in svg.iter()} >= {
        *(FILE.bar, FILE.roles["input"], FILE.roles["inner"], FILE.roles["tail"]),
    }
    front = ElementTree.fromstring(front_plot(EXPLORED))
    assert {"operators", "bytes of file", "head, bytes"} <= {node.text for node in front.iter() if node.text}


def test_names_that_are_no_text_are_drawn_all_the_same() -> None:
    model = mobile_chain()
    for tensor in model.main.tensors:
        tensor.name = "\udcff" + tensor.name
    analysis = replace(tflite_memopt.analyze(write_model(model)), model="\udcff.tflite")
    text = analysis_page(analysis).decode("utf-8")
    assert "?.tflite: memory" in text
    assert json.dumps("?image") in text
