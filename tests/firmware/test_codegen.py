"""Generated firmware: compiled and run with the real TFLM where its sources are, against its interface elsewhere."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

import tflite_memopt
from tests.command import run
from tests.faults import raises
from tests.firmware.compiled import HOST, built_tflm, check_against_headers, check_against_the_interface, run_on_tflm
from tests.firmware.generated import generate
from tests.firmware.test_self_test import drawn_slowly
from tests.memory.loops import looped, plain
from tests.model_builder import ModelBuilder
from tests.models import ALL, dense_model, mobile_chain, streaming_model
from tests.tflm import run_models
from tflite_memopt import EquivalenceError, Options, UnsupportedModelError, UsageError
from tflite_memopt.errors import ErrorKind
from tflite_memopt.evidence.equivalence.inputs import seeded_inputs
from tflite_memopt.firmware import Planner
from tflite_memopt.firmware.files import FILES
from tflite_memopt.firmware.plan_table import MemoryRequest
from tflite_memopt.firmware.resolver import CUSTOM, builtin_method, registrations
from tflite_memopt.kernels.profiles import PROFILES
from tflite_memopt.kernels.targets import TARGETS
from tflite_memopt.memory.file import read_planned
from tflite_memopt.memory.layout import head_in_force, memory_layout
from tflite_memopt.memory.reserve import reserve
from tflite_memopt.model.io.offline_plan import decode
from tflite_memopt.model.io.reader import read_model
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.model.ir.model import Model, OpCode
from tflite_memopt.operators.requests import ILP32, LP64
from tflite_memopt.operators.table import REFERENCE

MAINS = ("main.cc", "main_two_arenas.cc")
RUNNABLE = ("mobile_chain", "concat_model", "split_model", "transpose_conv_model", "streaming_model", "if_model")


def write(
    folder: Path,
    data: bytes,
    target: str | None = None,
    name: str = "model",
    planner: Planner = "metadata",
    request: MemoryRequest = MemoryRequest(),
) -> Path:
    planner = planner if request == MemoryRequest() else "table"
    for path, text in generate(data, target, name, None, False, planner, request).items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(text)
    return folder


def optimized(name: str, target: str | None = None) -> bytes:
    options = Options(verify=False, cascade=False, target=target)
    return tflite_memopt.optimize(write_model(ALL[name]()), options).model


def digest(values: bytes) -> str:
    found = 2166136261
    for byte in values:
        found = (found ^ byte) * 16777619 & 0xFFFFFFFF
    return f"{found:x}"


def expected(data: bytes) -> list[str]:
    """Compute with the wheel on the inputs that firmware draws, and return the lines that programs print."""
    model = read_model(data)
    run = run_models("tflm", {"it": data}, {"it": drawn_slowly(model)}, 1 << 18)["it"]
    assert run.ran, run.error
    last = [values[-1].tobytes() for _, values in sorted(run.outputs.items())]
    return [f"output {number}: {len(raw)} bytes, digest {digest(raw)}" for number, raw in enumerate(last)]


@pytest.mark.few(2)
@pytest.mark.parametrize("main", MAINS)
@pytest.mark.parametrize("name", RUNNABLE)
def test_the_program_runs_in_the_arena_that_it_reserves(name: str, main: str, tmp_path: Path) -> None:
    data = optimized(name)
    code, said = run_on_tflm(write(tmp_path, data, HOST, planner="metadata"), main)
    assert code == 0, said
    used = re.search(r"arena_used_bytes (\d+) of (\d+)", said)
    assert used is not None, said
    assert int(used[1]) <= int(used[2])
    assert [line for line in said.splitlines() if line.startswith("output ")] == expected(data)


@pytest.mark.slow
@pytest.mark.parametrize("main", MAINS)
def test_a_smaller_arena_is_refused(main: str, tmp_path: Path) -> None:
    """The sizes are the smallest, and what one firmware reserves is not rounded up."""
    write(tmp_path, optimized("mobile_chain", HOST), HOST)
    text = (tmp_path / "arena.h").read_text()
    constants = ("kArenaBytes",) if main == "main.cc" else ("kHeadArenaBytes", "kTailArenaBytes")
    for constant in constants:
        smaller = re.sub(rf"(std::size_t {constant} = ForThisCompiler\([^)]*\))", r"\1 - 16", text)
        assert smaller != text
        (tmp_path / "arena.h").write_text(smaller)
        code, said = run_on_tflm(tmp_path, main)
        assert code != 0, said
        (tmp_path / "arena.h").write_text(text)
    assert run_on_tflm(tmp_path, main)[0] == 0


@pytest.mark.device
def test_the_table_of_operators_is_that_of_the_header() -> None:
    header = built_tflm().header("tensorflow/lite/micro/micro_mutable_op_resolver.h")
    methods = re.split(r"TfLiteStatus (?=Add)", header.read_text())[1:]
    builtin = {found[1]: each.partition("(")[0] for each in methods if (found := re.search(_BUILTIN, each))}
    custom = {found[1]: each.partition("(")[0] for each in methods if (found := re.search(_CUSTOM, each))}
    assert builtin == {name: builtin_method(name) for name in REFERENCE if name not in CUSTOM}
    ethos_u = "AddEthosU"  # its name in files stands in another header (kernels/ethosu.h)
    assert ethos_u in header.read_text()
    assert custom | {"ethos-u": ethos_u} == CUSTOM


_BUILTIN = r"return AddBuiltin\(\s*BuiltinOperator_(\w+)"
_CUSTOM = r'return AddCustom\(\s*"(\w+)"'


@pytest.mark.few(5)
@pytest.mark.parametrize("macros", [(), ("-DTFLM_IN_MICRO",)], ids=["in tflite", "in tflite::micro"])
@pytest.mark.parametrize("name", ALL)
def test_it_compiles_against_the_interface(name: str, macros: tuple[str, ...], tmp_path: Path) -> None:
    assert check_against_the_interface(write(tmp_path, write_model(ALL[name]())), *macros) == ""


@pytest.mark.device
@pytest.mark.parametrize("name", ["dense_model", "streaming_model", "while_model"])
def test_it_compiles_with_the_headers_of_a_tflm(name: str, tmp_path: Path) -> None:
    """Every model of the suite compiles against the interface, above; these are the three forms of a resolver."""
    data = optimized(name, HOST)
    for planner in ("metadata", "table"):
        folder = write(tmp_path / planner, data, HOST, planner=planner)
        assert check_against_headers(folder, "main.cc", "main_two_arenas.cc", "model_data.cc") == ""


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
    with raises(UnsupportedModelError, ErrorKind.NO_KERNEL, "LSH_PROJECTION"):
        generate(write_model(model))


def test_the_resolver_has_room_for_all_kinds_of_operators() -> None:
    b = ModelBuilder()
    model = b.finish(b.softmax(b.dense(b.input("x", (1, 8)), 4)))
    model.main.operators[0].opcode.name, model.main.operators[0].opcode.custom_code = "CUSTOM", "my-layer"
    assert "MicroMutableOpResolver<2>" in generate(write_model(model))["resolver.h"].decode()


@pytest.mark.slow
def test_a_plan_for_other_kernels_does_not_compile(tmp_path: Path) -> None:
    data = optimized("mobile_chain", HOST)
    write(tmp_path, data)
    assert check_against_the_interface(tmp_path) == ""
    assert "this plan computes wrongly" in check_against_the_interface(tmp_path, "-DCMSIS_NN")
    assert check_against_the_interface(tmp_path, "-DCMSIS_NN", "-DTFLITE_MEMOPT_KERNELS_ARE_RIGHT") == ""
    with raises(EquivalenceError, ErrorKind.OTHER_KERNELS, "--target cortex-m7"):
        generate(data, "cortex-m7")
    assert check_against_the_interface(write(tmp_path, optimized("mobile_chain")), "-DCMSIS_NN") == ""


S3 = ("-DESP_NN", "-DCONFIG_IDF_TARGET_ESP32S3", "-DCONFIG_NN_OPTIMIZED")
P4 = ("-DESP_NN", "-DCONFIG_IDF_TARGET_ESP32P4", "-DCONFIG_NN_OPTIMIZED")
MACROS = {
    "reference": (),
    "cmsis-nn": ("-DCMSIS_NN",),
    "cmsis-nn-dsp": ("-DCMSIS_NN", "-D__ARM_FEATURE_DSP"),
    "cmsis-nn-mve": ("-DCMSIS_NN", "-D__ARM_FEATURE_DSP", "-D__ARM_FEATURE_MVE"),
    "esp-nn": ("-DESP_NN", '-DCONFIG_IDF_TARGET="esp32c3"', "-DCONFIG_NN_OPTIMIZED"),
    "esp-nn-s3": S3,
    "esp-nn-p4": P4,
}
"""Macros that the build of each library defines, beside those of the compiler."""


def arena_bytes(folder: Path, macros: Sequence[str]) -> int:
    """kArenaBytes of 64 bits as the compiler takes it: what it says where that is not the size of an array."""
    (folder / "main.cc").write_text(
        '#include "arena.h"\ntemplate <unsigned long> struct Is;\nIs<model::kArenaBytes> x;\n'
    )
    found = re.search(r"Is<(\d+)", check_against_the_interface(folder, "-DTF_LITE_STATIC_MEMORY", *macros))
    assert found is not None
    return int(found[1])


@pytest.mark.slow
@pytest.mark.parametrize("library", MACROS)
def test_the_arena_of_a_portable_plan_is_enough_for_each_library(library: str, tmp_path: Path) -> None:
    """Stripes save more than the ESP32-S3's scratch takes of the others: that one needs an arena of its own size."""
    data = optimized("mobile_chain")
    write(tmp_path, data)
    model = read_planned(data)
    profile = PROFILES[library]
    head = head_in_force(memory_layout(model, profile), decode(model) or {})
    needed = reserve(model, head, profile, abi=LP64).required
    found = arena_bytes(tmp_path, MACROS[library])
    assert needed <= found
    assert library != "esp-nn-s3" or found > arena_bytes(tmp_path, ())


@pytest.mark.slow
def test_esp_nn_alone_names_no_chip_and_takes_the_most(tmp_path: Path) -> None:
    write(tmp_path, optimized("mobile_chain"))
    assert arena_bytes(tmp_path, ("-DESP_NN",)) == max(arena_bytes(tmp_path, macros) for macros in (S3, P4))


@pytest.mark.slow
def test_the_chip_is_what_sdkconfig_says(tmp_path: Path) -> None:
    """ESP-IDF has it in a header; the program that includes arena.h may not."""
    write(tmp_path, optimized("mobile_chain"))
    said = arena_bytes(tmp_path, S3)
    (tmp_path / "sdkconfig.h").write_text("#define CONFIG_IDF_TARGET_ESP32S3 1\n#define CONFIG_NN_OPTIMIZED 1\n")
    assert arena_bytes(tmp_path, (f"-I{tmp_path}",)) == said


@pytest.mark.slow
@pytest.mark.parametrize("target", ["esp32", "esp32s3", "esp32p4", "cortex-m4", "host"])
def test_sizes_for_one_library_compile_with_no_other(target: str, tmp_path: Path) -> None:
    """Also where the plan itself is right with any kernels."""
    write(tmp_path, optimized("mobile_chain"), target)
    own = TARGETS[target].kernels
    for library, macros in MACROS.items():
        said = check_against_the_interface(tmp_path, *macros)
        assert ("these sizes are for other kernels" in said) == (library != own), library
        assert (said == "") == (library == own), said


def test_the_head_is_said_for_each_library() -> None:
    data = optimized("mobile_chain")
    text, model = generate(data)["arena.h"].decode(), read_planned(data)
    said = {
        name: (total, head) for total, head, name in re.findall(r"//   (.*) bytes, (.*) of .* with (\S+) kernels", text)
    }
    for name, profile in ((each.name, each) for each in PROFILES["portable"].libraries):
        head = head_in_force(memory_layout(model, profile), decode(model) or {})
        use = reserve(model, head, profile, abi=ILP32)
        assert said[name] == (f"{use.required:,}", f"{head:,}")
    assert text.count("read from source and never run") == 2


HOSTILE = (
    'quote" + abort() + "',
    "back\\slash\\",
    "new\nline",
    "trigraph ??/",
    "comment */ /* //",
    "naïve 层",
    "nul\0s",
    "percent %s",
    "a-b",
    "a_b",
    "a--b",
    "---",
    "1st",
    "\udcff",
)


def test_no_name_of_an_operator_breaks_out_of_its_literal(tmp_path: Path) -> None:
    """The compiler reads back the very bytes; names that differ in signs alone have functions of their own."""
    b = ModelBuilder()
    last = b.input("x", (1, 4))
    for _ in HOSTILE:
        last = b.softmax(last)
    model = b.finish(last)
    for operator, name in zip(model.main.operators, HOSTILE, strict=True):
        operator.opcode = OpCode("CUSTOM", custom_code=name)
    text = "".join(map(Path.read_text, cpp_files_of(model, tmp_path)))
    assert text.isascii()
    assert check_against_the_interface(tmp_path, "-trigraphs", "-Wpedantic") == ""
    functions = re.findall(r"AddCustom\(.*, (\w+)\(\)\)", text)
    assert len(set(functions)) == len(HOSTILE)
    assert not any("__" in each for each in functions)
    literals = re.findall(r'AddCustom\((".*"), \w+\(\)\)', text)
    (tmp_path / "names.cc").write_text(
        "#include <cstdio>\nint main() {\n"
        + "".join(f"  std::fwrite({each}, 1, sizeof({each}), stdout);\n" for each in literals)
        + "}\n"
    )
    compiler = shutil.which("g++") or shutil.which("clang++")
    assert compiler is not None
    subprocess.run([compiler, "-std=c++17", "-trigraphs", "names.cc", "-o", "names"], cwd=tmp_path, check=True)
    said = subprocess.run([str(tmp_path / "names")], capture_output=True, check=True).stdout
    assert said == b"".join(sorted(each.encode("utf-8", "surrogateescape") + b"\0" for each in HOSTILE))


def cpp_files_of(model: Model, folder: Path) -> list[Path]:
    """All generated C++ files of a model, written into the folder."""
    write(folder, write_model(model))
    return [folder / name for name in (*FILES, MAINS[1]) if name.endswith((".h", ".cc"))]


def test_the_files_tell_the_model_that_they_are_of(tmp_path: Path) -> None:
    data = write_model(dense_model())
    files = generate(data, source='a "b"\n*/ ??/.tflite')
    line = rf'// Model: "a \"b\"\012*/ \?\?/.tflite", {len(data)} bytes, SHA-256 {hashlib.sha256(data).hexdigest()}.'
    for name in ("arena.h", "model_data.h", "model_data.cc", "resolver.h", "main.cc", "main_two_arenas.cc"):
        assert line in files[name].decode().splitlines()
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(text)
    assert check_against_the_interface(tmp_path, "-trigraphs", "-Wpedantic") == ""
    assert b"bytes, SHA-256" in generate(data)["arena.h"]


@pytest.mark.few(3)
@pytest.mark.parametrize(
    "name", ["net", "Net", "net_2", "model", "n", "a_", "output", "digest", "variables", "allocator"]
)
def test_names_that_a_namespace_may_have(name: str, tmp_path: Path) -> None:
    assert check_against_the_interface(write(tmp_path, write_model(dense_model()), name=name), "-Wshadow") == ""


@pytest.mark.parametrize(
    "name", ["class", "and", "co_await", "char8_t", "__x", "_X", "a__b", "", "9", "é", "a b", "n\n"]
)
def test_names_that_a_namespace_may_not_have(name: str) -> None:
    with raises(UsageError, ErrorKind.NAME, repr(name)):
        generate(write_model(dense_model()), name=name)


@pytest.mark.parametrize("name", ["std", "main", "tflite", "arena", "Test", "linux", "loop"])
def test_names_that_the_programs_have_already(name: str) -> None:
    with raises(UsageError, ErrorKind.NAME, f"'{name}'"):
        generate(write_model(dense_model()), name=name)


def test_two_models_whose_names_differ_in_capitals_have_headers_of_their_own() -> None:
    data = write_model(dense_model())
    first, second = (generate(data, name=name)["arena.h"].decode().splitlines() for name in ("net", "Net"))
    assert next(line for line in first if "#ifndef" in line) != next(line for line in second if "#ifndef" in line)


def test_the_array_is_the_file_and_is_aligned(tmp_path: Path) -> None:
    data = write_model(mobile_chain())
    text = generate(data)["model_data.cc"].decode()
    assert "alignas(16)" in text
    numbers = re.findall(r"\b\d+(?=,)", text.partition("= {")[2])
    assert bytes(map(int, numbers)) == data


@pytest.mark.slow
def test_a_loop_takes_what_the_report_says(tmp_path: Path) -> None:
    """Stripes as one loop have tensors that stand for bytes of others."""
    model = (Path(__file__).parents[2] / "scripts" / "models" / "demo_int8.tflite").read_bytes()
    result = tflite_memopt.optimize(model, Options(verify=False, target=HOST, every_byte=True))
    assert "WHILE" in result.report.operators_added
    write(tmp_path, result.model)
    sizes = re.search(r"kArenaBytes = ForThisCompiler\(\d+, \d+, (\d+)\)", (tmp_path / "arena.h").read_text())
    assert sizes is not None
    assert int(sizes[1]) == result.report.after.required_bytes["target"]
    code, said = run_on_tflm(tmp_path, "main.cc")
    assert code == 0, said
    assert [line for line in said.splitlines() if line.startswith("output ")] == expected(model)


@pytest.mark.slow
def test_reset_clears_the_input_of_a_loop_and_everything_says_so() -> None:
    """On the real TFLM: after the input is written it changes the outputs, and before that it does not."""
    model = (Path(__file__).parents[2] / "scripts" / "models" / "demo_int8.tflite").read_bytes()
    result = tflite_memopt.optimize(model, Options(verify=False, max_slowdown=0.5, every_byte=True))
    assert outputs_with_reset(model) == [True, True]
    assert outputs_with_reset(result.model) == [False, True]
    said = "must not call Reset() between writing 'image' and Invoke()"
    assert any(said in warning for warning in result.report.warnings)
    plain = tflite_memopt.optimize(model, Options(verify=False, cascade=False))
    assert outputs_with_reset(plain.model) == [True, True]
    assert not any("Reset()" in warning for warning in plain.report.warnings)
    for path in ("main.cc", "main_two_arenas.cc"):
        assert b"Do not call Reset() from here" in generate(result.model)[path]
        assert b"Reset()" not in generate(plain.model)[path]


def outputs_with_reset(data: bytes) -> list[bool]:
    """Return whether outputs are as usual with ``Reset`` after the input is written, and with it before."""
    ((given,),) = seeded_inputs(read_model(data), 1, 0)
    runtime = pytest.importorskip("tflite_micro").runtime
    interpreter = runtime.Interpreter.from_bytes(data, arena_size=1 << 18)

    def ran(*steps: Callable[[], object]) -> bytes:
        for step in (*steps, interpreter.invoke):
            step()
        return bytes(interpreter.get_output(0).tobytes())

    def write_input() -> None:
        interpreter.set_input(given, 0)

    usual = ran(write_input)
    return [ran(write_input, interpreter.reset) == usual, ran(interpreter.reset, write_input) == usual]


@pytest.mark.few(5)
@pytest.mark.parametrize("target", TARGETS)
def test_the_size_is_that_of_the_report(target: str) -> None:
    report = tflite_memopt.optimize(write_model(mobile_chain()), Options(verify=False, cascade=False, target=target))
    text = generate(report.model, planner="metadata")["arena.h"].decode()
    size = report.report.after.required_bytes["target"]
    sizes = re.search(r"kArenaBytes = ForThisCompiler\((\d+), (\d+), (\d+)\)", text)
    assert sizes is not None
    abi = TARGETS[target].abi
    assert int(sizes[3 if abi.word == 64 else 1 if abi.short_enums else 2]) == size


EVERY = [f"snippets/{name}" for name in ("arduino.ino", "pico_CMakeLists.txt", "zephyr_CMakeLists.txt", "stm32cube.md")]
ESP_IDF = ("CMakeLists.txt", "sdkconfig.defaults", "platformio.ini", "main/CMakeLists.txt", "main/idf_component.yml")
EVERY += ["snippets/zephyr_prj.conf", *(f"snippets/esp_idf/{path}" for path in ESP_IDF)]


@pytest.mark.parametrize(
    ("target", "names"),
    [
        (None, {"arduino", "pico", "zephyr", "esp_idf", "stm32cube"}),
        ("cortex-m4", {"zephyr", "stm32cube"}),
        ("pico", {"pico", "zephyr", "stm32cube"}),
        ("esp32s3", {"esp_idf"}),
        ("host", set()),
    ],
)
def test_examples_are_for_the_kernels_of_the_plan(target: str | None, names: set[str]) -> None:
    files = generate(write_model(dense_model()), target)
    assert {re.split(r"_CMake|_prj|\.", path.split("/")[1])[0] for path in files if "/" in path} == names
    conf = files.get("snippets/zephyr_prj.conf", b"").decode()
    assert ("\nCONFIG_TENSORFLOW_LITE_MICRO_CMSIS_NN_KERNELS=y" in conf) == (target in ("cortex-m4", "pico"))


def test_no_sketch_for_an_operator_that_the_library_lacks() -> None:
    assert "snippets/arduino.ino" in generate(write_model(plain()))
    files = generate(write_model(looped("clamped")))
    assert "snippets/arduino.ino" not in files
    assert b"Needs TFLM of 2025-11-10 or later" in files["snippets/zephyr_prj.conf"]


def test_the_pinned_kernels_are_those_of_the_profile() -> None:
    pinned = generate(write_model(dense_model()), "esp32")["snippets/esp_idf/main/idf_component.yml"].decode()
    assert pinned.endswith((Path(__file__).parents[2] / "docs/examples/esp_idf/main/idf_component.yml").read_text())
    (version,) = re.findall(r'esp-nn: "(.*)"', pinned)
    assert f"esp-nn {version} " in PROFILES["esp-nn"].description


@pytest.mark.parametrize(("named", "pinned"), [("1.1", "1.1.*"), ("1.2.1", "1.2.1")])
def test_a_named_version_of_esp_nn_is_pinned(named: str, pinned: str) -> None:
    """The sizes hold for that version alone."""
    files = generate(write_model(dense_model()), f"esp32s3@esp-nn-{named}")
    assert f'espressif/esp-nn: "{pinned}"' in files["snippets/esp_idf/main/idf_component.yml"].decode()


@pytest.mark.few(1)
@pytest.mark.parametrize("macros", [(), ("-DPICO_ON_DEVICE=1",), ("-DPICO_ON_DEVICE=1", "-DLIB_PICO_STDIO_USB")])
def test_programs_for_the_pico_type_check(tmp_path: Path, macros: tuple[str, ...]) -> None:
    assert check_against_the_interface(write(tmp_path, write_model(dense_model())), *macros) == ""


def test_from_the_command_line(tmp_path: Path) -> None:
    source, folder = tmp_path / "m.tflite", tmp_path / "fw" / "deep"
    source.write_bytes(write_model(dense_model()))
    words = ("codegen", source, "-o", folder, "--name", "net")
    done = run(*words)
    assert done.returncode == 0, done.stderr
    assert sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.*")) == sorted(
        [*FILES, MAINS[1], "setup_two_arenas.h", *EVERY]
    )
    assert "namespace net {" in (folder / "arena.h").read_text()
    again = run(*words)
    assert again.returncode == 2
    assert "--force" in again.stderr
    wrong = run(*words, "--force", "--name", "9")
    assert wrong.returncode == 2
    assert "'9'" in wrong.stderr
    other = run(*words, "--force", "--target", "esp32")
    assert other.returncode == 0
    stays = [folder / path for path in EVERY if "snippets" in path and "esp_idf" not in path]
    assert all(path.is_file() for path in stays)
    assert all(str(path) in other.stderr for path in stays)
