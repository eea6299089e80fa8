"""Who vouches for a plan: only what another run has in the same bits counts, and a fault is found as before."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from tests.memory.loops import looped, placement_of, plain
from tests.models import mobile_chain
from tflite_memopt import EquivalenceError, Options
from tflite_memopt.analysis.loops import loops_of
from tflite_memopt.analysis.placeholders import spent_in_rows
from tflite_memopt.equivalence.correspondence import Link
from tflite_memopt.equivalence.exposure import snapshots
from tflite_memopt.equivalence.failure import Subject
from tflite_memopt.equivalence.inputs import seeded_inputs
from tflite_memopt.equivalence.limits import ProcessLimits
from tflite_memopt.equivalence.original import arena_for
from tflite_memopt.equivalence.plan_judge import PlanJob, judge_plan
from tflite_memopt.equivalence.pool import Interpreters, open_interpreters
from tflite_memopt.equivalence.proof import Proof, prove
from tflite_memopt.equivalence.runner import Interpreter
from tflite_memopt.equivalence.trace import Trace
from tflite_memopt.equivalence.vouching import Witnesses
from tflite_memopt.io import offline_plan
from tflite_memopt.io.reader import read_model
from tflite_memopt.io.writer import write_model
from tflite_memopt.ir.model import Model
from tflite_memopt.ir.origin import pieces_in, pieces_in_loops

BOTH = Options(samples=3, runtimes=("litert", "tflm"))
WHOLE, ROWS, NEW = 0, 1, 2
"""Of the optimised model: a tensor of the original, two of its three rows, and one that the original has not."""


@pytest.fixture(scope="module")
def interpreters() -> Iterator[Interpreters]:
    with open_interpreters(("tflm",), ProcessLimits()) as found:
        yield found


def values(*shape: int, start: int = 0) -> np.ndarray:
    return (np.arange(np.prod(shape)) + start).astype(np.int8).reshape(shape)


def traces() -> tuple[Trace, Trace, Trace]:
    """Two samples: the original's on TFLM, the optimised model's elsewhere, and as planned. All is right."""
    originals = [values(1, 3, 2, 1), values(1, 3, 2, 1, start=9)]
    rows = [each[:, 1:] for each in originals]
    new = [values(4), values(4, start=7)]
    original = Trace({}, {5: originals})
    elsewhere = Trace({}, {WHOLE: originals, ROWS: rows, NEW: new})
    planned = Trace({}, {at: [each.copy() for each in kept] for at, kept in elsewhere.tensors.items()})
    return original, elsewhere, planned


LINKS = (Link(5, WHOLE), Link(5, ROWS, (0, 1, 0, 0)))


def witnesses(original: Trace, elsewhere: Trace | None, links: tuple[Link, ...] = LINKS) -> Witnesses:
    return Witnesses(original, links, lambda: elsewhere, frozenset((WHOLE, ROWS)))


@pytest.mark.parametrize("at", [WHOLE, ROWS, NEW])
@pytest.mark.parametrize("sample", [0, 1])
def test_one_value_that_nobody_else_has_is_not_vouched_for(at: int, sample: int) -> None:
    original, elsewhere, planned = traces()
    assert witnesses(original, elsewhere).vouch(planned)
    planned.tensors[at][sample].flat[-1] ^= 1
    assert not witnesses(original, elsewhere).vouch(planned)


def test_either_witness_will_do_and_each_for_itself() -> None:
    original, elsewhere, planned = traces()
    elsewhere.tensors[WHOLE] = [each + np.int8(1) for each in elsewhere.tensors[WHOLE]]
    assert witnesses(original, elsewhere).vouch(planned)  # LiteRT rounds in its own way, the original on TFLM agrees
    assert not witnesses(original, elsewhere, links=()).vouch(planned)
    assert not witnesses(original, None).vouch(planned)  # of the new tensor nobody knows anything
    del planned.tensors[NEW]
    assert witnesses(original, None).vouch(planned)


def test_what_is_to_be_compared_must_be_shown() -> None:
    original, elsewhere, planned = traces()
    del planned.tensors[ROWS]
    assert not witnesses(original, elsewhere).vouch(planned)


def test_a_link_into_a_loop_says_nothing_of_rows_beyond_the_edge() -> None:
    original, _, planned = traces()
    turning = (LINKS[0], Link(5, ROWS, (0, 0, 0, 0), turns=(0, 2), height=3))
    turns = [
        np.concatenate([each[:, :2], np.concatenate([each[:, 2:], each[:, 2:] * 0 + 77], 1)])
        for each in original.tensors[5]
    ]
    shown = Trace({}, {WHOLE: planned.tensors[WHOLE], ROWS: turns})
    assert not witnesses(original, None, turning).vouch(shown)
    known = Trace({}, {ROWS: [each.copy() for each in turns]})
    assert witnesses(original, known, turning).vouch(shown)
    known.tensors[ROWS][1][-1, -1] = 0
    assert not witnesses(original, known, turning).vouch(shown)


def counted(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The models that TFLM runs from here on."""
    ran: list[bytes] = []
    run = Interpreter.run

    def counting(self: Interpreter, job: object) -> object:
        if self.runtime == "tflm":
            ran.append(job.model)  # type: ignore[attr-defined]
        return run(self, job)  # type: ignore[arg-type]

    monkeypatch.setattr(Interpreter, "run", counting)
    return ran


def proved(original: bytes, planned: bytes, options: Options = BOTH) -> Proof:
    return prove(Subject(original, original, planned), options, lambda _: None)


@pytest.mark.usefixtures("no_modules")
def test_a_right_plan_takes_four_runs_with_a_witness_and_five_without(monkeypatch: pytest.MonkeyPatch) -> None:
    original = write_model(mobile_chain())
    model = read_model(original)
    offline_plan.attach(model, placement_of(model).offsets)
    planned = write_model(model)
    ran = counted(monkeypatch)
    with_witness = proved(original, planned).verdicts["tflm"]
    assert len(ran) == 4
    ran.clear()
    monkeypatch.setattr(Witnesses, "vouch", lambda *_: False)
    alone = proved(original, planned).verdicts["tflm"]
    assert len(ran) == 5
    assert with_witness == alone
    assert with_witness.equal


def test_a_wrong_plan_is_found_beside_witnesses_and_in_the_same_words() -> None:
    original = write_model(mobile_chain())
    model = read_model(original)
    offline_plan.attach(model, {tensor: 0 for tensor in model.main.tensors if not tensor.is_constant})
    words = []
    for options in (BOTH, replace(BOTH, runtimes=("tflm",))):
        with pytest.raises(EquivalenceError, match="the plan changes values: at its last use, tensor 'conv0'") as found:
            proved(original, write_model(model), options)
        words.append(str(found.value))
    assert words[0] == words[1]


def of_loop(model: Model) -> Subject:
    original = write_model(plain())
    return Subject(
        original, original, write_model(model), pieces=pieces_in(model.main), loop_pieces=pieces_in_loops(model)
    )


def test_two_tensors_of_a_loop_at_one_place_are_found_beside_witnesses() -> None:
    model = looped("masked")
    offsets = placement_of(model).offsets
    (loop,) = loops_of(model)
    operator = next(each for each in loop.body.operators if each.name == "CONV_2D")
    source = operator.inputs[0]
    assert source is not None
    offline_plan.attach(model, {**offsets, operator.outputs[0]: offsets[source]})
    with pytest.raises(EquivalenceError, match=r"not equal on tflm: the plan changes values|crashed|a fault"):
        prove(of_loop(model), BOTH, lambda _: None)


def test_what_is_given_up_row_by_row_is_shown_before_anybody_has_read_it(interpreters: Interpreters) -> None:
    model = looped("peeled")
    offline_plan.attach(model, placement_of(model).offsets)
    data = write_model(model)
    written = read_model(data)
    (image,) = spent_in_rows(written)
    (shown,) = snapshots(data, 10_000)
    assert written.main.tensors.index(image) in shown.tensors.values()
    copy, reader = read_model(shown.model).main.operators[:2]
    assert (copy.outputs[0].name[:8], reader.name) == ("snapshot", "SLICE")
    samples = seeded_inputs(written, 3, 0)
    found = judge_plan(PlanJob(interpreters["tflm"], data, written, samples, arena_for(written)))
    assert (found.reason, found.difference) == (None, None)
