"""What program.json says is made again of the files beside it: nothing that was changed passes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.equivalence.test_baseline import dilated_with_a_batch_of_one
from tests.faults import raises
from tests.program.test_feed import chain
from tests.program.test_program_firmware import in_parts
from tflite_memopt import Options, optimize
from tflite_memopt.cli import cli
from tflite_memopt.errors import EquivalenceError, ErrorKind, MemoptError, ModelFormatError
from tflite_memopt.firmware.description import Networks
from tflite_memopt.memory.file import read_planned
from tflite_memopt.memory.work import slowdowns
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.run.parts.files import MANIFEST, Program, read_program
from tflite_memopt.run.parts.firmware import describe_program
from tflite_memopt.run.parts.manifest import check_program
from tflite_memopt.run.parts.proving import prove_program
from tflite_memopt.run.parts.run import ProgramResult, optimize_in_parts

pytestmark = [pytest.mark.xdist_group("programs"), pytest.mark.slow]
OF_A_RUN = {"version", "made_by", "source", "whole_bytes", "verified"}
"""Fields that only the run knows; so are the operators of a part."""
NOT_ASKED = {"operators", "fill"}
"""The first bytes of a state do not matter in this network, as the proof finds out; in test_proving they do."""


@cache
def fed() -> tuple[bytes, ProgramResult]:
    data = write_model(chain())
    options = Options(target="cortex-m7", verify=False, max_slowdown=1.0, effort="quick")
    return data, optimize_in_parts(data, options, 2, feed=2)


PROGRAMS: dict[str, Callable[[], tuple[bytes, ProgramResult]]] = {
    "parts": lambda: in_parts("separable", "cortex-m7"),
    "fed": fed,
}


def places(fields: Any, way: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every number and text of a manifest, but those that only the run knows."""
    if isinstance(fields, (dict, list)):
        for key, each in fields.items() if isinstance(fields, dict) else enumerate(fields):
            if not way and key in OF_A_RUN:
                continue
            if key not in NOT_ASKED:
                yield from places(each, (*way, key))
    else:
        yield way


def other(value: Any) -> Any:
    if isinstance(value, str):
        return value[:-1] + chr(ord(value[-1]) ^ 1)
    return 1 if value is None else value + 1


def changed(folder: Path, way: tuple[Any, ...]) -> None:
    fields = json.loads((folder / MANIFEST).read_text())
    holder = fields
    for key in way[:-1]:
        holder = holder[key]
    holder[way[-1]] = other(holder[way[-1]])
    (folder / MANIFEST).write_text(json.dumps(fields))


def judged(data: bytes, program: Program, parts: tuple[bytes, ...]) -> None:
    """As ``verify`` judges it, but for the runs."""
    check_program(data, program, parts)
    proof = prove_program(read_planned(data), [read_planned(part) for part in parts], program.feed)
    if not proof.proved:
        raise EquivalenceError(str(proof))


@pytest.mark.parametrize("name", PROGRAMS)
def test_each_number_that_was_changed_is_found(name: str, tmp_path: Path) -> None:
    data, result = PROGRAMS[name]()
    result.save(tmp_path)
    whole = (tmp_path / MANIFEST).read_text()
    judged(data, *read_program(tmp_path))
    tried = list(places(json.loads(whole)))
    assert len(tried) > 40
    believed = []
    for way in tried:
        changed(tmp_path, way)
        with suppress(MemoptError):
            judged(data, *read_program(tmp_path))
            believed.append(way)
        (tmp_path / MANIFEST).write_text(whole)
    assert believed == []


def test_a_wrong_number_exits_with_1(tmp_path: Path) -> None:
    data, result = in_parts("separable", "cortex-m7")
    folder, original = tmp_path / "program", tmp_path / "m.tflite"
    result.save(folder)
    original.write_bytes(data)
    changed(folder, ("parts", 0, "required_bytes", "target"))
    run = CliRunner().invoke(cli, ["verify", str(original), str(folder), "--samples", "2"])
    assert isinstance(run.exception, EquivalenceError)
    assert "parts.0.required_bytes.target" in str(run.exception)


@pytest.mark.parametrize("field", ["rows", "row_bytes"])
def test_firmware_of_other_rows_is_refused(field: str, tmp_path: Path) -> None:
    _, result = fed()
    result.save(tmp_path)
    assert isinstance(describe_program(*read_program(tmp_path)), Networks)
    changed(tmp_path, ("feed", field))
    with raises(ModelFormatError, ErrorKind.DAMAGED, "feed"):
        describe_program(*read_program(tmp_path))


def test_a_program_of_another_file_is_refused() -> None:
    data, result = fed()
    with pytest.raises(EquivalenceError):
        check_program(data + b"\0" * 16, result.program, result.models)


def test_run_time_is_counted_by_the_shapes_that_runtimes_infer() -> None:
    """As optimize counts it: by the wrong ones of the file, the original would take a quarter of its time."""
    data = write_model(dilated_with_a_batch_of_one())
    options = Options(target="cortex-m7", verify=False, effort="quick")
    report, result = optimize(data, options).report, optimize_in_parts(data, options, None)
    assert len(result.parts) == 1
    counted = max(slowdowns(report.before.instructions, report.after.instructions).values())
    assert max(result.program.slowdown.values()) == pytest.approx(counted)
    check_program(data, result.program, result.models)
