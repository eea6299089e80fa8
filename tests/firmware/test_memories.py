"""What ``analyze --memory`` says is what ``codegen --memory`` writes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.command import run
from tests.faults import raises
from tests.firmware.generated import generate
from tests.model_builder import ModelBuilder
from tests.models import mobile_chain
from tflite_memopt import UsageError, analyze
from tflite_memopt.errors import ErrorKind, InfeasibleError
from tflite_memopt.firmware.describe import describe
from tflite_memopt.firmware.plan_table import MemoryRequest
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.report.documents import memory_lines

DATA = write_model(mobile_chain(48))


def large() -> bytes:
    """More than the 512 KB of an ESP32-S3's internal SRAM."""
    b = ModelBuilder()
    return write_model(b.finish(b.average_pool(b.conv(b.input("x", (1, 160, 160, 8)), 24), 160)))


@pytest.mark.parametrize("target", ["cortex-m7", "esp32s3"])
@pytest.mark.parametrize("sizes", [{"dtcm": 8192, "sram": 1 << 18}, {"a": 4096, "b": 8192, "c": 1 << 20}])
def test_the_plan_is_that_of_codegen(target: str, sizes: dict[str, int]) -> None:
    parts = analyze(DATA, target=target, memories=sizes).memories
    request = MemoryRequest(sizes)
    table = describe(DATA, target, request=request).table
    assert table is not None
    header = generate(DATA, target, request=request)["arena.h"].decode()
    (arena,) = (part for part in parts if part.has_structures)
    assert arena.name == [*sizes][-1]
    assert f"{arena.bytes:,} bytes" in header or re.search(rf"\b{arena.bytes}\b", header)
    for number, part in enumerate(parts):
        rows = [row for row in table.rows if row.memory == number]
        assert {row.name for row in rows if row.name != "scratch"} == set(part.tensors)
        assert part.moved == sum(row.moved for row in rows)
        assert part.bytes <= part.capacity
        assert part is arena or part.bytes == table.sizes[number]
    lines = [*memory_lines(analyze(DATA, target=target, memories=sizes))]
    assert len(lines) == len(sizes) + 1
    assert sum(int(said) for line in lines[:-1] for said in re.findall(r"\((\d+) %\)", line)) in (99, 100, 101)


def test_a_byte_that_costs_more_moves_less_there() -> None:
    sizes = {"a": 4096, "b": 8192, "c": 1 << 20}
    alike, apart = (analyze(DATA, target="cortex-m7", memories=sizes, prices=p).memories for p in ({}, {"c": 9}))
    assert apart[2].moved <= alike[2].moved


@pytest.mark.slow
def test_the_memories_of_the_chip_count_where_the_fastest_is_too_small() -> None:
    assert analyze(DATA, target="esp32s3").memories == ()
    sram, psram = analyze(large(), target="esp32s3").memories
    assert (sram.name, psram.name) == ("sram", "psram")
    assert psram.moved
    assert analyze(large(), target="cortex-m7").memories == ()


def test_memories_that_cannot_be_are_refused() -> None:
    with pytest.raises(InfeasibleError):
        analyze(DATA, target="cortex-m7", memories={"a": 64, "b": 12_000})
    with raises(UsageError, ErrorKind.NO_TARGET):
        analyze(DATA, memories={"a": 4096, "b": 1 << 20})


def test_the_command_says_it(tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(DATA)
    words = ("analyze", path, "--target", "cortex-m7", "--memory", "dtcm=8K", "--memory", "sram=256K")
    said = run(*words).stdout
    assert "dtcm (fastest): " in said
    told = json.loads(run(*words, "--json").stdout)
    assert [each["name"] for each in told["memories"]] == ["dtcm", "sram"]
