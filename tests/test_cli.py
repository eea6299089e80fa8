"""The command as a user meets it: exit codes, one-line errors, nothing left behind."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import click
import numpy as np
import pytest

from tests.command import run
from tests.interrupts import heed_interrupts
from tests.models import dead_model, dense_model, irregular_model, mobile_chain, quantized_at_the_boundary
from tflite_memopt import Options, optimize
from tflite_memopt.__main__ import _INTERRUPTED
from tflite_memopt.cli import COMMANDS, cli
from tflite_memopt.cli.exit_codes import BAD_INPUT, INTERRUPTED
from tflite_memopt.errors import UsageError
from tflite_memopt.model.io.reader import read_model
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.values import byte_size


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "in.tflite"
    path.write_bytes(write_model(mobile_chain()))
    return path


def assert_refused(done: subprocess.CompletedProcess[str], word: str, code: int = 2) -> None:
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("tflite-memopt: ")
    assert word in last
    errors = [line for line in done.stderr.splitlines() if not line.endswith(" ...")]
    assert len(errors) == 1


def test_optimize_writes_a_model_and_a_report(source: Path, tmp_path: Path) -> None:
    output, report = tmp_path / "out.tflite", tmp_path / "report.json"
    done = run("optimize", source, "-o", output, "--report", report, "--changes", "rewrites", "--progress")
    assert done.returncode == 0, done.stderr
    assert "live tensor" not in done.stdout
    assert f"flash {output.name}: reserve " in done.stdout
    assert "placing" in done.stderr
    assert "placing" not in done.stdout
    assert done.stdout.startswith("RAM ")
    assert json.loads(report.read_text())["after"]["arena_bytes"] > 0
    assert read_model(output.read_bytes()).metadata[0][0] == "OfflineMemoryAllocation"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.tflite", "out.tflite", "report.json"]


def test_progress_is_quiet_in_a_pipe(source: Path) -> None:
    quiet = run("compare", source, "--orders", "rpo", "--offsets", "naive", "--json")
    assert quiet.stderr == ""
    told = json.loads(quiet.stdout)
    assert [[each["method"] for each in told[kind]] for kind in ("schedulers", "planners")] == [["rpo"], ["naive"]]
    assert "ordering" in run("compare", source, "--orders", "rpo", "--progress").stderr


@pytest.mark.slow
def test_quiet_prints_what_matters_most(source: Path, tmp_path: Path) -> None:
    done = run("optimize", source, "-o", tmp_path / "out.tflite", "--no-verify", "--target", "host", "-q")
    assert done.stderr == ""
    first, price, operators, *others = done.stdout.splitlines()
    assert first.startswith("RAM ")
    assert price.startswith("price: ")
    assert operators.startswith("register ")
    assert all(line.startswith("warning: ") for line in others)
    analyzed = run("analyze", source, "--quiet")
    assert analyzed.stdout.startswith("RAM ")
    assert analyzed.stdout.count("\n") == 1
    (verdict,) = run("verify", source, source, "-q").stdout.splitlines()
    assert verdict.startswith("equal")
    assert run("analyze", source, "-q", "--json").stdout.startswith("{")


@pytest.mark.parametrize(
    ("text", "size"),
    [("65536", 65536), ("64K", 65536), ("64kib", 65536), ("64 KB", 65536), ("0.5M", 524288), (".25 MiB", 262144)],
)
def test_sizes(text: str, size: int) -> None:
    assert byte_size(text) == size


@pytest.mark.parametrize("text", ["lots", "64X", "0.0001K", "-1K", "1.5", "", "K", "1e3", "64Ki"])
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(UsageError):
        byte_size(text)


def test_compare_shows_the_methods_that_were_asked_for(source: Path) -> None:
    done = run("compare", source, "--orders", "rpo, best_first", "--offsets", "naive")
    assert done.returncode == 0, done.stderr
    assert "best_first" in done.stdout
    assert "naive" in done.stdout
    assert "kahn" not in done.stdout
    assert json.loads(run("compare", source, "--orders", "rpo", "--json").stdout)["operators"] == 9
    assert_refused(run("compare", source, "--orders", "fastest"), "unknown scheduler 'fastest'")


@pytest.mark.slow
def test_flags_that_leave_a_stage_out(tmp_path: Path) -> None:
    source, output, report = tmp_path / "in.tflite", tmp_path / "out.tflite", tmp_path / "report.json"
    source.write_bytes(write_model(irregular_model()))
    options = ("-o", output, "--no-verify", "--force", "--report", report)
    before = [operator.outputs[0].name for operator in irregular_model().main.operators]

    def order(*flags: str) -> list[str]:
        done = run("optimize", source, *options, *flags)
        assert done.returncode == 0, done.stderr
        return [operator.outputs[0].name for operator in read_model(output.read_bytes()).main.operators]

    moved = order("--changes", "order")
    assert moved != before
    assert sorted(moved) == sorted(before)
    told = json.loads(report.read_text())
    assert (told["rewrites"], told["refused"]) == ([], [])
    assert_refused(run("optimize", source, *options, "--changes", "nothing"), "'nothing' is not one of")
    assert_refused(run("optimize", source, *options, "--changess"), "No such option")
    assert_refused(run("optimize", source, *options, "--max-slowdown", "500"), "'500' is more than 100 %")
    assert_refused(run("verify", source, source, "--samples", "few"), "'few' is not a valid whole number")
    for wrong in ("-0.1", "1.2.3%", "%", "nan"):
        assert_refused(run("optimize", source, *options, "--max-slowdown", wrong), "is not a percentage")


@pytest.mark.slow
def test_integers_at_the_boundary(tmp_path: Path) -> None:
    source, output = tmp_path / "in.tflite", tmp_path / "out.tflite"
    source.write_bytes(write_model(quantized_at_the_boundary()))
    options = ("-o", output, "--no-verify", "--force")
    assert "interface:" not in run("optimize", source, *options, "--io", "keep").stdout
    assert read_model(output.read_bytes()).main.inputs[0].dtype.label == "float32"
    assert "input 'image' was float32, is int8; real = " in run("optimize", source, *options, "--io", "int8").stdout
    shown = run("optimize", source, *options, "--io", "int8", "-v").stdout
    assert read_model(output.read_bytes()).main.inputs[0].dtype.label == "int8"
    [row] = [line for line in shown.splitlines() if "[1, 6, 6, 3]" in line and "input" in line]
    assert [cell.strip() for cell in row.split("│")[1:-1]] == [
        *("input", "image", "[1, 6, 6, 3]", "float32", "int8", repr(float(np.float32(0.0234))), "-7", "108")
    ]
    assert "boundary" in shown
    assert_refused(run("optimize", source, *options, "--io", "int4"), "'int4' is not one of 'keep', 'int8'")
    assert_refused(run("verify", source, output), "cannot be compared: input 0 is 'image' float32")


@pytest.mark.slow
def test_verbose_shows_what_was_rewritten_and_why_not(tmp_path: Path) -> None:
    source, output = tmp_path / "in.tflite", tmp_path / "out.tflite"
    source.write_bytes(write_model(dead_model()))
    options = ("-o", output, "--no-verify", "--force")
    assert "applied rewrites, and" not in run("optimize", source, *options).stdout
    shown = run("optimize", source, *options, "-v").stdout
    assert "applied rewrites, and" in shown
    assert "dead, dead_weight" in shown
    source.write_bytes(write_model(dense_model()))
    assert "no rule fits" in run("optimize", source, *options, "-v", "--changes", "rewrites").stdout


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no full device")
def test_a_full_output_is_no_fault_of_the_tool(source: Path, tmp_path: Path) -> None:
    output = tmp_path / "out.tflite"
    words = ("-m", "tflite_memopt", "optimize", str(source), "-o", str(output), "--no-verify", "-q")
    command = [sys.executable, *words]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("tflite-memopt: cannot print the answer")
    assert done.stderr.count("\n") == 1
    assert output.exists()


def test_analyze_json_is_json(source: Path) -> None:
    done = run("analyze", source, "--json")
    assert done.returncode == 0
    assert json.loads(done.stdout)["memory"]["operators"] == 9


def test_names_that_are_not_text_are_shown_all_the_same(source: Path) -> None:
    model = read_model(source.read_bytes())
    for tensor in model.main.tensors:
        tensor.name = b"\xff[bold]\n".decode("utf-8", "surrogateescape") + tensor.name
    source.write_bytes(write_model(model))
    for flags in ([], ["--json"]):
        done = run("analyze", source, *flags)
        assert done.returncode == 0, done.stderr
        assert "[bold]" in done.stdout


def test_verify_says_equal_and_different(source: Path, tmp_path: Path) -> None:
    assert run("verify", source, source, "--runtime", "litert", "--samples", 2).returncode == 0
    model = read_model(source.read_bytes())
    bias = next(tensor for tensor in model.main.tensors if tensor.name.endswith("/bias"))
    assert bias.buffer.data is not None
    bias.buffer.data = bias.buffer.data[::-1].copy()
    other = tmp_path / "other.tflite"
    other.write_bytes(write_model(model))
    done = run("verify", source, other, "--runtime", "litert", "--samples", 2)
    assert done.returncode == 1
    assert "first tensor that differs" in done.stderr


def test_own_inputs_are_used_and_checked(tmp_path: Path) -> None:
    source = tmp_path / "dense.tflite"
    source.write_bytes(write_model(dense_model()))
    good, bad = tmp_path / "good.npz", tmp_path / "bad.npz"
    np.savez(good, x=np.ones((3, 1, 16), np.int8))
    np.savez(bad, y=np.ones((1, 16), np.int8))
    done = run("verify", source, source, "--inputs", good, "--runtime", "litert")
    assert done.returncode == 0
    assert " 3 " in done.stdout
    assert_refused(run("verify", source, source, "--inputs", bad), "no array named 'x'")


@pytest.mark.parametrize("objective", ["total", pytest.param("head", marks=pytest.mark.slow)])
def test_budget_decides_the_exit_code(source: Path, tmp_path: Path, objective: str) -> None:
    output = tmp_path / "out.tflite"
    fixed: tuple[str | Path, ...] = ("-o", output, "--no-verify", "--changes", "rewrites", "--force")
    fixed += ("--target", "riscv32", "--kernels", "reference")
    options = (*fixed, "--report", tmp_path / "report.json", "--budget")
    assert run("optimize", source, *options, "1M").returncode == 0
    done = run("optimize", source, *options, "1K", "--objective", objective)
    assert done.returncode == 3
    said = " ".join(done.stdout.split())
    found = re.search(r" -> ([\d,]+) bytes .* DOES NOT FIT 1 KB: ([\d,]+) bytes too many", said)
    assert found is not None
    need, over = (int(number.replace(",", "")) for number in found.groups())
    assert need - over == 1024
    step = json.loads((tmp_path / "report.json").read_text())["binding"]
    assert f"operator {step['index']} {step['operator']} '{step['output']}' needs" in said


@pytest.mark.slow
def test_bad_paths_and_flags_get_one_line_and_leave_nothing(source: Path, tmp_path: Path) -> None:
    output = tmp_path / "out.tflite"
    empty, wrong = tmp_path / "empty.tflite", tmp_path / "wrong.tflite"
    empty.write_bytes(b"")
    wrong.write_bytes(b"hello, this is no model at all..")
    cut = tmp_path / "cut.tflite"
    cut.write_bytes(source.read_bytes()[:1000])
    before = sorted(tmp_path.iterdir())
    assert_refused(run("optimize", tmp_path / "none.tflite", "-o", output), "cannot read")
    assert_refused(run("optimize", empty, "-o", output), "empty")
    assert_refused(run("optimize", wrong, "-o", output), "not a .tflite")
    assert_refused(run("optimize", cut, "-o", output), "truncated")
    assert_refused(run("optimize", source, "-o", source), "is the input itself")
    assert_refused(run("optimize", source, "-o", tmp_path / "no" / "out.tflite"), "does not exist")
    assert_refused(run("optimize", source, "-o", "/dev/null", "--force"), "not a regular file")
    assert_refused(run("optimize", source, "-o", cut), "exists")
    assert_refused(run("optimize", source, "-o", output, "--samplse", 3), "No such option")
    assert_refused(run("optimize", source, "-o", output, "--budget", "lots"), "is not a size")
    twice = ("--report", tmp_path / "a.json", "--receipt", tmp_path / "a.json")
    assert_refused(run("optimize", source, "-o", output, *twice), "one file")
    assert_refused(run("optimize", source, "-o", output, "--report", tmp_path / "x.pdf"), "must end with .json or ")
    assert_refused(run("analyze", source, "--report", source), "the name must end with")
    assert_refused(run("optimize", source, "-o", tmp_path / "x.html"), "x.html: a model is written there; for a report")
    assert_refused(run("compare", source, "--offsets", "luck"), "greedy_by_size")
    assert_refused(run("optimisze", source), "'optimize'")
    assert_refused(run("something", source), "something")
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
def test_a_read_only_folder_is_refused_before_the_work(source: Path, tmp_path: Path) -> None:
    folder = tmp_path / "locked"
    folder.mkdir(mode=0o500)
    assert_refused(run("optimize", source, "-o", folder / "out.tflite"), "not writable")


def test_a_folder_that_takes_no_files_is_refused(source: Path) -> None:
    assert_refused(run("optimize", source, "-o", "/proc/out.tflite", "--no-verify", "--changes", "rewrites"), "/proc")


def test_what_is_left_at_the_end_is_not_looked_through_once_more() -> None:
    code = (
        "import atexit, gc, sys; sys.argv = ['tflite-memopt', '--version'];"
        "atexit.register(lambda: print(gc.get_freeze_count() > 0));"  # registered first: called last
        "from tflite_memopt.cli import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert done.stdout.splitlines()[-1] == "True"


@pytest.mark.slow
def test_a_full_disk_leaves_no_file(source: Path, tmp_path: Path) -> None:
    output = tmp_path / "out.tflite"
    code = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000));"
        f"sys.argv = ['tflite-memopt', 'optimize', {str(source)!r}, '-o', {str(output)!r}];"
        "sys.argv += ['--no-verify', '--changes', 'rewrites'];"
        "from tflite_memopt.cli import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert_refused(done, "cannot write")
    assert [path.name for path in tmp_path.iterdir()] == ["in.tflite"]


def test_an_interrupted_start_says_so_and_nothing_else() -> None:
    """Ctrl-C comes while the command line is being loaded."""
    code = (
        "import os, signal, sys, tflite_memopt.__main__ as entry\n"
        "class Interrupting:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'tflite_memopt.cli.analyze': os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Interrupting())\n"
        "sys.argv = ['tflite-memopt', 'analyze', 'model.tflite']\n"
        "entry.main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, preexec_fn=heed_interrupts
    )
    assert (done.returncode, done.stderr) == (INTERRUPTED, "tflite-memopt: interrupted; nothing was written\n")


def test_the_command_starts_where_ctrl_c_is_heeded() -> None:
    setup = (Path(__file__).parent.parent / "setup.cfg").read_text()
    assert "tflite-memopt = tflite_memopt.__main__:main" in setup


@pytest.mark.parametrize(("theirs", "wanted"), [(None, "1"), ("3", "3")])
def test_the_command_runs_numpy_on_one_thread(theirs: str | None, wanted: str) -> None:
    """Before numpy is loaded, and unless the user says otherwise."""
    script = (
        "import os, sys, tflite_memopt.__main__ as entry\n"
        "assert 'numpy' not in sys.modules\n"
        "sys.argv[1:] = ['--version']\n"
        "try: entry.main()\n"
        "except SystemExit: print(os.environ['OPENBLAS_NUM_THREADS'])\n"
    )
    environment = {name: each for name, each in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
    environment |= {} if theirs is None else {"OPENBLAS_NUM_THREADS": theirs}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environment, check=True)
    assert done.stdout.split()[-1] == wanted
    assert _INTERRUPTED == INTERRUPTED


@pytest.mark.parametrize(
    "words",
    [
        ("analyze", "-"),
        ("optimize", "IN", "-o", "-"),
        ("codegen", "IN", "-o", "-"),
        ("verify", "IN", "-"),
        ("optimize", "IN", "-o", "out.tflite", "--report", "-"),
    ],
)
def test_a_dash_is_no_file(words: tuple[str, ...], source: Path, tmp_path: Path) -> None:
    done = run(*(source if word == "IN" else word for word in words), folder=tmp_path)
    assert_refused(done, "'-' is not a file; write /dev/stdin to read from a pipe")
    assert not (tmp_path / "-").exists()


@pytest.mark.parametrize("words", [("analyze",), ("analyze", "IN", "--target", "z80"), ("analyze", "IN", "--io", "x")])
def test_messages_end_once(words: tuple[str, ...], source: Path) -> None:
    done = run(*(source if word == "IN" else word for word in words))
    assert done.returncode == BAD_INPUT
    assert done.stderr.count("\n") == 1
    assert ".;" not in done.stderr


@pytest.mark.parametrize(
    "words",
    [
        *(("analyze", "BAD"), ("optimize", "BAD", "-o", "x"), ("compare", "BAD"), ("codegen", "BAD", "-o", "x")),
        ("explore", "BAD"),
    ],
)
def test_what_is_no_model_is_named(words: tuple[str, ...], tmp_path: Path) -> None:
    refused_as_no_model(words, tmp_path)


def test_of_two_files_the_one_that_is_no_model_is_named(source: Path, tmp_path: Path) -> None:
    refused_as_no_model(("verify", str(source), "BAD"), tmp_path)
    refused_as_no_model(("verify", "BAD", str(source)), tmp_path)


def refused_as_no_model(words: tuple[str, ...], folder: Path) -> None:
    (folder / "wrong.tflite").write_bytes(b"12345678901234567890")
    done = run(*("wrong.tflite" if word == "BAD" else word for word in words), folder=folder)
    assert_refused(done, "'wrong.tflite': not a .tflite model")


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_says_so_and_leaves_nothing(source: Path, tmp_path: Path, number: int) -> None:
    command = [sys.executable, "-m", "tflite_memopt", "optimize", source, "-o", tmp_path / "out.tflite"]
    with subprocess.Popen(
        [*map(str, command), "--effort", "thorough", "--progress"],
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=heed_interrupts,
    ) as process:
        assert process.stderr is not None
        assert process.stderr.readline()
        time.sleep(0.3)
        process.send_signal(number)
        rest = process.stderr.read()
    assert process.returncode == 130
    assert "interrupted" in rest
    assert "Traceback" not in rest
    assert [path.name for path in tmp_path.iterdir()] == ["in.tflite"]


def command_named(name: str) -> click.Command:
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    return command


def test_the_bare_command_shows_its_help() -> None:
    done = run()
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == run("--help").stdout


def test_every_option_is_said_in_a_sentence() -> None:
    for name in COMMANDS:
        for option in command_named(name).params:
            if isinstance(option, click.Option):
                said = option.help or ""
                assert len(said.split()) >= 4, f"{name} {option.name}: {said}"
                assert "." in said, f"{name} {option.name}: {said}"


def test_help_names_every_command() -> None:
    done = run("--help")
    assert done.returncode == 0
    for name in ("optimize", "analyze", "verify"):
        assert name in done.stdout


def test_help_has_groups() -> None:
    for command in ("optimize", "explore"):
        shown = run(command, "--help").stdout
        assert {"Result:", "Target:", "Output:"} <= set(shown.splitlines())
        for option in command_named(command).params:
            assert isinstance(option, click.Argument) or option.opts[-1] in shown


def test_optimize_has_few_options() -> None:
    count = sum(isinstance(each, click.Option) for each in command_named("optimize").params)
    assert count <= 26, "extend an option that is there (--changes, --io), or raise this number on purpose"


@pytest.mark.slow
def test_explore_shows_the_front_and_writes_what_a_budget_picks(source: Path, tmp_path: Path) -> None:
    output, quick = tmp_path / "out.tflite", ("--effort", "quick")
    done = run("explore", source, "-o", output, "--budget", "1M", *quick, "--progress")
    assert done.returncode == 0, done.stderr
    assert "ways to run the model" in done.stdout
    assert "fits 1 MB with " in done.stdout
    assert "\n--changes all --max-slowdown 100: reading" in done.stderr
    assert read_model(output.read_bytes()).metadata[0][0] == "OfflineMemoryAllocation"
    points = tmp_path / "points.json"
    found = json.loads(run("explore", source, *quick, "--json", "--report", points).stdout)
    assert json.loads(points.read_text()) == found
    assert (found["choice"]["point"], found["choice"]["fits"]) == (0, None)


@pytest.mark.slow
def test_a_budget_that_no_point_meets_says_what_binds_and_what_helps(tmp_path: Path) -> None:
    source = tmp_path / "floats.tflite"
    source.write_bytes(write_model(quantized_at_the_boundary()))
    done = run("explore", source, "--budget", "16", "--effort", "quick")
    assert done.returncode == 3
    assert "NO point fits 16 bytes: point 1 is the nearest, " in done.stdout
    assert "what limits it: " in done.stdout
    assert "what would help: --io int8" in done.stdout
    assert "what would help: --target" in done.stdout


@pytest.mark.slow
def test_progress_shows_neither_bytes_nor_a_share_that_nobody_knows() -> None:
    said: list[str] = []
    optimize(write_model(mobile_chain(48)), Options(verify=False), said.append)
    assert "stripes: round 1" in said
    assert not any(re.search(r"\d[\d,]* bytes|%", message) for message in said)
