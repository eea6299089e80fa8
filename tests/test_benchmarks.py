"""The benchmarks that the pages name run, and their figures agree with the reports."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from scripts.benchmarks import figures
from scripts.benchmarks.__main__ import cli
from scripts.benchmarks.ablations import PARTS
from tests.models import mobile_chain
from tests.test_slide import keywords
from tflite_memopt.io.writer import write_model
from tflite_memopt.options import Options
from tflite_memopt.pipeline import optimize


def _cells(*arguments: str) -> list[str]:
    result = CliRunner().invoke(cli, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return [cell.strip() for cell in result.output.splitlines()[-1].strip("|").split("|")]


@pytest.fixture(autouse=True, scope="module")
def no_figures(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Tables of figures are written to a folder of their own."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(figures, "FOLDER", tmp_path_factory.mktemp("results"))
        yield


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("benchmarks") / "chain.tflite"
    path.write_bytes(write_model(mobile_chain()))
    return path


def test_the_kinds_of_the_tail_add_up_to_it_and_the_least_is_no_more(model: Path) -> None:
    name, *cells, least = _cells("tail", str(model))
    pairs = [[int(number.replace(",", "")) for number in cell.split("/")] for cell in cells]
    report = optimize(model, Options(target="cortex-m4", verify=False, every_byte=True)).report
    assert name == "chain"
    assert pairs[0] == [report.before.tail_for_target, report.after.tail_for_target]
    assert pairs[0] == [sum(pair[at] for pair in pairs[1:]) for at in (0, 1)]
    assert 0 < int(least.replace(",", "")) <= min(pairs[0])


def test_strangers_have_a_row_for_each_file_and_say_why_one_is_refused(model: Path) -> None:
    (model.parent / "inner").mkdir()
    (model.parent / "inner" / "broken.tflite").write_bytes(b"no model")
    result = CliRunner().invoke(cli, ["strangers", "--no-verify", str(model.parent)], catch_exceptions=False)
    _, _, fine, refused = result.output.splitlines()
    report = optimize(model, Options(verify=False)).report
    assert fine.startswith(f"| chain | {report.before.required_for_target:,} -> {report.after.required_for_target:,} |")
    assert refused.startswith("| broken | refused: ")


def test_hops_of_a_window_are_those_of_the_report(tmp_path: Path) -> None:
    path = tmp_path / "window.tflite"
    path.write_bytes(write_model(keywords()))
    command = ["slide", str(path), "--hop", "1", "--hop", "2", "--no-verify", "--no-feed"]
    *_, refused, found = CliRunner().invoke(cli, command, catch_exceptions=False).output.splitlines()
    report = optimize(path, Options(slide="2", verify=False)).report
    assert refused.startswith("| window, hop 1 | 1 | refused: --slide: no row of a layer is kept")
    ram = f"{report.before.required_for_target:,} -> {report.after.required_for_target:,}"
    assert found.startswith(f"| window, hop 2 | 2 of 24 | {ram} | {report.before.macs:,} -> {report.after.macs:,} (")
    assert found.endswith(" | 12 |  | not proved |")


def test_ablations_sum_random_networks_in_one_row_with_a_cell_for_each_part() -> None:
    name, before, need, *parts = _cells("ablations", "--parts", "--random", "3", "--effort", "quick")
    assert name == "3 random networks"
    assert len(parts) == len(PARTS)
    assert int(before.replace(",", "")) > int(need.split(", ")[0].replace(",", ""))
    assert all(re.fullmatch(r"[\d,]+( \([+-][\d.]+ %\))?, [\d.]+ s", each) for each in (need, *parts)[1:])


def test_ablations_without_models_say_what_to_name() -> None:
    result = CliRunner().invoke(cli, ["ablations"])
    assert result.exit_code == 2
    assert "name models, or --random N" in result.output
