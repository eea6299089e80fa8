"""The rule of most operators: fixed structures and a fixed list of temporaries, so that a row is data."""

from __future__ import annotations

from dataclasses import dataclass

from ...ir.model import Operator, Tensor
from .model import NOTHING, Requests, Size, Word
from .slots import OUT0, Slot, held, needed

_INT = 4


@dataclass(frozen=True)
class Plain:
    """A rule without conditions. Sizes in bytes.

    ``params``: the parser's structure; ``params_alignment`` its alignment. ``op_data``: allocated in Init.
    ``holds``: the AllocateTemp calls of Prepare, in order. ``moves_shape``: Prepare copies the first output's
    dimensions from the file into the arena (kernel_util.cc, ``CreateWritableTensorDimsWithCopy``).
    """

    params: Size = NOTHING
    op_data: Size = NOTHING
    holds: tuple[Slot, ...] = ()
    moves_shape: bool = False
    params_alignment: int = 4

    def __call__(self, operator: Operator, word: Word) -> Requests:
        """The requests of one operator; the same for every operator but for the copied shape."""
        op_data = self.op_data.on(word)
        return Requests(
            params=self.params.on(word),
            init=(op_data,) if op_data else (),
            prepare=(shape_bytes(needed(operator, OUT0)),) if self.moves_shape else (),
            temporaries=held(operator, self.holds),
            params_alignment=self.params_alignment,
        )


def shape_bytes(tensor: Tensor) -> int:
    """sizeof a TfLiteIntArray that holds the tensor's shape: a count and one int per dimension."""
    return _INT * (1 + len(tensor.shape))
