"""Where a kernel's output may lie on its input: the types, and the rules that several families of kinds share.

Distances are bytes: ``offset(input) - offset(output)``. Sources of all rules, where none is named: tflite-micro commit
90b983c2b3f1, tensorflow/lite/micro/kernels/ and the loops of tensorflow/lite/kernels/internal/reference/ they call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from ..model.ir.model import DType, Operator, Tensor
from ..solvers.graph.alignment import ARENA_ALIGNMENT

ReuseKind = Literal["view", "in-place", "overlap"]


@dataclass(frozen=True)
class KernelReuse:
    """The two tensors may share bytes at exactly ``distance`` (view, in-place) or at least ``distance`` (overlap).

    A view: the kernel copies bytes onto themselves, and both tensors stay what they are; the input may live on.
    In-place and overlap: the kernel overwrites its input, which must have no later reader.
    """

    input: Tensor
    output: Tensor
    distance: int
    kind: ReuseKind

    @property
    def exact(self) -> bool:
        """Tell whether no other distance will do."""
        return self.kind != "overlap"


ReuseRule = Callable[[Operator], tuple[KernelReuse, ...]]
"""The signature of a rule for an operator; it returns nothing where it is not sure."""
Pair = tuple[Tensor | None, Tensor, int]
"""An input, an output, and ``offset(input) - offset(output)`` in bytes."""
ViewRule = Callable[[Operator], Iterator[Pair]]
"""The inputs and outputs whose bytes a kernel only copies."""
Overwrites = Literal["first input", "any input"]


def no_reuse(_: Operator) -> tuple[KernelReuse, ...]:
    """Return the rule for an unknown kernel."""
    return ()


def views(operator: Operator, pairs_of: ViewRule | None) -> tuple[KernelReuse, ...]:
    """Return the inputs and outputs that may be the same bytes; none where an operand that decides is no constant.

    Distances are multiples of TFLM's alignment of 16 bytes; a part that would start elsewhere gets none.
    """
    if pairs_of is None or not operator.outputs:
        return ()
    return tuple(
        KernelReuse(source, output, distance, "view")
        for source, output, distance in pairs_of(operator)
        if source is not None and _are_in_arena(source, output) and distance % ARENA_ALIGNMENT == 0
    )


def _are_in_arena(source: Tensor, output: Tensor) -> bool:
    """Both have bytes of the same type in the arena's head."""
    if source.is_constant or source.is_variable or output.is_variable or source is output:
        return False
    return source.dtype is output.dtype and source.nbytes > 0 and output.nbytes > 0


_ELEMENTS = frozenset(
    {DType.BOOL, DType.FLOAT32, DType.INT8, DType.INT16, DType.INT32, DType.INT64, DType.UINT8, DType.UINT32}
)


def in_place(operator: Operator, overwrites: Overwrites | None, converts: bool = False) -> tuple[KernelReuse, ...]:
    """Return each input that the output may lie on exactly, and where a conversion changes the size of an element, how.

    ``overwrites``: inputs whose elements the kernel reads only at the index that it writes. ``converts``: to another
    type.
    """
    if len(operator.outputs) != 1 or overwrites is None:
        return ()
    output = operator.outputs[0]
    tensors = operator.inputs[:1] if overwrites == "first input" else operator.inputs
    return tuple(
        reuse
        for tensor in dict.fromkeys(tensors)
        if tensor is not None and not tensor.is_constant and not tensor.is_variable and tensor.shape == output.shape
        for reuse in _by_elements(tensor, output, converts)
    )


def _by_elements(source: Tensor, output: Tensor, converts: bool) -> tuple[KernelReuse, ...]:
    if source.dtype not in _ELEMENTS or output.dtype not in _ELEMENTS or not output.elements:
        return ()
    read, written = source.dtype.arena_bytes, output.dtype.arena_bytes
    if read == written:
        return (KernelReuse(source, output, 0, "in-place"),)
    if not converts:
        return ()
    # Element i is written when all up to i have been read: (i + 1) * written bytes over (i + 1) * read.
    last = output.elements - 1
    return (KernelReuse(source, output, max(written - read, last * (written - read)), "overlap"),)
