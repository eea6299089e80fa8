"""Slid, stepped, fed, and parted results of small networks, and the same with something changed.

Changed is any field of a file, an input or output, the label, or ``program.json``. What ``verify`` would say of it
without a run is compared with what the runtimes compute call by call, and with what the files say of their interfaces,
read by the schema's own classes.
"""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from hashlib import sha256
from typing import Any

import numpy as np

from scripts.fuzzing.judge import ARENA, RUNTIMES, differs
from scripts.fuzzing.mutants import mutant, packed, root_of, sites_of
from tests.cascade.networks import EVERY, random_network
from tests.program.test_feed import NETWORKS
from tests.recurrent import layers, unrolled
from tflite_memopt import Options
from tflite_memopt.api import judged_calls
from tflite_memopt.errors import EquivalenceError, MemoptError, UsageError
from tflite_memopt.evidence.equivalence.adapter import ModelRun, RunJob, Sample
from tflite_memopt.evidence.equivalence.inputs import verification_inputs
from tflite_memopt.evidence.equivalence.runner import Interpreters
from tflite_memopt.evidence.equivalence.sequences import run_streamed, windows_of
from tflite_memopt.evidence.proof import Kind, Proof, prove_plan, stream_of
from tflite_memopt.kernels.faults import faults_in
from tflite_memopt.memory.arrange import arrange
from tflite_memopt.memory.file import attach_plan, places_in_force, profile_of, read_planned
from tflite_memopt.memory.problems import labeled_ties, tie_positions, with_ties
from tflite_memopt.model.io import offline_plan, plan_label
from tflite_memopt.model.io.reader import read_model
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.model.ir.change import NOTHING_DECIDED
from tflite_memopt.model.ir.copying import copy_model
from tflite_memopt.model.ir.model import DType, Model
from tflite_memopt.options import Hop
from tflite_memopt.run.parts.cutting import cut
from tflite_memopt.run.parts.files import NOT_VERIFIED, Program, program_in, to_json
from tflite_memopt.run.parts.fronts import FeedCosts
from tflite_memopt.run.parts.manifest import ProgramSource, check_program, program_of
from tflite_memopt.run.parts.proving import prove_plans, prove_program
from tflite_memopt.run.parts.verifying import outputs_of_parts
from tflite_memopt.run.streamed import fed_input, in_rows
from tflite_memopt.search.cascade.slide import keepable, slid, sliding
from tflite_memopt.search.rewrite.in_one_row import lay_in_one_row
from tflite_memopt.search.rewrite.one_step import one_step

_OPTIONS = Options(kernels="reference", effort="quick", verify=False)
_WORK = 0.01
_WINDOWS = 3
_MOST_CALLS = 6
_OF_A_RUN = {"version", "made_by", "source", "whole_bytes", "verified", "operators"}
"""Fields of program.json that no file can tell."""


@dataclass(frozen=True)
class Verdict:
    """How a changed result ended, and why what is said of it is false; None where it is not."""

    end: str
    wrong: str | None = None


def _planned(model: Model, ties: tuple[str, ...], **options: Any) -> bytes:
    """The file of a model with its plan and label."""
    profile = _OPTIONS.profile
    model = with_ties(model, ties, profile)
    placement = arrange(model, profile, replace(_OPTIONS, ties=ties).search, _WORK).placement
    model.main.reorder(placement.order)
    said = {"ties": list(ties), **options} if ties else options
    attach_plan(model, profile, placement, model, NOTHING_DECIDED, said)
    return write_model(model)


@dataclass
class Calls:
    """A model of one hop or step, its original, and what runtimes compute of that."""

    kind: str
    original: bytes
    result: bytes
    interpreters: Interpreters
    seed: int

    @cached_property
    def model(self) -> Model:
        """The original."""
        return read_model(self.original)

    @cached_property
    def samples(self) -> list[Sample]:
        """Windows of one signal, or sequences."""
        drawn = verification_inputs(self.model, _WINDOWS, self.seed)
        if self.kind == "step":
            return drawn
        slide = read_model(self.result)
        stream = stream_of("hop", slide, self.model)
        assert stream is not None
        return windows_of(drawn, stream.image, slide.main.inputs[stream.at].elements, _WINDOWS)

    @cached_property
    def runs(self) -> dict[str, ModelRun]:
        """Of the runtimes that run the original."""
        return _runs_of(self.model, self.original, self.samples, self.interpreters)

    @property
    def unchanged(self) -> bytes:
        """The result as it was made."""
        return self.result

    def changed(self, draw: random.Random) -> tuple[str, bytes] | None:
        """Another result, and what is other; None where the change cannot be written."""
        way = draw.random()
        if way < 0.2:
            return _relabeled(self.result, draw)
        return _with_other_end(self.result, draw) if way < 0.55 else _mutated(self.result, draw)

    def verdict(self, data: bytes) -> Verdict:
        """Judge a changed result."""
        try:
            label = plan_label.decode(read_planned(data))
            if label is None or label.calls is None:
                return Verdict("of one file")  # which the other mutants are
            model = read_planned(data)
            ties = tie_positions(model, labeled_ties(model))
            proof, differences = judged_calls(label.calls, self.model, read_model(data), ties)
            plan = prove_plan(model, places_in_force(model, profile_of(label)))
        except MemoptError:
            return Verdict("refused")
        except Exception as error:
            return Verdict("crashed", f"the judge crashed: {type(error).__name__}: {error}")
        if not proof.proved or differences or not plan.proved:
            return Verdict("differs" if differences else proof.status.name.lower() if not proof.proved else "plan")
        if max((offline_plan.decode(model) or {}).values(), default=0) >= ARENA:
            return Verdict("too large")  # a right plan, which no run here has the arena for
        return Verdict("proved", self._contradiction(data, ties, label.calls, label, proof))

    def _has_rows(self, step: Model, text: str) -> bool:
        """Tell whether a hop and its window are those of the inputs."""
        rows, _, window = text.partition(",")[0].partition("/")
        stream = stream_of("hop", step, self.model)
        at = 0 if stream is None else stream.image
        new, whole = (model.main.inputs[at].elements for model in (step, self.model))
        return rows.isdecimal() and window.isdecimal() and new * int(window) == whole * int(rows)

    def _contradiction(
        self, data: bytes, ties: tuple[tuple[int, int], ...], kind: Kind, label: plan_label.PlanLabel, proof: Proof
    ) -> str | None:
        said = _other_interface(self.original, data)
        if said is not None:
            return said
        step = read_model(data)
        if kind == "hop" and not self._has_rows(step, str(label.options["slide"])):
            return f"the label says {label.options['slide']}"
        stream = stream_of(kind, step, self.model, ties)
        assert stream is not None
        for name, before in self.runs.items():
            after = run_streamed(self.interpreters[name], data, stream, self.samples, self.model.main.outputs, ARENA)
            if not after.ran:
                return f"{name} does not run it: {after.reason[:200]}"
            if differs(before, after, proof):
                return f"{name} differs, the proof says: {proof}"
        return None


@dataclass
class Parts:
    """A program of parts, its original, and what runtimes compute of that."""

    kind: str
    original: bytes
    program: Program
    parts: tuple[bytes, ...]
    interpreters: Interpreters
    seed: int

    @cached_property
    def model(self) -> Model:
        """The original."""
        return read_model(self.original)

    @cached_property
    def samples(self) -> list[Sample]:
        """Inputs of the original."""
        return verification_inputs(self.model, _WINDOWS, self.seed)

    @cached_property
    def runs(self) -> dict[str, ModelRun]:
        """Of the runtimes that run the original."""
        return _runs_of(self.model, self.original, self.samples, self.interpreters)

    @property
    def unchanged(self) -> tuple[str, tuple[bytes, ...]]:
        """The program as it was made."""
        return to_json(self.program), self.parts

    def changed(self, draw: random.Random) -> tuple[str, tuple[str, tuple[bytes, ...]]] | None:
        """Another manifest, or another part with its digest, and what is other."""
        if draw.random() < 0.5:
            fields = json.loads(to_json(self.program))
            site = _change_json(fields, draw)
            return None if site is None else (f"program.json {site}", (json.dumps(fields), self.parts))
        at = draw.randrange(len(self.parts))
        found = _with_other_end(self.parts[at], draw) if draw.random() < 0.5 else _mutated(self.parts[at], draw)
        if found is None:
            return None
        parts = (*self.parts[:at], found[1], *self.parts[at + 1 :])
        files = list(self.program.parts)
        files[at] = replace(files[at], sha256=sha256(found[1]).hexdigest())
        return f"part {at}: {found[0]}", (to_json(replace(self.program, parts=tuple(files))), parts)

    def verdict(self, data: tuple[str, tuple[bytes, ...]]) -> Verdict:
        """Judge a changed program."""
        text, parts = data
        try:
            program = program_in(json.loads(text))
            if len(program.parts) != len(parts) or any(
                sha256(part).hexdigest() != each.sha256 for part, each in zip(parts, program.parts, strict=True)
            ):
                return Verdict("refused")
            check_program(self.original, program, parts)
            models = [read_model(part) for part in parts]
            proof = prove_program(self.model, models, program.feed)
            plans = prove_plans(parts, program.feed)
        except (MemoptError, ValueError, KeyError, TypeError, AttributeError) as error:
            is_of_reader = isinstance(error, MemoptError) or _is_refused(text)
            return Verdict("refused") if is_of_reader else Verdict("crashed", f"the judge crashed: {error!r}")
        if not proof.proved:
            return Verdict(proof.status.name.lower())
        if not all(each.proved for each in plans):
            return Verdict("plan")
        return Verdict("proved", self._contradiction(program, parts, models, proof))

    def _contradiction(
        self, program: Program, parts: tuple[bytes, ...], models: Sequence[Model], proof: Proof
    ) -> str | None:
        if parts == self.parts:
            for way in _differing(asdict(self.program), asdict(program)):
                if _OF_A_RUN.isdisjoint(way) and way[0] != "feed":
                    return f"{'.'.join(map(str, way))} was believed"
        for name, before in self.runs.items():
            try:
                outputs = outputs_of_parts(
                    name, parts, [*models, self.model], self.samples, self.interpreters[name], program.feed
                )
            except EquivalenceError as error:
                return str(error)[:200]
            shaped = {
                at: [each.reshape(tensor.shape) for each in outputs[at]]
                for at, tensor in enumerate(self.model.main.outputs)
            }
            if differs(before, ModelRun(shaped), proof):
                return f"{name} differs, the proof says: {proof}"
        return None


Stream = Calls | Parts


def _runs_of(model: Model, data: bytes, samples: list[Sample], interpreters: Interpreters) -> dict[str, ModelRun]:
    found = {name: interpreters[name].run(RunJob(data, samples, ARENA)) for name in RUNTIMES}
    again = {name: interpreters[name].run(RunJob(data, samples, ARENA, fill=0x5A)) for name in RUNTIMES}
    faulty = {"tflm"} if faults_in(model, _OPTIONS.profile) else set()
    return {
        name: run for name, run in found.items() if run.ran and name not in faulty and not differs(run, again[name])
    }


def streams(number: int, seed: int, interpreters: Interpreters) -> Iterator[Stream]:
    """The results of a number: some of a hop, a step, and parts."""
    draw = random.Random(f"streams {seed} {number}")
    for way in (_slid, _slid, _stepped, _parted, _fed)[: 5 if number % 4 == 0 else 4]:
        found = way(draw, interpreters, seed)
        if found is not None:
            yield found


def _slid(draw: random.Random, interpreters: Interpreters, seed: int) -> Stream | None:
    height = draw.randint(6, 12)
    dtype = draw.choice((DType.INT8, DType.INT8, DType.FLOAT32, DType.INT16))
    model = read_model(write_model(random_network(draw.randrange(1 << 20), dtype, draw.randint(1, 3), height, EVERY)))
    original, hop = write_model(model), draw.randint(max(1, height // _MOST_CALLS), 4)
    found = sliding(model.main, model.main.inputs[0], hop)
    every = [model.main.operators.index(operator) for operator in keepable(model.main, found)]
    if not every:
        return None
    made = slid(model, 0, hop, [at for at in every if draw.random() < 0.8] or every)
    if draw.random() < 0.5:
        lay_in_one_row(made.model, made.model.main.outputs[: len(model.main.outputs)])
    try:
        result = _planned(made.model, made.ties, slide=str(Hop(hop, None, height)))
    except UsageError:  # its output would overwrite its input
        return None
    return Calls("slide", original, result, interpreters, seed)


def _stepped(draw: random.Random, interpreters: Interpreters, seed: int) -> Stream | None:
    kinds = [draw.choice(("rnn", "gru", "lstm")) for _ in range(draw.choice((1, 1, 2)))]
    whole = draw.choice(
        (
            lambda: layers(*kinds, steps=3, sequences=draw.random() < 0.5),
            lambda: layers("rnn", steps=4, dtype=DType.INT8),
            lambda: unrolled(4, is_folded=True, in_slices=draw.random() < 0.5),
        )
    )()
    model = read_model(write_model(whole))
    made = one_step(model)
    return Calls("step", write_model(model), _planned(made.model, made.ties, step=True), interpreters, seed)


def _parted(draw: random.Random, interpreters: Interpreters, seed: int) -> Stream | None:
    dtype = draw.choice((DType.INT8, DType.INT8, DType.FLOAT32))
    model = read_model(write_model(random_network(draw.randrange(1 << 20), dtype, draw.randint(2, 4), 8)))
    count = len(model.main.operators)
    if count < 2:
        return None
    at = sorted(draw.sample(range(1, count), min(count - 1, draw.choice((1, 1, 2)))))
    try:
        files = [(_planned(part, ()), len(part.main.operators)) for part in cut(model, at)]
        origin = ProgramSource(None, write_model(model), 1, None)
        program = program_of(origin, files, None, _OPTIONS.profile)
    except MemoptError:  # a constant crosses the cut
        return None
    program = replace(program, verified=NOT_VERIFIED)
    return Parts("parts", origin.data, program, tuple(data for data, _ in files), interpreters, seed)


def _fed(draw: random.Random, interpreters: Interpreters, seed: int) -> Stream | None:
    name, rows = draw.choice((("chain", 4), ("causal", 4), ("beside", 4), ("branches", 3), ("lying", 20)))
    whole = read_model(write_model(NETWORKS[name]()))
    model = in_rows(copy_model(whole), _OPTIONS)
    costs = FeedCosts(model, _OPTIONS, lambda _: None, rows=rows, image=fed_input(model))
    longest = next(((0, end) for end in reversed(costs.positions[1:]) if costs.draft((0, end))), None)
    if longest is None:
        return None
    costs.measure(longest, 0)
    front = costs.chosen(longest, 0)
    files = [(front.data, front.operators)]
    if longest[1] < costs.positions[-1]:
        rest = cut(costs.model, [longest[1]])[1]
        files.append((_planned(rest, ()), len(rest.main.operators)))
    origin = ProgramSource(None, write_model(whole), 1, front.feed)
    program = program_of(origin, files, None, _OPTIONS.profile)
    return Parts("fed", origin.data, program, tuple(data for data, _ in files), interpreters, seed)


# ------------------------------------------------------------------------------------------------------------ changes


def _mutated(data: bytes, draw: random.Random) -> tuple[str, bytes] | None:
    root = root_of(data)
    found = mutant(root, sites_of(root), draw)
    return None if found is None else (str(found[0]), found[1])


def _with_other_end(data: bytes, draw: random.Random) -> tuple[str, bytes] | None:
    """Another type, quantization, shape, or name of an input or output."""
    root = root_of(data)
    graph = root.subgraphs[0]
    tensor = graph.tensors[draw.choice([*graph.inputs, *graph.outputs])]
    name = draw.choice(("scale", "zeroPoint", "type", "shape", "name", "shapeSignature", "isVariable", "quantization"))
    quantization = tensor.quantization
    if name in ("scale", "zeroPoint"):
        held = None if quantization is None else getattr(quantization, name)
        if held is None or not len(held):
            return None
        other = np.asarray(held) * np.float32(draw.choice((2, 0.5, 1.01))) if name == "scale" else np.asarray(held) + 1
        setattr(quantization, name, other.astype(np.asarray(held).dtype))
    elif name == "quantization":
        tensor.quantization = None
    elif name == "type":
        tensor.type = draw.choice([each for each in range(18) if each != tensor.type])
    elif name in ("shape", "shapeSignature"):
        shape = list(tensor.shape)
        draw.shuffle(shape)
        setattr(tensor, name, np.asarray(draw.choice((shape, [1, *shape], [*shape, 1], [-1, *shape[1:]])), np.int32))
    elif name == "isVariable":
        tensor.isVariable = not tensor.isVariable
    else:
        tensor.name = tensor.name + b"x"
    try:
        changed = packed(root)
    except (TypeError, ValueError):
        return None
    return (f"end {name}", changed) if changed != data else None


def _relabeled(data: bytes, draw: random.Random) -> tuple[str, bytes] | None:
    model = read_model(data)
    label = plan_label.decode(model)
    if label is None:
        return None
    fields = asdict(label)
    site = _change_json(fields["options"] if draw.random() < 0.8 else fields, draw)
    if site is None:
        return None
    try:
        plan_label.attach(model, plan_label.PlanLabel(**fields))
    except TypeError:
        return None
    return f"label {site}", write_model(model)


def _change_json(fields: Any, draw: random.Random) -> str | None:
    """Change one value of JSON in place, and return its place."""
    places = list(_places(fields))
    if not places:
        return None
    way = draw.choice(places)
    holder = fields
    for key in way[:-1]:
        holder = holder[key]
    old = holder[way[-1]]
    new = _other_value(old, draw)
    if new == old and type(new) is type(old):
        return None
    holder[way[-1]] = new
    return ".".join("#" if isinstance(key, int) else key for key in way)


def _places(value: Any, way: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if way:
        yield way
    if isinstance(value, Mapping):
        for key in value:
            yield from _places(value[key], (*way, key))
    elif isinstance(value, (list, tuple)):
        for at, each in enumerate(value):
            yield from _places(each, (*way, at))


def _other_value(value: Any, draw: random.Random) -> Any:
    if isinstance(value, bool) or value is None:
        return draw.choice((None, True, False, 1, "x"))
    if isinstance(value, (int, float)):
        return draw.choice((value + 1, value - 1, value + 16, 2 * value, 0, 1, -1, None))
    if isinstance(value, str):
        numbers = [at for at, sign in enumerate(value) if sign.isdigit()]
        if numbers and draw.random() < 0.8:
            at = draw.choice(numbers)
            return value[:at] + str(draw.randint(0, 12)) + value[at + 1 :]
        return draw.choice(("", value + "x", None, value[:-1]))
    if isinstance(value, (list, tuple)):
        changed = copy.deepcopy(list(value))
        draw.shuffle(changed)
        return draw.choice((changed, changed[1:], [*changed, *changed[:1]], [], None))
    return draw.choice(({}, None))


# ------------------------------------------------------------------------------------------------------------ truths


def _other_interface(original: bytes, result: bytes) -> str | None:
    """How the inputs and outputs that both files have mean something else, by the schema's own classes."""
    one, other = (root_of(data).subgraphs[0] for data in (original, result))
    for side in ("inputs", "outputs"):
        pairs = zip(getattr(one, side), getattr(other, side), strict=False)
        for at, (a, b) in enumerate(pairs):
            old, new = one.tensors[a], other.tensors[b]
            if (old.name, old.type, _numbers(old)) != (new.name, new.type, _numbers(new)):
                return f"{side}[{at}] is another one in the file"
    return None


def _numbers(tensor: Any) -> list[list[float]]:
    found = tensor.quantization
    held = () if found is None else (found.scale, found.zeroPoint)
    return [[] if each is None else np.asarray(each).tolist() for each in held] or [[], []]


def _differing(one: Any, other: Any, way: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if isinstance(one, Mapping) and isinstance(other, Mapping) and one.keys() == other.keys():
        for key in one:
            yield from _differing(one[key], other[key], (*way, key))
    elif isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)) and len(one) == len(other):
        for at, (a, b) in enumerate(zip(one, other, strict=True)):
            yield from _differing(a, b, (*way, at))
    elif one != other:
        yield way


def _is_refused(text: str) -> bool:
    """Tell whether the reader of program.json refuses it."""
    try:
        program_in(json.loads(text))
    except (ValueError, KeyError, TypeError, AttributeError):
        return True
    return False
