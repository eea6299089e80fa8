"""Fronts that take rows as they come, on LiteRT with copied states and on TFLM with tied ones; what cannot be fed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from tests.model_builder import ModelBuilder
from tests.models import ALL
from tests.rewrite.test_sequences_along_h import Sequences
from tests.tflm import litert_and_tflm
from tflite_memopt import InfeasibleError, Options
from tflite_memopt.cli import cli
from tflite_memopt.evidence.equivalence.adapter import Array, RunJob, Sample
from tflite_memopt.evidence.equivalence.baseline import arena_for
from tflite_memopt.evidence.equivalence.inputs import seeded_inputs
from tflite_memopt.evidence.equivalence.runner import Interpreters, ModelRunner
from tflite_memopt.evidence.equivalence.sequences import run_streamed
from tflite_memopt.firmware.description import Feed
from tflite_memopt.memory.work import instructions
from tflite_memopt.model.io.reader import read_model
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.model.ir.editor import VALID
from tflite_memopt.model.ir.model import Model
from tflite_memopt.operators.boxes import RESHAPES
from tflite_memopt.run.parts.files import MANIFEST, read_program
from tflite_memopt.run.parts.fronts import AUTO, PIECES, FeedCosts, FrontFile, others_late
from tflite_memopt.run.parts.proving import streamed_by
from tflite_memopt.run.parts.run import optimize_in_parts
from tflite_memopt.run.parts.stretch import SHARE
from tflite_memopt.run.streamed import fed_input, in_rows

pytestmark = pytest.mark.xdist_group("programs")
PLAIN = Options(target="host", jobs=1)


def chain() -> Model:
    b = ModelBuilder()
    y = b.conv(b.input("x", (1, 16, 9, 3), zero_point=-7), 6, kernel=3)
    y = b.conv(b.depthwise(y, stride=2), 5, seed=2)
    return b.finish(b.depthwise(y, seed=3))


def residual() -> Model:
    b = ModelBuilder()
    y = b.conv(b.input("x", (1, 27, 11, 3)), 8, kernel=3, stride=2, padding=VALID)
    y = b.add(b.conv(b.depthwise(b.conv(y, 16)), 8), y)
    return b.finish(b.depthwise(y))


def deep() -> Model:
    """Three strides: a row of the result stands for eight rows of the image."""
    b = ModelBuilder()
    y = b.conv(b.input("x", (1, 48, 20, 3), zero_point=-7), 8, kernel=3, stride=2)
    for seed in range(2):
        y = b.add(b.conv(b.depthwise(b.conv(y, 24, seed=seed), kernel=5), 8, seed=seed), y)
        y = b.depthwise(y, stride=2, seed=seed)
    return b.finish(y)


def branches() -> Model:
    b = ModelBuilder()
    y = b.conv(b.input("x", (1, 12, 8, 2), zero_point=4), 4, kernel=3)
    return b.finish(b.conv(b.concat([b.depthwise(y, seed=1), b.depthwise(y, kernel=5, seed=2)]), 3, kernel=3))


def causal() -> Model:
    """All padding of its windows lies above: what is kept before the first call is read."""
    b = ModelBuilder()
    y = b.input("x", (1, 12, 7, 3), zero_point=9)
    for seed in range(2):
        above = b.tensor(f"above{seed}", (1, 14, *y.shape[2:]), zero_point=9 if seed == 0 else 0)
        amounts = b.constant(f"amounts{seed}", np.asarray([[0, 0], [2, 0], [0, 0], [0, 0]], np.int32))
        b.operator("PAD", (y, amounts), (above,), "PadOptions")
        y = b.depthwise(above, padding=VALID, seed=seed)
    return b.finish(y)


def sequence() -> Model:
    """As Keras converts convolutions of one dimension."""
    s = Sequences(96, 2)
    y = s.pool(s.conv(s.lie(s.x), 8, 9, stride=2), 2)
    y = s.b.add(s.conv(s.lie(s.flat(y), "RESHAPE"), 8, 5), s.conv(y, 8, 1))
    return s.b.finish(s.flat(s.conv(s.pool(y, 4), 4, 3)))


def lying() -> Model:
    """A sequence in one row."""
    s = Sequences(40, 3)
    s.b.graph.inputs, s.x = (), s.b.tensor("lying", (1, 1, 40, 3))
    s.b.graph.inputs = (s.x,)
    return s.b.finish(s.conv(s.conv(s.x, 6, 5), 4, 3, stride=2))


def spectrogram() -> Model:
    """An image that comes flat."""
    b = ModelBuilder()
    y = b.conv(b.reshape(b.input("x", (1, 20 * 10)), (1, 20, 10, 1)), 4, kernel=3, stride=2)
    return b.finish(b.depthwise(y))


def beside() -> Model:
    """An input beside the image, which is added to each row."""
    b = ModelBuilder()
    gain, x = b.input("gain", (1, 1, 1, 6), zero_point=3), b.input("x", (1, 16, 9, 3), zero_point=-7)
    y = b.add(b.conv(x, 6, kernel=3), gain)
    return b.finish(b.conv(b.depthwise(y, stride=2), 5, seed=1))


NETWORKS: dict[str, Callable[[], Model]] = {
    "chain": chain,
    "residual": residual,
    "deep": deep,
    "branches": branches,
    "causal": causal,
    "sequence": sequence,
    "lying": lying,
    "spectrogram": spectrogram,
    "beside": beside,
}
CASES = [("chain", 2), ("chain", 4), ("residual", 2), ("branches", 1), ("branches", 3), ("causal", 1), ("causal", 4)]
CASES += [("sequence", 16), ("sequence", 32), ("lying", 2), ("spectrogram", 2), ("spectrogram", 4)]
CASES += [("beside", 2), ("beside", 4)]
IN_PIECES = [("chain", 4, 2), ("residual", 2, 2), ("causal", 4, 4), ("deep", 8, 2), ("deep", 8, 4)]
IN_PIECES += [("sequence", 16, 4), ("lying", 2, 2), ("beside", 4, 4)]


@cache
def front_of(name: str, rows: int, pieces: int = 1) -> tuple[Model, FrontFile]:
    """The network, and the longest front that can take its rows in this number of pieces."""
    model = in_rows(NETWORKS[name](), PLAIN)
    costs = FeedCosts(model, PLAIN, lambda _: None, rows=rows, image=fed_input(model))
    fronts = ((0, end) for end in reversed(costs.positions[1:]))
    limit = PIECES.index(pieces)
    longest = next((front for front in fronts if len(costs.draft(front)) > limit), None)
    assert longest is not None, costs.reasons
    left = costs.model.main.operators[longest[1] :]
    assert {operator.name for operator in left} <= {*RESHAPES}, costs.reasons
    assert costs.measure(longest, limit) is not None
    return NETWORKS[name](), costs.chosen(longest, limit)


@pytest.fixture(scope="module")
def interpreters() -> Iterator[Interpreters]:
    with litert_and_tflm() as running:
        yield running


def differs(
    name: str, rows: int, runtime: str, interpreters: Interpreters, feed: Feed | None = None, pieces: int = 1
) -> bool:
    """Whether a front makes something else of images than the model makes of them."""
    model, file = front_of(name, rows, pieces)
    samples = seeded_inputs(model, 3, 0)
    run = interpreters["litert"].run(RunJob(write_model(model), samples, 0))
    found = fed_outputs(file.data, feed or file.feed, model, samples, interpreters[runtime])
    assert any(np.ptp(result) > 1 for result in run.outputs[0])
    return any(one.tobytes() != other.tobytes() for one, other in zip(run.outputs[0], found, strict=True))


def fed_outputs(data: bytes, feed: Feed, whole: Model, samples: list[Sample], runner: ModelRunner) -> list[Array]:
    """The first output of a front for each image, another one of which is abandoned before it."""
    front = read_model(data)
    run = run_streamed(runner, data, streamed_by(feed, front), samples, whole.main.outputs, arena_for(front))
    assert run.ran, run.reason
    return run.outputs[0]


@pytest.mark.parametrize("runtime", ["litert", "tflm"])
@pytest.mark.parametrize(("name", "rows"), CASES)
def test_rows_give_what_the_image_gives(name: str, rows: int, runtime: str, interpreters: Interpreters) -> None:
    assert not differs(name, rows, runtime, interpreters)


@pytest.mark.slow
@pytest.mark.parametrize("runtime", ["litert", "tflm"])
@pytest.mark.parametrize(("name", "rows", "pieces"), IN_PIECES)
def test_pieces_give_what_the_image_gives(
    name: str, rows: int, pieces: int, runtime: str, interpreters: Interpreters
) -> None:
    assert not differs(name, rows, runtime, interpreters, pieces=pieces)


@pytest.mark.slow
def test_in_pieces_it_needs_less() -> None:
    assert front_of("deep", 8, 4)[1].placement.memory.arena_bytes < front_of("deep", 8)[1].placement.memory.arena_bytes


@pytest.mark.parametrize(("name", "rows"), [("sequence", 16), ("lying", 2)])
def test_a_sequence_lies_in_one_row(name: str, rows: int) -> None:
    """Convolutions take several pixels of a row at a time."""
    front = read_model(front_of(name, rows)[1].data)
    assert {tensor.shape[1] for tensor in front.main.tensors if len(tensor.shape) == 4} == {1}
    image = read_model(front_of("chain", 4)[1].data)
    assert image.main.inputs[0].shape == (1, 4, 9, 3)


def with_kept(feed: Feed) -> Feed:
    """The same, with other bytes in what is kept before the first call."""
    return replace(feed, ties=tuple(replace(t, fill=None if t.fill is None else t.fill ^ 0x40) for t in feed.ties))


WRONG: dict[str, tuple[str, int, Callable[[Feed], Feed]]] = {
    "padding": ("chain", 4, lambda feed: replace(feed, padding=feed.padding ^ 0x40)),
    "lead": ("chain", 4, lambda feed: replace(feed, lead=feed.lead - 1)),
    "masks": ("chain", 4, lambda feed: replace(feed, step=0)),
    "kept": ("causal", 1, with_kept),
}


@pytest.mark.parametrize("runtime", ["litert", "tflm"])
@pytest.mark.parametrize("name", WRONG)
def test_what_is_fed_wrongly_shows(name: str, runtime: str, interpreters: Interpreters) -> None:
    """The negative controls."""
    network, rows, wrong = WRONG[name]
    assert differs(network, rows, runtime, interpreters, wrong(front_of(network, rows)[1].feed))


def without_masks(model: Model) -> Model:
    """A front in which no row outside the image is overwritten."""
    for operator in list(model.main.operators):
        if operator.name == "SELECT_V2" or (
            operator.name == "DYNAMIC_UPDATE_SLICE" and operator.outputs[0] is not model.main.outputs[0]
        ):
            source = operator.inputs[1 if operator.name == "SELECT_V2" else 0]
            assert source is not None
            model.main.replace_uses(operator.outputs[0], source)
            model.main.remove_operator(operator)
    return model


@pytest.mark.slow
def test_without_masks_it_is_wrong(interpreters: Interpreters) -> None:
    model, file = front_of("chain", 4)
    bare = write_model(without_masks(read_model(file.data)))
    samples = seeded_inputs(model, 2, 0)
    run = interpreters["litert"].run(RunJob(write_model(model), samples, 0))
    found = fed_outputs(bare, file.feed, model, samples, interpreters["litert"])
    assert not np.array_equal(run.outputs[0][0], found[0])


def run(*arguments: object) -> tuple[int, str]:
    found = CliRunner().invoke(cli, [str(each) for each in arguments])
    return found.exit_code, found.output + ("" if found.exception is None else str(found.exception))


def with_dense() -> Model:
    b = ModelBuilder()
    y = b.conv(b.input("x", (1, 32, 24, 3), zero_point=-7), 12, kernel=3)
    y = b.conv(b.depthwise(b.conv(b.depthwise(y), 12), stride=2, seed=1), 4, seed=1)
    return b.finish(b.dense(b.reshape(y, (1, y.elements)), 5), y)


@pytest.mark.slow
def test_the_whole_way(tmp_path: Path) -> None:
    path, folder = tmp_path / "m.tflite", tmp_path / "program"
    path.write_bytes(write_model(with_dense()))
    how = ("--feed", "auto", "--target", "cortex-m7", "--max-slowdown", "90", "--effort", "quick")
    code, said = run("optimize", path, "-o", folder, *how)
    assert code == 0, said
    assert "rows a call" in said
    assert "2025-11-10" in said
    program, parts = read_program(folder)
    assert program.feed is not None
    assert program.feed.rows * program.feed.calls >= program.feed.height
    assert program.arena < program.whole_bytes
    assert program.tflm_since == "2025-11-10"
    assert all(part.head > 0 < part.tail and part.head + part.tail <= program.arena for part in program.parts)
    code, said = run("verify", path, folder, "--samples", 2)
    assert code == 0, said
    code, said = run("codegen", path, folder, "-o", tmp_path / "both", "--target", "cortex-m7")
    assert code != 0
    assert str(folder) in said
    other = json.loads((folder / MANIFEST).read_text())
    other["feed"]["padding"] ^= 0x40
    (folder / MANIFEST).write_text(json.dumps(other))
    code, said = run("verify", path, folder, "--samples", 2)
    assert code == 1, said
    assert len(parts) == len(program.parts)


@pytest.mark.slow
def test_the_least_head_has_a_budget_of_its_own(tmp_path: Path) -> None:
    path, folder = tmp_path / "m.tflite", tmp_path / "program"
    path.write_bytes(write_model(with_dense()))
    how = ("--feed", "4", "--target", "cortex-m7", "--max-slowdown", "90", "--changes", "order", "--no-verify")
    code, said = run("optimize", path, "-o", folder, *how, "--objective", "head", "--budget", "1K")
    assert code == 3, said
    program, _ = read_program(folder)
    assert f"-> {program.head:,} bytes" in said
    assert program.head < program.arena
    code, said = run("optimize", path, "-o", folder, *how, "--objective", "head", "--budget", program.head, "--force")
    assert code == 0, said
    code, said = run("optimize", path, "-o", folder, "--parts", "auto", "--objective", "head", "--force")
    assert code != 0
    assert "--objective head" in said


@pytest.mark.slow
def test_steps_of_a_sequence_are_rows_as_well(tmp_path: Path) -> None:
    s = Sequences(192, 2)
    y = s.flat(s.pool(s.conv(s.pool(s.conv(s.lie(s.x), 8, 9, stride=2), 2), 8, 5), 4))
    data = write_model(s.b.finish(s.b.dense(s.b.reshape(y, (1, y.elements)), 5)))
    images = tmp_path / "inputs.npz"
    np.savez(images, x=np.random.default_rng(0).integers(-128, 128, (2, 1, 192, 2)).astype(np.int8))
    options = Options(target="cortex-m7", max_slowdown=1.0, effort="quick", inputs=images)
    program = optimize_in_parts(data, options, 2, feed=AUTO).program
    assert program.verified.startswith("bit-exact on 2 inputs")
    assert program.feed is not None
    assert (program.feed.height, program.feed.row_bytes) == (192, 2)
    assert program.arena < program.whole_bytes


def test_the_limit_on_run_time_is_of_the_model_as_it_came(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cleaned up and laid along rows it takes another time."""
    made: list[FeedCosts] = []

    class Seen(FeedCosts):
        def __init__(self, *arguments: Any, **named: Any) -> None:
            super().__init__(*arguments, **named)
            made.append(self)

    monkeypatch.setattr("tflite_memopt.run.parts.run.FeedCosts", Seen)
    s = Sequences(64, 2)
    y = s.flat(s.conv(s.conv(s.lie(s.x), 8, 3), 8, 3))
    data = write_model(s.b.finish(s.b.dense(s.b.reshape(y, (1, y.elements)), 5)))
    options = Options(target="cortex-m7", max_slowdown=0.9, effort="quick", verify=False)
    with suppress(InfeasibleError):
        optimize_in_parts(data, options, 2, feed=AUTO)
    before, now = (sum(instructions(each, options.profile).values()) for each in (read_model(data), made[0].model))
    assert before != now
    assert now + before * 0.9 * made[0].most_work / SHARE == pytest.approx(before * 1.9, rel=1e-4)


@pytest.mark.slow
def test_all_of_a_network_can_be_its_front() -> None:
    options = Options(target="cortex-m7", max_slowdown=1.0, effort="quick", samples=2)
    b = ModelBuilder()
    y = b.conv(b.conv(b.input("x", (1, 48, 16, 3)), 16, kernel=3), 8, kernel=3)
    program = optimize_in_parts(write_model(b.finish(y)), options, 1, feed=4).program
    assert len(program.parts) == 1
    assert program.verified.startswith("bit-exact")


def with_others() -> Model:
    """Two images, one of them added to each row, and what comes with them."""
    b = ModelBuilder()
    age, second, x = b.input("age", (1, 4)), b.input("second", (1, 8, 24, 3)), b.input("x", (1, 32, 24, 3))
    old, small = b.dense(age, 5), b.conv(second, 2, kernel=3)
    y = b.conv(b.depthwise(b.conv(x, 12, kernel=3), stride=2, seed=1), 4, seed=1)
    flat = [b.dense(b.reshape(each, (1, each.elements)), 5, seed) for seed, each in enumerate((y, small))]
    return b.finish(b.concat([old, *flat], axis=1))


@pytest.mark.slow
@pytest.mark.parametrize(("how", "rows"), [(("4",), 32), (("2,input=second",), 8)])
def test_one_of_several_inputs_is_fed(how: tuple[str, ...], rows: int, tmp_path: Path) -> None:
    """The largest, or the one that is named; the others stay until the parts behind the front read them."""
    path, folder = tmp_path / "m.tflite", tmp_path / "program"
    path.write_bytes(write_model(with_others()))
    options = ("--target", "cortex-m7", "--max-slowdown", "90", "--effort", "quick", "--parts", 3)
    code, said = run("optimize", path, "-o", folder, "--feed", *how, *options)
    assert code == 0, said
    program, _ = read_program(folder)
    assert program.feed is not None
    assert program.feed.height == rows
    assert {each.name for each in program.parts[0].inputs} == {"age", "second", "x"}
    assert run("verify", path, folder, "--samples", 2)[0] == 0


def test_what_reads_nothing_of_the_image_runs_late() -> None:
    model = with_others()
    others_late(model, 2)
    names = [operator.name for operator in model.main.operators]
    assert names[:4] == ["CONV_2D", "DEPTHWISE_CONV_2D", "CONV_2D", "RESHAPE"]
    assert model.main.operators[0].inputs[0] is model.main.inputs[2]


def test_a_wrong_name_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "m.tflite"
    path.write_bytes(write_model(with_others()))
    code, said = run("optimize", path, "-o", tmp_path / "program", "--feed", "4,input=y")
    assert code != 0
    assert [name for name in ("--feed", "'y'", "age, second, x") if name not in said] == []


def test_what_is_read_in_rows_as_well_is_no_input_beside_the_image() -> None:
    b = ModelBuilder()
    x, other = b.input("x", (1, 14, 9, 3)), b.input("other", (1, 14, 9, 3))
    costs = FeedCosts(b.finish(b.conv(b.add(x, other), 6, kernel=3)), PLAIN, lambda _: None)
    assert "'other'" in (costs.why_none() or "")


def test_a_reshape_of_the_input_alone_is_no_front_to_give_the_reason() -> None:
    b = ModelBuilder()
    image = b.reshape(b.input("x", (1, 1960)), (1, 49, 40, 1))
    y = b.reshape(b.conv(image, 2, kernel=3), (1, 49 * 40 * 2))
    costs = FeedCosts(b.finish(b.dense(y, 4)), PLAIN, lambda _: None)
    costs.most = 16
    assert "bytes at least" in (costs.why_none() or "")


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("mobile_chain", ("0",), "'0'"),
        ("mobile_chain", ("steps=4",), "'steps=4'"),
        ("mobile_chain", ("5",), "--feed: 5 rows"),
        ("mobile_chain", ("8", "--report", "r.svg"), "--report"),
        ("mobile_chain", ("8", "--parts", "1"), "--feed: "),
        ("mobile_chain", ("2", "--tflm", "2025-01-01"), "2025-11-10"),
        ("dense_model", ("1",), "no rows"),
        ("streaming_model", ("1",), "state"),
    ],
)
def test_what_cannot_be_fed_is_refused_in_a_line(
    name: str, arguments: tuple[str, ...], said: str, tmp_path: Path
) -> None:
    path = tmp_path / "m.tflite"
    path.write_bytes(write_model(ALL[name]()))
    code, output = run(
        "optimize", path, "-o", tmp_path / "out", "--no-verify", "--effort", "quick", "--feed", *arguments
    )
    assert code != 0
    assert said in output, output
    assert not (tmp_path / "out").exists()


def test_analyze_says_what_rows_would_bring(tmp_path: Path) -> None:
    b = ModelBuilder()
    y = b.conv(b.input("x", (1, 64, 64, 3)), 4, kernel=3, stride=2)
    y = b.conv(b.depthwise(y, stride=2), 8, seed=1)
    wide, narrow = tmp_path / "wide.tflite", tmp_path / "narrow.tflite"
    wide.write_bytes(write_model(b.finish(b.dense(b.reshape(y, (1, y.elements)), 2))))
    narrow.write_bytes(write_model(ALL["dense_model"]()))
    code, said = run("analyze", wide)
    assert code == 0, said
    assert "the image takes 12,288 bytes, below which no plan goes" in said.replace("\n", " ")
    assert "the image takes" not in run("analyze", narrow)[1]
