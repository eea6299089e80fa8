"""The page in a real browser: it draws, says nothing on the console, asks for nothing, and works with the keyboard."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import tflite_memopt
from tests.model_builder import ModelBuilder
from tests.models import mobile_chain
from tests.report.browser import MARKS, installed_chromium, opened
from tflite_memopt import Options, Report
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.model.ir.model import Model
from tflite_memopt.report.answer import answer_of
from tflite_memopt.report.document import Document
from tflite_memopt.report.documents import analysis_document, report_document
from tflite_memopt.report.exploration import exploration_document
from tflite_memopt.report.model import Advice, ChosenPoint, Exploration, FrontPoint
from tflite_memopt.report.pictures.page import html_of
from tflite_memopt.report.pictures.plot import svg_of

OPTIONS = Options(
    verify=False,
    kernels="reference",
    objective="head",
    max_slowdown=1.0,
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
    choice=ChosenPoint(
        "total", 32 * 1024, 0, False, ("the head is set by </script>",), (Advice("--io int8", "helps"),)
    ),
    warnings=("the clock",),
)


def svg_file(document: Document) -> bytes:
    assert document.picture is not None
    return svg_of(document.picture().plots)


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
    facts = facts_of(html_of(report_document(made)))
    assert facts == {
        "target": "cortex-m4",
        "kernels": "cmsis-nn-dsp",
        "tflite-memopt": tflite_memopt.__version__,
        "budget": "64 KB of RAM",
        "options": "cascade=False, verify=False",
        "SHA-256 of the result": made.sha256["after"],
    }
    plain = facts_of(html_of(report_document(tflite_memopt.optimize(data, Options(cascade=False)).report)))
    assert (plain["target"], plain["budget"], plain["options"]) == ("any", "none", "cascade=False")
    for page in (
        html_of(analysis_document(tflite_memopt.analyze(data))),
        html_of(exploration_document(EXPLORED, True)),
    ):
        assert facts_of(page).items() >= {"target": "any", "kernels": "portable"}.items()


def facts_of(page: bytes) -> dict[str, str]:
    return dict(re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", page.decode()))


@in_chromium
def test_the_answer_is_above_the_fold(pages: dict[str, Path], report: Report) -> None:
    before, after = (report.arena[side].required for side in ("before", "after"))
    with opened(pages["report"], viewport=WIDTHS["desktop"]) as found:
        tiles = [each.inner_text() for each in found.page.query_selector_all(".tiles li")]
        assert [each.split("\n")[0] for each in tiles] == ["RAM to reserve", "Flash", "Run time", "Equality"]
        assert f"{after:,} bytes" in tiles[0]
        assert f"was {before:,}" in tiles[0]
        assert "not verified" in tiles[3]
        widths = [
            sum(each.bounding_box()["width"] for each in row.query_selector_all(".of span"))
            for row in found.page.query_selector_all(".bars tr")
        ]
        assert len(widths) == 2  # neither chip nor budget
        assert widths[1] / widths[0] == pytest.approx(after / before, rel=0.01)
        box = found.page.query_selector(".bars").bounding_box()
        assert box["y"] + box["height"] <= WIDTHS["desktop"]["height"]


@in_chromium
def test_a_missed_budget_is_red(report: Report, tmp_path: Path) -> None:
    answer = answer_of(report.libraries["after"], budget=1024)
    missed = replace(report, objective="total", budget=1024, answer=answer)
    (tmp_path / "missed.html").write_bytes(html_of(report_document(missed)))
    with opened(tmp_path / "missed.html") as found:
        red = found.page.evaluate("getComputedStyle(document.querySelector('.tiles .bad strong')).color")
        assert red == "rgb(179, 38, 30)"
        for side in ("before", "after"):
            line = f"document.querySelector('#arena-{side} line.budget')"
            assert found.page.evaluate(f"getComputedStyle({line}).stroke") == red
        over = answer.reserve - 1024
        assert f"DOES NOT FIT 1 KB: {over:,} bytes too many" in found.page.inner_text(".tiles")


@in_chromium
def test_the_legend_has_the_kinds_that_are_there_and_no_others(pages: dict[str, Path], report: Report) -> None:
    with opened(pages["report"]) as found:
        kinds: set[str] = set()
        for arena in report.arena.values():
            kinds |= {each.kind for each in arena.tensors} & {"input", "scratch"}
            kinds |= {{"view": "view", "none": ""}.get(each.sharing, "over") for each in arena.tensors}
        shown = found.page.eval_on_selector_all(".legend rect", "all => all.map(each => each.classList[1])")
        assert set(shown) == (kinds - {""}) | {"layer", "tail"}
        assert len(shown) == len(set(shown))


@in_chromium
def test_a_layer_has_one_color_before_and_after(pages: dict[str, Path], report: Report) -> None:
    def colors(page: Any, side: str) -> dict[str, str]:
        script = "all => all.map(each => [each.getAttribute('aria-label'), each.getAttribute('fill')])"
        said = page.eval_on_selector_all(f"#arena-{side} .mark[fill]", script)
        return {text.partition(":")[0].partition("/")[0]: fill for text, fill in said}

    with opened(pages["report"]) as found:
        before, after = colors(found.page, "before"), colors(found.page, "after")
        shared = before.keys() & after.keys()
        assert len({before[name] for name in shared}) == len(shared) > 2
        assert {name: after[name] for name in shared} == {name: before[name] for name in shared}


@in_chromium
def test_a_loop_is_one_part_until_it_is_opened(tmp_path: Path) -> None:
    result = tflite_memopt.optimize(write_model(striped()), replace(OPTIONS, loops=True, every_byte=True))
    assert result.report.loops
    (tmp_path / "loop.html").write_bytes(html_of(report_document(result.report)))
    with opened(tmp_path / "loop.html") as found:
        page = found.page

        def parts() -> set[str]:
            page.focus("#arena-after")
            page.keyboard.press("Home")
            said = set()
            for _ in result.report.arena["after"].tensors:
                said.add(page.inner_text("#tip"))
                page.keyboard.press("ArrowRight")
            return said

        closed = parts()
        assert sum(each.startswith("loop: ") for each in closed) == len(result.report.loops)
        page.click("#arena-after .loop >> nth=0")
        assert len(parts()) > len(closed)


@in_chromium
def test_the_code_can_be_copied(report: Report, tmp_path: Path) -> None:
    able = replace(report, tflm=replace(report.tflm, runs=True))
    document = report_document(able, "small.tflite", calls=["AddConv2D()", "AddSoftmax()"])
    (tmp_path / "copy.html").write_bytes(html_of(document))
    with opened(tmp_path / "copy.html", permissions=["clipboard-read", "clipboard-write"]) as found:
        found.page.click(".code button >> nth=0")
        # No function that waits in the page: its policy forbids to evaluate text.
        found.page.wait_for_selector(".code button >> nth=0 >> text=Copied")
        code = found.page.evaluate("navigator.clipboard.readText()")
        assert f"arena[{able.after.required_for_target}];" in code
        assert "MicroMutableOpResolver<2> resolver;\nresolver.AddConv2D();\nresolver.AddSoftmax();" in code


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
        "report": html_of(report_document(report)),
        "analysis": html_of(analysis_document(tflite_memopt.analyze(data))),
        "exploration": html_of(exploration_document(EXPLORED, True)),
        "600": html_of(analysis_document(tflite_memopt.analyze(write_model(long_chain(600))))),
    }
    for name, text in made.items():
        (folder / f"{name}.html").write_bytes(text)
    return {name: folder / f"{name}.html" for name in made}


def marks(page: Any, plot: str) -> list[str]:
    script = "marks => marks.map(mark => mark.getAttribute('aria-label'))"
    found: list[str] = page.eval_on_selector_all(f"#{plot} {MARKS}", script)
    return found


@in_chromium
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", ["report", "analysis", "exploration", "600"])
def test_it_draws_without_a_word_and_without_a_network(pages: dict[str, Path], name: str, width: str) -> None:
    with opened(pages[name], viewport=WIDTHS[width]) as found:
        plots = found.page.query_selector_all(".plot")
        assert plots
        assert all(plot.query_selector(MARKS) for plot in plots)
        assert found.page.evaluate("document.documentElement.scrollWidth") <= WIDTHS[width]["width"]
        assert found.said == []
        assert found.requests == [pages[name].as_uri()]
        assert found.page.query_selector("b") is None


@in_chromium
def test_every_tensor_is_there_in_words(pages: dict[str, Path], report: Report) -> None:
    with opened(pages["report"]) as found:
        for side, arena in report.arena.items():
            said = marks(found.page, f"arena-{side}")
            assert len(said) == len(arena.tensors) + 1
            for tensor in arena.tensors:
                assert any(f"{tensor.bytes:,} bytes, at {tensor.offset:,}" in each for each in said), tensor
        assert found.page.title().startswith("</title>&<script>.tflite")


@in_chromium
def test_every_point_of_a_front_is_there_in_words(pages: dict[str, Path]) -> None:
    with opened(pages["exploration"]) as found:
        said = marks(found.page, "front")
        assert len(said) == len(EXPLORED.points)
        assert all(f"--limit {n}" in said[n] for n in range(5))
        near = replace(EXPLORED, before=replace(EXPLORED.before, total=41_000, head=31_000))
        pages["exploration"].with_name("near.html").write_bytes(html_of(exploration_document(near, True)))
    with opened(pages["exploration"].with_name("near.html")) as found:
        assert marks(found.page, "front")[0].startswith("original: RAM 41,000 bytes, head 31,000")
        assert "budget: 32 KB" in found.page.text_content("#front")
        text = found.page.inner_text("main")
        assert "NO point fits 32 KB: point 1 is the nearest, 7,232 bytes of RAM too many" in text
        assert "what would help: --io int8: helps" in text


@in_chromium
def test_the_keyboard_goes_through_every_part(pages: dict[str, Path]) -> None:
    with opened(pages["analysis"]) as found:
        said = marks(found.page, "arena-now")
        found.page.focus("#arena-now")

        def after(key: str) -> str:
            found.page.keyboard.press(key)
            return str(found.page.inner_text("#tip"))

        assert [after("ArrowRight") for _ in said] == said
        assert after("ArrowRight") == said[-1]
        assert (after("Home"), after("End"), after("ArrowLeft")) == (said[0], said[-1], said[-2])
        assert len(found.page.query_selector_all("#arena-now .here")) == 1


@in_chromium
def test_the_mouse_shows_what_it_points_at(pages: dict[str, Path]) -> None:
    with opened(pages["analysis"]) as found:
        found.page.hover(f"#arena-now {MARKS} >> nth=2")
        assert found.page.inner_text("#tip") == marks(found.page, "arena-now")[2]


@in_chromium
def test_dark_mode_and_paper_have_ink_that_can_be_read(pages: dict[str, Path]) -> None:
    def ink_and_paper(page: Any) -> tuple[float, float]:
        text = page.evaluate("getComputedStyle(document.querySelector('#arena-now text')).fill")
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
def test_a_page_of_600_operators_is_below_1_mb(pages: dict[str, Path]) -> None:
    assert pages["600"].stat().st_size < 1_000_000


@pytest.mark.slow
def test_pictures_as_files(report: Report) -> None:
    svg = ElementTree.fromstring(svg_file(report_document(report)))
    words = {node.text for node in svg.iter() if node.text}
    titles = {f"{side}: {arena.required:,} bytes of RAM" for side, arena in report.arena.items()}
    assert titles | {f"head: {report.after.arena_bytes:,} bytes", "operators in execution order"} <= words
    rectangles = [node.get("aria-label") for node in svg.iter() if node.get("role") == "img"]
    assert len(rectangles) == sum(len(arena.tensors) + 1 for arena in report.arena.values())
    front = ElementTree.fromstring(svg_file(exploration_document(EXPLORED, True)))
    assert {"run time added (estimated)", "RAM to reserve, bytes"} <= {node.text for node in front.iter() if node.text}


def test_names_that_are_no_text_are_drawn_all_the_same() -> None:
    model = mobile_chain()
    for tensor in model.main.tensors:
        tensor.name = "\udcff" + tensor.name
    analysis = replace(tflite_memopt.analyze(write_model(model)), model="\udcff.tflite")
    text = html_of(analysis_document(analysis)).decode("utf-8")
    assert "?.tflite on TensorFlow Lite Micro" in text
    assert 'aria-label="?image: ' in text
