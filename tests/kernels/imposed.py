"""Imposes permissions to share bytes on TFLM, for the tests of views and of in-place.

All cases are branches of one model, each with its own region of the arena, so that one process runs them all: once
with every tensor apart, then with permissions imposed. Outputs must agree bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tests.model_builder import ModelBuilder
from tests.tflm import run_models
from tflite_memopt.evidence.equivalence.inputs import seeded_inputs
from tflite_memopt.model.io import offline_plan
from tflite_memopt.model.io.reader import read_model
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.model.ir.model import DType, Operator, Tensor
from tflite_memopt.model.ir.tensors import per_tensor
from tflite_memopt.operators.reuse import KernelReuse, ReuseRule
from tflite_memopt.solvers.graph.alignment import aligned

ARENA = 4 << 20
SAMPLES = 6
F32, I8, I16, I32, BOOL = DType.FLOAT32, DType.INT8, DType.INT16, DType.INT32, DType.BOOL
SHAPE = (2, 3, 5, 16)
Case = Callable[[ModelBuilder], Operator]
Ints = npt.NDArray[np.int32]


def ints(*values: int) -> Ints:
    return np.asarray(values, np.int32)


def x_of(b: ModelBuilder, shape: Sequence[int] = SHAPE, dtype: DType = I8, **quantization: Any) -> Tensor:
    return b.input(f"x{len(b.graph.tensors)}", shape, dtype, **quantization)


def y_of(b: ModelBuilder, shape: Sequence[int] = SHAPE, dtype: DType = I8, **quantization: Any) -> Tensor:
    return b.tensor(f"y{len(b.graph.tensors)}", shape, dtype, **quantization)


def constant(b: ModelBuilder, values: npt.NDArray[Any], scale: float | None = None) -> Tensor:
    return b.constant(f"c{len(b.graph.tensors)}", values, None if scale is None else per_tensor(scale, 0))


def one(case: Case) -> Operator:
    return case(ModelBuilder())


Choice = Callable[[Operator], Mapping[Tensor, int]]
"""Offsets of the tensors of an operator that are to share bytes."""


def permitted(rule: ReuseRule, number: int) -> Choice:
    """The operator's n-th permission."""

    def choose(operator: Operator) -> Mapping[Tensor, int]:
        reuses = rule(operator)[number : number + 1]
        return {key: value for reuse in reuses for key, value in _pair(reuse, aligned(reuse.distance)).items()}

    return choose


def _pair(reuse: KernelReuse, distance: int) -> dict[Tensor, int]:
    return {reuse.input: max(0, distance), reuse.output: max(0, -distance)}


def same_offset(operator: Operator) -> Mapping[Tensor, int]:
    """The first input where the first output is, whatever the rules say."""
    return {tensor: 0 for tensor in (operator.inputs[0], operator.outputs[0]) if tensor is not None}


def planned(cases: Iterable[Case], choose: Choice) -> bytes:
    """A model of all cases, each operator's tensors apart but for those chosen."""
    b = ModelBuilder()
    operators = [case(b) for case in cases]
    b.finish(*(output for operator in operators for output in operator.outputs))
    offsets: dict[Tensor, int] = {}
    end = 0
    for operator in operators:
        chosen = choose(operator)
        offsets |= {tensor: end + offset for tensor, offset in chosen.items()}
        end = max([end, *(offsets[tensor] + aligned(tensor.nbytes) for tensor in chosen)])
        for tensor in dict.fromkeys((*operator.present_inputs(), *operator.outputs)):
            if tensor not in chosen and not tensor.is_constant:
                offsets[tensor] = end
                end += aligned(tensor.nbytes)
    offline_plan.attach(b.model, offsets)
    return write_model(b.model)


def differing(cases: Mapping[str, Case], *choices: Choice) -> set[str]:
    """The cases of which TFLM computes other bytes at one of the choices than with every tensor apart."""
    models = {"apart": planned(cases.values(), lambda _: {})}
    models |= {f"choice{n}": planned(cases.values(), choose) for n, choose in enumerate(choices)}
    runs = run_models("tflm", models, seeded_inputs(read_model(models["apart"]), SAMPLES, 7), ARENA)
    assert all(run.ran for run in runs.values()), [run.error for run in runs.values()]
    owners = [label for label, case in cases.items() for _ in one(case).outputs]
    apart = runs.pop("apart").arrays
    for number, owner in enumerate(owners):
        every = [apart[f"s{sample}_o{number}"].reshape(-1).view(np.uint8) for sample in range(SAMPLES)]
        constant_bytes = np.ptp(np.concatenate(every)) == 0
        assert constant_bytes == owner.startswith("ZEROS_LIKE"), owner
    return {
        owners[int(name.rpartition("o")[2])]
        for run in runs.values()
        for name, array in run.arrays.items()
        if array.tobytes() != apart[name].tobytes()
    }
