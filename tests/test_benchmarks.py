"""The benchmarks that the pages name run, and their figures agree with the reports."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from scripts.benchmarks import digits, figures, recurrent, searches
from scripts.benchmarks.__main__ import cli
from scripts.benchmarks.ablations import PARTS, TUNED, WITHOUT
from scripts.benchmarks.models import AFTER, BEFORE, REFUSED
from scripts.benchmarks.programs import HEAD
from scripts.benchmarks.programs import PARTS as IN_PARTS
from scripts.benchmarks.searches import MACS
from scripts.benchmarks.slide import CALLS, WINDOW
from tests.models import mobile_chain
from tests.recurrent import loop_with_a_list
from tests.test_imports import LEVEL_OF
from tests.test_slide import keywords
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.options import Options
from tflite_memopt.run.parts.run import optimize_in_parts
from tflite_memopt.run.pipeline import optimize


def _runs(table: str, *arguments: str) -> list[dict[str, str]]:
    """Run a benchmark; return the figures of each run that it wrote, by name."""
    result = CliRunner().invoke(cli, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    runs: dict[tuple[str, ...], dict[str, str]] = {}
    for figure in figures.read(table):
        runs.setdefault(figure.run, {})[figure.name] = figure.value
    return list(runs.values())


@pytest.fixture(autouse=True)
def no_figures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables of figures are written to a folder of their own."""
    monkeypatch.setattr(figures, "FOLDER", tmp_path / "results")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("benchmarks") / "chain.tflite"
    path.write_bytes(write_model(mobile_chain()))
    return path


@pytest.mark.slow
def test_the_kinds_of_the_tail_add_up_to_it_and_the_least_is_no_more(model: Path) -> None:
    (found,) = _runs("tail", "tail", str(model))
    report = optimize(model, Options(target="cortex-m4", verify=False, every_byte=True)).report
    for when, memory in (("before", report.before), ("after", report.after)):
        kinds = {name: int(value) for name, value in found.items() if name.endswith(f" {when}, bytes")}
        assert kinds.pop(f"tail {when}, bytes") == memory.tail_for_target == sum(kinds.values())
    assert 0 < int(found["least, bytes"]) <= min(report.before.tail_for_target, report.after.tail_for_target)


@pytest.mark.slow
def test_models_have_the_figures_of_the_report_and_say_why_one_is_refused(model: Path, tmp_path: Path) -> None:
    (tmp_path / "broken.tflite").write_bytes(b"no model")
    (tmp_path / "chain.tflite").write_bytes(model.read_bytes())
    refused, fine = _runs("mine", "models", str(tmp_path), "--target", "", "--table", "mine")
    report = optimize(model, Options(verify=False)).report
    assert list(refused) == [REFUSED]
    assert fine[BEFORE] == str(report.before.required_for_target)
    assert fine[AFTER] == str(report.answer.reserve)


@pytest.mark.slow
def test_a_model_in_parts_needs_what_its_program_says(model: Path) -> None:
    (found,) = _runs("programs", "programs", str(model), "--way", IN_PARTS)
    program = optimize_in_parts(model, Options(target="cortex-m7", verify=False)).program
    assert (found[AFTER], found[HEAD]) == (str(program.arena), str(program.head))


@pytest.mark.slow
def test_hops_of_a_window_are_those_of_the_report(tmp_path: Path) -> None:
    path = tmp_path / "window.tflite"
    path.write_bytes(write_model(keywords()))
    refused, found = _runs("slide", "slide", str(path), "--hop", "1", "--hop", "2", "--no-verify", "--no-feed")
    report = optimize(path, Options(slide="2", verify=False)).report
    assert list(refused) == [REFUSED]
    assert (found[WINDOW], found[CALLS], found["proof"]) == ("24", "12", "not proved")
    assert (found[BEFORE], found[AFTER]) == (
        str(report.before.required_for_target),
        str(report.after.required_for_target),
    )
    assert (found["products before"], found["products after"]) == (str(report.before.macs), str(report.after.macs))


@pytest.mark.slow
def test_a_recurrent_network_needs_what_the_reports_of_the_sequence_and_of_the_step_say(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data = write_model(loop_with_a_list())
    monkeypatch.setattr(recurrent, "NETWORKS", {"a loop": {}})
    monkeypatch.setattr(recurrent, "_converted", lambda *_: data)
    whole, step = _runs("recurrent", "recurrent")
    for found, options in ((whole, Options()), (step, Options(step=True))):
        report = optimize(data, options).report
        assert found[AFTER] == str(report.answer.reserve)
        assert found[recurrent.INSTRUCTIONS] == str(report.after.instructions["reference"])
        assert found[recurrent.BEFORE_RUNS] == "no"  # sizes in its loop change


@pytest.mark.slow
def test_ablations_sum_random_networks_in_one_row_with_a_figure_for_each_part() -> None:
    (found,) = _runs("ablations_of_parts", "ablations", "--parts", "--random", "1", "--effort", "quick")
    assert int(found[BEFORE]) > int(found[AFTER])
    assert all(int(found[f"{WITHOUT}{name}, bytes"]) > 0 for name in PARTS)
    assert {figure.model for figure in figures.read("ablations_of_parts")} == {"1 random networks"}


def test_what_ablations_replace_is_there() -> None:
    names = [f"{module}.{name}" for module, names in TUNED.items() for name in names]
    for name in (*names, *(attribute for attribute, _ in PARTS.values())):
        pkgutil.resolve_name(f"tflite_memopt.{name}")


@pytest.mark.slow
def test_a_search_finds_what_fits() -> None:
    stands, optimized = _runs("searches", "searches", "--candidates", "6", "--size", "96")
    assert int(stands["bytes as it stands"]) <= 96 << 10 < int(optimized["bytes as it stands"])
    assert int(optimized["bytes optimized"]) <= 96 << 10
    assert int(stands[MACS]) < int(optimized[MACS])


@pytest.mark.slow
@pytest.mark.tensorflow
def test_a_candidate_is_trained_as_it_is() -> None:
    pytest.importorskip("sklearn")
    network, model = digits.in_keras(searches.drawn(6)), searches.drawn(6)
    shapes = [tensor.shape for operator in model.main.operators for tensor in operator.outputs]
    assert (network.input_shape[1:], network.output_shape[1:]) == (model.main.inputs[0].shape[1:], shapes[-1][1:])
    assert sum(weights.ndim == 4 for weights in network.trainable_weights) == sum(
        operator.name in ("CONV_2D", "DEPTHWISE_CONV_2D") for operator in model.main.operators
    )
    images, labels = digits.scenes(20, 48, 0, for_test=True)
    assert images.shape == (20, 48, 48, 1)
    assert set(labels) <= set(range(10))


@pytest.mark.slow
def test_a_batch_that_was_ended_goes_on() -> None:
    (found,) = _runs("throughput", "throughput", "--candidates", "6", "--workers", "1")
    assert (found["done"], found["of an earlier run"]) == ("6", "3")


def test_a_run_replaces_its_figures_and_the_others_stay_and_age(monkeypatch: pytest.MonkeyPatch) -> None:
    first = figures.Row("a", "", "", {"bytes": 1})
    figures.keep("mine", "scripts/bench mine", [first, figures.Row("b", "", "", {"bytes": 2})])
    assert list(figures.stale()) == []
    monkeypatch.setattr(figures, "version", lambda _: "later")
    figures.keep("mine", "scripts/bench mine", [figures.Row("a", "", "", {"bytes": 3})])
    assert [(each.model, each.value, each.version == "later") for each in figures.read("mine")] == [
        ("a", "3", True),
        ("b", "2", False),
    ]
    (old,) = figures.stale()
    assert (old.table, old.source, old.figures) == ("mine", "scripts/bench mine", 1)


def test_figures_of_one_model_depend_on_nothing_above_the_pipeline() -> None:
    pipeline = LEVEL_OF["run/pipeline"]
    assert {part for part, level in LEVEL_OF.items() if level > pipeline} == figures.ABOVE_ONE_MODEL


def test_a_refusal_replaces_all_figures_of_the_run() -> None:
    figures.keep("mine", "scripts/bench mine", [figures.Row("a", "", "", {"before": 1, "after": 1})])
    figures.keep("mine", "scripts/bench mine", [figures.Row("a", "", "", {REFUSED: "why"})])
    assert [(each.name, each.value) for each in figures.read("mine")] == [(REFUSED, "why")]


def test_figures_of_an_interrupted_run_are_kept() -> None:
    def rows() -> Iterator[figures.Row]:
        yield figures.Row("a", "", "", {"bytes": 1})
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        figures.keep("mine", "scripts/bench mine", rows())
    assert [each.model for each in figures.read("mine")] == ["a"]


def test_ablations_without_models_say_what_to_name() -> None:
    result = CliRunner().invoke(cli, ["ablations"])
    assert result.exit_code == 2
    assert "name models, or --random N" in result.output
