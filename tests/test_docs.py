"""The documentation: links lead somewhere, and its commands are run as they stand."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from itertools import chain
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from scripts.makers import fronts, reference, results, runtimes
from tests.firmware.test_esphome import MANIFEST, wake_word
from tests.model_builder import ModelBuilder
from tests.models import mobile_chain
from tests.recurrent import layers
from tests.test_slide import keywords
from tests.tflm import needs_wheel
from tflite_memopt import Options, analyze, optimize
from tflite_memopt.cli import cli
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.search.rewrite import stage

ROOT = Path(__file__).parent.parent
_ALL = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
PAGES = sorted(page for page in _ALL if page.parent.name != "_made")  # what scripts/docs makes is not counted
RUN = (
    *("README.md", "docs/index.md", "docs/fit.md", "docs/optimize.md", "docs/exactness.md", "docs/device.md"),
    *("docs/parts.md", "docs/recurrent.md", "docs/streaming.md", "docs/ci.md"),
)
"""Pages whose commands are run, one after the other, on a small model; ``batch`` on a folder of models."""
DEMO = ROOT / "scripts" / "models" / "demo_int8.tflite"
_RUNNER = "my_runner"
"""A line with this word needs a runner."""
_BATCH, _SERVE = "tflite-memopt batch", "tflite-memopt serve"
"""``serve`` runs until it is ended: tests/test_serve.py."""
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_COMMAND = re.compile(r"^ {4,}(?:run: |entry: )?(tflite-memopt .*)$", re.MULTILINE)


def commands_of(page: Path) -> list[str]:
    """The command lines of a page, without the comments and outputs after them."""
    return [found.split("   #")[0].strip() for found in _COMMAND.findall(page.read_text())]


def run_line(line: str, more: Sequence[str] = ()) -> None:
    """Run one command line of a page with ``more`` words after it; what is sent to a file goes there."""
    command, _, target = line.partition(" > ")
    done = CliRunner().invoke(cli, [*shlex.split(command, comments=True)[1:], *more])
    assert done.exit_code == 0, f"{line}: {done.output}"
    if target:
        Path(target).write_text(done.stdout)


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def test_every_page_is_in_the_site() -> None:
    """scripts/site/conf.py makes the navigation of the lists of links in docs/index.md."""
    docs = ROOT / "docs"
    listed = re.findall(r"^- \[.*?\]\((\w+\.md)\)", (docs / "index.md").read_text(), re.MULTILINE)
    assert sorted(["index.md", *listed]) == sorted(
        page.relative_to(docs).as_posix() for page in PAGES if docs in page.parents
    )


@pytest.mark.slow
@needs_wheel
def test_the_answers_for_the_demo_model_are_those_of_today() -> None:
    """Figures, not sentences: README and docs/optimize.md on optimize."""
    page = (ROOT / "docs" / "optimize.md").read_text()
    assert f"    {optimize(DEMO).report.summary.headline}\n" in page
    (declined, *_) = optimize(DEMO, Options(target="cortex-m0", verify=False)).report.summary.advice
    assert f"    next     {declined.option}: {declined.text}\n" in page
    report = optimize(DEMO, Options(target="cortex-m4")).report
    before, after = (f"{memory.required_for_target:,}" for memory in (report.before, report.after))
    assert report.summary.headline.startswith(f"RAM {before} -> {after} bytes ")
    assert report.summary.headline.partition(" (LiteRT")[0] in (ROOT / "README.md").read_text()
    demo = (ROOT / "scripts" / "demo").read_text()
    assert "optimize scripts/models/demo_int8.tflite -o .demo/demo_optimized.tflite --target cortex-m4 " in demo


def test_the_answer_of_analyze_for_the_demo_model_is_that_of_today() -> None:
    assert f"    {analyze(DEMO).summary.headline}\n" in (ROOT / "docs" / "index.md").read_text()


def test_the_price_of_a_convolution_in_the_tail_is_that_of_today() -> None:
    def tail(channels: int, convolutions: int) -> int:
        b = ModelBuilder()
        y = b.input("x", (1, 16, 16, 4))
        for seed in range(convolutions):
            y = b.conv(y, channels, seed=seed)
        return analyze(write_model(b.finish(y)), target="cortex-m4").memory.tail_bytes["target"]

    eight, sixteen, most, wide = (tail(channels, 4) - tail(channels, 3) for channels in (8, 16, 32, 64))
    text = " ".join((ROOT / "docs" / "optimize.md").read_text().split())
    assert f"8, 16, 32, or 64 channels takes {eight}, {sixteen}, {most}, or {wide} bytes." in text


def test_the_table_of_the_readme_is_made_of_the_data() -> None:
    assert results.README.read_text() == results.readme_with_table(), "run python -m scripts.makers.results"


def test_the_reference_tables_are_those_of_the_code() -> None:
    assert reference.PAGE.read_text() == reference.page(), "run python -m scripts.makers.reference"


def test_every_rule_is_described() -> None:
    rules = (*stage.WITHOUT_TRANSPOSES, *stage.SPLITS, *chain(*stage.AFTER_STRIPES))
    names = re.findall(r"`(\w+)`", reference.page().partition("## Rewrites")[2].partition("## ")[0])
    assert {rule.name for rule in rules} <= set(names)


def test_the_page_of_runtimes_is_made_of_its_data() -> None:
    assert runtimes.PAGE.read_text() == runtimes.page(), "run python -m scripts.makers.runtimes"


def test_the_page_of_results_is_made_of_its_data() -> None:
    assert results.PAGE.read_text() == results.page(), "run python -m scripts.makers.results"
    assert results.CHART.read_text() == results.chart()
    assert fronts.IMAGE.read_text() == fronts.picture(), "run python -m scripts.makers.fronts"


def test_no_command_has_a_placeholder() -> None:
    for page in PAGES:
        assert "OWNER" not in page.read_text(), name_of(page)


def test_the_first_screen_has_the_commands_that_set_up_everything() -> None:
    first = (ROOT / "README.md").read_text().splitlines()[:24]
    for script in ("scripts/demo", "scripts/test"):
        assert any(line.startswith(f"    {script} ") for line in first)
        assert (ROOT / script).is_file()


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_to_files(page: Path) -> None:
    for link in _LINK.findall(page.read_text()):
        if "://" not in link and not link.startswith("#"):
            assert (page.parent / link.partition("#")[0]).exists(), f"{name_of(page)}: {link}"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_commands_have_options_that_exist(page: Path) -> None:
    for line in commands_of(page):
        words = shlex.split(re.sub(r"\s*[|>].*", "", line.replace("...", "")), comments=True)[1:]
        if not words or words[0].startswith("-"):
            continue
        command = cli.get_command(click.Context(cli), words[0])
        assert command is not None, f"{name_of(page)}: {line}"
        known = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
        used = {word.partition("=")[0] for word in words[1:] if re.match(r"--?[a-z]", word)}
        assert used <= known | {"-h", "--help"}, f"{name_of(page)}: {line}"


@pytest.mark.slow
@pytest.mark.parametrize("name", RUN)
def test_commands_run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = write_model(mobile_chain())
    for file in ("model.tflite", "original.tflite", "small.tflite", "kws.tflite", "vww.tflite"):
        (tmp_path / file).write_bytes(data)
    (tmp_path / "rnn.tflite").write_bytes(write_model(layers("gru")))
    (tmp_path / "window.tflite").write_bytes(write_model(keywords()))
    (tmp_path / "okay_nabu.tflite").write_bytes(write_model(wake_word()))
    (tmp_path / "okay_nabu.json").write_text(json.dumps(MANIFEST))
    monkeypatch.chdir(tmp_path)
    who = ("-c", "user.name=name", "-c", "user.email=name@example.org")
    for git in (("init", "-q"), ("add", "."), (*who, "commit", "-q", "-m", "models")):  # --against compares with it
        subprocess.run(("git", *git), check=True)
    lines = [line for line in commands_of(ROOT / name) if _RUNNER not in line and not line.startswith((_BATCH, _SERVE))]
    for line in lines:
        words = shlex.split(line, comments=True)
        forced = ["--force"] if words[1] in ("optimize", "codegen", "analyze") and "--force" not in words else []
        run_line(line.replace("MODEL", "model.tflite"), forced)
    assert lines


@pytest.mark.slow
def test_commands_for_many_models_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """But for those on a cluster: tests/batch runs them on a cluster of its own."""
    (tmp_path / "models" / "inner").mkdir(parents=True)
    (tmp_path / "models" / "inner" / "model.tflite").write_bytes(write_model(mobile_chain()))
    monkeypatch.chdir(tmp_path)
    batches = [line for line in commands_of(ROOT / "docs" / "ci.md") if line.startswith(_BATCH)]
    lines = [line for line in batches if "--cluster" not in line]
    for line in lines:
        run_line(line.replace("--jobs 8", "--jobs 1"))
    assert lines
    assert Path("OUT", "results.jsonl").read_text().count("\n") == 1
    assert Path("OUT", "models", "model.tflite").exists()


@pytest.mark.slow
@needs_wheel
def test_commands_with_a_runner_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The runner executes models with the wheel; a board's port is left to it, and it has none."""
    runner = tmp_path / "my_runner"
    wheel = ROOT / "tests" / "runner" / "wheel_runner.py"
    script = (f"#!{sys.executable}", "import runpy, sys", "sys.argv[1:] = sys.argv[-1:]")
    runner.write_text("\n".join((*script, f"runpy.run_path({str(wheel)!r}, run_name='__main__')")))
    runner.chmod(0o755)
    (tmp_path / "model.tflite").write_bytes(write_model(mobile_chain()))
    monkeypatch.chdir(tmp_path)
    shutil.copy("model.tflite", "original.tflite")
    run_line("tflite-memopt optimize original.tflite -o small.tflite")
    lines = [line for line in commands_of(ROOT / "docs" / "exactness.md") if _RUNNER in line]
    for line in lines:
        run_line(line)
    assert lines


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_no_command_is_only_parsed(page: Path) -> None:
    assert name_of(page) in RUN or not commands_of(page)
