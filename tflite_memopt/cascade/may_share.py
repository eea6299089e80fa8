"""Which operators may have their output on an input, whatever their numbers of rows."""

from __future__ import annotations

from ..ir.model import Operator
from ..kernels.portable import PORTABLE_REUSES, portable_relations
from ..kernels.profile import KernelProfile
from ..kernels.relations.views import SHARED_CODE
from .twins import Twins, one_row


class MayShare:
    """Says of an operator under one kernel profile whether a twin of it with fewer rows may share bytes.

    False is certain, True is not: a rule that asks for more than the operator's name may refuse a twin. Only views are
    asked one by one: bytes that are one run in several rows are one run in a single row, too.
    """

    def __init__(self, profile: KernelProfile) -> None:
        self._profile, self._has_reuse = profile, Twins(profile).has_reuse
        self._views: dict[Operator, bool] = {}

    def __call__(self, operator: Operator) -> bool:
        """Whether the output of the operator, or of a twin, may lie on an input."""
        if operator.name in SHARED_CODE:
            if operator not in self._views:
                self._views[operator] = self._may_be_view(operator)
            return self._views[operator]
        if self._profile.relations is portable_relations:
            return operator.name in PORTABLE_REUSES
        return self._has_reuse

    def _may_be_view(self, operator: Operator) -> bool:
        if any(len(tensor.shape) != 4 for tensor in (operator.inputs[0], *operator.outputs) if tensor is not None):
            return True
        return any(self._profile.relations(each) for each in (operator, one_row(operator)))
