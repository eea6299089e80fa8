"""The files of firmware in one call, as ``codegen`` makes them."""

from __future__ import annotations

from collections.abc import Sequence

from tflite_memopt.firmware import Planner
from tflite_memopt.firmware.describe import describe
from tflite_memopt.firmware.files import files_of_model, files_of_networks
from tflite_memopt.firmware.plan_table import MemoryRequest
from tflite_memopt.firmware.self_test import Expected
from tflite_memopt.program.files import Program
from tflite_memopt.program.firmware import describe_program


def generate(
    data: bytes,
    target: str | None = None,
    name: str = "model",
    source: str | None = None,
    force: bool = False,
    planner: Planner | None = None,
    request: MemoryRequest = MemoryRequest(),
    expected: Expected = Expected(),
) -> dict[str, bytes]:
    """Return the files of a model."""
    return files_of_model(describe(data, target, name, source, force, planner, request), expected)


def generate_program(
    program: Program, parts: Sequence[bytes], name: str = "model", expected: Expected = Expected()
) -> dict[str, bytes]:
    """Return the files of a program."""
    return files_of_networks(describe_program(program, parts, name=name), [expected])
