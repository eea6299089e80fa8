"""The class that runs a program, compiled with the real TFLM: in exactly its arena, between guard bytes."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from tests.faults import raises
from tests.firmware.compiled import HOST, OF_A_PROGRAM, RIGHT, check_against_the_interface, run_on_tflm
from tests.firmware.generated import generate_program
from tests.firmware.test_example import BODY, RAMP, lines
from tests.firmware.test_own_buffers import wanted
from tests.firmware.test_plan_table import changed, outputs
from tests.model_builder import ModelBuilder
from tflite_memopt import Options, UsageError
from tflite_memopt.errors import ErrorKind
from tflite_memopt.model.io.files import write_folder
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.model.ir.model import Model
from tflite_memopt.run.parts.run import ProgramResult, optimize_in_parts

pytestmark = [pytest.mark.xdist_group("programs"), pytest.mark.slow]  # in one process, which optimizes each model once
MAIN = Path(__file__).parent / "guarded_program.cc"
RUNS = 4


def separable() -> Model:
    b = ModelBuilder()
    y = b.conv(b.input("x", (1, 24, 24, 4)), 8, stride=2)
    for number in range(3):
        y = b.conv(b.depthwise(y, seed=number), 16, kernel=1, seed=number)
    return b.finish(b.dense(b.reshape(y, (1, 2304)), 5))


def residual() -> Model:
    """Two tensors cross most cuts, and one output comes from the middle."""
    b = ModelBuilder()
    y = b.conv(b.input("x", (1, 12, 12, 3)), 24)
    middle = y
    for number in range(3):
        y = b.add(b.conv(b.depthwise(b.conv(y, 24, kernel=1, seed=number)), 24, kernel=1, seed=number), y)
        middle = y if number == 0 else middle
    return b.finish(b.average_pool(y, 12), b.dense(b.reshape(middle, (1, 3456)), 3))


MODELS = {"separable": separable, "residual": residual}


@cache
def in_parts(name: str, target: str = HOST) -> tuple[bytes, ProgramResult]:
    data = write_model(MODELS[name]())
    options = Options(target=target, verify=False, max_slowdown=0.5, effort="quick")
    return data, optimize_in_parts(data, options, 3)


def written(folder: Path, result: ProgramResult, left_out: int = -1, main: Path = MAIN) -> Path:
    for path, text in generate_program(result.program, result.models).items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(text)
    (folder / "runs.h").write_text(f"constexpr int kRuns = {RUNS}, kLeftOut = {left_out};\n")
    shutil.copy(main, folder)
    arena = r"alignas\(16\) inline uint8_t arena\[kArenaBytes\] TFLITE_MEMOPT_IN_ARENA;"
    guarded = "alignas(16) inline uint8_t guarded[kArenaBytes + 64];\ninline uint8_t* const arena = guarded + 32;"
    changed(folder, "program.h", arena, guarded)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_parts_compute_what_the_model_does(name: str, tmp_path: Path) -> None:
    data, result = in_parts(name)
    assert len(result.parts) > 1, result.why_whole
    code, said = run_on_tflm(written(tmp_path, result), MAIN.name)
    assert code == 0, said
    assert outputs(said) == wanted(data, RUNS, {})


@pytest.mark.parametrize("name", MODELS)
def test_it_compiles_without_a_word(name: str, tmp_path: Path) -> None:
    folder = written(tmp_path, in_parts(name)[1])
    assert check_against_the_interface(folder, *RIGHT, mains=OF_A_PROGRAM) == ""


@pytest.mark.parametrize("name", MODELS)
def test_its_example_reads_what_the_model_gives(name: str, tmp_path: Path) -> None:
    data, result = in_parts(name)
    check_example(tmp_path, data, result)


def check_example(folder: Path, data: bytes, result: ProgramResult) -> None:
    """Run ``example.cc`` on the inputs of ``RAMP``, and compare what it prints with TFLM's run of the model."""
    write_folder(folder, generate_program(result.program, result.models), (), force=True)
    assert check_against_the_interface(folder, *RIGHT, mains=("example.cc",)) == ""
    changed(folder, "example.cc", re.escape(BODY), RAMP)
    code, said = run_on_tflm(folder, "example.cc")
    assert code == 0, said
    assert [line for line in said.splitlines() if "largest" in line] == lines(data, [])


def test_an_input_that_is_given_up_leaves_no_trace(tmp_path: Path) -> None:
    data, result = in_parts("separable")
    code, said = run_on_tflm(written(tmp_path, result, left_out=2), MAIN.name)
    assert code == 0, said
    assert outputs(said) == wanted(data, RUNS, {})


def test_its_arena_is_the_smallest(tmp_path: Path) -> None:
    data, result = in_parts("separable")
    written(tmp_path, result)
    changed(tmp_path, "program.h", r"(kArenaBytes = \d+)", r"\1 - 16")
    # The last bytes then lie in what follows the arena, and survive there in one run of some thirty.
    runs = (run_on_tflm(tmp_path, MAIN.name) for _ in range(5))
    assert any(code != 0 or outputs(said) != wanted(data, RUNS, {}) for code, said in runs)


def test_what_crosses_a_cut_would_be_lost_without_its_moves(tmp_path: Path) -> None:
    """The negative control."""
    data, result = in_parts("separable")
    text = (written(tmp_path, result) / "program.h").read_text()
    assert re.search(r"kMoves_model\[\] = \{\{\d+, \d+, [1-9]", text)
    changed(tmp_path, "program.h", r"Carry\(part\.moves, part\.before\);", "")
    _, said = run_on_tflm(tmp_path, MAIN.name)
    assert outputs(said) != wanted(data, RUNS, {})


def test_a_part_of_another_run_does_not_start(tmp_path: Path) -> None:
    _, result = in_parts("separable")
    written(tmp_path, result)
    changed(tmp_path, "part1/model_data.cc", r"(\n    \d+,\d+,\d+,\d+,\d+,\d+,\d+,\d+,)(\d+),", r"\g<1>255 - \2,")
    code, said = run_on_tflm(tmp_path, MAIN.name)
    assert code == 3, said
    assert "plan of model_part1: the model was changed; run codegen again" in said
    assert not outputs(said)


@pytest.mark.slow
def test_two_programs_share_an_arena_one_at_a_time(tmp_path: Path) -> None:
    digests = {}
    for space, name in (("one", "separable"), ("other", "residual")):
        data, result = in_parts(name)
        models = [part.model for part in result.parts]
        for path, text in generate_program(result.program, models, name=space).items():
            (tmp_path / space / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / space / path).write_bytes(text)
        digests[space] = wanted(data, 1, {})[0].split()[-1]
    shutil.copy(MAIN.parent / "two_programs.cc", tmp_path)
    included = "".join(f'#include "{space}/model_data.cc"\n' for space in digests)
    (tmp_path / "model_data.cc").write_text(included)
    code, said = run_on_tflm(tmp_path, "two_programs.cc")
    assert code == 0, said
    lines = [line.split() for line in said.splitlines()]
    assert {name for name, _ in lines} == set(digests)
    assert all(digest == digests[name] for name, digest in lines), said


def test_other_kernels_do_not_compile(tmp_path: Path) -> None:
    _, result = in_parts("separable", "cortex-m7")
    with pytest.raises(RuntimeError, match=r"sizes are for another compiler|this program is for cmsis-nn-dsp kernels"):
        run_on_tflm(written(tmp_path, result), MAIN.name)


def test_a_program_for_any_kernels_needs_a_target() -> None:
    _, result = in_parts("separable")
    with raises(UsageError, ErrorKind.NO_TARGET):
        generate_program(replace(result.program, target=None), [part.model for part in result.parts])
