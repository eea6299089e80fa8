"""Models of one operator, over kind, type, operands and dimensions: does the table say of each what TFLM does?"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from scripts.fuzzing.judge import RUNTIMES
from scripts.fuzzing.originals import OTHER
from tests.kernels.one_operator import IMAGE, LEFT_OUT, MAKERS
from tests.model_builder import ModelBuilder
from tflite_memopt.errors import MemoptError
from tflite_memopt.evidence.equivalence.adapter import Array, RunJob, Sample
from tflite_memopt.evidence.equivalence.inputs import seeded_inputs
from tflite_memopt.evidence.equivalence.runner import Interpreters, ProcessLimits
from tflite_memopt.model.io.reader import read_model
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.model.ir.check import check_model
from tflite_memopt.model.ir.model import Buffer, DType, Model, OpCode, Operator, Tensor
from tflite_memopt.target.kernels.support import support_of

TYPES = (DType.FLOAT32, DType.FLOAT16, DType.INT8, DType.INT16, DType.INT32, DType.INT64, DType.UINT8, DType.BOOL)
SHAPES = ((4,), (4, 4), (1, 1, 4, 4, 4), (1, 1, 1, 4, 4, 4))
"""In place of an image, for kinds whose activations all have one shape."""
_OF_POSITIVE = frozenset({"RSQRT"})
"""Kinds whose kernels stop at other numbers."""
_READ_PAST = frozenset({"CONV_2D", "DEPTHWISE_CONV_2D", "PRELU", "TRANSPOSE_CONV"})
"""Kinds whose kernels read dimensions that a tensor of another rank has not, and crashed: no such model is made."""
_SEEDS = 6
_ARENA = 1 << 20


@dataclass(frozen=True)
class Case:
    """``kind``: of the operator; ``what``: its type, and what is unusual; ``model``: as it is read from its file."""

    kind: str
    what: str
    model: Model
    sample: Sample


@dataclass
class Loads:
    """What was asked, by kind, and where the table and TFLM say otherwise."""

    tried: Counter[str] = field(default_factory=Counter)
    loaded: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)


def cases() -> Iterator[Case]:
    """Every kind and type: as it is, each constant operand computed, in each way, each rank, and a broadcast."""
    for kind, what, model in _bases():
        data = write_model(model)
        for said, made, values in _variants(data, () if kind in _READ_PAST else SHAPES):
            try:
                check_model(made)
            except MemoptError:
                continue  # no file that anybody reads
            sample = seeded_inputs(made, 1, 0)[0]
            sample[len(sample) - len(values) :] = values
            if kind in _OF_POSITIVE:
                sample = [np.ones_like(each) for each in sample]
            yield Case(kind, f"{what}{said}", read_model(write_model(made)), sample)


def _bases() -> Iterator[tuple[str, str, Model]]:
    for name in sorted(MAKERS):
        for dtype in TYPES:
            if (name, dtype) in LEFT_OUT:
                continue
            b = ModelBuilder()
            yield name, dtype.label, b.finish(*MAKERS[name](b, dtype))
    for name in sorted(OTHER):
        for seed in range(_SEEDS):
            b = ModelBuilder()
            yield name.split()[0], f"number {seed}", b.finish(*OTHER[name](b, random.Random(seed)))


def _variants(data: bytes, shapes: Sequence[tuple[int, ...]]) -> Iterator[tuple[str, Model, list[Array]]]:
    """What is unusual, the model, and the values of its last inputs."""
    yield "", read_model(data), []
    for at, tensor in enumerate(read_model(data).main.tensors):
        if tensor.is_constant and tensor.uses:
            slot = tensor.uses[0].slot
            assert tensor.buffer.data is not None
            model, values = read_model(data), tensor.buffer.data.view(tensor.dtype.label)
            given = model.main.tensors[at]
            given.buffer = Buffer(None)
            model.main.inputs = (*model.main.inputs, given)
            yield f", operand {slot} computed", model, [values.reshape(tensor.shape)]
            if tensor.dtype is DType.INT32 and tensor.quantization is None:
                yield f", operand {slot} computed of constants", _of_constants(read_model(data), at), []
    activations = [each for each in read_model(data).main.tensors if not each.is_constant]
    if all(each.shape == IMAGE for each in activations):
        for shape in shapes:
            model = read_model(data)
            for each in model.main.tensors:
                each.shape = each.shape if each.is_constant else shape
            yield f", of shape {list(shape)}", model, []
        for number in range(len(read_model(data).main.inputs)) if len(activations) > 2 else ():
            model = read_model(data)
            model.main.inputs[number].shape = IMAGE[-1:]
            yield f", operand {number} broadcast", model, []


def _of_constants(model: Model, at: int) -> Model:
    """The constant as the sum of itself and zeros."""
    tensor = model.main.tensors[at]
    use = tensor.uses[0]
    zeros = Tensor(f"{tensor.name}/zeros", tensor.shape, tensor.dtype, Buffer(np.zeros(tensor.nbytes, np.uint8)))
    total = Tensor(f"{tensor.name}/sum", tensor.shape, tensor.dtype, Buffer(None))
    model.main.tensors += [zeros, total]
    model.main.set_input(use.operator, use.slot, total)
    model.main.add_operator(Operator(OpCode("ADD", 1, None), (tensor, zeros), (total,)), 0)
    return model


def compared() -> Loads:
    """Ask the table and TFLM about every case.

    No differences are models that TFLM loads, and for whose outputs it plans a size that it does not compute: the table
    refuses them; and files that LiteRT does not take either, so that no converter has made them. TFLM is not given
    float layers without a bias, on which it crashed: the table refuses them.
    """
    found = Loads()
    with Interpreters(RUNTIMES, ProcessLimits(20.0, 4 << 30)) as interpreters:
        for case in cases():
            support = support_of(case.model)
            if "bias" in {each.kind for each in support.reasons}:
                continue
            run = interpreters["tflm"].run(RunJob(write_model(case.model), [case.sample], _ARENA))
            found.tried[case.kind] += 1
            (found.loaded if run.ran else found.refused)[case.kind] += 1
            is_of_values = run.ran and {each.kind for each in support.reasons} == {"computed_size"}
            if support.runs == run.ran or is_of_values:
                continue
            if run.ran or interpreters["litert"].run(RunJob(write_model(case.model), [case.sample], 0)).ran:
                who = "runs" if run.ran else f"does not run: {str(run.reason)[:150]}"
                found.wrong.append(f"{case.kind} {case.what} {who}")
    return found
