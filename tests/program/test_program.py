"""A model in parts, from the command line and from Python; folders that are not whole."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from click.testing import CliRunner

from tests import command
from tests.faults import raises
from tests.model_builder import ModelBuilder
from tests.models import ALL
from tests.program.test_program_firmware import in_parts, separable
from tests.test_cli import assert_refused
from tflite_memopt import Options, UnsupportedModelError, optimize
from tflite_memopt.cli import cli
from tflite_memopt.errors import EquivalenceError, ErrorKind, ModelFormatError
from tflite_memopt.firmware.description import Feed, Tie
from tflite_memopt.memory.file import read_planned
from tflite_memopt.memory.work import construction, instructions, moving
from tflite_memopt.model.io import offline_plan
from tflite_memopt.model.io.reader import read_model
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.options import Effort
from tflite_memopt.run.parts.choice import Stretch
from tflite_memopt.run.parts.files import (
    MANIFEST,
    Crossing,
    PartFile,
    Program,
    program_in,
    read_program,
    schema_text,
    to_json,
)
from tflite_memopt.run.parts.proving import prove_plans
from tflite_memopt.run.parts.run import optimize_in_parts
from tflite_memopt.run.parts.space import arena_of
from tflite_memopt.run.parts.stretch import StretchCosts
from tflite_memopt.run.parts.verifying import verify_program
from tflite_memopt.search.cascade.measure import Measure
from tflite_memopt.search.cascade.select import Figures
from tflite_memopt.search.cascade.tiling import Tiling

pytestmark = pytest.mark.xdist_group("programs")
QUIET = Options(verify=False)


def run(*arguments: object) -> tuple[int, str]:
    found = CliRunner().invoke(cli, [str(each) for each in arguments])
    return found.exit_code, found.output + ("" if found.exception is None else str(found.exception))


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "m.tflite"
    path.write_bytes(write_model(separable()))
    return path


@pytest.mark.slow
def test_the_whole_way(model: Path, tmp_path: Path) -> None:
    folder = tmp_path / "program"
    how = ("--parts", 3, "--target", "cortex-m7", "--max-slowdown", "50", "--effort", "quick")
    code, said = run("optimize", model, "-o", folder, *how)
    assert code == 0, said
    assert "in 3 parts" in said or "in 2 parts" in said
    program, parts = read_program(folder)
    assert program.arena < program.whole_bytes
    assert [part.file for part in program.parts] == [f"part{at}.tflite" for at in range(len(parts))]
    for before, after in zip(program.parts, program.parts[1:], strict=False):
        assert [(each.name, each.bytes) for each in before.outputs] == [
            (each.name, each.bytes) for each in after.inputs
        ]
    code, said = run("verify", model, folder, "--samples", 2)
    assert code == 0, said
    assert said.startswith("equal, bit-exact on ")
    code, said = run("codegen", folder, "-o", tmp_path / "firmware")
    assert code == 0, said
    assert said.startswith(f"RAM {program.arena:,} bytes: ")
    assert (tmp_path / "firmware" / "program.h").is_file()


@pytest.mark.slow
def test_each_part_was_verified_on_what_crosses_the_cut() -> None:
    result = optimize_in_parts(
        write_model(separable()), Options(samples=2, target="cortex-m7", max_slowdown=0.5, effort="quick"), 3
    )
    assert len(result.parts) > 1
    for part in result.parts:
        assert all(verdict.equal for verdict in part.report.equivalence.values())


@pytest.mark.slow
def test_parts_of_another_model_are_not_equal() -> None:
    _, result = in_parts("separable")
    other = write_model(ALL["mobile_chain"]())
    with pytest.raises(EquivalenceError):
        verify_program(other, [part.model for part in result.parts], Options(samples=1), lambda _: None)


@pytest.mark.slow
def test_a_part_whose_plan_overwrites_a_tensor_is_not_equal() -> None:
    data, result = in_parts("separable")
    parts = [part.model for part in result.parts]
    assert all(proof.proved for proof in prove_plans(parts))
    model = read_planned(parts[0])
    plan = offline_plan.decode(model)
    assert plan is not None
    offline_plan.attach(model, dict.fromkeys(plan, 0))
    with pytest.raises(EquivalenceError, match="memory plan of a part is wrong"):
        verify_program(data, [write_model(model), *parts[1:]], Options(samples=1), lambda _: None)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("target", "limit", "most", "effort"),
    [
        ("cortex-m7", 0.6, None, "normal"),
        ("cortex-m4", 0.5, 4, "quick"),  # the best four parts are 0.02 points over it: tensors are moved twice
    ],
)
def test_run_time_stays_within_the_limit_with_the_making_of_interpreters_and_what_is_moved_between_them(
    target: str, limit: float, most: int | None, effort: Effort
) -> None:
    data = write_model(separable())
    options = Options(verify=False, target=target, max_slowdown=limit, effort=effort)
    result = optimize_in_parts(data, options, most)
    before = instructions(read_model(data), options.profile)
    parts = [read_model(part.model) for part in result.parts]
    assert len(parts) > 1
    moves = [move for each in arena_of(parts, options.profile)[1] for move in (*each.before, *each.after)]
    assert moves
    for library, count in before.items():
        made = sum(construction(part, options.profile)[library] for part in parts)
        made += moving(sum(move.nbytes for move in moves))
        after = sum(instructions(part, options.profile)[library] for part in parts) + made
        assert after <= (1 + limit) * count
        assert result.program.slowdown[library] == pytest.approx(after / count - 1)


@pytest.mark.slow
def test_stretches_share_the_regions_that_they_have_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    model, asked, added = separable(), list[Tiling](), Measure._added
    options = replace(QUIET, target="cortex-m7", max_slowdown=1.0)

    def counted(self: Measure, tiling: Tiling) -> Figures | None:
        asked.append(tiling)
        return added(self, tiling)

    def asked_for(costs: StretchCosts, stretch: Stretch) -> int:
        asked.clear()
        assert costs.draft(stretch)
        return len(asked)

    monkeypatch.setattr(Measure, "_added", counted)
    end = len(model.main.operators)
    shared, alone = (StretchCosts(model, options, lambda _: None) for _ in range(2))
    assert asked_for(shared, (0, end)) > 0
    assert asked_for(shared, (0, end - 1)) < asked_for(alone, (0, end - 1))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "work", "why"),
    [
        ("mobile_chain", 0.0, "re-creating an interpreter for each part in every run adds more run time"),
        ("dense_model", 1.0, "no cut saves one percent of what the whole needs"),
    ],
)
def test_without_gain_or_time_there_is_one_part(name: str, work: float, why: str) -> None:
    result = optimize_in_parts(write_model(ALL[name]()), Options(verify=False, max_slowdown=work, effort="quick"))
    assert str(result.why_whole).startswith(why)
    assert len(result.program.parts) == 1
    assert result.parts[0].model == result.whole.model


def test_state_leaves_a_model_whole() -> None:
    data = write_model(ALL["streaming_model"]())
    assert "keeps state" in (optimize_in_parts(data, QUIET).why_whole or "")
    with raises(UnsupportedModelError, ErrorKind.FORM, "state"):
        optimize_in_parts(data, QUIET, 2)


def test_one_part_says_by_whose_planner_it_needs_less_than_the_plain_run(tmp_path: Path) -> None:
    source = tmp_path / "m.tflite"
    source.write_bytes(write_model(ALL["streaming_model"]()))
    whole = optimize(source, QUIET).report.after.required_for_target
    options = ("--no-verify", "--parts", "auto")
    done = CliRunner().invoke(cli, ["optimize", str(source), "-o", str(tmp_path / "parts"), *options])
    assert "as one model with codegen's planner at " in done.output.splitlines()[0]
    assert f"as one model it needs {whole:,} bytes with TFLM's own planner\n" in done.output


def test_a_model_without_operators_is_optimized_and_stays_whole() -> None:
    b = ModelBuilder()
    data = write_model(b.finish(b.input("x", (1, 8))))
    assert optimize(data, QUIET).model
    assert optimize_in_parts(data, QUIET).why_whole == "it has no operators"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("file", "change", "said"),
    [
        ("part1.tflite", lambda data: data[:-1] + bytes([data[-1] ^ 1]), "part1.tflite' "),
        ("part1.tflite", lambda _: None, "part1.tflite' "),
        (MANIFEST, lambda _: b"{}", MANIFEST),
        (MANIFEST, lambda _: None, MANIFEST),
    ],
)
def test_a_folder_that_is_not_whole_is_refused(
    file: str, change: Callable[[bytes], bytes | None], said: str, model: Path, tmp_path: Path
) -> None:
    folder, other = tmp_path / "program", tmp_path / "other"
    for each in (folder, other):
        in_parts("separable")[1].save(each)
    changed = change((folder / file).read_bytes())
    if changed is None:
        (folder / file).unlink()
    else:
        (folder / file).write_bytes(changed)
    out = ("-o", str(tmp_path / "fw"))
    for words in (("codegen", folder, *out), ("verify", model, folder), ("codegen", other, folder, *out)):
        assert_refused(command.run(*words), said)
        assert not (tmp_path / "fw").exists()


@pytest.mark.slow
@pytest.mark.parametrize("path", ["../part0.tflite", "/etc/passwd"])
def test_a_program_names_files_beside_it_only(path: str, tmp_path: Path) -> None:
    _, result = in_parts("separable")
    result.save(tmp_path)
    fields = json.loads((tmp_path / MANIFEST).read_text())
    fields["parts"][0]["file"] = path
    (tmp_path / MANIFEST).write_text(json.dumps(fields))
    with raises(ModelFormatError, ErrorKind.FORMAT, str(tmp_path / MANIFEST)):
        read_program(tmp_path)


def manifest() -> dict[str, Any]:
    """Of a fed part and another one, with no files."""
    crossing = Crossing("x", 64, None)
    part = PartFile("part0.tflite", "", 1, {"32": 512}, (crossing,), (crossing,))
    feed = Feed(8, 16, 2, 1, 5, 0, 4, (Tie(2, 0, 64, 0, None),))
    program = Program(2, "", None, 9, "", None, "reference", {"reference": 512}, 600, {"reference": 0.1}, "", (part,))
    found: dict[str, Any] = json.loads(to_json(replace(program, parts=(part, part), feed=feed)))
    return found


@pytest.mark.parametrize(
    ("way", "value"),
    [
        (("arena_bytes",), 0.5),
        (("arena_bytes",), {}),
        (("arena_bytes",), {"other": 512}),
        (("arena_bytes", "reference"), {"a": 1}),
        (("whole_bytes",), 2**31),
        (("source",), 7),
        (("slowdown", "reference"), float("nan")),
        (("slowdown", "reference"), 10**400),
        (("parts",), manifest()["parts"] * 100),
        (("parts", 0, "head"), "many"),
        (("parts", 1, "inputs", 0, "offset"), -1),
        (("feed", "calls"), 2**31 - 1),
        (("feed", "height"), -1),
        (("feed", "step"), 10**9),
        (("feed", "inputs"), [True]),
        (("feed", "ties", 0, "fill"), 256),
    ],
)
def test_a_program_of_absurd_values_is_refused(way: tuple[Any, ...], value: Any, tmp_path: Path) -> None:
    program_in(manifest())
    fields = holder = manifest()
    for key in way[:-1]:
        holder = holder[key]
    holder[way[-1]] = value
    (tmp_path / MANIFEST).write_text(json.dumps(fields))
    with raises(ModelFormatError, ErrorKind.FORMAT, MANIFEST):
        read_program(tmp_path)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--parts", "many"), "'many' is not a number of parts; write auto, or a number from 1 to 30"),
        (("--parts", "0"), "'0' is not a number of parts"),
        (("--parts", "2", "--report", "r.html"), "--report .html does not work with --parts"),
        (("--parts", "2", "--objective", "head"), "--objective head does not work with --parts"),
    ],
)
def test_wrong_options_are_refused_in_a_line(
    arguments: tuple[str, ...], said: str, model: Path, tmp_path: Path
) -> None:
    code, output = run("optimize", model, "-o", tmp_path / "out", "--no-verify", *arguments)
    assert code != 0
    assert said in output
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_the_schema_is_that_of_the_dataclasses() -> None:
    text = (Path(__file__).parents[2] / "schema" / "program.schema.json").read_text()
    assert text == schema_text(), "run python -m scripts.makers.schemas"
    _, result = in_parts("separable")
    jsonschema.validate(json.loads(to_json(result.program)), json.loads(text))


def test_a_program_is_not_overwritten(model: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / MANIFEST).write_text("{}")
    code, said = run("optimize", model, "-o", tmp_path / "out", "--parts", 2, "--no-verify")
    assert code != 0
    assert "--force" in said


@pytest.mark.slow
def test_the_same_bytes_each_time() -> None:
    data = write_model(separable())
    options = Options(verify=False, target="cortex-m7", max_slowdown=0.5, effort="quick")
    first, second = (optimize_in_parts(data, options, 3) for _ in range(2))
    assert first.files() == second.files()
