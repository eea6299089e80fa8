"""The files of firmware in one call, as ``codegen`` makes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tflite_memopt.firmware.describe import describe
from tflite_memopt.firmware.files import files_of_model, files_of_networks
from tflite_memopt.firmware.self_test import Expected
from tflite_memopt.run.parts.files import Program
from tflite_memopt.run.parts.firmware import describe_program


def generate(data: bytes, *asked: Any, expected: Expected = Expected(), **named: Any) -> dict[str, bytes]:
    """Return the files of a model; the rest as for ``describe``."""
    return files_of_model(describe(data, *asked, **named), expected)


def generate_program(
    program: Program, parts: Sequence[bytes], name: str = "model", expected: Expected = Expected()
) -> dict[str, bytes]:
    """Return the files of a program."""
    return files_of_networks(describe_program(program, parts, name=name), [expected])
