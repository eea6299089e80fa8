"""Files that commands write: none replaces what is read, or another of them, and any name goes into any file."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from tests.command import run
from tests.firmware.test_esphome import MANIFEST, wake_word
from tests.models import dense_model, mobile_chain
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.report.model import Analysis, Report
from tflite_memopt.report.repository import ModelRam, ram_markdown, ram_text
from tflite_memopt.report.schema import from_json

_BAD = 2
QUICK = ("--effort", "quick", "--no-verify")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A model, names that lead to it, and other files that commands read."""
    made = tmp_path / "in"
    made.mkdir()
    (made / "m.tflite").write_bytes(write_model(dense_model()))
    for name in ("link.json", "link.html", "link.tflite", "part0.tflite"):
        (made / name).symlink_to(made / "m.tflite")
    os.link(made / "m.tflite", made / "hard.json")
    np.savez(made / "x.npz", x=np.zeros((1, 16), np.int8))
    (made / "esphome").mkdir()
    (made / "esphome" / "w.json").write_text(json.dumps(MANIFEST))
    (made / "w.tflite").write_bytes(write_model(wake_word()))
    return made


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


CLASHES = {
    "the receipt is the input": "optimize m.tflite -o new.tflite --receipt m.tflite",
    "the receipt is the input, spelled otherwise": "optimize m.tflite -o new.tflite --receipt ../in/./m.tflite",
    "a report is a link to the input": "optimize m.tflite -o new.tflite --report link.json",
    "a report is the input by another entry": "optimize m.tflite -o new.tflite --report hard.json",
    "a report of analyze": "analyze m.tflite --report link.html",
    "a report of compare": "compare m.tflite --report hard.json",
    "a report of explore": "explore m.tflite --report link.json",
    "two reports of one name": "analyze m.tflite --report new.json --report ./new.json",
    "a report and a receipt": "optimize m.tflite -o new.tflite --report new.json --receipt ../in/new.json",
    "the receipt is the model": "optimize m.tflite -o new.tflite --receipt new.tflite",
    "the model replaces the samples": "optimize m.tflite -o x.npz --inputs x.npz",
    "the receipt replaces the samples": "optimize m.tflite -o new.tflite --receipt x.npz --inputs x.npz",
    "explore's model replaces the samples": "explore m.tflite -o x.npz --inputs x.npz",
    "the model replaces the one that is replayed": "optimize w.tflite -o m.tflite --replay m.tflite",
    "the table replaces a model": "check . --markdown m.tflite",
    "the table is a link to a model": "check m.tflite --markdown link.json",
    "a part replaces the input": "optimize m.tflite -o . --parts 2 --effort quick --no-verify",
    "a report is the program": "optimize m.tflite -o new --parts 2 --report new/program.json --no-verify",
    "node data replaces a report": "analyze m.tflite --node-data . --report NODE",
    "the manifest replaces the one that is read": "codegen w.tflite -o . --esphome esphome/w.json --target esp32s3",
    "the C++ replaces the original": "codegen m.tflite -o . --original main.cc",
}


@pytest.mark.skipif(sys.platform == "win32", reason="symbolic links need rights there")
@pytest.mark.parametrize("case", CLASHES)
def test_no_output_replaces_what_is_read_or_another_output(case: str, folder: Path) -> None:
    command = CLASHES[case]
    if "--replay" in command:  # only a file that optimize wrote has a decision
        assert run("optimize", "m.tflite", "-o", "m.tflite", "--force", *QUICK, folder=folder).returncode == 0
    if "--original main.cc" in command:
        (folder / "main.cc").write_bytes((folder / "m.tflite").read_bytes())
    if "NODE" in command:
        assert run("analyze", "m.tflite", "--node-data", "nodes", folder=folder).returncode == 0
        command = command.replace("NODE", next(path.name for path in (folder / "nodes").iterdir()))
    if "new/program.json" in command:
        (folder / "new").mkdir()
    before = contents(folder)
    done = run(*command.split(), "--force", folder=folder)
    assert done.returncode == _BAD, done.stdout
    assert re.search("is the input|are one file", done.stderr), done.stderr
    assert contents(folder) == before


@pytest.mark.parametrize("command", ["optimize", "explore"])
def test_the_model_alone_may_replace_the_input(command: str, folder: Path) -> None:
    words = [command, "m.tflite", "-o", "m.tflite", "--effort", "quick", "--report", "new.json"]
    before = (folder / "m.tflite").read_bytes()
    assert run(*words, folder=folder).returncode == _BAD
    assert (folder / "m.tflite").read_bytes() == before
    assert run(*words, "--force", folder=folder).returncode == 0
    assert (folder / "m.tflite").read_bytes() != before
    assert (folder / "new.json").exists()


NAME = os.fsdecode(b"a\xff|<!--\n-->*.tflite")
"""Not UTF-8, with what ends a cell, a comment, and a line."""


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    try:
        (tmp_path / NAME).write_bytes(write_model(mobile_chain(12)))
    except OSError:
        pytest.skip("this system has no such names")
    return tmp_path


def done_with(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    done = run(*arguments, folder=folder)
    assert done.returncode == 0, done.stderr
    assert "\n-->" not in done.stdout
    return done


def written(path: Path) -> str:
    """The text of a file, which is UTF-8."""
    return path.read_bytes().decode("utf-8")


def test_check_writes_any_name(hostile: Path) -> None:
    done_with(hostile, "check", ".", "--markdown", "ram.md")
    row = written(hostile / "ram.md").splitlines()[5]
    assert row.startswith(r"| a?&#124;&#60;!--\\n--&#62;\*.tflite | ")
    assert json.loads(done_with(hostile, "check", ".", "--json").stdout)[0]["name"] == NAME


@pytest.mark.slow
def test_optimize_and_analyze_write_any_name(hostile: Path) -> None:
    reports = [os.fsdecode(b"r\xfe.") + each for each in ("json", "html", "svg")]
    options = [word for each in reports for word in ("--report", each)]
    result, receipt = os.fsdecode(b"o\xfe.tflite"), os.fsdecode(b"c\xfe")
    words = ["-o", result, "--receipt", receipt, "--effort", "quick", "--target", "esp32s3"]
    done_with(hostile, "optimize", NAME, *words, *options)
    done_with(hostile, "verify", NAME, result, "--check-receipt", receipt)
    assert json.loads(written(hostile / receipt))["subject"][0]["name"] == result
    for report in (written(hostile / reports[0]), None):
        if report is None:
            done_with(hostile, "analyze", NAME, "--node-data", os.fsdecode(b"n\xfe"), "--force", *options)
            report = written(hostile / reports[0])
        found = from_json(report)
        assert isinstance(found, (Report, Analysis))
        assert found.model == NAME
        assert "a?|&lt;!--\\n--&gt;*.tflite" in written(hostile / reports[1])
        ElementTree.fromstring(written(hostile / reports[2]))


@pytest.mark.slow
def test_explore_compare_and_parts_write_any_name(hostile: Path) -> None:
    report = os.fsdecode(b"r\xfe.json")
    for words in (
        ("explore", NAME, "--effort", "quick"),
        ("compare", NAME),
        ("optimize", NAME, "--parts", "2", *QUICK),
    ):
        parts = ("-o", os.fsdecode(b"p\xfe")) if "--parts" in words else ()
        done_with(hostile, *words, *parts, "--report", report, "--force")
        found = json.loads(written(hostile / report))
        assert NAME in (found.get("model"), found.get("source"))


def test_codegen_writes_any_name(hostile: Path) -> None:
    folder = os.fsdecode(b"f\xfe")
    words = ("codegen", NAME, "-o", folder, "--original", NAME, "--target", "cortex-m4")
    assert run(*words, folder=hostile).returncode == 0
    (first, *_) = written(hostile / folder / "self_test.h").splitlines()
    assert r'"a\377|<!--\012-->*.tflite"' in first
    for path in (hostile / folder).rglob("*"):
        assert not path.is_file() or written(path).isascii()


def test_a_manifest_names_any_file(tmp_path: Path) -> None:
    name = os.fsdecode(b"w\xff.tflite")
    try:
        (tmp_path / name).write_bytes(write_model(wake_word()))
    except OSError:
        pytest.skip("this system has no such names")
    (tmp_path / "w.json").write_text(json.dumps({**MANIFEST, "author": "ü"}))
    assert (
        run("codegen", name, "-o", "f", "--esphome", "w.json", "--target", "esp32s3", folder=tmp_path).returncode == 0
    )
    found = json.loads(written(tmp_path / "f" / "esphome" / "w.json"))
    assert (found["model"], found["author"]) == (name, "ü")
    (tmp_path / "same.json").write_bytes(write_model(wake_word()))
    (tmp_path / "read").mkdir()
    (tmp_path / "read" / "same.json").write_text(json.dumps(MANIFEST))
    words = ("codegen", "same.json", "-o", "g", "--esphome", "read/same.json", "--target", "esp32s3")
    assert run(*words, folder=tmp_path).returncode == _BAD
    assert not (tmp_path / "g").exists()


def test_a_letter_of_markdown_is_escaped_once() -> None:
    (row,) = (line for line in ram_markdown([ModelRam("<!--.tflite", 1)], None, "x").splitlines() if "tflite |" in line)
    assert row.startswith("| &#60;!--.tflite |")


def test_no_name_makes_a_line_of_its_own() -> None:
    name = "a\nRAM of 1 model: all is well\x1b[2J"
    assert ram_text([ModelRam(name, 1)]).count("\n") == 2
    assert "\x1b" not in ram_text([ModelRam(name, 1)])
