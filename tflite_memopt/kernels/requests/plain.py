"""The rule of most operators: fixed structures and a fixed list of temporaries, so that a row is data."""

from __future__ import annotations

from dataclasses import dataclass

from ...ir.model import Operator, Tensor
from .model import NOTHING, Abi, Requests, Size, alignment_of
from .slots import OUT0, Slot, held, needed

_INT = 4


@dataclass(frozen=True)
class Plain:
    """A rule without conditions. Sizes in bytes.

    ``params``: the parser's structure. ``op_data``: allocated in Init.
    ``holds``: the AllocateTemp calls of Prepare, in order. ``moves_shape``: Prepare copies the first output's
    dimensions from the file into the arena (kernel_util.cc, ``CreateWritableTensorDimsWithCopy``).
    """

    params: Size = NOTHING
    op_data: Size = NOTHING
    holds: tuple[Slot, ...] = ()
    moves_shape: bool = False

    def __call__(self, operator: Operator, abi: Abi) -> Requests:
        """The requests of one operator; the same for every operator but for the copied shape."""
        params, op_data = self.params.on(abi), self.op_data.on(abi)
        return Requests(
            params=params,
            init=(op_data,) if op_data else (),
            prepare=(shape_bytes(needed(operator, OUT0)),) if self.moves_shape else (),
            temporaries=held(operator, self.holds),
            params_alignment=alignment_of(params),
        )


def shape_bytes(tensor: Tensor) -> int:
    """sizeof a TfLiteIntArray that holds the tensor's shape: a count and one int per dimension."""
    return _INT * (1 + len(tensor.shape))
