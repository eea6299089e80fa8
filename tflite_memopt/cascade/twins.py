"""What the operators of stripes ask of the arena and permit, by their numbers of rows.

A stripe's operator is a twin of the whole one with other numbers of rows. Twins with the same numbers are alike, so
that a kernel profile is asked once for each; twins are made outside any graph.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from ..graph.alignment import aligned
from ..ir.builder import VALID
from ..ir.constants import integers
from ..ir.dtype import DType
from ..ir.model import Buffer, OpCode, Operator, OperatorOptions, Tensor
from ..kernels.profile import KernelProfile
from ..kernels.requests.model import ILP32
from ..memory.relations import saved_bytes
from ..memory.work import operator_work
from ..operators.table import kind_of, row_by_row
from ..operators.told import ShapeOperand
from .arena_terms import params_bytes
from .cut_table import Flags, Integers
from .sweep import OperatorRows

_NO_DATA = Buffer()


@dataclass(frozen=True)
class TwinFigures:
    """Bytes. ``params``: structures of the parser; ``buffers``: persistent buffers, aligned.

    ``scratch`` is aligned, ``requests`` the number of scratch requests. ``saved``: pairs of an input of the whole
    operator and the bytes that it and the output share at most, if the input dies. ``work``: see ``memory/work.py``.
    """

    params: int
    buffers: int
    scratch: int
    requests: int
    saved: tuple[tuple[Tensor, int], ...]
    work: int


_NOTHING = TwinFigures(0, 0, 0, 0, (), 0)


@dataclass(frozen=True)
class ColumnFigures:
    """The figures of an operator's twins, a column for each stripe; ``pad_saved``: of the PAD before the window."""

    params: Integers
    buffers: Integers
    requests: Integers
    scratch: Integers
    saved: Mapping[Tensor, Integers]
    pad_saved: Integers
    work: Integers


class Twins:
    """The figures of twins under one kernel profile, each worked out once.

    ``has_reuse``: whether the profile lets any output lie on an input that is overwritten.
    """

    def __init__(self, profile: KernelProfile) -> None:
        self._profile, self.prices = profile, profile.prices
        image = Tensor("", (1, 4, 1, 1), DType.INT8, _NO_DATA)
        self.has_reuse = any(reuse.kind != "view" for reuse in profile.relations(_slice(image, 4, 1, 2)))
        self._found: dict[tuple[object, ...], TwinFigures] = {}
        self._plain: dict[str, TwinFigures] = {}
        self._shapes: dict[tuple[int, ...], int] = {}

    def shape_number(self, shape: tuple[int, ...]) -> int:
        """A number for columns and channels of an image, the same for the same ones."""
        return self._shapes.setdefault(shape, len(self._shapes))

    def whole(self, operator: Operator) -> TwinFigures:
        """The operator as it stands."""
        key = ("whole", operator)
        if key not in self._found:
            self._found[key] = self._figures(operator, operator)
        return self._found[key]

    def plain(self, name: str) -> TwinFigures:
        """SLICE, PAD or CONCATENATION: what they take does not depend on shapes."""
        if name not in self._plain:
            image = Tensor("", (1, 2, 1, 1), DType.INT8, _NO_DATA)
            make = {"SLICE": lambda: self.slice(image, 2, 0, 1), "PAD": lambda: self.pad(image, 2, (1, 0, 0, 0))}
            self._plain[name] = make.get(name, lambda: self.join(image, (2, 2)))()
        return self._plain[name]

    def of(
        self, operator: Operator, read: int, computed: int, padding: tuple[int, int, int, int] | None
    ) -> TwinFigures:
        """A twin that makes ``computed`` rows from ``read`` ones, padding (above, below, left, right) added before it.

        For PAD itself ``padding`` are its own amounts; None: the operator's padding stays as it is.
        """
        key = (operator, read, computed, padding)
        if key not in self._found:
            self._found[key] = self._figures(_twin(operator, read, computed, padding), operator)
        return self._found[key]

    def pad(self, tensor: Tensor, read: int, padding: tuple[int, int, int, int]) -> TwinFigures:
        """The PAD before a window."""
        key = ("PAD", tensor, read, padding)
        if key not in self._found:
            self._found[key] = self._figures(_pad(tensor, read, padding), None)
        return self._found[key]

    def slice(self, tensor: Tensor, present: int, first: int, count: int) -> TwinFigures:
        """A SLICE of ``count`` rows from row ``first`` of ``present`` ones."""
        key = ("SLICE", tensor, present, first, count)
        if key not in self._found:
            self._found[key] = self._figures(_slice(tensor, present, first, count), None)
        return self._found[key]

    def join(self, tensor: Tensor, rows: tuple[int, ...]) -> TwinFigures:
        """A CONCATENATION of parts with so many rows."""
        parts = [_image(tensor, count) for count in rows]
        options = OperatorOptions("ConcatenationOptions", {"axis": 1})
        joined = Operator(OpCode("CONCATENATION"), tuple(parts), (_image(tensor, sum(rows)),), options)
        return self._figures(joined, None)

    def columns(self, rows: OperatorRows) -> ColumnFigures:
        """The figures of all stripes of an operator."""
        read, computed, has_job = rows.read.count, rows.computed.count, rows.has_job
        keys = ((read * 65536 + computed) * 256 + rows.above) * 256 + rows.below
        _, first, places = np.unique(np.where(has_job, keys, -1), return_index=True, return_inverse=True)
        is_pad = kind_of(rows.operator).is_pad
        found, padded = [], []
        for at in first:
            around = (int(rows.above[at]), int(rows.below[at]), rows.left, rows.right)
            given = around if is_pad or rows.is_valid else None
            one = self.of(rows.operator, int(read[at]), int(computed[at]), given) if has_job[at] else _NOTHING
            pad = self.pad(rows.sources[0], int(read[at]), around) if rows.pads[at] and self.has_reuse else _NOTHING
            found.append(one)
            padded.append(sum(nbytes for _, nbytes in pad.saved))
        table = np.asarray([(e.params, e.buffers, e.requests, e.scratch, e.work) for e in found], np.int64).T[:, places]
        saved = {
            tensor: np.asarray([max((n for t, n in one.saved if t is tensor), default=0) for one in found])[places]
            for tensor in rows.sources
            if self.has_reuse
        }
        params, buffers, requests, scratch, work = table
        return ColumnFigures(params, buffers, requests, scratch, saved, np.asarray(padded, np.int64)[places], work)

    def sliced(self, tensor: Tensor, present: Flags, rows: Integers, first: Integers, count: Integers) -> Integers:
        """Bytes that a copied slice of ``count`` of ``rows`` rows from row ``first`` saves where its source dies."""
        keys = np.where(present, (rows * 65536 + first) * 65536 + count, -1)
        different, places = np.unique(keys, return_inverse=True)
        saved = [0 if key < 0 else self._slice_saves(tensor, int(key)) for key in different]
        return np.asarray(saved, np.int64)[places]

    def _slice_saves(self, tensor: Tensor, key: int) -> int:
        return sum(n for _, n in self.slice(tensor, key >> 32, key >> 16 & 65535, key & 65535).saved)

    def _figures(self, twin: Operator, whole: Operator | None) -> TwinFigures:
        asked = self._profile.requests(twin, self._profile.abi)
        scratch = self._profile.requests(twin, ILP32).scratch
        slots = {id(t): at for at, t in reversed(list(enumerate(twin.inputs)))}
        saved = []
        for reuse in self._profile.relations(twin):
            if reuse.kind != "view":
                source = reuse.input if whole is None else whole.inputs[slots[id(reuse.input)]]
                assert source is not None
                saved.append((source, saved_bytes(reuse)))
        return TwinFigures(
            params_bytes(asked),
            sum(aligned(size) for size in (*asked.init, *asked.prepare)),
            sum(aligned(size) for size in scratch),
            len(asked.scratch),
            tuple(saved),
            operator_work(twin, self.prices),
        )


def one_row(operator: Operator) -> Operator:
    """The operator as a stripe of one row; itself where it has no rows."""
    source = operator.inputs[0] if operator.inputs else None
    has_rows = source is not None and len(source.shape) == 4 and all(len(each.shape) == 4 for each in operator.outputs)
    return _twin(operator, 1, 1, None) if has_rows and operator.outputs else operator


def _image(like: Tensor, rows: int) -> Tensor:
    return Tensor(like.name, (1, rows, *like.shape[2:]), like.dtype, _NO_DATA, like.quantization)


def _twin(operator: Operator, read: int, computed: int, padding: tuple[int, int, int, int] | None) -> Operator:
    output, options, inputs = operator.outputs[0], operator.options, list(operator.inputs)
    kind = kind_of(operator)
    seen: dict[int, Tensor] = {}
    for slot, tensor in enumerate(inputs):
        if tensor is not None and not tensor.is_constant and len(tensor.shape) == 4 and tensor.shape[1] > 1:
            inputs[slot] = seen.setdefault(id(tensor), _image(tensor, read))
    if padding is not None and kind.is_pad:
        amounts = integers(inputs[1])
        assert amounts is not None
        amounts[2:4] = padding[:2]
        inputs[1] = _constant("paddings", amounts.reshape(4, 2))
    elif padding is not None:
        first = inputs[0]
        assert first is not None
        inputs[0] = _padded_image(first, padding)
        assert options is not None
        options = replace(options, fields={**options.fields, "padding": VALID})
    made = _image(output, computed)
    if isinstance(kind.resized, ShapeOperand) and not isinstance(row_by_row(operator), str):
        inputs[kind.resized.slot] = _constant("shape", np.asarray(kind.resized.of(made.shape)))
    return replace(operator, inputs=tuple(inputs), outputs=(made,), options=options)


def _padded_image(tensor: Tensor, padding: tuple[int, int, int, int]) -> Tensor:
    above, below, left, right = padding
    _, rows, columns, depth = tensor.shape
    return replace(tensor, shape=(1, rows + above + below, columns + left + right, depth))


def _pad(tensor: Tensor, read: int, padding: tuple[int, int, int, int]) -> Operator:
    source = _image(tensor, read)
    above, below, left, right = padding
    amounts = _constant("paddings", np.asarray([[0, 0], [above, below], [left, right], [0, 0]]))
    return Operator(
        OpCode("PAD"), (source, amounts), (_padded_image(source, padding),), OperatorOptions("PadOptions", {})
    )


def _slice(tensor: Tensor, present: int, first: int, count: int) -> Operator:
    cut = _image(tensor, count)
    begin, size = _constant("begin", np.asarray([0, first, 0, 0])), _constant("size", np.asarray(cut.shape))
    return Operator(
        OpCode("SLICE"), (_image(tensor, present), begin, size), (cut,), OperatorOptions("SliceOptions", {})
    )


def _constant(name: str, values: Integers) -> Tensor:
    data = np.frombuffer(np.ascontiguousarray(values, np.int32).tobytes(), np.uint8)
    return Tensor(name, values.shape, DType.INT32, Buffer(data))
