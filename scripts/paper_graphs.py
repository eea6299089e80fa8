"""Networks as the schedulers' papers see them: whole tensors of so many bytes, no views, no reuse, nothing rounded."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tflite_memopt.io.reader import read_model
from tflite_memopt.ir.dead_tensors import drop_dead_tensors
from tflite_memopt.ir.model import Model, Tensor
from tflite_memopt.schedule.problem import ScheduleProblem, Step


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
