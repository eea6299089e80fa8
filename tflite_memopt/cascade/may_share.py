"""Which operators may have their output on an input, whatever their numbers of rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..ir.dtype import DType
from ..ir.model import Buffer, OpCode, Operator, OperatorOptions, Tensor
from ..kernels.profile import KernelProfile
from ..kernels.profiles import PORTABLE_REUSES, portable_relations
from ..kernels.relations import SHARED_CODE
from ..operators.table import kind_of, row_by_row
from ..operators.told import ShapeOperand

_NO_DATA = Buffer()


class MayShare:
    """Says of an operator under one kernel profile whether the same operator on fewer rows may share bytes.

    False is certain, True is not: a rule that asks for more than the operator's name may refuse. Only views are asked
    one by one: bytes that are one run in several rows are one run in a single row, too. ``has_reuse``: whether the
    profile lets any output overwrite an input.
    """

    def __init__(self, profile: KernelProfile) -> None:
        self._profile = profile
        self.has_reuse = any(reuse.kind != "view" for reuse in profile.relations(_second_row()))
        self._views: dict[Operator, bool] = {}

    def __call__(self, operator: Operator) -> bool:
        """Whether the output of the operator, on whatever rows, may lie on an input."""
        if operator.name in SHARED_CODE:
            if operator not in self._views:
                self._views[operator] = self._may_be_view(operator)
            return self._views[operator]
        if self._profile.relations is portable_relations:
            return operator.name in PORTABLE_REUSES
        return self.has_reuse

    def _may_be_view(self, operator: Operator) -> bool:
        if any(len(tensor.shape) != 4 for tensor in (operator.inputs[0], *operator.outputs) if tensor is not None):
            return True
        return any(self._profile.relations(each) for each in (operator, one_row(operator)))


def one_row(operator: Operator) -> Operator:
    """The operator as a stripe of one row; itself where it has no rows."""
    has_image = any(len(tensor.shape) == 4 and not tensor.is_constant for tensor in operator.present_inputs())
    has_rows = has_image and all(len(each.shape) == 4 for each in operator.outputs)
    if not has_rows or not operator.outputs:
        return operator
    inputs = [tensor if tensor is None or not _is_cut(tensor) else _row_of(tensor) for tensor in operator.inputs]
    made, resized = _row_of(operator.outputs[0]), kind_of(operator).resized
    if isinstance(resized, ShapeOperand) and not isinstance(row_by_row(operator), str):
        inputs[resized.slot] = _integers(resized.of(made.shape))
    return replace(operator, inputs=tuple(inputs), outputs=(made,))


def _is_cut(tensor: Tensor) -> bool:
    return not tensor.is_constant and len(tensor.shape) == 4 and tensor.shape[1] > 1


def _row_of(like: Tensor) -> Tensor:
    return Tensor(like.name, (1, 1, *like.shape[2:]), like.dtype, _NO_DATA, like.quantization)


def _second_row() -> Operator:
    image, cut = (Tensor("", (1, rows, 1, 1), DType.INT8, _NO_DATA) for rows in (4, 2))
    begin, size = _integers((0, 1, 0, 0)), _integers((1, 2, 1, 1))
    return Operator(OpCode("SLICE"), (image, begin, size), (cut,), OperatorOptions("SliceOptions", {}))


def _integers(values: tuple[int, ...]) -> Tensor:
    data = np.frombuffer(np.asarray(values, np.int32).tobytes(), np.uint8)
    return Tensor("", (len(values),), DType.INT32, Buffer(data))
