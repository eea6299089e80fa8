"""A model against its baseline: the exit code and the table that CI shows."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import tflite_memopt
from tests.models import mobile_chain
from tflite_memopt import Options, UsageError
from tflite_memopt.io.writer import write_model
from tflite_memopt.report.baseline import growth_markdown, growth_since, growth_text, has_grown
from tflite_memopt.report.model import to_json

SMALL, LARGE = (write_model(mobile_chain(size)) for size in (24, 32))


def baseline(data: bytes) -> bytes:
    return to_json(tflite_memopt.analyze(data)).encode()


@pytest.mark.parametrize(
    ("before", "now", "grown"), [(SMALL, LARGE, True), (LARGE, SMALL, False), (SMALL, SMALL, False)]
)
def test_only_a_larger_arena_is_growth(before: bytes, now: bytes, grown: bool) -> None:
    rows = growth_since(tflite_memopt.analyze(now), baseline(before))
    sizes = [tflite_memopt.analyze(each).memory.required_bytes["32"] for each in (before, now)]
    assert [rows[0].before, rows[0].now] == sizes
    assert has_grown(rows) == grown
    assert ("GREW" in growth_text(rows)) == grown
    assert ("**more**" in growth_markdown("m.tflite", rows)) == grown
    assert growth_markdown("m.tflite", rows).count("\n| ") == len(rows) + 1
    assert all(row.now == row.before for row in rows) == (before is now)


def test_a_report_is_a_baseline_of_its_result() -> None:
    result = tflite_memopt.optimize(SMALL, Options(verify=False, cascade=False))
    rows = growth_since(tflite_memopt.analyze(result.model), to_json(result.report).encode())
    assert all(row.now == row.before for row in rows)


def test_what_is_no_baseline_is_refused() -> None:
    analysis = tflite_memopt.analyze(SMALL)
    for wrong in (b"", b"[]", b"{}", b'{"memory": {}}', b"\xff"):
        with pytest.raises(UsageError, match="write it anew"):
            growth_since(analysis, wrong)
    other = json.loads(baseline(SMALL)) | {"target": "cortex-m7"}
    with pytest.raises(UsageError, match="give the same --target"):
        growth_since(analysis, json.dumps(other).encode())


def test_from_the_command_line(tmp_path: Path) -> None:
    model, written = tmp_path / "model.tflite", tmp_path / "baseline.json"
    model.write_bytes(LARGE)
    written.write_bytes(baseline(SMALL))

    def run(*flags: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "tflite_memopt", "analyze", str(model), *flags]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    grown = run("--baseline", str(written))
    assert (grown.returncode, grown.stderr) == (3, "")
    assert grown.stdout.startswith("arena to reserve GREW: ")
    assert run("--baseline", str(written), "--markdown").stdout.startswith("### model.tflite needs **more** RAM")
    written.write_bytes(baseline(LARGE))
    assert run("--baseline", str(written)).returncode == 0
    assert "--markdown needs --baseline" in run("--markdown").stderr
