"""Tensors over several memories: the same outputs, in arrays of the sizes that were asked for."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import tflite_memopt
from tests.firmware.compiled import HOST, check_against_the_interface, run_on_tflm
from tests.firmware.generated import generate
from tests.firmware.test_codegen import expected, optimized, write
from tests.firmware.test_plan_table import MAIN, changed, outputs
from tests.models import ALL
from tflite_memopt import InfeasibleError, Options, UsageError
from tflite_memopt.firmware.files import PLANNER_FILE
from tflite_memopt.firmware.plan_table import MemoryRequest
from tflite_memopt.io.writer import write_model

NAMES = ("mobile_chain", "concat_model", "split_model", "streaming_model", "if_model")
TWO = {"dtcm": 2048, "sram": 1 << 20}


def sizes_in(folder: Path) -> list[int]:
    found = re.search(r"kMemoryBytes\[\] = \{([^}]*)\}", (folder / PLANNER_FILE).read_text())
    assert found is not None
    return [int(size) for size in found[1].split(", ")]


@pytest.mark.parametrize("tail", ["dtcm", "sram"])
@pytest.mark.parametrize("name", NAMES)
def test_the_outputs_are_those_of_one_memory(name: str, tail: str, tmp_path: Path) -> None:
    data = optimized(name, HOST)
    memories = {"dtcm": 64 << 10 if tail == "dtcm" else 2048, "sram": 1 << 20}
    code, said = run_on_tflm(write(tmp_path, data, HOST, request=MemoryRequest(memories, tail)), MAIN)
    assert code == 0, said
    assert outputs(said) == expected(data)
    assert all(size <= most for size, most in zip(sizes_in(tmp_path), memories.values(), strict=True))


def test_a_loop_with_what_it_carries(tmp_path: Path) -> None:
    model = write_model(ALL["mobile_chain"]())
    data = tflite_memopt.optimize(model, Options(verify=False, target=HOST, max_slowdown=1.0)).model
    code, said = run_on_tflm(write(tmp_path, data, HOST, request=MemoryRequest(TWO)), MAIN)
    assert code == 0, said
    assert outputs(said) == expected(data)
    assert min(sizes_in(tmp_path)) > 0


def test_a_memory_that_is_not_aligned_is_refused(tmp_path: Path) -> None:
    write(tmp_path, optimized("mobile_chain", HOST), HOST, request=MemoryRequest(TWO))
    changed(tmp_path, MAIN, r"memories\[\] = \{dtcm,", "memories[] = {dtcm + 8,")
    code, said = run_on_tflm(tmp_path, MAIN)
    assert code == 2, said
    assert "memory 0 is not aligned to 16 bytes" in said


@pytest.mark.parametrize("program", ["main.cc", "example.cc"])
def test_programs_reserve_what_the_table_takes(program: str, tmp_path: Path) -> None:
    """An array that is too small would be noticed by nothing: what lies behind it is overwritten."""
    write(tmp_path, optimized("mobile_chain", HOST), HOST, request=MemoryRequest(TWO))
    text = (tmp_path / program).read_text()
    arrays = re.findall(r"^alignas\(16\) uint8_t (\w+)\[(.*)\] TFLITE_MEMOPT_IN_(\w+);", text, re.MULTILINE)
    assert arrays == [("dtcm", "model::kMemoryBytes[0]", "DTCM"), ("arena", "model::kArenaBytes", "SRAM")]


@pytest.mark.parametrize("name", ALL)
def test_it_compiles_without_a_word(name: str, tmp_path: Path) -> None:
    assert check_against_the_interface(write(tmp_path, optimized(name, HOST), HOST, request=MemoryRequest(TWO))) == ""


def test_what_does_not_fit_is_refused_in_a_line() -> None:
    data = optimized("mobile_chain", HOST)
    with pytest.raises(UsageError, match="--memory sram: TFLM's own structures need") as refused:
        generate(data, request=MemoryRequest({"dtcm": 64, "sram": 64}))
    found = re.search(r"need ([\d,]+) bytes", str(refused.value))
    assert found is not None
    structures = int(found[1].replace(",", ""))
    with pytest.raises(InfeasibleError, match=r"memory 1 of .* bytes: .* are needed for what is left"):
        generate(data, request=MemoryRequest({"dtcm": 64, "sram": structures + 256}))
    with pytest.raises(UsageError, match="--tail psram: no --memory has this name; there are dtcm, sram"):
        generate(data, request=MemoryRequest(TWO, "psram"))
    with pytest.raises(UsageError, match="--memory a-b: write a letter"):
        generate(data, request=MemoryRequest({"a-b": 64, "sram": 1 << 20}))


def test_from_the_command_line(tmp_path: Path) -> None:
    source = tmp_path / "m.tflite"
    source.write_bytes(optimized("mobile_chain", HOST))
    command = [sys.executable, "-m", "tflite_memopt", "codegen", str(source), "-o", str(tmp_path / "fw")]
    done = subprocess.run([*command, "--memory", "dtcm=2K", "--memory", "sram=1M"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert PLANNER_FILE in done.stdout
    wrong = subprocess.run([*command, "--memory", "dtcm"], capture_output=True, text=True)
    assert wrong.returncode == 2
    assert "write a name and a size, for example dtcm=64K" in wrong.stderr


def test_a_chip_stands_for_its_memories(tmp_path: Path) -> None:
    source = tmp_path / "m.tflite"
    source.write_bytes(optimized("mobile_chain", HOST))
    command = [sys.executable, "-m", "tflite_memopt", "codegen", str(source), "-o", str(tmp_path / "fw")]
    done = subprocess.run([*command, "--memory", "stm32h7"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "dtcm, axi_sram" in (tmp_path / "fw" / PLANNER_FILE).read_text()
    wrong = subprocess.run([*command, "--memory", "z80"], capture_output=True, text=True)
    assert wrong.returncode == 2
    assert "one of i.MX RT1170, STM32H7," in wrong.stderr
