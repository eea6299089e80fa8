"""Every block of code of the pages is run: commands by tests/test_docs.py, C++ and Python here, others where said."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.command import run
from tests.firmware.compiled import HOST, run_on_tflm
from tests.models import mobile_chain
from tests.program.test_feed_firmware import chain
from tests.program.test_program_firmware import separable
from tests.recurrent import layers
from tests.test_docs import DEMO, PAGES, ROOT, commands_of, name_of
from tests.test_slide import keywords
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.model.ir.model import Model


def gru() -> Model:
    return layers("gru")


_MODELS = {
    "model": mobile_chain,
    "parts": separable,
    "fed": chain,
    "rnn": gru,
    "window": keywords,
}
_OPTIMIZE = ("--target", HOST, "--effort", "quick", "--no-verify", "--max-slowdown", "100")
_IMAGE = "int8_t image[1 << 16], samples[1 << 16], frame[1 << 12], rows[1 << 12];\n"
_STEPS = f'#include "setup.h"\n#include "steps.h"\n{_IMAGE}int main() {{\nauto& interpreter = *model::Start();\n'
CPP: dict[tuple[str, str], tuple[tuple[str, ...], str, str]] = {
    ("docs/device.md", '#include "setup.h"'): (
        ("optimize model.tflite -o small.tflite", "codegen small.tflite"),
        "",
        "int main() { RunOnce(); return model::Start() == nullptr || model::Start()->Invoke() != kTfLiteOk; }",
    ),
    ("docs/parts.md", "static model::Program program;\nstd::memcpy"): (
        ("optimize parts.tflite -o program --parts 2", "codegen program"),
        f'#include <cstring>\n#include "program.h"\n{_IMAGE}int main() {{\n',
        "return scores == nullptr;\n}",
    ),
    ("docs/parts.md", "static models::Models networks;"): (
        (
            "optimize model.tflite -o kws.tflite",
            "optimize parts.tflite -o program --parts 2",
            "codegen kws.tflite program",
        ),
        f'#include <cstring>\n#include "models.h"\n{_IMAGE}int main() {{\n',
        "return words == nullptr;\n}",
    ),
    ("docs/parts.md", "static model::Program program;\nvoid OnLine"): (
        ("optimize fed.tflite -o program --feed 2", "codegen program"),
        '#include "program.h"\nint used;\nvoid Use(const void*) { ++used; }\n',
        "int8_t row[1 << 12];\nint main() {\nfor (int n = 0; n < 64; ++n) OnLine(row);\nreturn used == 0;\n}",
    ),
    ("docs/recurrent.md", "model::Steps steps(interpreter);"): (
        ("optimize rnn.tflite -o small.tflite --step", "codegen small.tflite"),
        _STEPS,
        "return steps.Step(frame) != kTfLiteOk;\n}",
    ),
    ("docs/streaming.md", "model::Steps steps(interpreter);"): (
        ("optimize window.tflite -o small.tflite --slide 2", "codegen small.tflite"),
        _STEPS,
        "return steps.Step(rows) != kTfLiteOk;\n}",
    ),
}
"""By page and first lines: the commands that make the firmware, and what stands before and after the block."""
_SET_UP = "installs the tool and runs these tests; tests/test_docs.py has the command of the demo"
_DRAWN = "what it draws is explained beside it"
_OUTPUT = "the output of a command: tests/test_docs.py compares the figures"
_BENCH = "reproduces figures, for hours: tests/test_benchmarks.py runs each on small models"
ELSEWHERE: dict[tuple[str, str], str] = {
    ("README.md", "scripts/demo"): _SET_UP,
    ("README.md", "RAM "): _OUTPUT,
    ("README.md", "pip install ."): "tests/test_stranger.py",
    ("CONTRIBUTING.md", "git clone"): _SET_UP,
    ("CONTRIBUTING.md", "scripts/demo"): _SET_UP,
    ("CONTRIBUTING.md", "TFLITE_MEMOPT_TFLM="): "needs a TFLM that was built by hand",
    ("CONTRIBUTING.md", "TFLITE_MEMOPT_MODELS="): "needs models from elsewhere",
    ("docs/architecture.md", ""): _DRAWN,
    ("docs/how_it_works.md", ""): _DRAWN,
    ("docs/parts.md", "as one"): _DRAWN,
    ("docs/ci.md", "# .github/workflows"): "tests/test_install.py reads it, tests/test_check.py runs the action",
    ("docs/ci.md", "# .pre-commit-config.yaml"): "tests/test_check.py",
    ("docs/ci.md", "jq "): "below",
    ("docs/cost.md", ""): "below",
    ("docs/python.md", ""): "tests/test_stranger.py",
    ("docs/device.md", "arm-none-eabi-g++"): "needs a compiler for Arm; tests/firmware/compiled.py has the same flags",
    ("docs/device.md", "arena_used_bytes"): "tests/firmware/test_self_test.py",
    ("docs/device.md", "make -f"): "builds TFLM itself",
    ("docs/device.md", "execute_process"): "tests/firmware/test_homes.py",
    ("docs/device.md", "extra_scripts"): "tests/firmware/test_homes.py",
    ("docs/device.md", "- name: tflite_memopt"): "tests/firmware/test_homes.py",
    ("docs/device.md", "external_components:"): "tests/firmware/test_homes.py",
    ("docs/exactness.md", "g++ "): "needs a TFLM that was built by hand",
    ("docs/exactness.md", "cosign"): "needs a key or an account",
    ("docs/index.md", "pip install"): "tests/test_stranger.py",
    ("docs/index.md", "RAM "): _OUTPUT,
    ("docs/optimize.md", "next "): _OUTPUT,
    ("docs/optimize.md", "RAM "): _OUTPUT,
    ("docs/optimize.md", "from pathlib import Path"): "below",
    ("docs/optimize.md", 'eval "$(_TFLITE'): "below",
    ("docs/recurrent.md", "x = keras.Input"): "tests/keras_networks.py makes such models with TensorFlow",
    ("docs/streaming.md", "RAM "): _OUTPUT,
    ("docs/results.md", "scripts/"): _BENCH,
    ("docs/runtimes.md", "scripts/"): _BENCH,
}
"""By page and the beginning of a block: the test that runs it, or why none does."""


def blocks_of(page: Path) -> list[str]:
    """The indented blocks of a page that are not in a list, without the indent."""
    found = re.findall(r"(?:^|\n\n)((?: {4}.*\n?(?:\n(?= {4}))*)+)", page.read_text(encoding="utf-8"))
    return [textwrap.dedent(block).strip("\n") for block in found]


def place_of(page: Path, block: str) -> tuple[str, str] | None:
    """The entry of the tables that a block belongs to."""
    name = name_of(page)
    return next((each for each in (*CPP, *ELSEWHERE) if each[0] == name and block.startswith(each[1])), None)


def block_of(name: str, begins: str) -> str:
    return next(block for block in blocks_of(ROOT / name) if block.startswith(begins))


def test_every_block_is_run_or_says_why_not() -> None:
    used = set()
    for page in PAGES:
        lines = {line for command in commands_of(page) for line in command.splitlines()}
        for block in blocks_of(page):
            place = place_of(page, block)
            if place is None:
                ours = [line for line in block.splitlines() if any(line.startswith(each) for each in lines)]
                assert ours, f"{name_of(page)}: nothing runs this block:\n{block}"
            used.add(place)
    assert not {*CPP, *ELSEWHERE} - used, "a block has gone, or begins otherwise"


def test_the_tests_that_are_named_exist() -> None:
    for where in ELSEWHERE.values():
        for path in re.findall(r"tests/[\w/]+\.py", where):
            assert (ROOT / path).is_file(), path


@pytest.mark.slow
@pytest.mark.parametrize("place", CPP, ids=lambda place: f"{Path(place[0]).stem}: {place[1].splitlines()[-1]}")
def test_the_cpp_of_the_pages_runs(place: tuple[str, str], tmp_path: Path) -> None:
    commands, before, after = CPP[place]
    for name, make in _MODELS.items():
        (tmp_path / f"{name}.tflite").write_bytes(write_model(make()))
    for command in commands:
        words = command.split()
        more = _OPTIMIZE if words[0] == "optimize" else ("-o", "firmware", "--target", HOST)
        done = run(*words, *more, folder=tmp_path)
        assert done.returncode == 0, done.stderr
    (tmp_path / "firmware" / "page.cc").write_text(f"{before}{block_of(*place).replace(') ...', ') {}')}\n{after}\n")
    code, said = run_on_tflm(tmp_path / "firmware", "page.cc", "-Wno-unused", "-Wno-unused-result")
    assert code == 0, said


@pytest.mark.slow
def test_a_report_is_read_as_the_page_says(tmp_path: Path) -> None:
    pytest.importorskip("pydantic")
    done = run("optimize", DEMO, "-o", "x.tflite", "--report", "report.json", *_OPTIMIZE, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    code = f"{block_of('docs/optimize.md', 'from pathlib')}\nassert report.answer.reserve"
    exec(compile(code.replace('"report.json"', repr(str(tmp_path / "report.json"))), "page", "exec"), {})


@pytest.mark.slow
def test_costs_are_asked_as_the_page_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "model.tflite").write_bytes(write_model(mobile_chain()))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    known = {"model": "model.tflite", "draw": lambda _: "model.tflite", "accuracy_after_training": lambda _: 0.5}
    code = "\n".join([*blocks_of(ROOT / "docs" / "cost.md"), "assert found.optimized", "assert score(None) == 0.5"])
    exec(compile(code, "page", "exec"), known)


@pytest.mark.skipif(shutil.which("bash") is None, reason="not installed: bash")
def test_a_shell_completes_as_the_page_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command = tmp_path / "tflite-memopt"
    command.write_text(f"#!{sys.executable}\nfrom tflite_memopt.cli import main\n\nmain()\n")
    command.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    line = block_of("docs/optimize.md", "eval").partition("   #")[0]
    done = subprocess.run(
        ["bash", "-c", f"{line}; complete -p tflite-memopt"], capture_output=True, text=True, check=True
    )
    assert "_tflite_memopt_completion" in done.stdout


@pytest.mark.skipif(shutil.which("jq") is None, reason="not installed: jq")
def test_the_line_of_jq_lists_what_was_saved(tmp_path: Path) -> None:
    (tmp_path / "OUT").mkdir()
    lines = ('{"status": "done", "before": 5, "after": 2, "model": "a"}', '{"status": "refused", "model": "b"}')
    (tmp_path / "OUT" / "results.jsonl").write_text("\n".join(lines))
    line = block_of("docs/ci.md", "jq ")
    done = subprocess.run(["sh", "-c", line], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == "3\ta\n"
