"""Static shapes as they are computed: those of the file against those that LiteRT infers from the operands.

A converter that was given no batch size leaves shapes in the file that hold for no run: SPACE_TO_BATCH_ND, which makes
one image of every block, says a batch of 1. LiteRT infers the shapes anew before it runs; TFLM believes the file and
computes something else (tensorflow/tflite-micro issues 1629, 1646, 2319, 3185). So everything after the look at the
original works on the model with the inferred shapes. Values do not change: they are those of LiteRT.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from ...errors import ErrorKind, UnsupportedModelError
from ...model.io import plan_label
from ...model.io.reader import read_model
from ...model.io.writer import write_model
from ...model.ir.check import check_model, describe
from ...model.ir.model import Graph, Model, Tensor
from .adapter import OPTIMIZED_KERNELS, REFERENCE, ModelRun, RunJob
from .inputs import is_exchanged, seeded_inputs
from .runner import Interpreters


@dataclass(frozen=True)
class WrongShape:
    """``where`` is the operator as messages name it."""

    tensor: str
    where: str
    said: tuple[int, ...]
    inferred: tuple[int, ...]


@dataclass(frozen=True)
class InferredModel:
    """A model whose static shapes are those that LiteRT infers, as bytes too.

    ``wrong``: the operators that write a tensor whose shape in the file was another one, with that tensor, the file's
    shape and the inferred one. Without any, ``data`` are the bytes as they came.
    """

    data: bytes
    model: Model
    wrong: tuple[WrongShape, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The tensors whose shape in the file was wrong."""
        return tuple(each.tensor for each in self.wrong)


def computed_tensors(graph: Graph) -> tuple[int, ...]:
    """Positions of the tensors that a run gives values to, inputs included, as far as interpreters hand them out."""
    inputs = set(graph.inputs)
    return tuple(index for index, tensor in enumerate(graph.tensors) if tensor in inputs or _is_computed(tensor))


def _is_computed(tensor: Tensor) -> bool:
    has_value = tensor.producer is not None and not tensor.is_constant and tensor.elements > 0
    return has_value and is_exchanged(tensor.dtype)


def shaped_by(data: bytes, model: Model, run: ModelRun) -> InferredModel:
    """The model with the shapes that a run of LiteRT had.

    Raises UnsupportedModelError for a tensor whose shape depends on the values of the inputs, ModelFormatError when
    the inferred shapes do not make a valid model.
    """
    wrong = _wrong_shapes(model, run)
    if not wrong:
        return InferredModel(data, model)
    restored = read_model(data)
    for position, each in wrong.items():
        restored.main.tensors[position].shape = each.inferred
    # Its offsets are for tensors of other sizes.
    plan_label.detach(restored)
    check_model(restored)
    return InferredModel(write_model(restored), restored, tuple(wrong.values()))


def shaped_by_litert(data: bytes, model: Model, interpreters: Interpreters) -> InferredModel:
    """As :func:`shaped_by`, from a run of LiteRT over two samples; as it came where LiteRT does not run it.

    Its reference kernels lack some versions of operators, such as TILE 3, which the optimized ones have.
    """
    samples = seeded_inputs(model, 2, 0)
    for kernels in (REFERENCE, OPTIMIZED_KERNELS):
        run = interpreters["litert"].run(RunJob(data, samples, 0, computed_tensors(model.main), kernels))
        if run.ran:
            return shaped_by(data, model, run)
    return InferredModel(data, model)


def _wrong_shapes(model: Model, run: ModelRun) -> dict[int, WrongShape]:
    positions = {id(tensor): index for index, tensor in enumerate(model.main.tensors)}
    wrong = {}
    for step, operator in enumerate(model.main.operators):
        for tensor in operator.outputs:
            position, where = positions[id(tensor)], describe(0, step, operator)
            shapes = {values.shape for values in run.tensors.get(position, ())}
            if len(shapes) > 1:
                raise UnsupportedModelError(
                    f"{where}: the shape of '{tensor.name}' depends on the input values, here "
                    f"{' and '.join(str(list(each)) for each in sorted(shapes))}: no arena can be planned for it",
                    ErrorKind.DYNAMIC,
                )
            for found in shapes - {tensor.shape}:
                # One element is one element in any shape.
                if not tensor.elements == prod(found) == 1:
                    wrong[position] = WrongShape(tensor.name, where, tensor.shape, found)
    return wrong
