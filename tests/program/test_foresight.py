"""What analyze says of parts."""

from __future__ import annotations

import re
from pathlib import Path

from click.testing import CliRunner

from tests.models import dense_model, streaming_model
from tflite_memopt import Options
from tflite_memopt.cli import cli
from tflite_memopt.io.writer import write_model
from tflite_memopt.ir.model import Model
from tflite_memopt.program.run import optimize_in_parts

from .test_program_firmware import separable


def said_of(model: Model, folder: Path) -> str:
    (folder / "m.tflite").write_bytes(write_model(model))
    done = CliRunner().invoke(cli, ["analyze", str(folder / "m.tflite"), "--target", "cortex-m7"])
    assert done.exit_code == 0
    return done.output


def test_a_model_that_gains_is_told_what_parts_need_as_it_stands(tmp_path: Path) -> None:
    found = re.search(
        r"parts auto: about ([\d,]+) bytes.*with stripes perhaps ([\d,]+)", said_of(separable(), tmp_path)
    )
    assert found is not None
    as_it_stands, at_best = (int(each.replace(",", "")) for each in found.groups())
    options = Options(target="cortex-m7", verify=False, rewrite=False, cascade=False)
    needed = optimize_in_parts(tmp_path / "m.tflite", options).program.arena
    assert at_best < needed
    assert 0.9 * as_it_stands < needed < 1.02 * as_it_stands


def test_a_model_that_gains_nothing_or_keeps_state_is_told_nothing(tmp_path: Path) -> None:
    for model in (dense_model(), streaming_model()):
        assert "--parts" not in said_of(model, tmp_path)
