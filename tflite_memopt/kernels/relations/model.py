"""What a kernel permits between one of its inputs and one of its outputs.

Distances are bytes: ``offset(input) - offset(output)``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from ...ir.model import Operator, Tensor

Kind = Literal["view", "in-place", "overlap"]


@dataclass(frozen=True)
class KernelReuse:
    """The two tensors may share bytes at exactly ``distance`` (view, in-place) or at least ``distance`` (overlap).

    A view: the kernel copies bytes onto themselves, and both tensors stay what they are; the input may live on.
    In-place and overlap: the kernel overwrites its input, which must have no later reader.
    """

    input: Tensor
    output: Tensor
    distance: int
    kind: Kind

    @property
    def exact(self) -> bool:
        """Whether no other distance will do."""
        return self.kind != "overlap"


ReuseRule = Callable[[Operator], tuple[KernelReuse, ...]]
"""What a file of rules provides for an operator; nothing where it is not sure."""


def no_reuse(operator: Operator) -> tuple[KernelReuse, ...]:
    """The rule for a kernel of which nothing is known."""
    return ()
