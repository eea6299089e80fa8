"""The table of operator kinds. A family of kinds is a file, a kind is a row of it.

Code that cuts operators or lays them along another axis asks the table, and knows no names. To add a kind:

1. Its row, in the file of its family (``window.py``, ``elementwise.py``, ``reduce.py``, ``move.py``, ``dense.py``,
   ``recurrent.py``, ``control.py``): an ``OperatorKind``, whose docstring (``kind.py``) says what each field is.
   Elementwise kinds begin with ``_unary`` or ``_binary``. ``asks`` (``Asks`` in ``requests.py``): a kind without it
   counts as one that TFLM lacks, and models with it are refused; sizes are those of the parser's parameters, 0 where it
   has none, and of the kernel's OpData. If TFLM lacked it before, ``instead`` goes, and ``since`` has the day.
   ``rows``: ``(Operator) -> RowMap | str``, the string being the reason for the report; without it the kind runs whole.
   A window (``RowMap.is_window``) has TFLite's option ``padding``, which the writer sets to VALID. Where they apply:
   ``resized`` (an operand or an option repeats the number of rows), ``beyond`` (the operator pads by itself),
   ``overwrites``, ``tflm``, ``price`` (``Price`` in ``kind.py``; the default is that of an addition), ``macs``,
   ``keeps_scale``, ``scale``, ``versions`` (for a kind that rewrites write). Optional: ``by_phase`` and ``along_h``;
   without them sequences with this operator are not cut that way.
2. In ``evidence/proof/``: its row in ``contracts.py``, how it is evaluated and what it must be; one that is ``whole``
   has its name in ``kinds.py`` instead, is equal to the same operator on equal inputs alone, and cannot be cut. If
   ``overwrites`` is set, the order in which its kernel reads and writes, in ``orders.py``: the proof refuses a plan
   without it. ``tests/proof/test_kinds.py`` fails where one of them is missing.
3. ``python -m scripts.makers.reference``: docs/reference.md takes the docstring of its rows.
4. Tests have elementwise kinds of one type from the table (``tests/kernels/one_operator.py``, which has a maker for
   each other kind, and ``test_relations_in_place.py``, which has a case for each other one with ``overwrites``; it runs
   on the installed wheel, which must have the kind). For ``rows`` of its own, where LiteRT has a reference kernel
   (``_unary`` and ``_binary`` share the rows of RELU and ADD, which are tested): a reason for each refusal in
   ``REFUSED`` and the rows against an interpreter, its name among those drawn, in
   ``tests/operators/test_receptive_field.py``; in ``tests/cascade/networks.py`` a method, and its name in ``OPERATORS``
   or ``KEEPING_ROWS``: ``pytest -m "" tests/cascade/test_lower.py`` compares its stripes.
   ``tests/kernels/test_requests.py`` compares its requests with what the wheel allocates, and counts the kinds. Kinds
   that the fuzzer draws are named in ``scripts/fuzzing/elementwise.py``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..model.ir.check import misfit
from ..model.ir.model import Operator, Tensor
from . import control, custom, dense, elementwise, move, recurrent, reduce, window
from .kind import OperatorKind
from .requests import RequestRule
from .reuse import KernelReuse, views
from .rows import RowMap, is_image, is_stack

_FAMILIES = (control.KINDS, dense.KINDS, elementwise.KINDS, move.KINDS, recurrent.KINDS, reduce.KINDS, window.KINDS)
OPERATORS: Mapping[str, OperatorKind] = dict(sorted(row for family in _FAMILIES for row in family.items()))
"""Every kind of which something is known here, by the builtin's schema name."""
BY_CHANNEL = tuple(name for name, kind in OPERATORS.items() if kind.is_by_channel)
WITH_SCALES = tuple(name for name, kind in OPERATORS.items() if kind.channel_axis is not None)
"""Those whose filters have a scale for each channel, from which each channel's multiplier is made."""
SUMS_OF_CHANNELS = tuple(
    name for name in WITH_SCALES if (OPERATORS[name].channel_axis, OPERATORS[name].tflm.activation) == (0, 0)
)
"""Those whose output channels are sums over all channels of the first input."""
SHARED_CODE = frozenset(name for name, kind in OPERATORS.items() if kind.views is not None)
"""Those that copy bytes, whose kernel is the same source file with every kernel library (``move.py``)."""
BY_LABEL: Mapping[str, OperatorKind] = {**OPERATORS, **custom.KINDS}
"""All rows, by the builtin's schema name or by custom code."""
REFERENCE: Mapping[str, RequestRule] = {name: kind.asks for name, kind in BY_LABEL.items() if kind.asks is not None}
"""What TFLM's own kernels ask of the arena, by the builtin's schema name or by custom code.

These are all operators that TFLM has: those that python/tflite_micro/python_ops_resolver.cc registers, and Ethos-U's.
"""
_OTHER = OperatorKind()


def kind_of(operator: Operator) -> OperatorKind:
    """Return the row of the table; for a kind without one, a row that says that it is not run by rows."""
    return OPERATORS.get(operator.name, _OTHER)


def version_of(name: str, outputs: Sequence[Tensor]) -> int:
    """Return the version to write of a kind: that which the types and ranks of its outputs ask for."""
    if not outputs:
        return 1
    versions, first = OPERATORS.get(name, _OTHER).versions, outputs[0]
    by_rank = versions.get(None, 1) if len(first.shape) > 4 else 1
    return max(by_rank, versions.get(first.dtype, 1))


def relations_of(operator: Operator) -> tuple[KernelReuse, ...]:
    """Return where an output may lie on an input, with TFLM's own kernels: views, in-place and overlap."""
    return kind_of(operator).relations(operator)


def portable_relations(operator: Operator) -> tuple[KernelReuse, ...]:
    """Return the same with the kernels of any library."""
    return kind_of(operator).relations(operator, is_portable=True)


def views_of(operator: Operator) -> tuple[KernelReuse, ...]:
    """Return the inputs and outputs of an operator that may be the same bytes."""
    return views(operator, kind_of(operator).views)


def operator_macs(operator: Operator) -> int:
    """Return the MACs of one invocation; 0 for operators whose work is not multiply-accumulate.

    Raises ModelFormatError when the operator lacks an input or a dimension that its kind has.
    """
    try:
        return kind_of(operator).macs(operator)
    except IndexError as error:
        raise misfit(operator) from error


def row_map_of(operator: Operator) -> RowMap | str:
    """Return the row map of an operator, or the reason why it cannot run for some rows at a time."""
    kind = kind_of(operator)
    if len(operator.outputs) != 1 or not _has_rows(operator, kind):
        return "its output is not one NHWC tensor with batch 1"
    found = kind.rows(operator)
    if isinstance(found, RowMap) and any(tensor.is_constant for tensor in found.images(operator)):
        return "it computes from a constant image"
    return found


def _has_rows(operator: Operator, kind: OperatorKind) -> bool:
    """Tell whether the output is an image; one without channels ends a region, since nothing else here reads it."""
    output = operator.outputs[0]
    if operator.name == "TRANSPOSE" and is_stack(output):
        return True
    return is_image(output) or (kind.drops_channels and len(output.shape) == 3 and output.shape[0] == 1)
