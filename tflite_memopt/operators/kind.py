"""What is known of one kind of operator: the type of a row of the table (``table.py``)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property
from typing import Literal

from ..model.ir.editor import GraphWriter
from ..model.ir.model import DType, Operator
from .overrides import NO_OVERRIDES, Overrides, PaddingsOperand, Sequences, ShapeOperand
from .requests import Asks
from .reuse import KernelReuse, Overwrites, ReuseRule, ViewRule, in_place, views
from .rows import RowMap

Beyond = Literal["zero point", "own value", "not counted"]
"""The values beyond the edges of an operator's input: the zero point, a value of its own, or none."""
PriceOfMoving = Literal["moved", "copied", "joined", "padded", "updated", "chosen"]
PriceOfProducts = Literal["window", "pooled", "dense", "products"]
PriceOfElements = Literal["element", "plain element", "product", "curve", "softmax", "converted", "reduced"]
Price = Literal["free"] | PriceOfMoving | PriceOfProducts | PriceOfElements
"""What run time depends on (``memory/work.py``). "element": of an output element, also where nothing was measured;
"plain element": no library but TFLM's own has a kernel. "curve": an element of a nonlinear function that integers get
from a table or a polynomial. "chosen": one value may choose a whole tensor. "products": multiply-accumulates alone."""


@dataclass(frozen=True)
class ByPhase:
    """Tells whether an operator can run for each phase of a sequence by itself, and with which overrides."""

    can: Callable[[Operator, int], bool]
    overrides_for: Callable[[GraphWriter, Operator, int], Overrides] = lambda _, __, ___: NO_OVERRIDES


@dataclass(frozen=True)
class AlongH:
    """Tells whether an operator computes the same from these sequences laid along H, and with which overrides.

    ``filters``: the slot of filters that are laid along H as well; ``as_it_lies``: of an operand that is not.
    ``is_worth_it``: whether sequences are laid along H for its sake.
    """

    can: Callable[[Operator, Sequences], bool]
    overrides_for: Callable[[GraphWriter, Operator], Overrides] = lambda _, __: NO_OVERRIDES
    filters: int | None = None
    as_it_lies: int | None = None
    is_worth_it: bool = False


@dataclass(frozen=True)
class Tflm:
    """The operators of a kind that TFLM's kernel takes.

    ``types``: of the first ``activation``, which is the input at this position; None where the kernel does not look.
    ``weights``: the position of an input that a float activation needs in float as well; ``of_weights``: the types that
    it may have, by that of the activation. ``constants``: inputs that Prepare takes as constants alone ("Non-constant
    tensor is not supported"). ``sizes``: inputs whose values make the shape of the output. ``rank``: the least and the
    most dimensions of the activation, and of which types. ``outputs``: types of the first output, by that of the
    activation. ``one_scale``: the output has the scale and the zero point of the input. Source: the kernels' Prepare
    and Eval in tflite-micro, compared with the wheel by ``scripts/fuzz runtimes``.
    """

    types: frozenset[DType] | None = None
    activation: int = 0
    weights: int | None = None
    of_weights: Mapping[DType, frozenset[DType]] = field(default_factory=dict)
    constants: tuple[int, ...] = ()
    sizes: tuple[int, ...] = ()
    rank: tuple[int, int, frozenset[DType]] = (0, 0, frozenset())
    outputs: Mapping[DType, frozenset[DType]] = field(default_factory=dict)
    one_scale: bool = False

    def takes(self, dtype: DType) -> bool:
        """Tell whether the activation may be of this type."""
        return self.types is None or dtype in self.types


@dataclass(frozen=True)
class Arrival:
    """The day since which TFLM has a kind, or some operators of it (``kernels/since.py``).

    ``came``: the day, such as 2025-11-10, and the commit of tflite-micro's main branch. ``dtype``: of the
    activation of those that came; None for all of the kind. ``what``: more on them, in words, and ``meets``: whether an
    operator of that type is among them. ``had_by``: kernel libraries that had their own kernel for it before. ``cure``:
    what to do beside linking a newer TFLM; empty for the usual. ``operator``: the kind's name, which the table adds.
    """

    came: str
    dtype: DType | None = None
    what: str = ""
    meets: Callable[[Operator], bool] = lambda _: True
    had_by: tuple[str, ...] = ()
    cure: str = ""
    operator: str = ""

    @cached_property
    def day(self) -> date:
        """The day that it came."""
        return date.fromisoformat(self.came.partition(" ")[0])

    @property
    def commit(self) -> str:
        """The commit with which it came."""
        return self.came.partition(" ")[2]

    def __str__(self) -> str:
        of_type = "" if self.dtype is None else f"of {self.dtype.label}"
        return " ".join(filter(None, (self.operator, of_type, self.what)))


ARM_LIBRARIES = ("cmsis-nn", "cmsis-nn-dsp", "cmsis-nn-mve")
"""The kernel libraries of Arm."""


def not_by_rows(operator: Operator) -> str:
    """Return why an operator of a kind without rows is not cut."""
    return f"{operator.name} is not computed row by row"


@dataclass(frozen=True)
class OperatorKind:
    """All that is known of one kind of operator, but for what libraries other than TFLM's own do.

    ``asks``: bytes of the arena; None: TFLM has no kernel. ``price``: what its run time depends on. ``flash``: bytes of
    code and constants (``kernels/code_size.py``); None: not measured.

    ``rows``: how one is run for some of its rows, or why it is not. ``resized``: the operand that must get another
    number of rows. ``beyond``: what it sees where it pads by itself. ``is_elementwise``: an output pixel depends on the
    inputs' pixels at the same place; in some kinds on all their channels. ``is_by_channel``: an output element depends
    on the elements at its place alone, by parameters of whole tensors. ``drops_channels``: the output has none.

    ``overwrites``: the inputs whose elements the kernel reads only at the index that it writes, so that the output may
    lie on one of them; ``reuses``: a rule in place of that. ``views``: bytes that the kernel only copies, in a file
    that every library has; ``is_same_code``: so are ``reuses`` and ``overwrites``.

    ``macs``: multiply-accumulates of one run. ``channel_axis``: the dimension of the filters, which are input 1, that
    is that of the output channels, each of which has a scale. ``keeps_scale``: quantization gives the output the scale
    and zero point of the input; ``scale``: it gives int8 outputs these, whatever they hold.

    ``versions``: the operator's version in the file, by the type of the first output, where it is above 1; None:
    the least one of an output of more than four dimensions. Interpreters refuse a version that they do not know; TFLM
    looks at none. Source: tensorflow/lite/tools/versioning/op_version.cc, GetBuiltinOperatorVersion (tensorflow
    02087409073e).

    ``since``: what came to TFLM after the oldest build that is known. ``instead``: what to write in Keras or PyTorch
    in place of a kind that TFLM lacks.
    """

    tflm: Tflm = Tflm()
    asks: Asks | None = None
    price: Price = "element"
    flash: int | None = None
    rows: Callable[[Operator], RowMap | str] = not_by_rows
    resized: ShapeOperand | PaddingsOperand | None = None
    beyond: Beyond | None = None
    is_elementwise: bool = False
    is_by_channel: bool = False
    overwrites: Overwrites | None = None
    drops_channels: bool = False
    by_phase: ByPhase | None = None
    along_h: AlongH | None = None
    reuses: ReuseRule | None = None
    views: ViewRule | None = None
    is_same_code: bool = False
    macs: Callable[[Operator], int] = lambda _: 0
    channel_axis: int | None = None
    keeps_scale: bool = False
    scale: tuple[float, int] | None = None
    versions: Mapping[DType | None, int] = field(default_factory=dict)
    since: tuple[Arrival, ...] = ()
    instead: str = ""

    @property
    def is_pad(self) -> bool:
        """Tell whether all that it does is to put something around its input."""
        return isinstance(self.resized, PaddingsOperand)

    def relations(self, operator: Operator, is_portable: bool = False) -> tuple[KernelReuse, ...]:
        """Return where an output may lie on an input, with TFLM's own kernels; ``is_portable``: with any library's."""
        found = views(operator, self.views)
        if is_portable and not self.is_same_code:
            return found
        return found + (in_place(operator, self.overwrites) if self.reuses is None else self.reuses(operator))


F32, I8, I16, I32, I64, U8, BOOL, I4 = (
    *(DType.FLOAT32, DType.INT8, DType.INT16, DType.INT32, DType.INT64, DType.UINT8),
    *(DType.BOOL, DType.INT4),
)
FLOAT = frozenset({F32})
TO_8 = FLOAT | {I8}
TO_16 = TO_8 | {I16}
TO_32 = TO_16 | {I32}
TO_64 = TO_32 | {I64}
BYTES: Mapping[DType, frozenset[DType]] = {F32: FLOAT, I8: frozenset({I8}), I16: frozenset({I8})}
"""Types of weights by that of the activation."""
NIBBLES = {**BYTES, I8: frozenset({I8, I4})}
"""The same of kernels that unpack weights of 4 bits."""
