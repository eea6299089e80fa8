"""Parts against the whole: the tensors at each cut, as the original computes them, and the parts in sequence."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ...errors import EquivalenceError, ErrorKind
from ...evidence.equivalence.adapter import Array, RunJob, Sample
from ...evidence.equivalence.baseline import arena_for, measure_baseline, run_on_litert
from ...evidence.equivalence.compare import Gap, gap_between
from ...evidence.equivalence.inputs import samples_for
from ...evidence.equivalence.interface import SAME, interface_between
from ...evidence.equivalence.judge import first_difference
from ...evidence.equivalence.runner import Interpreters, ModelRunner, ProcessLimits
from ...evidence.equivalence.sequences import run_streamed
from ...evidence.equivalence.verification import open_for
from ...evidence.proof import Status
from ...firmware.description import Feed
from ...firmware.self_test import Expected, drawn_inputs
from ...memory.file import naming, read_planned
from ...model.io.files import Source, load
from ...model.io.reader import read_model
from ...model.io.writer import write_model
from ...model.ir.change import Exactness, loosest
from ...model.ir.model import Graph, Model, Tensor
from ...options import Options
from ..candidate import Progress
from .files import PROVED, read_program
from .manifest import check_program
from .proving import differing_ends, prove_plans, prove_program, streamed_by

_NAMES = {"litert": "LiteRT", "tflm": "TFLM's reference kernels"}
_WORDS: Mapping[Exactness, str] = {
    "exact": "bit-exact",
    "reassociates": "up to the order of float sums",
    "approximates": "but for integers that are rounded once more",
}
Values = list[Sample]
"""For each input of the program, one array per tensor."""


@dataclass(frozen=True)
class PartInputs:
    """A part's file before it is optimized, and its inputs as the original computes them; None where nothing ran."""

    data: bytes
    samples: list[Sample] | None


def boundaries_of(model: Model, pieces: Sequence[Model], options: Options, progress: Progress) -> list[PartInputs]:
    """Compute the inputs of each part: the original runs on LiteRT over the inputs that verification draws."""
    files = [write_model(piece) for piece in pieces]
    if not options.verify:
        return [PartInputs(data, None) for data in files]
    progress("computing the tensors that cross the cuts")
    samples = samples_for(model, options if options.io == "keep" else replace(options, inputs=None))
    with open_for(options) as interpreters:
        run = run_on_litert(write_model(model), model, interpreters, samples).run
    if run is None:
        return [PartInputs(data, None) for data in files]
    given = {tensor.name: [sample[at] for sample in samples] for at, tensor in enumerate(model.main.inputs)}
    values = {**{model.main.tensors[at].name: column for at, column in run.tensors.items()}, **given}
    return [
        PartInputs(data, [list(row) for row in zip(*(values[t.name] for t in piece.main.inputs), strict=True)])
        for data, piece in zip(files, pieces, strict=True)
    ]


def verify_program(
    original: bytes,
    parts: Sequence[bytes],
    options: Options,
    progress: Progress,
    exactness: Exactness = "exact",
    feed: Feed | None = None,
) -> str:
    """Run the parts in sequence on each runtime, and compare with the original there; return the basis in words.

    ``exactness``: how far the rewriting may have changed values. ``feed``: how the first part takes its image; None:
    whole. Raises EquivalenceError when outputs differ, or when
    no runtime runs both.
    """
    model, models = read_model(original), [read_model(part) for part in parts]
    with open_for(options) as interpreters:
        progress("verifying the parts one after another")
        baseline = measure_baseline(original, model, options, interpreters)
        joined = _joined(baseline.model, models, feed)
        interface = interface_between(baseline.model, joined)
        reason = differing_ends(baseline.model, models, feed, converts=interface != SAME)
        if reason is not None:
            raise EquivalenceError(f"the parts are not those of the original: {reason}", ErrorKind.INTERFACE)
        plans = prove_plans(parts, feed)
        wrong = next((each for each in plans if each.status is Status.DIFFERENT), None)
        if wrong is not None:
            raise EquivalenceError(f"the memory plan of a part is wrong: {wrong.reason}")
        ran, gaps, held = {}, list[Gap](), [exactness]
        for name, each in baseline.runs.items():
            if each.run is None or each.faults:  # what it computes wrongly is no measure
                continue
            samples = [interface.given(sample) for sample in baseline.samples]
            outputs = interface.restored_outputs(
                outputs_of_parts(name, parts, [*models, joined], samples, baseline.runner(name, interpreters), feed)
            )
            ran[name], held_to = first_difference(baseline, name, outputs, exactness)
            held.append(held_to)
            gaps.append(gap_between(each.run.outputs, outputs, {}))
    for name, difference in ran.items():
        if difference is not None:
            raise EquivalenceError(
                f"the parts one after another are not equal to the original on {name}: output {difference.output} of "
                f"input {difference.sample} is off by up to {difference.max_abs_diff:g}"
            )
    if not ran:
        raise EquivalenceError(
            "nothing can be verified: no interpreter runs the original; give inputs that it takes with --inputs",
            ErrorKind.NOT_RUN,
        )
    proof = prove_program(baseline.model, models, feed)
    apart = max((gap.max_lsb_diff for gap in gaps if gap.max_lsb_diff is not None), default=None)
    said = said_of(len(baseline.samples), ran, loosest(held), apart if exactness == "approximates" else None)
    is_proved = all(each.proved for each in (proof, *plans))
    return f"{said}{PROVED}" if is_proved and exactness != "approximates" else said


def said_of(inputs: int, runtimes: Iterable[str], exactness: Exactness = "exact", apart: float | None = None) -> str:
    """Say how equal the outputs are, and on what basis. ``apart``: the largest difference in steps, or None."""
    where = " and ".join(_NAMES.get(each, each) for each in sorted(runtimes))
    how = _WORDS[exactness] if apart is None else f"{_WORDS[exactness]}, at most {apart:g} LSB apart,"
    return f"{how} on {inputs} inputs ({where})"


def expected_of(parts: Sequence[bytes], feed: Feed | None = None) -> Expected:
    """Run the parts of a program one after another on TFLM, over the inputs that its firmware draws.

    The inputs beside a fed image are drawn first, as the main program writes them.
    """
    models = [read_model(part) for part in parts]
    inputs = models[0].main.inputs
    if feed is None:
        samples = drawn_inputs(inputs)
    else:
        image = replace(inputs[0], shape=(feed.height, feed.row_bytes // inputs[0].dtype.arena_bytes))
        order = (*feed.others, 0)
        drawn = drawn_inputs([inputs[at] if at else image for at in order])
        samples = [[sample[order.index(at)] for at in feed.inputs] for sample in drawn]
    with Interpreters((), ProcessLimits()) as interpreters:
        try:
            outputs = outputs_of_parts("tflm", parts, [*models, models[-1]], samples, interpreters["tflm"], feed)
        except EquivalenceError as error:
            return Expected(reason=f"codegen could not run the program on TFLM ({error})")
    rows = tuple([outputs[at][run] for at in sorted(outputs)] for run in range(len(samples)))
    return Expected(rows, "these parts on TFLM's reference kernels", None)


def _joined(original: Model, parts: Sequence[Model], feed: Feed | None) -> Model:
    """Return the interface of the program as a model's; rows are those of the input in any shape."""
    graph, first, last = Graph(), parts[0].main, parts[-1].main
    graph.inputs, graph.outputs = first.inputs, last.outputs
    if feed is not None:
        graph.inputs = _shaped([first.inputs[at] for at in feed.inputs], original.main.inputs)
    if feed is not None and len(parts) == 1:
        graph.outputs = _shaped(last.outputs[: len(original.main.outputs)], original.main.outputs)
    return replace(parts[0], graphs=[graph])


def _shaped(tensors: Sequence[Tensor], like: Sequence[Tensor]) -> tuple[Tensor, ...]:
    return tuple(replace(tensor, shape=other.shape) for tensor, other in zip(tensors, like, strict=True))


def outputs_of_parts(
    name: str, parts: Sequence[bytes], models: Sequence[Model], samples: Values, runner: ModelRunner, feed: Feed | None
) -> dict[int, list[Array]]:
    """Return the outputs of the last part, each run on outputs of the one before; then ``models`` has the whole.

    Raises EquivalenceError where a part does not run.
    """
    outputs: dict[int, list[Array]] = {}
    for number, data in enumerate(parts):
        if feed is not None and number == 0:
            like = models[1].main.inputs if len(parts) > 1 else models[1].main.outputs
            stream = streamed_by(feed, models[0])
            run = run_streamed(runner, data, stream, samples, like, arena_for(models[0]))
        else:
            run = runner.run(RunJob(data, samples, arena_for(models[number])))
        if not run.ran:
            raise EquivalenceError(f"part {number} does not run on {name}: {run.reason}")
        outputs = {at: list(column) for at, column in run.outputs.items()}
        samples = [list(row) for row in zip(*(outputs[at] for at in sorted(outputs)), strict=True)]
    return outputs


def verify_folder(original: Source, folder: Path, options: Options, progress: Progress) -> str:
    """As ``verify_program``, of the program in a folder, and of what its manifest says of it.

    Raises UsageError for a folder that is not whole.
    """
    data, name = load(original)
    with naming(name):
        read_planned(data)
    program, parts = read_program(folder)
    check_program(data, program, parts)
    return verify_program(data, parts, options, progress, feed=program.feed)
