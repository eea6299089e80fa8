"""A plan that the firmware carries: stock TFLM takes it, in the smallest arena, and refuses one that is not its own."""

from __future__ import annotations

import re
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest

import tflite_memopt
from tests.faults import raises
from tests.firmware.compiled import HOST, check_against_the_interface, run_on_tflm
from tests.firmware.generated import generate
from tests.firmware.test_codegen import RUNNABLE, expected, optimized, write
from tests.model_builder import ModelBuilder
from tests.models import ALL
from tflite_memopt import Options, UsageError
from tflite_memopt.errors import ErrorKind
from tflite_memopt.firmware.files import PLANNER_FILE
from tflite_memopt.firmware.plan_table import planned_buffers
from tflite_memopt.kernels.support import support_of
from tflite_memopt.kernels.targets import profile_for
from tflite_memopt.model.io import offline_plan
from tflite_memopt.model.io.reader import read_model
from tflite_memopt.model.io.writer import write_model

MAIN = "main.cc"
NO_TARGET = Options(verify=False, cascade=False)


def made(folder: Path, data: bytes, target: str = HOST) -> Path:
    return write(folder, data, target, planner="table")


def outputs(said: str) -> list[str]:
    return [line for line in said.splitlines() if line.startswith("output ")]


def changed(folder: Path, file: str, pattern: str, by: str) -> None:
    text = (folder / file).read_text()
    other = re.sub(pattern, by, text, count=1)
    assert other != text
    (folder / file).write_text(other)


@pytest.mark.few(2)
@pytest.mark.parametrize("name", RUNNABLE)
def test_tflm_takes_the_table(name: str, tmp_path: Path) -> None:
    data = optimized(name, HOST)
    code, said = run_on_tflm(made(tmp_path, data), MAIN)
    assert code == 0, said
    assert outputs(said) == expected(data)


def test_a_model_without_a_plan_gets_that_of_tflm(tmp_path: Path) -> None:
    data = write_model(ALL["mobile_chain"]())
    code, said = run_on_tflm(made(tmp_path, data), MAIN)
    assert code == 0, said
    assert outputs(said) == expected(data)


@pytest.mark.slow
def test_stripes_in_a_loop_with_variables_that_are_planned(tmp_path: Path) -> None:
    data = tflite_memopt.optimize(
        write_model(ALL["mobile_chain"]()), Options(verify=False, target=HOST, max_slowdown=1.0)
    ).model
    code, said = run_on_tflm(made(tmp_path, data), MAIN)
    assert code == 0, said
    assert outputs(said) == expected(data)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mobile_chain", "streaming_model", "if_model"])
def test_its_arena_is_smaller_and_the_smallest(name: str, tmp_path: Path) -> None:
    data = optimized(name, HOST)
    stock, table = (write(tmp_path / kind, data, HOST, planner=kind) for kind in ("metadata", "table"))
    arenas = [_reserved(folder) for folder in (stock, table)]
    assert arenas[1] < arenas[0]
    changed(table, "arena.h", r"(std::size_t kArenaBytes = ForThisCompiler\([^)]*\))", r"\1 - 16")
    code, said = run_on_tflm(table, MAIN)
    assert code != 0, said


def _reserved(folder: Path) -> int:
    code, said = run_on_tflm(folder, MAIN)
    assert code == 0, said
    found = re.search(r"arena_used_bytes \d+ of (\d+)", said)
    assert found is not None
    return int(found[1])


ROW = r"    \{(\d+), (-?\d+), (\d+), (\d+) \+ (\d+)\},(.*)\n"
_CHANGED = "the table was changed; run codegen again"
DAMAGE = {
    "a size": (PLANNER_FILE, ROW, r"    {16\1, \2, \3, \4 + \5},\6\n", _CHANGED),
    "a first step": (PLANNER_FILE, ROW, r"    {\1, 7, \3, \4 + \5},\6\n", _CHANGED),
    "a last step": (PLANNER_FILE, ROW, r"    {\1, \2, 70, \4 + \5},\6\n", _CHANGED),
    "an offset": (PLANNER_FILE, ROW, r"    {\1, \2, \3, 16 + \4 + \5},\6\n", _CHANGED),
    "a memory": (PLANNER_FILE, ROW, r"    {\1, \2, \3, \4 + 1 + \5},\6\n", _CHANGED),
    "a row too few": (PLANNER_FILE, r"kPlaces, (\d+),", r"kPlaces, \1 - 1,", _CHANGED),
    "two rows in each other's place": (PLANNER_FILE, f"({ROW})({ROW})", r"\8\1", _CHANGED),
    "a checksum": (PLANNER_FILE, r"kModelBytes, (\d+)u", r"kModelBytes, \1u + 1", "the model was changed"),
    "a byte of the model": (
        "model_data.cc",
        r"(\n    \d+,\d+,\d+,\d+,\d+,\d+,\d+,\d+,)(\d+),",
        r"\g<1>255 - \2,",
        "the model was changed; run codegen again",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("damage", DAMAGE)
def test_what_is_damaged_is_refused_before_it_runs(damage: str, tmp_path: Path) -> None:
    file, pattern, by, why = DAMAGE[damage]
    changed(made(tmp_path, optimized("mobile_chain", HOST)), file, pattern, by)
    code, said = run_on_tflm(tmp_path, MAIN)
    assert code == 2, said
    assert f"plan of model: {why}" in said
    assert not outputs(said)


SOUND = {
    "a size": r"    {16\1, \2, \3, \4 + \5},\6\n",
    "a first step": r"    {\1, 7, \3, \4 + \5},\6\n",
    "a last step": r"    {\1, \2, 70, \4 + \5},\6\n",
    "a row left out": "",
    "a row too many": r"    {\1, \2, \3, \4 + \5},\6\n    {\1, \2, \3, \4 + \5},\6\n",
}


@pytest.mark.slow
@pytest.mark.parametrize("wrong", SOUND)
def test_a_sound_table_of_another_model_is_refused(wrong: str, tmp_path: Path) -> None:
    """The checksum is right, as in a table that was made for other kernels or with other options."""
    made(tmp_path, optimized("mobile_chain", HOST))
    changed(tmp_path, PLANNER_FILE, ROW, SOUND[wrong])
    rows = re.findall(ROW, (tmp_path / PLANNER_FILE).read_text())
    packed = b"".join(struct.pack("<ihhI", int(a), int(b), int(c), int(d) + int(e)) for a, b, c, d, e, _ in rows)
    if "row" in wrong:
        changed(tmp_path, PLANNER_FILE, r"kPlaces, \d+,", f"kPlaces, {len(rows)},")
    changed(tmp_path, PLANNER_FILE, r"\d+u\};", f"{zlib.adler32(packed)}u}};")
    code, said = run_on_tflm(tmp_path, MAIN)
    assert code == 2, said
    assert "another model, or other kernels" in said
    assert not outputs(said)


STALE_MODELS = [name for name, build in ALL.items() if support_of(build()).runs and name != "dead_model"]
"""Without its dead operators dead_model is dense_model, with the same plan."""
STALE = """\
#include <cstdio>

{includes}

template <typename Resolver>
int Allocated(const unsigned char* model, Resolver& resolver, int variables, const tflite_memopt::Plan& plan) {{
  alignas(16) static uint8_t arena[1 << 18];
  uint8_t* const memories[] = {{arena}};
  tflite_memopt::TablePlanner planner(plan, memories);
  if (!planner.IsIntact()) return 0;
  namespace tflm = tflite_memopt::tflm;
  tflm::MicroAllocator* allocator = tflm::MicroAllocator::Create(arena, sizeof(arena), &planner);
  tflm::MicroResourceVariables* resources =
      variables > 0 ? tflm::MicroResourceVariables::Create(allocator, variables) : nullptr;
  tflm::MicroInterpreter interpreter(tflm::GetModel(model), resolver, allocator, resources);
  return interpreter.AllocateTensors() == kTfLiteOk ? 1 : 0;
}}

int main() {{
  const tflite_memopt::Plan* const plans[] = {{{plans}}};
{runs}
  return 0;
}}
"""
_RUN = """\
  {{
    static {0}::Resolver resolver;
    if (!{0}::RegisterOperators(resolver)) return 1;
    for (const auto* plan : plans) {{
      printf("{0} %s: %d\\n", plan->name, Allocated({0}::kModelData, resolver, {0}::kResourceVariables, *plan));
    }}
  }}
"""


@pytest.mark.slow
def test_each_model_refuses_the_plans_of_all_others(tmp_path: Path) -> None:
    for name in STALE_MODELS:
        write(tmp_path / name, optimized(name, HOST), HOST, name, "table")
    headers = ("arena.h", "model_data.h", PLANNER_FILE, "resolver.h")
    includes = [f'#include "{name}/{header}"' for name in STALE_MODELS for header in headers]
    more = ("allocator", "interpreter", "resource_variable")
    includes += [f'#include "tensorflow/lite/micro/micro_{header}.h"' for header in more]
    (tmp_path / "model_data.cc").write_text("".join(f'#include "{name}/model_data.cc"\n' for name in STALE_MODELS))
    plans, runs = (
        ", ".join(f"&{name}::kPlan" for name in STALE_MODELS),
        "".join(_RUN.format(name) for name in STALE_MODELS),
    )
    (tmp_path / MAIN).write_text(STALE.format(includes="\n".join(includes), plans=plans, runs=runs))
    code, said = run_on_tflm(tmp_path, MAIN)
    assert code == 0, said
    found = {(model, plan): taken == "1" for model, plan, taken in re.findall(r"^(\w+) (\w+): (\d)$", said, re.M)}
    assert len(found) - len(STALE_MODELS) >= 100
    assert {pair for pair, taken in found.items() if taken} == {(name, name) for name in STALE_MODELS}


@pytest.mark.few(4)
@pytest.mark.parametrize("name", ALL)
def test_it_compiles_without_a_word(name: str, tmp_path: Path) -> None:
    assert check_against_the_interface(made(tmp_path, optimized(name, HOST))) == ""


def test_rows_are_the_plan(tmp_path: Path) -> None:
    model = read_model(optimized("mobile_chain", HOST))
    planned = offline_plan.decode(model)
    assert planned
    rows = planned_buffers(model, planned, profile_for(HOST))
    places = {tensor.name: offset for tensor, offset in planned.items()}
    assert {row.name: row.offset for row in rows if row.name != "scratch"} == places
    assert all(row.bytes % 16 == row.offset % 16 == 0 and row.first <= row.last for row in rows)
    alive = np.zeros((max(row.last for row in rows) + 2, max(row.offset + row.bytes for row in rows) // 16), np.int32)
    for row in rows:
        alive[row.first : row.last + 1, row.offset // 16 : (row.offset + row.bytes) // 16] += 1
    assert alive.max() <= 2  # an output may overwrite an input


def test_a_table_is_for_one_library() -> None:
    with raises(UsageError, ErrorKind.NO_TARGET):
        generate(optimized("mobile_chain"), planner="table")


@pytest.mark.few(2)
@pytest.mark.parametrize("target", ["cortex-m3", "cortex-m7", "esp32", "host"])
def test_the_size_is_that_of_the_report(target: str) -> None:
    made = tflite_memopt.optimize(
        write_model(ALL["mobile_chain"]()), Options(verify=False, cascade=False, target=target)
    )
    sizes = made.report.after.required_bytes
    assert sizes["table"] < sizes["target"]
    text = generate(made.model, target, planner="table")["arena.h"].decode()
    assert f"{sizes['table']:,} bytes, " in text
    assert (
        "table" not in tflite_memopt.optimize(write_model(ALL["mobile_chain"]()), NO_TARGET).report.after.required_bytes
    )


def test_where_the_planner_needs_more_than_the_head_a_table_is_advised() -> None:
    b = ModelBuilder()
    y = b.input("x", (1, 8))
    for _ in range(30):
        y = b.dense(y, 8)
    report = tflite_memopt.optimize(write_model(b.finish(y)), Options(verify=False, target="cortex-m4")).report
    after = report.after
    assert after.temporaries_for_target > after.arena_bytes
    (said,) = (each.text for each in report.summary.advice if each.option == "codegen --planner table")
    assert said.startswith(f"{after.required_bytes['table']:,} bytes to reserve")


@pytest.mark.slow
def test_main_asks_for_an_intact_model_before_tflm_reads_it(tmp_path: Path) -> None:
    """TFLM may crash on another model instead of refusing it."""
    made(tmp_path, optimized("mobile_chain", HOST))
    changed(tmp_path, "model_data.cc", r"(\n    \d+,\d+,\d+,\d+,\d+,\d+,\d+,\d+,)(\d+),", r"\g<1>255 - \2,")
    code, said = run_on_tflm(tmp_path, "main.cc")
    assert code == 2, said
    assert "the model was changed" in said
    assert "AllocateTensors" not in said
