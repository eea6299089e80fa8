"""The size to reserve is one number in every place that states it, and the number that TFLM needs."""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Callable, Mapping
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from rich.console import Console

from tests.cells import cell_network
from tests.firmware.generated import generate
from tests.models import ALL, concat_model, irregular_model, mobile_chain
from tests.program.test_program_firmware import separable
from tests.recurrent import layers
from tests.tflm import needs_wheel
from tflite_memopt import Options, Report, analyze, explore, from_json, optimize, ram_of
from tflite_memopt.batch.find import find_models
from tflite_memopt.batch.run import _Job, _worked
from tflite_memopt.cli import cli
from tflite_memopt.evidence.equivalence.adapter import RunJob
from tflite_memopt.evidence.equivalence.runner import Interpreter
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.model.ir.model import Model
from tflite_memopt.report.document import text_of
from tflite_memopt.report.documents import report_document

NETWORKS: Mapping[str, Callable[[], Model]] = {
    "chain": mobile_chain,
    "concatenations": concat_model,
    "irregular": irregular_model,
    "recurrent": lambda: layers("lstm"),
}
BUILDS = (
    ("cortex-m4", "makefile"),
    ("nrf52840dk", "zephyr-4.4"),
    ("pico", "int-enums"),
    ("cortex-m55", "no-static-memory"),
    ("esp32s3", "esp-tflite-micro-1.4"),
    ("riscv32", "makefile"),
)


_FOLDER = os.environ.get("TFLITE_MEMOPT_MODELS", "")
_REAL = ("mlperf_ic_int8", "mlperf_vww_int8", "mlperf_kws_int8", "tflm_person_detect", "tflm_lstm_int8")
FILES = {name: path for name in _REAL if (path := Path(_FOLDER, f"{name}.tflite")).is_file()} if _FOLDER else {}


@pytest.fixture(scope="module", params=[*NETWORKS, *(pytest.param(name, marks=pytest.mark.corpus) for name in FILES)])
def original(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    if request.param in FILES:
        return FILES[request.param]
    path = tmp_path_factory.mktemp("reserve") / f"{request.param}.tflite"
    path.write_bytes(write_model(NETWORKS[request.param]()))
    return path


def run(*words: str | Path, code: int = 0) -> str:
    done = CliRunner().invoke(cli, [str(word) for word in words])
    assert done.exit_code == code, f"{words}: {done.output}"
    return done.stdout


def number(text: str) -> int:
    return int(text.replace(",", ""))


def in_header(header: str, target: str, tflm: str) -> int:
    """What a compiler for the target makes of the size in arena.h."""
    sizes = [re.search(rf"{name} = ForThisCompiler\((\d+), (\d+), \d+\)", header) for name in ("kArenaBytes", "Larger")]
    sizes[1] = re.search(
        r"#else\nconstexpr std::size_t kLargerStructures = ForThisCompiler\((\d+), (\d+), \d+\)", header
    )
    profile = Options(target=target, tflm=tflm).profile
    column = 1 if profile.abi.short_enums else 2
    arena, more = (int(size[column]) for size in sizes if size is not None)
    return arena + (0 if profile.abi.is_static else more)


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("target", "tflm"),
    [
        pytest.param(*build, marks=[pytest.mark.slow] if build in BUILDS[3:] else [], id="-".join(build))
        for build in BUILDS
    ],
)
def test_every_place_has_the_same_number(original: Path, target: str, tflm: str, tmp_path: Path) -> None:
    made, page, report_file = tmp_path / "made.tflite", tmp_path / "r.html", tmp_path / "r.json"
    firmware = ("--target", target, "--tflm", tflm)
    fixed = (*firmware, "--changes", "order", "--effort", "quick", "--no-verify")
    console = run("optimize", original, "-o", made, *fixed, "--report", page, "--report", report_file)
    report = from_json(report_file.read_text())
    assert isinstance(report, Report)
    size, table = report.answer.reserve, report.answer.table
    planner = "" if table in (None, size) else f"; {table:,} with codegen's planner"

    # the console, the tables of -v, the page, the JSON
    first, *_ = console.splitlines()
    assert f" -> {size:,} bytes " in first
    assert first.endswith(planner)
    assert ("codegen" in first) == bool(planner)
    reserved = re.search(
        r"flash (?:made\S+|your original): reserve ([\d,]+) bytes(?: \(([\d,]+) with codegen's planner\))?,", console
    )
    assert reserved is not None
    assert number(reserved[1]) == size
    assert reserved[2] is None if table in (None, size) else number(reserved[2]) == table
    stream = StringIO()
    Console(file=stream, width=200).print(text_of(report_document(report)))
    (row,) = re.findall(r"arena to reserve on the target, bytes *│ *[\d,]+ │ *([\d,]+)", stream.getvalue())
    assert number(row) == size
    html = page.read_text()
    assert f"<strong>{size:,} bytes</strong>" in html
    assert f"arena[{size}];" in html
    fields: Any = json.loads(report_file.read_text())
    assert fields["after"]["required_bytes"]["target"] == fields["arena"]["after"]["required"] == size

    # every other command on the file, with the target and with what a new file says of itself
    is_new = made.read_bytes() != original.read_bytes()
    for asked in (firmware, ()) if is_new else (firmware,):
        assert json.loads(run("analyze", made, *asked, "--json"))["answer"]["reserve"] == size
        assert f"made.tflite: {size:,} bytes" in run("check", made, *asked)
    assert ram_of(made, target, tflm=tflm) == size
    assert table is None or ram_of(made, target, tflm=tflm, planner="table") == table

    # firmware: arena.h for TFLM's planner, and for the table that codegen writes by default
    for wanted, planned in (("metadata", size), (None, size if table is None else table)):
        header = generate(made.read_bytes(), target=target, planner=wanted)["arena.h"].decode()
        assert in_header(header, target, tflm) == planned

    # the budget is met to the byte, and says by which planner
    for budget, code in ((size, 0), (table or size, 0), ((table or size) - 1, 3)):
        said = run("optimize", original, "-o", made, *fixed, "--force", "-q", "--budget", str(budget), code=code)
        assert f" -> {size:,} bytes " in said
        assert ("with codegen's planner only" in said) == (budget < size and code == 0)
        assert run("analyze", made, *firmware, "-q", "--budget", str(budget), code=code)
        assert run("check", made, *firmware, "--budget", str(budget), code=code)


@pytest.mark.slow
def test_batch_explore_and_parts_state_it_too(tmp_path: Path) -> None:
    source, program = tmp_path / "in.tflite", tmp_path / "program"
    source.write_bytes(write_model(separable()))
    firmware = {"target": "nrf52840dk", "tflm": "zephyr-4.2"}
    options = Options(**firmware, cascade=False, verify=False)  # type: ignore[arg-type]
    answer = optimize(source, options).report.answer
    line, _ = _worked(_Job(find_models([str(source)]), source.read_bytes()), optimize, options)
    assert line["after"] == answer.reserve
    found = explore(source, options).exploration
    assert (found.points[0].total, found.points[0].table) == (answer.reserve, answer.table)

    flags = (
        *("--max-slowdown", "100"),
        "--target",
        "nrf52840dk",
        "--tflm",
        "zephyr-4.2",
        "--parts",
        "auto",
        "--no-verify",
        "--effort",
        "quick",
        "--changes",
        "order",
    )
    first, *rest = run("optimize", source, "-o", program, *flags).splitlines()
    made = json.loads((program / "program.json").read_text())
    (arena,) = made["arena_bytes"].values()
    assert f" -> {arena:,} bytes " in first
    assert any(f"reserve {arena:,} bytes with the class that codegen writes" in each for each in rest)
    run("codegen", program, "-o", tmp_path / "firmware")
    assert f"kArenaBytes = {arena};" in (tmp_path / "firmware" / "program.h").read_text()
    assert f"program: {arena:,} bytes" in run("check", program, "--budget", str(arena))
    assert "over budget" in run("check", program, "--budget", str(arena - 1), code=3)


def seeded(seed: int) -> Callable[[], Model]:
    return lambda: cell_network(seed)


@pytest.mark.few(8)
@needs_wheel
@pytest.mark.parametrize("make", [*ALL.values(), *map(seeded, range(18))])
def test_tflm_loads_a_model_in_the_stated_size_and_not_in_16_bytes_less(make: Callable[[], Model]) -> None:
    """On the wheel: 64 bits, with structures of its flavor."""
    data = write_model(make())
    need = analyze(data, "reference").memory.required_bytes["64"]
    with contextlib.closing(Interpreter("tflm")) as tflm:
        assert [tflm.run(RunJob(data, [], need - fewer)).ran for fewer in (0, 16)] == [True, False]
