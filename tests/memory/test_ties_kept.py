"""Models optimized with ties: outputs planned at the places of inputs, verified over sequences of invocations."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from tests.firmware.test_own_buffers import CELLS, cell, late
from tests.model_builder import ModelBuilder
from tests.profiles import examples
from tests.tflm import litert_and_tflm
from tflite_memopt import Options, UsageError, optimize
from tflite_memopt.cli import cli
from tflite_memopt.evidence.equivalence.compare import EXACT
from tflite_memopt.evidence.equivalence.inputs import seeded_inputs
from tflite_memopt.evidence.equivalence.sequences import difference_in_sequence
from tflite_memopt.kernels.profiles import PROFILES
from tflite_memopt.memory.arrange import arrange, fitted
from tflite_memopt.memory.problems import with_ties
from tflite_memopt.memory.reserve import needs_by_library
from tflite_memopt.model.io import offline_plan, plan_label
from tflite_memopt.model.io.reader import read_model
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.model.ir.model import Model


def late_reader() -> Model:
    """In the file the state is written before the input in its place is read: another order keeps it."""
    b = ModelBuilder()
    x, h = b.input("x:0", (1, 8)), b.input("h:in", (1, 8))
    state = b.dense(x, 8)
    state.name = "h:out"
    return b.finish(b.dense(h, 4, seed=1), state)


def wide() -> Model:
    """Layers that are cut into stripes, beside a state."""
    b = ModelBuilder()
    x, h = b.input("x:0", (1, 24, 24, 3)), b.input("h:in", (1, 12, 12, 4))
    y = b.conv(b.depthwise(b.conv(x, 16, kernel=3), stride=2), 4)
    state = b.conv(b.add(y, h), 4, kernel=3, seed=2)
    state.name = "h:out"
    return b.finish(b.dense(b.reshape(state, (1, state.elements)), 3), state)


MODELS = {**CELLS, "late_reader": (late_reader, ("h:out:h:in",)), "wide": (wide, ("h:out:h:in",))}


@pytest.mark.few(2)
@pytest.mark.parametrize("name", MODELS)
def test_states_are_planned_in_one_place_and_verified_in_sequence(name: str) -> None:
    build, ties = MODELS[name]
    data = write_model(build())
    result = optimize(data, Options(ties=ties, kernels="reference", samples=4, max_slowdown=0.5))
    assert all(verdict.equal for verdict in result.report.equivalence.values())
    model = read_model(result.model)
    offsets, by_name = offline_plan.decode(model), {tensor.name: tensor for tensor in model.main.tensors}
    assert offsets is not None
    for tie in ties:
        output, source = tie[:5], tie[6:]
        assert offsets[by_name[output]] == offsets[by_name[source]]
    label = plan_label.decode(model)
    assert label is not None
    assert label.options["ties"] == list(ties)


def test_a_plan_with_states_is_not_given_up_where_tflm_alone_needs_less() -> None:
    build, ties = MODELS["cell"]
    options = Options(ties=ties)
    model = with_ties(build(), ties, options.profile)
    made = arrange(model, options.profile, options.search)
    higher = {tensor: offset + 64 for tensor, offset in made.placement.offsets.items()}
    wasteful = replace(made, placement=replace(made.placement, offsets=higher), needs=None)
    before = needs_by_library(model, {}, options.profile)
    assert fitted(model, wasteful, before, options.profile, options.search) is None
    assert fitted(model, wasteful, before, options.profile, Options().search) is not None


def test_a_plan_that_loses_the_state_is_found_out() -> None:
    """The negative control: the same file, its outputs elsewhere."""
    data = write_model(cell())
    result = optimize(data, Options(ties=("h:out:h:in",), kernels="reference", verify=False)).model
    samples, ties = seeded_inputs(read_model(data), 4, 0), ((1, 1),)
    lost = read_model(result)
    offsets = offline_plan.decode(lost)
    assert offsets is not None
    offline_plan.attach(lost, {**offsets, lost.main.outputs[1]: 256})
    with litert_and_tflm() as interpreters:
        for name in ("litert", "tflm"):
            assert difference_in_sequence(name, (data, result), ties, samples, EXACT, interpreters[name]) is None
        said = difference_in_sequence("tflm", (data, write_model(lost)), ties, samples, EXACT, interpreters["tflm"])
    assert said is not None
    assert "invocation 1" in said


@pytest.mark.parametrize("is_lost", [False, True])
def test_verify_runs_sequences_of_a_file_with_ties(is_lost: bool, tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("m.tflite", "tied.tflite")]
    data = write_model(cell())
    made = read_model(optimize(data, Options(ties=("h:out:h:in",), kernels="reference", verify=False)).model)
    offsets = offline_plan.decode(made)
    assert offsets is not None
    if is_lost:
        offline_plan.attach(made, {**offsets, made.main.outputs[1]: 256})
    for path, each in zip(paths, (data, write_model(made)), strict=True):
        path.write_bytes(each)
    done = CliRunner().invoke(cli, ["verify", *map(str, paths), "--samples", "4"])
    assert done.exit_code == int(is_lost), done.output
    assert ("invocation 1" in done.output) == is_lost


@pytest.mark.slow
@examples(12)
@given(
    reads=st.lists(st.sampled_from(["x", "h", "last"]), min_size=1, max_size=6),
    state=st.integers(0, 5),
)
def test_any_order_that_keeps_a_tie_is_found(reads: list[str], state: int) -> None:
    """Sums and layers over an input and a state, one of which is the next state."""
    b = ModelBuilder()
    x, h = b.input("x", (1, 8)), b.input("h", (1, 8))
    made = [b.dense(x, 8)]
    for number, read in enumerate(reads):
        source = {"x": x, "h": h, "last": made[-1]}[read]
        made.append(b.add(b.dense(source, 8, seed=number), made[-1]))
    outputs = dict.fromkeys((made[-1], made[min(state, len(made) - 1)]))
    model = b.finish(*outputs)
    tie = f"{model.main.outputs[-1].name}:h"
    try:
        tied = with_ties(read_model(write_model(model)), (tie,), PROFILES["reference"])
    except UsageError:
        return
    written = tied.tied[0][0].producer
    steps = list(tied.main.operators)
    assert all(steps.index(use.operator) <= steps.index(written) for use in tied.tied[0][1].uses if written in steps)
    options = Options(ties=(tie,), kernels="reference", samples=3, runtimes=("tflm",))
    assert optimize(write_model(model), options).report.equivalence["tflm"].equal


@pytest.mark.parametrize(
    ("build", "arguments", "said"),
    [
        (cell, ("--tie", "h:out"), "--tie h:out: write OUTPUT:INPUT with names of the model; outputs are"),
        (late, ("--tie", "state:h"), "'state' is written where 'h' lies, and ADD reads 'h' then, or later"),
        (cell, ("--tie", "h:out:h:in", "--io", "int8"), "--tie does not work with --io int8: states keep their types"),
        (cell, ("--tie", "h:out:h:in", "--parts", "2"), "--tie does not work with --parts"),
    ],
)
def test_what_cannot_be_tied_is_refused_in_a_line(
    build: object, arguments: tuple[str, ...], said: str, tmp_path: Path
) -> None:
    assert callable(build)
    path, out = tmp_path / "m.tflite", tmp_path / "out"
    path.write_bytes(write_model(build()))
    done = CliRunner().invoke(cli, ["optimize", str(path), "-o", str(out), "--no-verify", *arguments])
    assert done.exit_code != 0
    assert said in done.output + str(done.exception), done.output
    assert not out.exists()
