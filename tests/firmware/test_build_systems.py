"""Optimize models while a firmware is built, by CMake with this machine's compiler.

The examples for Zephyr and ESP-IDF are configured and built as they stand, with stand-ins for those systems'
own CMake files: the names and commands that they use are those systems', the compiler and TFLM are this machine's.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from configparser import ConfigParser
from pathlib import Path

import pytest
import yaml  # type: ignore[import-untyped]

from tests.firmware.compiled import (
    DEBUG_LOG,
    HOST,
    IN_THE_WHEEL,
    VARIABLE,
    built_tflm,
    called_with_the_wheel,
    check_against_the_interface,
    interface_folders,
    run_sources,
)
from tests.firmware.generated import generate
from tests.models import mobile_chain
from tflite_memopt import analyze, optimize
from tflite_memopt.firmware.self_test import expected_outputs
from tflite_memopt.model.io.files import write_folder
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.options import Options

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "docs" / "examples"
_QUICK = "OPTIONS --effort quick --no-verify"


def skip_without_cmake() -> None:
    if shutil.which("cmake") is None or shutil.which("ninja") is None:
        pytest.skip("not installed: cmake, ninja (Debian: apt-get install cmake ninja-build)")


TFLM = """
add_library(tflm INTERFACE)
target_include_directories(tflm SYSTEM INTERFACE {includes})
target_compile_definitions(tflm INTERFACE TF_LITE_STATIC_MEMORY NDEBUG)
set(flags -std=c++17 -fno-rtti -fno-exceptions -fno-threadsafe-statics)
target_compile_options(tflm INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:${{flags}}>")
target_link_libraries(tflm INTERFACE "{library}")
"""
WHEEL = """
add_library(tflm INTERFACE)
target_include_directories(tflm SYSTEM INTERFACE {includes})
target_compile_definitions(tflm INTERFACE TF_LITE_STATIC_MEMORY NDEBUG {macros})
target_compile_options(tflm INTERFACE -std=c++17 -fno-rtti -fno-exceptions -fno-threadsafe-statics -fPIC -O1)
target_link_options(tflm INTERFACE -Wl,-Bsymbolic)
"""
PROJECT = """
cmake_minimum_required(VERSION 3.18)
project(firmware C CXX)
find_package(tflite_memopt CONFIG REQUIRED)
{tflm}
{app} {own})
target_link_libraries(app tflm)
{body}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "my firmware ü"
    made.mkdir()
    return made


def tflm() -> str:
    """CMake's description of the TFLM that the environment names, or of the wheel's."""
    skip_without_cmake()
    if not os.environ.get(VARIABLE):
        includes = " ".join(f'"{each}"' for each in interface_folders())
        return WHEEL.format(includes=includes, macros=" ".join(IN_THE_WHEEL))
    return built_by_hand()


def built_by_hand() -> str:
    """CMake's description of the TFLM that the environment names."""
    skip_without_cmake()
    built = built_tflm()
    includes = " ".join(f'"{each}"' for each in built.includes)
    return TFLM.format(includes=includes, library=built.library)


def command(folder: Path) -> Path:
    """Write a ``tflite-memopt`` that is this environment's."""
    tool = folder.parent / "tflite-memopt"
    tool.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m tflite_memopt "$@"\n')
    tool.chmod(0o755)
    return tool


def cmake(folder: Path, *more: str, source: Path | None = None) -> str:
    """Configure and build it; what both said, with the last line ``failed`` where one fails."""
    told = subprocess.run([command(folder), "--cmake-dir"], capture_output=True, text=True, check=True).stdout.strip()
    trusted = [f"-DCMAKE_{language}_COMPILER_WORKS=ON" for language in ("C", "CXX")]  # nothing is compiled to try it
    settings = (f"-DTFLITE_MEMOPT_EXECUTABLE={command(folder)}", f"-Dtflite_memopt_DIR={told}", *trusted, *more)
    build = ["cmake", "-G", "Ninja", "-S", str(source or folder), "-B", str(folder / "build"), *settings]
    said = ""
    for step in (build, ["cmake", "--build", str(folder / "build")]):
        done = subprocess.run(step, capture_output=True, text=True, check=False)
        said += done.stdout + done.stderr
        if done.returncode:
            return said + "\nfailed"
    return said


def write_project(folder: Path, tflm: str, body: str, own: str = "") -> None:
    (folder / "debug_log.cc").write_text(DEBUG_LOG)
    app = "add_executable(app debug_log.cc" if os.environ.get(VARIABLE) else "add_library(app SHARED"
    (folder / "CMakeLists.txt").write_text(PROJECT.format(tflm=tflm, app=app, body=body, own=own))


def run_app(folder: Path) -> str:
    """Run what CMake has built; return what it printed."""
    build = folder / "build"
    return run(*([build / "app"] if os.environ.get(VARIABLE) else called_with_the_wheel(build / "libapp.so")))


def outputs(said: str) -> list[str]:
    return [line for line in said.splitlines() if line.startswith("output ")]


def run(*words: str | Path) -> str:
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=120, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.mark.slow
def test_on_this_machine_the_build_optimizes_and_links_it(folder: Path) -> None:
    model = folder / "my model.tflite"
    model.write_bytes(write_model(mobile_chain()))
    body = f'tflite_memopt_add_model(TARGET app MODEL "my model.tflite" MAIN TARGET_CPU {HOST} {_QUICK})'
    write_project(folder, tflm(), body)
    said = cmake(folder)
    assert not said.endswith("failed"), said
    optimized = run_app(folder)
    assert (folder / "build/tflite_memopt/my_model/arena.h").is_file()
    assert "no work to do" in cmake(folder)

    write_project(folder, tflm(), 'tflite_memopt_add_model(TARGET app MODEL "my model.tflite" MAIN AS_IS)')
    assert not cmake(folder).endswith("failed")
    original = run_app(folder)
    assert outputs(original) == outputs(optimized)
    assert _reserved(original) > _reserved(optimized)

    model.write_bytes(write_model(mobile_chain(12)))  # another model: all is made anew
    assert not cmake(folder).endswith("failed")
    assert _reserved(run_app(folder)) < _reserved(original)


def _reserved(said: str) -> int:
    found = re.search(r"arena_used_bytes \d+ of (\d+)", said)
    assert found is not None, said
    return int(found[1])


@pytest.mark.slow
def test_two_models_go_into_one_program(folder: Path) -> None:
    for name, size in (("one", 12), ("two", 16)):
        (folder / f"{name}.tflite").write_bytes(write_model(mobile_chain(size)))
    (folder / "own.cc").write_text(
        '#include "one/arena.h"\n#include "two/arena.h"\n#include "one/model_data.h"\n#include "two/model_data.h"\n'
        "int main() { return sizeof(one::kArenaBytes) + two::kModelData[0] + one::kModelData[0] > 0 ? 0 : 1; }\n"
    )
    add = "\n".join(f"tflite_memopt_add_model(TARGET app MODEL {name}.tflite {_QUICK})" for name in ("one", "two"))
    write_project(folder, tflm(), add, "own.cc")
    said = cmake(folder)
    assert not said.endswith("failed"), said
    run_app(folder)


@pytest.mark.slow
def test_a_model_over_its_budget_stops_the_build(folder: Path) -> None:
    (folder / "m.tflite").write_bytes(write_model(mobile_chain(12)))
    write_project(folder, tflm(), f"tflite_memopt_add_model(TARGET app MODEL m.tflite BUDGET 1K MAIN {_QUICK})")
    for _ in range(2):  # and once more: what is over is not taken for made
        said = cmake(folder)
        assert said.endswith("failed")
        assert "does not fit 1 KB" in said or "over" in said


@pytest.mark.slow
@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("TARGET app", "MODEL is missing"),
        ("TARGET app MODEL m.tflite BUDGIT 3K", "wrong: BUDGIT;3K"),
        ("TARGET app MODEL m.tflite AS_IS BUDGET 3K", "BUDGET and OPTIONS say"),
        ("TARGET app MODEL m.tflite BUDGET", "wrong:  BUDGET"),
    ],
)
def test_a_wrong_call_is_refused_when_it_is_configured(call: str, said: str, folder: Path) -> None:
    skip_without_cmake()
    write_project(folder, "add_library(tflm INTERFACE)", f"tflite_memopt_add_model({call})")
    assert said in re.sub(r"\s+", " ", cmake(folder)).replace("wrong: BUDGET", "wrong:  BUDGET")


# The examples, with stand-ins for what calls them

ZEPHYR = """
add_library(app STATIC)
target_link_libraries(app PUBLIC tflm)
"""
IDF = """
foreach(folder IN LISTS EXTRA_COMPONENT_DIRS)
  file(GLOB included "${{folder}}/*/project_include.cmake")
  list(APPEND includes ${{included}})
endforeach()
macro(project)
  _project(${{ARGV}} C CXX)
  {tflm}
  function(idf_component_register)
    cmake_parse_arguments(PARSE_ARGV 0 arg "" "" "REQUIRES")
    if(NOT arg_REQUIRES STREQUAL "esp-tflite-micro")
      message(FATAL_ERROR "main needs esp-tflite-micro")
    endif()
    add_executable(main_component "${{CMAKE_SOURCE_DIR}}/debug_log.cc")
    target_link_libraries(main_component PUBLIC tflm)
    target_link_options(main_component PRIVATE "-Wl,-T,${{CMAKE_SOURCE_DIR}}/chip.ld")
    set(COMPONENT_LIB main_component PARENT_SCOPE)
  endfunction()
  foreach(included IN LISTS includes)
    include("${{included}}")
  endforeach()
  add_subdirectory(main)
endmacro()
"""


_CHIP = 'SECTIONS {{ chip = ASSERT(SIZEOF(.bss) <= {}, "region dram0_0_seg overflowed"); }} INSERT AFTER .bss;\n'


def example(folder: Path, name: str) -> Path:
    """A copy of an example with a model; returns its folder."""
    shutil.copytree(EXAMPLES / name, folder / name)
    (folder / name / "model.tflite").write_bytes(write_model(mobile_chain(48)))
    return folder / name


def with_tool(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(command(folder).parent), prepend=":")


@pytest.mark.slow
def test_the_example_for_zephyr(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    described, source = tflm(), example(folder, "zephyr")
    base = folder / "zephyr_base"
    base.mkdir()
    (base / "ZephyrConfig.cmake").write_text(
        "macro(project)\n_project(${ARGV} C CXX)\n" + described + ZEPHYR + "endmacro()\n"
    )
    monkeypatch.setenv("ZEPHYR_BASE", str(base))
    with_tool(folder, monkeypatch)
    said = cmake(folder, f"-DZephyr_DIR={base}", "-DCMAKE_CXX_FLAGS=-DTFLITE_MEMOPT_KERNELS_ARE_RIGHT", source=source)
    assert not said.endswith("failed"), said
    assert (folder / "build" / "libapp.a").is_file()


def test_the_example_for_esp_idf_does_not_fit_without_the_tool(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The chip's memory is a limit that the linker is given: between what is needed with the tool and without it."""
    described, source = built_by_hand(), example(folder, "esp_idf")
    idf = folder / "idf" / "tools" / "cmake"
    idf.mkdir(parents=True)
    (idf / "project.cmake").write_text(IDF.format(tflm=described))
    (source / "debug_log.cc").write_text(DEBUG_LOG)
    monkeypatch.setenv("IDF_PATH", str(folder / "idf"))
    with_tool(folder, monkeypatch)
    data = write_model(mobile_chain(96))
    (source / "model.tflite").write_bytes(data)
    as_it_is, optimized = (
        analyze(model, target="esp32").memory.required_for_target
        for model in (data, optimize(data, Options(target="esp32", verify=False)).model)
    )
    chip = (as_it_is + optimized) // 2 + 8192  # of pointers of 8 bytes, and what else the program has
    (source / "chip.ld").write_text(_CHIP.format(chip))
    model = f"-DMODEL={source / 'model.tflite'}"
    refused = cmake(folder, model, "-DAS_IS=1", source=source)
    assert refused.endswith("failed")
    assert "region dram0_0_seg overflowed" in refused
    said = cmake(folder, model, "-DAS_IS=0", source=source)
    assert not said.endswith("failed"), said
    # The stand-in has the reference kernels, which the table for esp-nn refuses.
    done = subprocess.run(folder / "build" / "main" / "main_component", capture_output=True, text=True, check=False)
    assert done.returncode == 2


# What codegen writes

IDF_ALONE = """
macro(project)
  _project(${{ARGV}} C CXX)
  function(idf_component_register)
    cmake_parse_arguments(PARSE_ARGV 0 arg "" "" "SRCS;INCLUDE_DIRS;REQUIRES")
    if(arg_UNPARSED_ARGUMENTS OR NOT arg_REQUIRES STREQUAL "esp-tflite-micro")
      message(FATAL_ERROR "wrong: ${{arg_UNPARSED_ARGUMENTS}}; ${{arg_REQUIRES}}")
    endif()
    add_library(main_component OBJECT ${{arg_SRCS}})
    target_include_directories(main_component PRIVATE ${{arg_INCLUDE_DIRS}} {includes})
    target_compile_definitions(main_component PRIVATE TF_LITE_STATIC_MEMORY)
    set(COMPONENT_LIB main_component PARENT_SCOPE)
  endfunction()
  add_subdirectory(main)
endmacro()
"""


@pytest.mark.slow
@pytest.mark.parametrize("target", [None, "esp32"])
def test_the_project_for_esp_idf_compiles_where_it_is_written(
    target: str | None, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a stand-in for ESP-IDF's CMake functions, against the declarations of TFLM."""
    skip_without_cmake()
    data = write_model(mobile_chain(12))
    write_folder(folder / "firmware", generate(data, target, planner="metadata"), (), force=True)
    project = folder / "firmware" / "snippets" / "esp_idf"
    idf = folder / "idf" / "tools" / "cmake"
    idf.mkdir(parents=True)
    includes = " ".join(f'"{each}"' for each in interface_folders())
    (idf / "project.cmake").write_text(IDF_ALONE.format(includes=includes))
    monkeypatch.setenv("IDF_PATH", str(folder / "idf"))
    said = cmake(folder, "-DCMAKE_CXX_STANDARD=17", source=project)
    assert not said.endswith("failed"), said
    assert "main.cc" in (folder / "build" / "build.ninja").read_text()
    pinned = yaml.safe_load((project / "main" / "idf_component.yml").read_text())
    assert set(pinned["dependencies"]) == {"espressif/esp-tflite-micro", "espressif/esp-nn"}
    defaults = dict(
        line.split("=", 1) for line in (project / "sdkconfig.defaults").read_text().splitlines() if line[0] != "#"
    )
    assert defaults["CONFIG_NN_OPTIMIZED"] == "y"
    assert defaults.get("CONFIG_IDF_TARGET") == (None if target is None else f'"{target}"')
    settings = ConfigParser()
    settings.read(project / "platformio.ini")
    chips = {"esp32", "esp32c3", "esp32s3"} if target is None else {target}
    assert {each for each in settings.sections() if each != "platformio"} == {f"env:{chip}" for chip in chips}
    assert settings["platformio"]["src_dir"] == "main"
    assert settings["env:esp32"]["framework"] == "espidf"


@pytest.mark.slow
def test_the_text_for_stm32cube_builds_a_main_in_c(tmp_path: Path) -> None:
    """As a project of CubeMX: its main is C, and has the two lines of the text."""
    text = generate(write_model(mobile_chain(12)), "cortex-m7")["snippets/stm32cube.md"].decode()
    assert "`TF_LITE_STATIC_MEMORY`, `CMSIS_NN`" in text
    macro = re.search(r"`(TFLITE_MEMOPT_MAIN=\w+)`", text)
    declaration, call = re.findall(r"^    (.*)$", text, re.MULTILINE)
    assert macro is not None
    files = generate(write_model(mobile_chain(12)), HOST)
    assert all(each in files for each in re.findall(r"`(\w+\.cc)`", text))
    write_folder(tmp_path, files, (), force=True)
    (tmp_path / "main.c").write_text(f"{declaration}\nint main(void) {{\n{call}\nreturn code;\n}}\n")
    code, said = run_sources(tmp_path, "main.c", "main.cc", "model_data.cc", flags=(f"-D{macro[1]}",))
    assert (code, "NOT CHECKED" in said or "PASS" in said) == (0, True), said
    assert "snippets/stm32cube.md" not in generate(write_model(mobile_chain(12)), "esp32")
    write_folder(tmp_path / "m7", generate(write_model(mobile_chain(12)), "cortex-m7"), (), force=True)
    assert check_against_the_interface(tmp_path / "m7", "-DCMSIS_NN", "-D__ARM_FEATURE_DSP", f"-D{macro[1]}") == ""


SERIAL = """
#include <cstdio>
#include "TensorFlowLite.h"
Printer Serial;
Printer::operator bool() const { return true; }
void Printer::begin(int) {}
void Printer::println(const char* text) { std::puts(text); }
void delay(int) {}
void setup();
void loop();
int main() { setup(); loop(); loop(); std::fflush(stdout); return 0; }
"""


@pytest.mark.slow
def test_the_sketch_tests_the_model_and_runs_it(tmp_path: Path) -> None:
    """On the wheel's TFLM, with stand-ins for the functions of Arduino: an Arduino board has the same sketch."""
    data = optimize(write_model(mobile_chain(12)), Options(target="arduino-nano-33-ble", verify=False)).model
    files = generate(data, expected=expected_outputs(data))
    assert [path for path in files if path.startswith("snippets/")] == ["snippets/arduino.ino"]
    write_folder(tmp_path, files, (), force=True)
    (tmp_path / "serial.cc").write_text(SERIAL)
    sources = ("serial.cc", "snippets/arduino.ino", "model_data.cc")
    code, said = run_sources(tmp_path, *sources, flags=("-DTFLITE_MEMOPT_KERNELS_ARE_RIGHT",))
    assert (code, said.count("PASS"), said.count("largest is element")) == (0, 1, 2), said
    assert "the test ended with 0" in said
