"""The command; see ``scripts/mutate --help``.

Mutants of results: one constant, scale, option, operand or order changed. None that computes otherwise may be proved.
Mutants that are proved all the same run on LiteRT against the original, over many random inputs; of the others some do,
to see how many really compute otherwise. Plans are changed too, and judged by TFLM.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path

import click
import numpy as np

from scripts.mutation.plan_mutants import plan_mutants
from scripts.proving.__main__ import ORIGINAL, RESULT
from tflite_memopt.equivalence.adapter import Run as Ran
from tflite_memopt.equivalence.adapter import RunJob, Sample
from tflite_memopt.equivalence.inputs import seeded_inputs
from tflite_memopt.equivalence.runner import Interpreters, ProcessLimits
from tflite_memopt.errors import MemoptError
from tflite_memopt.io.reader import read_model
from tflite_memopt.io.writer import write_model
from tflite_memopt.ir.model import Buffer, DType, Graph, Model, OperatorOptions, Quantization, Tensor
from tflite_memopt.ir.tensors import values
from tflite_memopt.kernels.profile import KernelProfile
from tflite_memopt.kernels.profiles import PROFILES
from tflite_memopt.memory.file import read_planned
from tflite_memopt.memory.layout import places_in_force
from tflite_memopt.proof import BrokenModelError, Keys, Run, UndecidedError, inputs_of, prove_plan

_STEERING = (DType.INT32, DType.INT64, DType.BOOL)
_ARENA = 8 << 20
_NUDGE = np.float32(1.01)
_FEW = 20
"""Samples for a mutant that is not proved."""
Change = Callable[[Model, random.Random], str | None]
"""Changes a model and says where; None where that is no change."""


def _constant(model: Model, draw: random.Random, graphs: list[Graph], is_steering: bool) -> str | None:
    found = [
        tensor
        for graph in graphs
        for tensor in graph.tensors
        if tensor.uses and tensor.elements and (tensor.dtype in _STEERING) == is_steering and values(tensor) is not None
    ]
    return _step(draw.choice(found), draw) if found else None


def _step(tensor: Tensor, draw: random.Random) -> str:
    """One element by the least step, up or down."""
    held = values(tensor)
    assert held is not None
    changed = held.copy().reshape(-1)
    at, way = draw.randrange(changed.size), draw.choice((-1, 1))
    if changed.dtype.kind == "f":
        changed[at] = np.nextafter(changed[at], np.float32(way * np.inf))
    elif changed.dtype.kind == "b":
        changed[at] = not changed[at]
    else:
        limits = np.iinfo(changed.dtype)
        changed[at] += way if limits.min < changed[at] < limits.max else (1 if changed[at] == limits.min else -1)
    tensor.buffer = Buffer(np.frombuffer(changed.tobytes(), np.uint8))
    use = tensor.uses[0]
    return f"{use.operator.opcode.label} input {use.slot} '{tensor.name}'[{at}]"


def _option(model: Model, draw: random.Random) -> str | None:
    operators = [operator for graph in model.graphs for operator in graph.operators if operator.options is not None]
    operator = draw.choice(operators)
    assert operator.options is not None
    fields = {name: value for name, value in operator.options.fields.items() if isinstance(value, (bool, int))}
    if not fields or "SubgraphIndex" in "".join(fields):
        return None
    name = draw.choice(sorted(fields))
    value = fields[name]
    other = not value if isinstance(value, bool) else max(0, value + draw.choice((-1, 1)))
    if other == value:
        return None
    operator.options = OperatorOptions(operator.options.kind, {**operator.options.fields, name: other})
    return f"{operator.opcode.label} {name} {value} -> {other}"


def _rewired(model: Model, draw: random.Random) -> str | None:
    """An operand replaced by another tensor of its shape and type that is there by then."""
    graph = draw.choice([each for each in model.graphs if each.operators])
    position = draw.randrange(len(graph.operators))
    operator = graph.operators[position]
    slots = [slot for slot, tensor in enumerate(operator.inputs) if tensor is not None]
    if not slots:
        return None
    slot = draw.choice(slots)
    old = operator.inputs[slot]
    assert old is not None
    known = [*graph.inputs, *(tensor for tensor in graph.tensors if tensor.is_constant)]
    known += [tensor for before in graph.operators[:position] for tensor in before.outputs]
    same = [each for each in known if each is not old and (each.shape, each.dtype) == (old.shape, old.dtype)]
    if not same:
        return None
    new = draw.choice(same)
    graph.set_input(operator, slot, new)
    return f"{operator.opcode.label} input {slot}: '{new.name}' for '{old.name}'"


def _quantization(model: Model, draw: random.Random) -> str | None:
    """One scale by 1 %, or one zero point by one step, of a tensor that is computed or read."""
    found = [
        tensor
        for graph in model.graphs
        for tensor in graph.tensors
        if tensor.quantization is not None and tensor.quantization.scale.size and (tensor.producer or tensor.uses)
    ]
    if not found:
        return None
    tensor = draw.choice(found)
    held = tensor.quantization
    assert held is not None
    at, scales, points = draw.randrange(held.scale.size), held.scale.copy(), held.zero_point.copy()
    if points.size == 1 and not tensor.is_constant and draw.random() < 0.5:
        points[0] += 1 if points[0] < 0 else -1
    else:
        scales[at] *= _NUDGE
    tensor.quantization = Quantization(scales, points, held.axis, held.extras)
    return f"quantization of '{tensor.name}'"


KINDS: Mapping[str, Change] = {
    "weights": lambda model, draw: _constant(model, draw, model.graphs, is_steering=False),
    "integers": lambda model, draw: _constant(model, draw, model.graphs, is_steering=True),
    "loop tables": lambda model, draw: _constant(model, draw, model.graphs[1:], is_steering=True),
    "quantizations": _quantization,
    "options": _option,
    "operands": _rewired,
}


@click.command()
@click.argument("folder", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option("--count", default=200, show_default=True, help="Mutants of each kind and model.")
@click.option("--samples", default=1000, show_default=True, help="Inputs for a mutant that is proved.")
@click.option("--seed", default=0, show_default=True)
@click.option("--kernels", type=click.Choice(list(PROFILES)), help="Change plans as well, which are for these kernels.")
def main(folder: Path, count: int, samples: int, seed: int, kernels: str | None) -> None:
    """Change the results of a folder of pairs, and look which of the changes are proved equal."""
    click.echo("| model | kind | mutants | not proved | of these LiteRT differs | proved | of these LiteRT differs |")
    click.echo("|---|---|---:|---:|---:|---:|---:|")
    for path in sorted(folder.glob(f"*{ORIGINAL}")):
        name = path.name.removesuffix(ORIGINAL)
        result = path.with_name(name + RESULT).read_bytes()
        with Interpreters(("litert", "tflm"), ProcessLimits()) as interpreters:
            judge = _Judge(path.read_bytes(), result, interpreters, samples, seed)
            for kind, change in KINDS.items():
                judge.row(name, kind, change, count)
            if kernels is not None:
                judge.plans(name, PROFILES[kernels], count)


class _Judge:
    def __init__(self, original: bytes, result: bytes, interpreters: Interpreters, samples: int, seed: int) -> None:
        self.original, self.result, self.interpreters, self.seed = original, result, interpreters, seed
        model = read_model(original)
        self.samples = seeded_inputs(model, samples, seed)
        self.keys = Keys()
        self.inputs = inputs_of(self.keys, model.main.inputs)
        self.wanted = Run(model, self.keys).invoke(self.inputs)
        self.outputs = self._run("litert", original, self.samples)

    def row(self, name: str, kind: str, change: Change, count: int) -> None:
        draw, ends, proved = random.Random(f"{kind} {self.seed}"), Counter[str](), Counter[str]()
        for number in range(20 * count):
            if number == 2 * count and not ends["mutants"]:
                break
            model = read_model(self.result)
            where = change(model, draw)
            if where is None:
                continue
            ends["mutants"] += 1
            is_proved = self._is_proved(model)
            samples = _FEW if is_proved is False else len(self.samples)
            differs = is_proved is not None and self._differs(write_model(model), samples)
            is_proved = bool(is_proved)
            ends[f"{is_proved} {differs}"] += 1
            if is_proved:
                proved[f"{'WRONG: ' if differs else ''}{where.split(chr(39))[0]}"] += 1
            if ends["mutants"] == count:
                break
        shown, kept = ends["False True"] + ends["False False"], ends["True True"] + ends["True False"]
        click.echo(
            f"| {name} | {kind} | {ends['mutants']} | {shown} | {ends['False True']} | {kept} | {ends['True True']} |"
        )
        for where, number in proved.most_common():
            click.echo(f"    proved: {number} x {where}")

    def plans(self, name: str, profile: KernelProfile, count: int) -> None:
        run = self._run("tflm", self.result, self.samples[:_FEW])
        if not run.ran:
            return
        ends, wrong = Counter[str](), list[str]()
        for mutant in plan_mutants(self.result, count, self.seed):
            try:
                model = read_planned(mutant.data)
                is_proved = prove_plan(model, places_in_force(model, profile)).proved
            except MemoptError:
                is_proved = False
            found = self._run("tflm", mutant.data, self.samples[:_FEW])
            differs = not found.ran or not _same(run, found, _FEW)
            ends["mutants"] += 1
            ends[f"{is_proved} {differs}"] += 1
            if is_proved and differs:
                wrong.append(f"{mutant.kind} {mutant.where}: {found.reason if not found.ran else 'outputs'}")
        shown, kept = ends["False True"] + ends["False False"], ends["True True"] + ends["True False"]
        click.echo(
            f"| {name} | plan | {ends['mutants']} | {shown} | {ends['False True']} | {kept} | {ends['True True']} |"
        )
        for each in wrong:
            click.echo(f"    WRONG: {each}")

    def _is_proved(self, model: Model) -> bool | None:
        """None for one that is broken: it may never end, or read outside of the arena."""
        try:
            found = Run(model, self.keys).invoke(self.inputs)
        except (BrokenModelError, UndecidedError):
            return None
        pairs = zip(map(self.keys.constant, self.wanted), map(self.keys.constant, found), strict=True)
        return all(np.array_equal(one, other) for one, other in pairs)

    def _differs(self, data: bytes, samples: int) -> bool:
        found = self._run("litert", data, self.samples[:samples])
        return not found.ran or not _same(self.outputs, found, samples)

    def _run(self, runtime: str, data: bytes, samples: list[Sample]) -> Ran:
        return self.interpreters[runtime].run(RunJob(data, samples, _ARENA))


def _same(one: Ran, other: Ran, samples: int) -> bool:
    return all(
        np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
        for at in one.outputs
        for a, b in zip(one.outputs[at][:samples], other.outputs[at][:samples], strict=True)
    )


if __name__ == "__main__":
    main()
