"""Files of which an NPU runs a part, in the form that Vela writes: what its commands have addresses of stays."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest

from tests.faults import raises
from tests.model_builder import ModelBuilder
from tflite_memopt import Options, analyze, optimize, verify
from tflite_memopt.errors import EquivalenceError, ErrorKind, ModelFormatError, UnsupportedModelError
from tflite_memopt.evidence.proof import Status, prove, prove_plan
from tflite_memopt.kernels.profiles import PROFILES
from tflite_memopt.memory.file import places_in_force, read_planned
from tflite_memopt.model.io import offline_plan
from tflite_memopt.model.io.reader import read_model
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.model.ir.model import DType, Model, OpCode, Operator
from tflite_memopt.report.documents import verdict_line

UNPROVED = Options(verify=False)
WORK = 2048
"""Bytes that the NPU works in."""
OFFSETS = {"image": 4096, "kept": 1024, "given": 0, "work": 0, "fast": 0, "made": 512, "sum": 8192, "y": 16384}
"""As a compiler might write them: what the CPU alone has lies higher than it needs to."""


def vela(code: str = "ethos-u", leave_out: str = "") -> Model:
    """Operators of the CPU around one of the NPU; ``kept`` is alive while that runs, within the memory it works in.

    image -> ABS -> kept -> NEG -> given -> ethos-u(work, fast) -> made -> ADD(kept, made) -> sum -> NEG -> y
    """
    b = ModelBuilder()
    image = b.input("image", (1, 8, 8, 8))
    kept, given, made, total, y = (b.tensor(name, (1, 8, 8, 8)) for name in ("kept", "given", "made", "sum", "y"))
    work, fast = (b.tensor(name, (WORK,), DType.UINT8) for name in ("work", "fast"))
    b.operator("ABS", (image,), (kept,))
    b.operator("NEG", (kept,), (given,))
    opcode = OpCode("CUSTOM", 1, code)
    b.model.opcodes.append(opcode)
    weights = [b.constant(name, np.arange(64, dtype=np.uint8)) for name in ("commands", "flash")]
    options = np.asarray((1, 4, 1), np.uint8)
    b.graph.add_operator(Operator(opcode, (*weights, work, fast, given), (made,), custom_options=options))
    b.operator("ADD", (kept, made), (total,), "AddOptions")
    b.operator("NEG", (total,), (y,))
    model = b.finish(y)
    places = {tensor: OFFSETS[tensor.name] for tensor in b.graph.tensors if tensor.name in OFFSETS}
    offline_plan.attach(model, {tensor: at for tensor, at in places.items() if tensor.name != leave_out})
    return model


def accelerated(code: str) -> Model:
    """A network with one operator of an NPU, whose commands are in its options, before a RESHAPE that copies."""
    b = ModelBuilder()
    image, made = b.input("image", (1, 16, 16, 8)), b.tensor("made", (1, 16, 16, 8))
    b.operator("ABS", (image,), (made,))
    given, opcode = b.tensor("given", (1, 16, 16, 8)), OpCode("CUSTOM", 1, code)
    b.model.opcodes.append(opcode)
    b.graph.add_operator(Operator(opcode, (made,), (given,), custom_options=np.asarray((1, 4, 1), np.uint8)))
    model = b.finish(b.average_pool(b.reshape(b.conv(given, 32, kernel=3), (1, 32, 8, 32)), 8))
    if code == "ethos-u":
        offline_plan.attach(model, {made: 0, given: 2048})
    return model


def placed(data: bytes) -> dict[str, int]:
    planned = offline_plan.decode(read_model(data))
    assert planned is not None
    return {tensor.name: offset for tensor, offset in planned.items()}


def test_kernels_that_write_over_their_input_spare_that_of_the_npu() -> None:
    b = ModelBuilder()
    given, made = b.input("image", (1, 8, 8, 8)), b.tensor("made", (1, 8, 8, 8))
    opcode = OpCode("CUSTOM", 1, "ethos-u")
    b.model.opcodes.append(opcode)
    b.graph.add_operator(Operator(opcode, (given,), (made,), custom_options=np.asarray((1, 4, 1), np.uint8)))
    model = b.finish(b.conv(made, 8, kernel=3))
    offline_plan.attach(model, {given: 1024, made: 512})
    result = optimize(write_model(model), Options(target="cortex-m0", verify=False))
    assert placed(result.model)["made"] == 512


def test_what_the_npu_touches_stays_and_the_rest_is_planned_around_it() -> None:
    data = write_model(vela())
    result = optimize(data, UNPROVED)
    after = placed(result.model)
    for name in ("kept", "given", "work", "fast", "made"):
        assert after[name] == OFFSETS[name]
    assert result.report.before.arena_bytes == OFFSETS["y"] + 512
    # The kernel's two arrays lie above the NPU's memory, the CPU's tensors in it, before and after it is used.
    assert result.report.after.arena_bytes == WORK + 48 + 32
    assert any("Ethos-U" in each for each in result.report.warnings)
    assert {each.rule for each in result.report.refused} == {"rewrites", "cascade"}


def test_graph_and_order_stay() -> None:
    data = write_model(vela())
    before, after = (read_model(each).main.operators for each in (data, optimize(data, UNPROVED).model))
    assert [each.outputs[0].name for each in after] == [each.outputs[0].name for each in before]


@pytest.mark.parametrize(
    ("model", "names"),
    [
        (vela, ("operator 2", "Ethos-U", "--no-verify")),
        (partial(accelerated, "edgetpu-custom-op"), ("operator 1", "Edge TPU", "--no-verify")),
        (partial(accelerated, "NeutronGraph"), ("operator 1", "Neutron", "--no-verify")),
    ],
)
def test_an_npu_is_named_before_any_search(model: Callable[[], Model], names: tuple[str, ...]) -> None:
    steps: list[str] = []
    with raises(EquivalenceError, ErrorKind.NOT_RUN, *names):
        optimize(write_model(model()), Options(samples=1), steps.append)
    assert steps == ["reading"]


def test_verify_names_the_npu_and_says_what_is_proved() -> None:
    data = write_model(accelerated("NeutronGraph"))
    verdicts = verify(data, optimize(data, UNPROVED).model)
    said = verdict_line(verdicts)
    assert said.startswith("NOT verified, proved for all inputs: subgraph 0, operator 1 (NeutronGraph, ")
    assert said.endswith(") runs on NXP's Neutron alone")


@pytest.mark.parametrize("code", ["edgetpu-custom-op", "NeutronGraph"])
def test_around_an_npu_without_addresses_the_cpu_s_operators_are_optimized(code: str) -> None:
    data = write_model(accelerated(code))
    result = optimize(data, UNPROVED)
    assert result.report.after.required_for_target < result.report.before.required_for_target
    assert any("chip" in each for each in result.report.warnings)
    assert prove(read_model(data), read_model(result.model)).status is Status.PROVED
    (npu,) = [each for each in read_model(result.model).main.operators if each.name == "CUSTOM"]
    assert npu.opcode.custom_code == code


@pytest.mark.parametrize("code", ["ethos-u", "edgetpu-custom-op"])
def test_an_analysis_says_what_it_does_not_count_and_how_to_go_on(code: str) -> None:
    found = analyze(write_model(accelerated(code)))
    assert any("arena" in each for each in found.warnings)
    assert any("an estimate" in each for each in found.warnings) is (code != "ethos-u")
    assert [each.option for each in found.summary.advice][-1] == "tflite-memopt optimize --no-verify"


def test_the_graph_is_proved_and_the_plan_is_not() -> None:
    data = write_model(vela())
    result = optimize(data, UNPROVED).model
    assert prove(read_model(data), read_model(result)).status is Status.PROVED
    plan = prove_plan(read_planned(result), places_in_force(read_planned(result), PROFILES["portable"]))
    assert plan.status is Status.UNKNOWN
    assert "NPU" in str(plan)


def test_a_tensor_that_the_plan_leaves_to_tflm_is_kept_clear() -> None:
    result = optimize(write_model(vela(leave_out="kept")), UNPROVED)
    assert placed(result.model)["kept"] >= WORK


def test_an_operand_without_an_offset_is_refused() -> None:
    with raises(UnsupportedModelError, ErrorKind.PLACE, "'work'"):
        read_planned(write_model(vela(leave_out="work")))


def test_a_plan_that_vela_kept_of_its_input_is_no_reason_to_leave_it_out() -> None:
    """Vela 5.2.0 writes no plan of its own where its input has one: only a file without one can be compiled."""
    model = vela()
    offline_plan.attach(model, {})
    model.metadata[-1][1].data = np.asarray([1, 1, 2, 0, 0], np.int32).view(np.uint8)
    data = write_model(model)
    with raises(ModelFormatError, ErrorKind.DAMAGED, "Vela keeps the plan", "before it was optimized"):
        analyze(data)
    with raises(UnsupportedModelError, ErrorKind.PLACE, "Vela keeps the memory plan", "before it was "):
        optimize(data, UNPROVED)


def test_other_custom_operators_read_what_something_writes() -> None:
    with raises(ModelFormatError, ErrorKind.UNWRITTEN, "'work'"):
        read_planned(write_model(vela("other")))


def test_the_figures_of_the_file_as_it_stands() -> None:
    found = analyze(write_model(vela()))
    assert found.memory.arena_bytes == OFFSETS["y"] + 512
    assert found.memory.required_is_exact
