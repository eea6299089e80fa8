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
from scripts.fuzzing.kernels import vector_network
from tests.firmware.compiled import HOST, run_on_tflm
from tflite_memopt import Options, optimize
from tflite_memopt.equivalence.adapter import RunJob, Sample
from tflite_memopt.equivalence.baseline import arena_for
from tflite_memopt.equivalence.runner import Interpreters
from tflite_memopt.errors import MemoptError
from tflite_memopt.firmware.generate import generate
from tflite_memopt.firmware.self_test import Expected, drawn_inputs
from tflite_memopt.io.reader import read_model
from tflite_memopt.io.writer import write_model
from tflite_memopt.program.files import Feed
from tflite_memopt.program.firmware import generate_program
from tflite_memopt.program.run import optimize_in_parts

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
        (expected, runtime), files = KINDS[kind](data, draw, interpreters)
    except MemoptError as error:
        ends.refused[kind] += 1
        ends.why[f"{kind}: {error}".split(" (")[0][:120]] += 1
        return
    main = "main_two_arenas.cc" if kind == "two arenas" else "main.cc"
    with TemporaryDirectory() as name:
        folder = Path(name)
        for path, text in files(expected).items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(text)
        code, said = run_on_tflm(folder, main)
        if code or "PASS" not in said:
            ends.wrong.append(f"network {number}, {kind}: ended with {code}: {said[-300:]}")
            return
        for header, size in _SIZES[kind]:
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


def _whole(planner: str) -> Callable[[bytes, random.Random, Interpreters], Drawn]:
    def make(data: bytes, draw: random.Random, interpreters: Interpreters) -> Drawn:
        del draw
        small = optimize(data, _OPTIONS).model
        expected = _expected(data, drawn_inputs(read_model(data).main.inputs), interpreters)
        return expected, lambda wanted: generate(small, HOST, planner=planner, expected=wanted)  # type: ignore[arg-type]

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


KINDS: Mapping[str, Callable[[bytes, random.Random, Interpreters], Drawn]] = {
    "plan in the file": _whole("metadata"),
    "two arenas": _whole("metadata"),
    "plan table": _whole("table"),
    "parts": _in_parts,
    "rows": _in_rows,
}
_ARENA = r"(std::size_t kArenaBytes = ForThisCompiler\([^)]*\))"
_HALVES = tuple(rf"(std::size_t {half}ArenaBytes = ForThisCompiler\([^)]*\))" for half in ("kHead", "kTail"))
_OF_PROGRAM = (("program.h", r"(kArenaBytes = \d+)"),)
_SIZES: Mapping[str, tuple[tuple[str, str], ...]] = {
    "plan in the file": (("arena.h", _ARENA),),
    "two arenas": tuple(("arena.h", half) for half in _HALVES),
    "plan table": (("arena.h", _ARENA),),
    "parts": _OF_PROGRAM,
    "rows": _OF_PROGRAM,
}


def _expected(data: bytes, samples: list[Sample], interpreters: Interpreters) -> tuple[Expected, str]:
    """Run the original on LiteRT and TFLM: the outputs, and whose they are. Raises MemoptError where neither runs."""
    job = RunJob(data, samples, arena_for(read_model(data)))
    litert, tflm = (interpreters[name].run(job) for name in ("litert", "tflm"))
    if not tflm.ran:
        raise MemoptError(f"TFLM does not run the original: {tflm.reason}")
    same = litert.ran and all(
        one.tobytes() == other.tobytes()
        for at in tflm.outputs
        for one, other in zip(litert.outputs[at], tflm.outputs[at], strict=True)
    )
    rows = tuple([tflm.outputs[at][run] for at in sorted(tflm.outputs)] for run in range(len(samples)))
    return Expected(rows, "the original", None), "litert" if same else "tflm"
