"""Tensors in the firmware's own buffers, and outputs at the places of inputs, over many runs, between guard bytes."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tflite_memopt
from tests.faults import raises
from tests.firmware.compiled import HOST, run_on_tflm
from tests.firmware.generated import generate
from tests.firmware.test_codegen import digest, optimized, write
from tests.firmware.test_plan_table import MAIN, changed, outputs
from tests.model_builder import ModelBuilder
from tests.models import mobile_chain
from tflite_memopt import Options, UsageError
from tflite_memopt.errors import ErrorKind
from tflite_memopt.firmware.files import PLANNER_FILE
from tflite_memopt.firmware.plan_table import MemoryRequest
from tflite_memopt.model.io.reader import read_model
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.model.ir.model import Model

GUARDED = Path(__file__).parent / "guarded.cc"
RUNS = 50
FAST = {"dtcm": 256, "sram": 1 << 16}


def cell() -> Model:
    b = ModelBuilder()
    x, h = b.input("x:0", (1, 8)), b.input("h:in", (1, 8))
    state = b.add(b.dense(x, 8), b.dense(h, 8, seed=1))
    state.name = "h:out"
    return b.finish(b.dense(state, 4, seed=2), state)


def in_place() -> Model:
    """The state is overwritten by the operator that reads it last."""
    b = ModelBuilder()
    x, h = b.input("x:0", (1, 8)), b.input("h:in", (1, 8))
    seen = b.dense(h, 4)
    state = b.add(h, x)
    state.name = "h:out"
    return b.finish(seen, state)


def two_states() -> Model:
    b = ModelBuilder()
    x, h, c = b.input("x:0", (1, 6, 6, 4)), b.input("h:in", (1, 6, 6, 4)), b.input("c:in", (1, 6, 6, 4))
    state = b.conv(b.add(x, h), 4, seed=3)
    other = b.add(b.depthwise(c), state)
    state.name, other.name = "h:out", "c:out"
    return b.finish(b.dense(b.reshape(other, (1, 144)), 5), state, other)


CELLS: dict[str, tuple[Callable[[], Model], tuple[str, ...]]] = {
    "cell": (cell, ("h:out:h:in",)),
    "in_place": (in_place, ("h:out:h:in",)),
    "two_states": (two_states, ("h:out:h:in", "c:out:c:in")),
}


def guarded(
    folder: Path,
    data: bytes,
    request: MemoryRequest,
    runs: int,
    tied: Sequence[int] = (),
    moved: int = -1,
) -> tuple[int, str]:
    write(folder, data, HOST, planner="table", request=request)
    indices = ", ".join(map(str, (*tied, -1)))
    (folder / "tied.h").write_text(
        f"constexpr int kTied[] = {{{indices}}};\nconstexpr int kRuns = {runs}, kMoved = {moved};\n"
    )
    shutil.copy(GUARDED, folder)
    return run_on_tflm(folder, GUARDED.name, *(("-DAPART",) if request.temporaries_apart else ()))


def wanted(data: bytes, runs: int, tied: dict[int, int]) -> list[str]:
    """Compute with the wheel, states copied from outputs to inputs: ``tied`` has the output by the input."""
    runtime = pytest.importorskip("tflite_micro").runtime
    model = read_model(data)
    interpreter = runtime.Interpreter.from_bytes(data, arena_size=1 << 18)
    x, lines = 12345, []
    given: list[np.ndarray[Any, Any]] = []
    for run in range(runs):
        for number, tensor in enumerate(model.main.inputs):
            if run > 0 and number in tied:
                interpreter.set_input(given[tied[number]], number)
                continue
            drawn = []
            for _ in range(tensor.nbytes):
                x = (x * 1664525 + 1013904223) & 0xFFFFFFFF
                drawn.append(x >> 24)
            values = np.array(drawn, np.uint8).view(np.int8).reshape(tensor.shape)
            interpreter.set_input(values, number)
        interpreter.invoke()
        given = [np.array(interpreter.get_output(number)) for number in range(len(model.main.outputs))]
        lines += [
            f"output {number}: {values.nbytes} bytes, digest {digest(values.tobytes())}"
            for number, values in enumerate(given)
        ]
    return lines


def tied_indices(model: Model, ties: Sequence[str]) -> dict[int, int]:
    names = [[tensor.name for tensor in side] for side in (model.main.inputs, model.main.outputs)]
    pairs = [re.fullmatch(r"(\w+:out):(\w+:in)", tie) for tie in ties]
    return {names[0].index(pair[2]): names[1].index(pair[1]) for pair in pairs if pair is not None}


@pytest.mark.slow
@pytest.mark.parametrize("memories", [{}, FAST], ids=["one memory", "two"])
@pytest.mark.parametrize("external", [(), ("h:in",), ("input", "output")], ids=["inside", "state outside", "all"])
@pytest.mark.parametrize("name", CELLS)
def test_states_pass_from_run_to_run_without_a_copy(
    name: str, external: tuple[str, ...], memories: dict[str, int], tmp_path: Path
) -> None:
    build, ties = CELLS[name]
    data = write_model(build())
    tied = tied_indices(build(), ties)
    small = tflite_memopt.optimize(data, Options(verify=False, target=HOST)).model
    code, said = guarded(tmp_path, small, MemoryRequest(memories, None, external, ties), RUNS, tuple(tied))
    assert code == 0, said
    assert outputs(said) == wanted(data, RUNS, tied)


def test_without_ties_the_state_is_lost(tmp_path: Path) -> None:
    """The negative control: this is what the test above would see."""
    data = write_model(two_states())
    tied = tied_indices(two_states(), CELLS["two_states"][1])
    code, said = guarded(tmp_path, data, MemoryRequest(FAST), RUNS, tuple(tied))
    assert code == 0, said
    assert outputs(said) != wanted(data, RUNS, tied)


def test_an_external_input_may_move_between_runs(tmp_path: Path) -> None:
    data = optimized("mobile_chain", HOST)
    model = read_model(data)
    moved = model.main.tensors.index(model.main.inputs[0])
    code, said = guarded(tmp_path, data, MemoryRequest(external=("input",)), 4, moved=moved)
    assert code == 0, said
    assert outputs(said) == wanted(data, 4, {})


def test_what_is_external_is_not_in_the_arena() -> None:
    b = ModelBuilder()
    data = write_model(b.finish(b.conv(b.input("image", (1, 32, 32, 8)), 2)))
    arenas = []
    for external in ((), ("input",)):
        text = generate(data, HOST, planner="table", request=MemoryRequest(external=external))["arena.h"].decode()
        found = re.search(r"kArenaBytes = ForThisCompiler\(\d+, \d+, (\d+)\)", text)
        assert found is not None
        arenas.append(int(found[1]))
    assert arenas[1] <= arenas[0] - 32 * 32 * 8


def test_memories_that_overlap_are_refused_in_a_debug_build(tmp_path: Path) -> None:
    data = optimized("mobile_chain", HOST)
    write(tmp_path, data, HOST, planner="table", request=MemoryRequest(external=("input",)))
    changed(tmp_path, "setup.h", r"memories\[\] = \{arena, \w+\}", "memories[] = {arena, arena + 16}")
    code, said = run_on_tflm(tmp_path, MAIN, "-UNDEBUG", "-Wno-unused-variable")
    assert code == 2, said
    assert "plan of model: two of its memories overlap" in said


def test_a_buffer_that_is_too_small_does_not_compile(tmp_path: Path) -> None:
    data = optimized("mobile_chain", HOST)
    write(tmp_path, data, HOST, planner="table", request=MemoryRequest(external=("input",)))
    changed(tmp_path, "setup.h", r"(uint8_t external_\w+)\[[^\]]*\]", r"\1[16]")
    with pytest.raises(RuntimeError, match="too small for external_"):
        run_on_tflm(tmp_path, MAIN)


def test_a_buffer_that_is_not_aligned_does_not_compile(tmp_path: Path) -> None:
    data = optimized("mobile_chain", HOST)
    write(tmp_path, data, HOST, planner="table", request=MemoryRequest(external=("input",)))
    changed(tmp_path, "setup.h", r"alignas\(16\) (uint8_t external_)", r"\1")
    with pytest.raises(RuntimeError, match="must lie at a multiple of 16"):
        run_on_tflm(tmp_path, MAIN)


@pytest.mark.slow
@pytest.mark.parametrize("memories", [{}, FAST], ids=["one memory", "two"])
@pytest.mark.parametrize("name", ["mobile_chain", "split_model", "concat_model"])
def test_temporaries_may_lie_apart(name: str, memories: dict[str, int], tmp_path: Path) -> None:
    data = optimized(name, HOST)
    code, said = guarded(tmp_path, data, MemoryRequest(memories, temporaries_apart=True), 3)
    assert code == 0, said
    assert outputs(said) == wanted(data, 3, {})
    for constant in ("kArenaBytes", "kTemporaryBytes"):
        changed(tmp_path, "arena.h", rf"(std::size_t {constant} = ForThisCompiler\([^)]*\))", r"\1 - 16")
        code, said = run_on_tflm(tmp_path, GUARDED.name, "-DAPART")
        assert code != 0, constant
        changed(tmp_path, "arena.h", rf"(std::size_t {constant} = ForThisCompiler\([^)]*\)) - 16", r"\1")


@pytest.mark.slow
def test_the_report_says_both_sizes(tmp_path: Path) -> None:
    b = ModelBuilder()
    y = b.input("x", (1, 8))
    for _ in range(30):
        y = b.dense(y, 8)
    made = tflite_memopt.optimize(write_model(b.finish(y)), Options(verify=False, target=HOST))
    sizes, temporary = made.report.after.required_bytes, made.report.after.planner_temporary_bytes["table_apart"]
    assert sizes["table_apart"] < sizes["table"] < sizes["target"]
    write(tmp_path, made.model, HOST, request=MemoryRequest(temporaries_apart=True))
    code, said = run_on_tflm(tmp_path, MAIN)
    assert code == 0, said
    assert f" of {sizes['table_apart']}" in said
    found = re.search(r"kTemporaryBytes = ForThisCompiler\(\d+, \d+, (\d+)\)", (tmp_path / "arena.h").read_text())
    assert found is not None
    assert int(found[1]) == -(-temporary // 16) * 16


def late() -> Model:
    b = ModelBuilder()
    x, h = b.input("x", (1, 8)), b.input("h", (1, 8))
    state = b.dense(x, 8)
    state.name = "state"
    return b.finish(b.add(b.dense(state, 8), h), state)


@pytest.mark.parametrize(
    ("build", "request_", "kind", "names"),
    [
        (cell, MemoryRequest(ties=("h:out",)), ErrorKind.UNKNOWN, ("h:out",)),
        (cell, MemoryRequest(ties=("h:out:x:0", "h:out:h:in")), ErrorKind.TIE, ("'h:out'",)),
        (late, MemoryRequest(ties=("state:h",)), ErrorKind.TIE, ("'state'", "ADD", "'h'")),
        (cell, MemoryRequest(external=("h:inn",)), ErrorKind.UNKNOWN, ("h:inn", "'h:in'")),
        (cell, MemoryRequest({"a": 64, "A": 64, "sram": 4096}), ErrorKind.NAME, ("--memory a, A",)),
        (cell, MemoryRequest({"int": 64, "sram": 4096}), ErrorKind.NAME, ("--memory int",)),
        (cell, MemoryRequest({"model": 64, "sram": 4096}), ErrorKind.NAME, ("--memory model",)),
        (cell, MemoryRequest({"external": 64, "sram": 4096}), ErrorKind.NAME, ("--memory external",)),
        (cell, MemoryRequest({"a": 64, "b": 4096}, prices={"a": 2}), ErrorKind.MEMORY, ("--memory a",)),
        (
            cell,
            MemoryRequest({"a": 64, "b": 64, "c": 4096}, prices={"b": 4}),
            ErrorKind.MEMORY,
            ("--memory c", "1", "4"),
        ),
        (cell, MemoryRequest(tail="sram"), ErrorKind.UNKNOWN, ("--tail sram",)),
    ],
)
def test_what_cannot_be_is_refused_in_a_line(
    build: Callable[[], Model], request_: MemoryRequest, kind: ErrorKind, names: tuple[str, ...]
) -> None:
    with raises(UsageError, kind, *names):
        generate(write_model(build()), HOST, planner="table", request=request_)


def test_metadata_has_one_memory() -> None:
    with raises(UsageError, ErrorKind.EXCLUDED, "--planner metadata"):
        generate(write_model(cell()), HOST, planner="metadata", request=MemoryRequest(external=("input",)))


def test_a_tie_of_two_shapes_is_refused() -> None:
    b = ModelBuilder()
    x = b.input("x", (1, 8))
    y = b.dense(x, 4)
    y.name = "y"
    with raises(UsageError, ErrorKind.TIE, "y:x", "(1, 4)", "(1, 8)"):
        generate(write_model(b.finish(y)), HOST, request=MemoryRequest(ties=("y:x",)))


@pytest.mark.slow
def test_a_table_is_the_default_where_the_target_is_known_and_measured() -> None:
    chain = write_model(mobile_chain())
    for target, has_table in (("cortex-m7", True), ("host", True), ("esp32s3", False), (None, False)):
        data = tflite_memopt.optimize(chain, Options(verify=False, cascade=False, target=target)).model
        assert (PLANNER_FILE in generate(data)) == has_table, target
    assert PLANNER_FILE not in generate(optimized("mobile_chain", HOST), planner="metadata")
