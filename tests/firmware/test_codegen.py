"""Generated firmware: compiled and run with the real TFLM where its sources are, against its interface elsewhere."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tflite_memopt
from scripts.device_lab.build import default_cache
from scripts.device_lab.sources import VARIABLE, sources_from_environment
from tests.firmware.compiled import check_against_the_interface, run_on
from tests.models import ALL, dense_model, mobile_chain, streaming_model
from tflite_memopt import Options, UnsupportedModelError, UsageError
from tflite_memopt.equivalence.inputs import seeded_inputs
from tflite_memopt.equivalence.runner import run_models
from tflite_memopt.firmware.generate import FILES, generate
from tflite_memopt.firmware.resolver import BUILTIN, CUSTOM, registrations
from tflite_memopt.io.reader import read_model
from tflite_memopt.io.writer import write_model
from tflite_memopt.kernels.targets import TARGETS

MAINS = ("main.cc", "main_two_arenas.cc")
RUNNABLE = ("mobile_chain", "concat_model", "split_model", "transpose_conv_model", "streaming_model", "if_model")


def write(folder: Path, data: bytes, target: str | None = None, name: str = "model") -> Path:
    for path, text in generate(data, target, name).items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(text)
    return folder


def optimised(name: str, target: str | None = None) -> bytes:
    options = Options(verify=False, cascade=False, target=target)
    return tflite_memopt.optimize(write_model(ALL[name]()), options).model


def digest(values: bytes) -> str:
    found = 2166136261
    for byte in values:
        found = (found ^ byte) * 16777619 & 0xFFFFFFFF
    return f"{found:x}"


def expected(data: bytes) -> list[str]:
    """What the wheel computes of zeros, as the programs print it."""
    model = read_model(data)
    zeros = [[np.zeros_like(values) for values in sample] for sample in seeded_inputs(model, 1, 0)]
    run = run_models("tflm", {"it": data}, {"it": zeros}, 1 << 18)["it"]
    assert run.ran, run.error
    lines = []
    for number, values in enumerate(run.arrays.values()):
        raw = values.tobytes()
        lines.append(f"output {number}: {len(raw)} bytes, digest {digest(raw)}")
    return lines


@pytest.mark.parametrize("main", MAINS)
@pytest.mark.parametrize("name", RUNNABLE)
def test_the_program_runs_in_the_arena_that_it_reserves(name: str, main: str, tmp_path: Path) -> None:
    data = optimised(name)
    code, said = run_on("host-reference", write(tmp_path, data), main)
    assert code == 0, said
    used = re.search(r"arena_used_bytes (\d+) of (\d+)", said)
    assert used is not None, said
    assert int(used[1]) <= int(used[2])
    assert [line for line in said.splitlines() if line.startswith("output ")] == expected(data)


@pytest.mark.parametrize("main", MAINS)
def test_a_smaller_arena_is_refused(main: str, tmp_path: Path) -> None:
    """The sizes are the smallest, and what one firmware reserves is not rounded up."""
    write(tmp_path, optimised("mobile_chain", "host"), "host")
    text = (tmp_path / "arena.h").read_text()
    constants = ("kArenaBytes",) if main == "main.cc" else ("kHeadArenaBytes", "kTailArenaBytes")
    for constant in constants:
        smaller = re.sub(rf"(std::size_t {constant} = ForThisCompiler\([^)]*\))", r"\1 - 16", text)
        assert smaller != text
        (tmp_path / "arena.h").write_text(smaller)
        code, said = run_on("host-reference", tmp_path, main)
        assert code != 0, said
        (tmp_path / "arena.h").write_text(text)
    assert run_on("host-reference", tmp_path, main)[0] == 0


@pytest.mark.parametrize("main", MAINS)
def test_on_a_microcontroller_in_qemu(main: str, tmp_path: Path) -> None:
    data = optimised("mobile_chain", "cortex-m7")
    code, said = run_on("cortex-m7-cmsis-nn", write(tmp_path, data), main)
    assert code == 0, said
    assert [line for line in said.splitlines() if line.startswith("output ")] == expected(data)


def test_the_table_of_operators_is_that_of_the_header() -> None:
    sources = sources_from_environment(default_cache())
    if sources is None:
        pytest.skip(f"no sources of TFLM: {VARIABLE} is not set")
    header = sources.folder / "tflite-micro/tensorflow/lite/micro/micro_mutable_op_resolver.h"
    methods = re.split(r"TfLiteStatus (?=Add)", header.read_text())[1:]
    builtin = {found[1]: each.partition("(")[0] for each in methods if (found := re.search(_BUILTIN, each))}
    custom = {found[1]: each.partition("(")[0] for each in methods if (found := re.search(_CUSTOM, each))}
    assert builtin == BUILTIN
    ethos_u = "AddEthosU"  # its name in files stands in another header (kernels/ethosu.h)
    assert ethos_u in header.read_text()
    assert custom | {"ethos-u": ethos_u} == CUSTOM


_BUILTIN = r"return AddBuiltin\(\s*BuiltinOperator_(\w+)"
_CUSTOM = r'return AddCustom\(\s*"(\w+)"'


@pytest.mark.parametrize("name", ALL)
def test_it_compiles_against_the_interface(name: str, tmp_path: Path) -> None:
    assert check_against_the_interface(write(tmp_path, write_model(ALL[name]()))) == ""


def test_exactly_the_operators_that_are_used() -> None:
    found = registrations(streaming_model())
    assert found.methods == ("AddAdd", "AddAssignVariable", "AddCallOnce", "AddReadVariable", "AddVarHandle")
    text = generate(write_model(streaming_model()))["resolver.h"].decode()
    assert "MicroMutableOpResolver<5>" in text
    assert "kResourceVariables = 1;" in text


def test_larger_structures_take_more(tmp_path: Path) -> None:
    """32 bytes for each tensor outside, and for what the operator reads and makes; 12 for it; rounded up."""
    text = generate(write_model(dense_model()))["arena.h"].decode()
    (more,) = re.findall(r"kLargerStructures = ForThisCompiler\((\d+), ", text)
    operators, tensors = len(dense_model().main.operators), 2 + 4
    assert int(more) == -(-(12 * operators + 32 * tensors) // 16) * 16 + 16


def test_custom_operators_of_your_own_are_declared(tmp_path: Path) -> None:
    model = dense_model()
    opcode = model.main.operators[0].opcode
    opcode.name, opcode.custom_code = "CUSTOM", "my-layer"
    text = generate(write_model(model))["resolver.h"].decode()
    assert "const TFLMRegistration* Register_my_layer();" in text
    assert 'AddCustom("my-layer", Register_my_layer())' in text
    assert check_against_the_interface(write(tmp_path, write_model(model))) == ""
    opcode.name, opcode.custom_code = "LSH_PROJECTION", None
    with pytest.raises(UnsupportedModelError, match="LSH_PROJECTION: TensorFlow Lite Micro has no kernel"):
        generate(write_model(model))


def test_a_plan_for_other_kernels_does_not_compile(tmp_path: Path) -> None:
    data = optimised("mobile_chain", "host")
    write(tmp_path, data)
    assert check_against_the_interface(tmp_path) == ""
    assert "this plan computes wrongly" in check_against_the_interface(tmp_path, "-DCMSIS_NN")
    assert check_against_the_interface(tmp_path, "-DCMSIS_NN", "-DTFLITE_MEMOPT_KERNELS_ARE_RIGHT") == ""
    with pytest.raises(UsageError, match="optimize the model again with --target cortex-m7"):
        generate(data, "cortex-m7")
    assert check_against_the_interface(write(tmp_path, optimised("mobile_chain")), "-DCMSIS_NN") == ""


def test_the_array_is_the_file_and_is_aligned(tmp_path: Path) -> None:
    data = write_model(mobile_chain())
    text = generate(data)["model_data.cc"].decode()
    assert "alignas(16)" in text
    numbers = re.findall(r"\b\d+(?=,)", text.partition("= {")[2])
    assert bytes(map(int, numbers)) == data


def test_a_loop_takes_what_the_report_says(tmp_path: Path) -> None:
    """Stripes as one loop have tensors that stand for bytes of others."""
    model = (Path(__file__).parents[2] / "scripts" / "models" / "demo_int8.tflite").read_bytes()
    result = tflite_memopt.optimize(model, Options(verify=False, target="host"))
    assert "WHILE" in result.report.operators_added
    write(tmp_path, result.model)
    sizes = re.search(r"kArenaBytes = ForThisCompiler\(\d+, \d+, (\d+)\)", (tmp_path / "arena.h").read_text())
    assert sizes is not None
    assert int(sizes[1]) == result.report.after.required_bytes["target"]
    code, said = run_on("host-reference", tmp_path, "main.cc")
    assert code == 0, said
    assert [line for line in said.splitlines() if line.startswith("output ")] == expected(model)


@pytest.mark.parametrize("target", TARGETS)
def test_the_size_is_that_of_the_report(target: str) -> None:
    report = tflite_memopt.optimize(write_model(mobile_chain()), Options(verify=False, cascade=False, target=target))
    text = generate(report.model)["arena.h"].decode()
    size = report.report.after.required_bytes["target"]
    sizes = re.search(r"kArenaBytes = ForThisCompiler\((\d+), (\d+), (\d+)\)", text)
    assert sizes is not None
    abi = TARGETS[target].abi
    assert int(sizes[3 if abi.word == 64 else 1 if abi.short_enums else 2]) == size


def test_from_the_command_line(tmp_path: Path) -> None:
    source, folder = tmp_path / "m.tflite", tmp_path / "fw" / "deep"
    source.write_bytes(write_model(dense_model()))
    command = [sys.executable, "-m", "tflite_memopt", "codegen", str(source), "-o", str(folder), "--name", "net"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.*")) == sorted(FILES)
    assert "namespace net {" in (folder / "arena.h").read_text()
    again = subprocess.run(command, capture_output=True, text=True, check=False)
    assert again.returncode == 2
    assert "exists; give another name, or --force" in again.stderr
    wrong = subprocess.run([*command, "--force", "--name", "9"], capture_output=True, text=True, check=False)
    assert "is no name for a C++ namespace" in wrong.stderr
