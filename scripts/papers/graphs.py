"""Networks as the schedulers' papers see them: whole tensors of so many bytes, no views, no reuse, nothing rounded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tflite_memopt.model.io.reader import read_model
from tflite_memopt.model.ir.copying import drop_dead_tensors
from tflite_memopt.model.ir.model import Model, Tensor
from tflite_memopt.solvers.schedule.problem import ScheduleProblem, Step


def plain_problem(model: Model) -> ScheduleProblem:
    """The ordering problem of the main graph, one tensor of the problem for each activation."""
    numbers: dict[Tensor, int] = {}

    def numbered(tensors: Sequence[Tensor]) -> tuple[int, ...]:
        chosen = [tensor for tensor in tensors if not tensor.is_constant]
        return tuple(dict.fromkeys(numbers.setdefault(tensor, len(numbers)) for tensor in chosen))

    inputs = numbered(model.main.inputs)
    steps = tuple(Step(numbered(list(op.present_inputs())), numbered(op.outputs)) for op in model.main.operators)
    outputs = numbered(model.main.outputs)
    return ScheduleProblem(tuple(tensor.nbytes for tensor in numbers), steps, inputs, outputs)


def plain_problem_of(file: Path) -> ScheduleProblem:
    """That of a .tflite file."""
    model = read_model(file.read_bytes())
    drop_dead_tensors(model)
    return plain_problem(model)


def files_in(sources: Sequence[Path]) -> dict[str, Path]:
    """The .tflite files among files and folders, by name without ending."""
    return {file.stem: file for path in sources for file in (path.glob("*.tflite") if path.is_dir() else [path])}


def unfolded_problem(model: Model) -> ScheduleProblem:
    """The same network before the converter folds batch norms and activations into the operator that they follow.

    A convolution or dense operator is followed by a batch norm; any operator with an activation by that. All of them
    have the bytes of the result, and readers read the last of them.
    """
    plain = plain_problem(model)
    sizes, last = list(plain.sizes), dict[int, int]()
    steps = list[Step]()
    for step, operator in zip(plain.steps, model.main.operators, strict=True):
        read = tuple(last.get(t, t) for t in step.inputs)
        steps.append(replace(step, inputs=read))
        followers = operator.name in _NORMED, operator.option("fusedActivationFunction", 0)
        for _ in filter(None, followers):
            (written,) = steps[-1].outputs
            sizes.append(sizes[written])
            steps.append(Step((written,), (len(sizes) - 1,)))
            last[step.outputs[0]] = len(sizes) - 1
    outputs = tuple(last.get(t, t) for t in plain.outputs)
    return ScheduleProblem(tuple(sizes), tuple(steps), plain.inputs, outputs)


_NORMED = ("CONV_2D", "DEPTHWISE_CONV_2D")
