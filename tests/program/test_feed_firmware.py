"""The class that takes rows as they come, compiled with the real TFLM: in exactly its arena, between guard bytes."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from tests.firmware.compiled import HOST, OF_A_PROGRAM, RIGHT, check_against_the_interface, run_on_tflm
from tests.firmware.generated import generate_program
from tests.firmware.test_own_buffers import wanted
from tests.firmware.test_plan_table import changed, outputs
from tests.model_builder import ModelBuilder
from tests.program.test_program_firmware import RUNS, check_example, written
from tflite_memopt import Options
from tflite_memopt.model.io.files import write_folder
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.model.ir.editor import VALID
from tflite_memopt.model.ir.model import Model
from tflite_memopt.run.parts.run import ProgramResult, optimize_in_parts

pytestmark = [pytest.mark.xdist_group("programs"), pytest.mark.slow]  # in one process, which optimizes each model once
MAIN = Path(__file__).parent / "guarded_feed.cc"
EXAMPLES = Path(__file__).parents[2] / "docs" / "examples" / "feed"


def chain() -> Model:
    """Its second output is what a cut behind the convolutions hands over, so that a wrong row shows."""
    b = ModelBuilder()
    y = b.conv(b.input("x", (1, 32, 24, 3), zero_point=-7), 12, kernel=3)
    y = b.conv(b.depthwise(y), 12)
    y = b.conv(b.depthwise(y, stride=2, seed=1), 4, seed=1)
    return b.finish(b.dense(b.reshape(y, (1, y.elements)), 5), y)


def residual() -> Model:
    """Blocks with a sum, of which one halves the rows; the last rows of the image are read by nobody."""
    b = ModelBuilder()
    y = b.conv(b.input("x", (1, 27, 11, 3)), 8, kernel=3, stride=2, padding=VALID)
    for number in range(2):
        y = b.add(b.conv(b.depthwise(b.conv(y, 16, seed=number)), 8, seed=number), y)
    y = b.conv(b.depthwise(y, stride=1, padding=VALID), 6, kernel=4, stride=2)
    return b.finish(b.dense(b.reshape(y, (1, y.elements)), 3), y)


def beside() -> Model:
    """Inputs that the front adds to each row, that only the layers behind it read, or both."""
    b = ModelBuilder()
    gain, age = b.input("gain", (1, 1, 1, 12), zero_point=3), b.input("age", (1, 4))
    y, old = b.conv(b.input("x", (1, 32, 24, 3), zero_point=-7), 12, kernel=3), b.dense(age, 5)
    y = b.conv(b.depthwise(b.add(y, gain), stride=2, seed=1), 4, seed=1)
    seen, told = b.dense(b.reshape(y, (1, y.elements)), 5), b.dense(b.reshape(gain, (1, 12)), 5, seed=1)
    return b.finish(b.concat([old, seen, told], axis=1), y)


MODELS = {"chain": chain, "residual": residual, "beside": beside}


@cache
def in_rows(name: str, rows: int, target: str = HOST) -> tuple[bytes, ProgramResult]:
    data = write_model(MODELS[name]())
    options = Options(target=target, verify=False, max_slowdown=1.0, effort="quick")
    return data, optimize_in_parts(data, options, 2, feed=rows)


def fed_by_main(folder: Path, result: ProgramResult, left_out: int) -> Path:
    """Write the files of a program and a main that feeds it and prints its outputs."""
    written(folder, result, left_out=left_out, main=MAIN)
    assert result.program.feed is not None
    with (folder / "runs.h").open("a") as runs:
        runs.write(f"constexpr int kBeside = {len(result.program.feed.others)};\n")
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(("name", "rows"), [("chain", 2), ("chain", 4), ("residual", 2), ("beside", 4)])
def test_rows_compute_what_the_image_does(name: str, rows: int, tmp_path: Path) -> None:
    data, result = in_rows(name, rows)
    code, said = run_on_tflm(fed_by_main(tmp_path, result, 2), MAIN.name)
    assert code == 0, said
    assert outputs(said) == wanted(data, RUNS, {})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "what", "to"),
    [
        ("chain", r"(PadTo\(kRowsAbove\);)", r"\1 std::memset(Place(0), 0x11, kRowsAbove * kRowBytes);"),
        ("chain", r"call_\+\+ \* 4;", "call_++ == 0 ? 4 : call_ * 4 - 4;"),
        ("chain", r"(kArenaBytes = \d+)", r"\1 - 16"),
        ("beside", r"kPlaces\[\] = {(\d+), (\d+)}", r"kPlaces[] = {\2, \1}"),
        ("beside", r"(kArenaBytes = \d+)", r"\1 - 16"),
    ],
)
def test_wrong_borders_wrong_turns_and_a_smaller_arena_show(name: str, what: str, to: str, tmp_path: Path) -> None:
    """The negative controls."""
    data, result = in_rows(name, 4)
    changed(fed_by_main(tmp_path, result, 2), "program.h", what, to)
    code, said = run_on_tflm(tmp_path, MAIN.name)
    assert code != 0 or outputs(said) != wanted(data, RUNS, {})


@pytest.mark.parametrize(("name", "said"), [("chain", "output 0: 5 bytes"), ("beside", "output 0: 15 bytes")])
def test_its_main_program_runs(name: str, said: str, tmp_path: Path) -> None:
    _, result = in_rows(name, 4)
    written(tmp_path, result, main=MAIN)
    code, found = run_on_tflm(tmp_path, "main.cc")
    assert code == 0, found
    assert said in found


@pytest.mark.parametrize("name", ["camera_lines.cc", "audio_windows.cc"])
def test_examples_run(name: str, tmp_path: Path) -> None:
    _, result = in_rows("chain", 4)
    written(tmp_path, result, main=EXAMPLES / name)
    code, said = run_on_tflm(tmp_path, name)
    assert code == 0, said
    assert "first byte of the result" in said


@pytest.mark.parametrize("macros", [(), ("-DTFLM_IN_MICRO",)], ids=["in tflite", "in tflite::micro"])
@pytest.mark.parametrize("name", ["chain", "beside"])
def test_it_compiles_against_the_interface(name: str, macros: tuple[str, ...], tmp_path: Path) -> None:
    _, result = in_rows(name, 4)
    folder = written(tmp_path, result)
    assert check_against_the_interface(folder, *RIGHT, *macros, mains=OF_A_PROGRAM) == ""


@pytest.mark.parametrize("name", ["chain", "residual"])
def test_its_example_feeds_the_image_row_by_row(name: str, tmp_path: Path) -> None:
    data, result = in_rows(name, 2)
    check_example(tmp_path, data, result)


def test_its_example_writes_the_inputs_beside_the_image(tmp_path: Path) -> None:
    _, result = in_rows("beside", 2)
    write_folder(tmp_path, generate_program(result.program, result.models), (), force=True)
    assert check_against_the_interface(tmp_path, *RIGHT, mains=("example.cc",)) == ""
    code, said = run_on_tflm(tmp_path, "example.cc")
    assert code == 0, said
    assert said.count("largest is element") == 2
