"""Firmware of random networks, run on TFLM: are outputs the original's, and is the arena exactly what it takes?"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from scripts.benchmarks.networks import random_networks
from scripts.fuzzing.judge import differs
from scripts.fuzzing.kernels import vector_network
from tests.firmware.compiled import HOST, run_on_tflm
from tests.firmware.generated import generate, generate_program
from tflite_memopt import Options, optimize
from tflite_memopt.errors import MemoptError
from tflite_memopt.evidence.equivalence.adapter import RunJob, Sample
from tflite_memopt.evidence.equivalence.baseline import arena_for, run_on_litert
from tflite_memopt.evidence.equivalence.runner import Interpreters
from tflite_memopt.firmware import Planner
from tflite_memopt.firmware.description import Feed
from tflite_memopt.firmware.self_test import Expected, drawn_inputs
from tflite_memopt.model.io.files import write_folder
from tflite_memopt.model.io.reader import read_model
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.run.parts.run import optimize_in_parts

_OPTIONS = Options(target=HOST, verify=False, effort="quick")
Files = Mapping[str, bytes]
Make = Callable[[bytes, Interpreters], Files]


@dataclass
class Ends:
    """How firmware ended, by kind. ``equal``: to LiteRT; ``tflm``: to TFLM's run of the original, LiteRT differs."""

    equal: Counter[str] = field(default_factory=Counter)
    tflm: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    why: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)


def of_network(number: int, interpreters: Interpreters, ends: Ends) -> None:
    """Write one kind of firmware for a network and run it, then again in an arena that is 16 bytes smaller.

    Kinds come in turn. Images that are cut or fed are those of stock layers.
    """
    draw, kind = random.Random(f"firmware {number}"), tuple(KINDS)[number % len(KINDS)]
    if kind in ("parts", "rows"):
        data = write_model(vector_network(number))
    else:
        (data,) = random_networks(1, number)
    try:
        (expected, runtime), files = KINDS[kind].make(data, draw, interpreters)
    except MemoptError as error:
        ends.refused[kind] += 1
        ends.why[f"{kind}: {error}".split(" (")[0][:120]] += 1
        return
    main = KINDS[kind].main
    with TemporaryDirectory() as name:
        folder = Path(name)
        write_folder(folder, files(expected), (), force=True)
        code, said = run_on_tflm(folder, main)
        if code or "PASS" not in said:
            ends.wrong.append(f"network {number}, {kind}: ended with {code}: {said[-300:]}")
            return
        for header, size in KINDS[kind].sizes:
            text = (folder / header).read_text()
            smaller = re.sub(size, r"\1 - 16", text)
            if smaller == text:
                raise RuntimeError(f"{header} has no {size}")
            (folder / header).write_text(smaller)
            if run_on_tflm(folder, main)[0] == 0:
                ends.wrong.append(f"network {number}, {kind}: passes with 16 bytes less in {header}, {size}")
            (folder / header).write_text(text)
    (ends.equal if runtime == "litert" else ends.tflm)[kind] += 1


Drawn = tuple[tuple[Expected, str], Callable[[Expected], Files]]


def _whole(planner: Planner) -> Callable[[bytes, random.Random, Interpreters], Drawn]:
    def make(data: bytes, draw: random.Random, interpreters: Interpreters) -> Drawn:
        del draw
        small = optimize(data, _OPTIONS).model
        expected = _expected(data, drawn_inputs(read_model(data).main.inputs), interpreters)
        return expected, lambda wanted: generate(small, HOST, planner=planner, expected=wanted)

    return make


def _in_parts(data: bytes, draw: random.Random, interpreters: Interpreters) -> Drawn:
    found = optimize_in_parts(data, replace(_OPTIONS, max_slowdown=0.5), draw.choice((2, 3)))
    expected = _expected(data, drawn_inputs(read_model(data).main.inputs), interpreters)
    return expected, lambda wanted: generate_program(found.program, found.models, expected=wanted)


def _in_rows(data: bytes, draw: random.Random, interpreters: Interpreters) -> Drawn:
    found = optimize_in_parts(data, replace(_OPTIONS, max_slowdown=1.0), 2, feed=draw.choice((2, 4)))
    feed = found.program.feed
    assert isinstance(feed, Feed)
    inputs = read_model(data).main.inputs
    image = feed.inputs.index(0)
    beside = [at for at in range(len(inputs)) if at != image]
    order = [*sorted(beside, key=lambda at: feed.others.index(feed.inputs[at])), image]
    samples = [
        [sample[order.index(at)] for at in range(len(inputs))] for sample in drawn_inputs([inputs[at] for at in order])
    ]
    expected = _expected(data, samples, interpreters)
    return expected, lambda wanted: generate_program(found.program, found.models, expected=wanted)


@dataclass(frozen=True)
class Kind:
    """A way to write firmware. ``sizes``: a header and a pattern for the size of each arena. ``main``: its program."""

    make: Callable[[bytes, random.Random, Interpreters], Drawn]
    sizes: tuple[tuple[str, str], ...]
    main: str = "main.cc"


_ARENA, *_HALVES = (
    ("arena.h", rf"(std::size_t {name} = ForThisCompiler\([^)]*\))")
    for name in ("kArenaBytes", "kHeadArenaBytes", "kTailArenaBytes")
)
_OF_PROGRAM = (("program.h", r"(kArenaBytes = \d+)"),)
KINDS: Mapping[str, Kind] = {
    "plan in the file": Kind(_whole("metadata"), (_ARENA,)),
    "two arenas": Kind(_whole("metadata"), tuple(_HALVES), "main_two_arenas.cc"),
    "plan table": Kind(_whole("table"), (_ARENA,)),
    "parts": Kind(_in_parts, _OF_PROGRAM),
    "rows": Kind(_in_rows, _OF_PROGRAM),
}


def _expected(data: bytes, samples: list[Sample], interpreters: Interpreters) -> tuple[Expected, str]:
    """Run the original on LiteRT and TFLM: the outputs, and who gives them. Raises MemoptError if TFLM does not run."""
    model = read_model(data)
    litert, tflm = (
        run_on_litert(data, model, interpreters, samples).run,
        interpreters["tflm"].run(RunJob(data, samples, arena_for(model))),
    )
    if not tflm.ran:
        raise MemoptError(f"TFLM does not run the original: {tflm.reason}")
    rows = tuple([tflm.outputs[at][run] for at in sorted(tflm.outputs)] for run in range(len(samples)))
    return Expected(rows, "the original", None), "tflm" if litert is None or differs(litert, tflm) else "litert"
