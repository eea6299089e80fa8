"""The workflow of docs/ci.md, step by step as a shell runs it: its exit code, and the comment when the arena grows."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.models import dense_model, mobile_chain
from tflite_memopt import analyze
from tflite_memopt.io.writer import write_model
from tflite_memopt.report.model import to_json

PAGE = Path(__file__).parent.parent / "docs" / "ci.md"
_STEP = re.compile(r"^ +-? ?run: (.*)$", re.MULTILINE)
_OVER_BUDGET = 3


def steps() -> dict[str, str]:
    """The commands of the workflow by their first word, as GitHub has them once its expressions are filled in."""
    text = PAGE.read_text().partition("## pre-commit")[0]
    found = [re.sub(r"\$\{\{.*?\}\}", "7", line) for line in _STEP.findall(text)]
    return {line.split()[0]: line for line in found}


@pytest.mark.parametrize("grown", [False, True])
def test_the_workflow_comments_and_fails_when_the_arena_grows(grown: bool, tmp_path: Path) -> None:
    large, small = write_model(mobile_chain()), write_model(dense_model())
    (tmp_path / "baseline.json").write_text(to_json(analyze(small if grown else large)))
    (tmp_path / "model.tflite").write_bytes(large)
    stubs = {
        "tflite-memopt": f'exec {sys.executable} -m tflite_memopt "$@"',
        "gh": 'echo "$@" > said; cp memory.md sent',
    }
    for name, text in stubs.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    found = steps()
    assert list(found) == ["pip", "tflite-memopt", "cat", "gh"]
    summary = str(tmp_path / "summary")
    environment = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}", "GITHUB_STEP_SUMMARY": summary}
    codes = [
        subprocess.run(["bash", "-e", "-c", found[name]], cwd=tmp_path, env=environment, check=False).returncode
        for name in ("tflite-memopt", "cat", "gh")
    ]
    assert codes == [_OVER_BUDGET if grown else 0, 0, 0]
    assert (tmp_path / "said").read_text() == "pr comment 7 --body-file memory.md\n"
    sent = (tmp_path / "sent").read_text()
    assert ("needs **more** RAM than before" in sent) == grown
    assert "| arena to reserve, bytes |" in sent
    assert (tmp_path / "summary").read_text() == sent
