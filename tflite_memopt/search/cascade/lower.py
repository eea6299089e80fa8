r"""A region in stripes, written in stock operators.

    x ---> A ---> B ---> y      =>      x --SLICE--> A/stripe1of2 --> B/stripe1of2 --+
                                        |                                         CONCATENATION --> y
                                        +---SLICE--> A/stripe2of2 --> B/stripe2of2 --+

Slices and the last concatenation are contiguous rows, so that the planner makes them views. Where all slices of an
input are, they come first: then it is only rows, which are released stripe by stripe. Weights are the same tensors in
every stripe. Exactness: exact.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import prod

import numpy as np

from ...kernels.support import MAX_PARTS
from ...model.ir.copying import tensors_to_keep
from ...model.ir.editor import SAME, VALID, last_part, stem
from ...model.ir.model import DType, Graph, Model, Operator, Tensor
from ...model.ir.tensors import quantized_alike, zero_of
from ...operators.editor import Editor
from ...operators.overrides import Overrides, PaddingsOperand, ShapeOperand
from ...operators.rows import RowMap, Rows
from ...operators.table import kind_of
from ...solvers.graph.alignment import ARENA_ALIGNMENT, aligned
from .region import Region
from .stripes import Job, Stripe, input_reads

Held = tuple[Tensor, Rows]
"""A tensor, and which rows of the whole it has."""
_NOTHING_HELD: Mapping[Tensor, Held] = {}
_NOTHING_KEPT: Mapping[Tensor, Rows] = {}
_ALL = (-1,) * 4
"""Sizes of a slice that takes all that is left: one constant for all that a loop keeps, whatever its shape."""


def lower(model: Model, graph: Graph, region: Region, stripes: Sequence[Stripe]) -> None:
    """Replace the region's operators by their stripes, in place."""
    edit = Editor.in_place_of(model, graph, *region.operators)
    slices = InputSlices(edit, region, stripes)
    writer = StripeWriter(edit, region, slices.rows_of)
    parts = []
    for number, stripe in enumerate(stripes, 1):
        slices.suffix = f"stripe{number}of{len(stripes)}"
        keep = stripes[number].kept() if number < len(stripes) else {}
        parts.append(writer.write(stripe, slices.suffix, keep))
    join(edit, parts, region.exit)
    remove_unread(model, graph, region)


def remove_unread(model: Model, graph: Graph, region: Region) -> None:
    """Drop tensors of the whole operators only: inner ones, the paddings of a PAD, weights that only a loop reads."""
    touched = {tensor for op in region.operators for tensor in (*op.present_inputs(), *op.outputs)}
    kept = tensors_to_keep(model)
    graph.remove_tensors(t for t in touched if t.producer is None and not t.uses and id(t) not in kept)


def rows_of(
    edit: Editor, tensor: Tensor, present: Rows, wanted: Rows, name: str, size: Sequence[int] | None = None
) -> Tensor:
    """Return the wanted rows of a tensor that has the present ones: a slice, unless they are the same.

    ``size``: the operand of SLICE, in place of the shape; -1 is all that is left.
    """
    if wanted == present:
        return tensor
    start = wanted.start - present.start
    cut = rows_like(edit, name, tensor, Rows(start, start + wanted.count))
    edit.slice(tensor, (0, start, 0, 0), cut.shape if size is None else size, cut)
    return cut


def groups_of(count: int) -> list[tuple[int, int]]:
    """Divide so many parts into groups, half-open, that TFLM can join at once."""
    groups = 1 if count <= MAX_PARTS else -(-count // MAX_PARTS)
    ends = [count * (k + 1) // groups for k in range(groups)]
    return list(zip([0, *ends], ends, strict=False))


def join(edit: Editor, parts: list[Tensor], whole: Tensor) -> None:
    """Concatenate along H, in groups where there are more parts than TFLM takes."""
    while len(parts) > MAX_PARTS:
        groups = [parts[first:end] for first, end in groups_of(len(parts))]
        parts = [edit.joined(each, 1, f"{stem(whole)}/rows", each[0], is_piece=True) for each in groups]
    edit.join(parts, whole, 1)


def rows_like(edit: Editor, name: str, like: Tensor, rows: Rows) -> Tensor:
    """Return a tensor with the given rows of ``like``."""
    shape = (like.shape[0], rows.count, *like.shape[2:])
    return edit.activation(name, shape, like, is_piece=True)


class InputSlices:
    """Rows of the region's inputs.

    Where they are all views, they are cut out before the stripes, so that the input dies and its rows are released
    stripe by stripe. Where one would be a copy, each is cut when it is read, since copies made early are all alive at
    once; unless they are so small that this is no more than what is alive at the end of the last stripe.
    """

    def __init__(self, edit: Editor, region: Region, stripes: Sequence[Stripe]) -> None:
        self._edit = edit
        self.suffix = ""
        self._slices: dict[tuple[Tensor, Rows], Tensor] = {}
        reads = [[(tensor, rows) for _, tensor, rows in input_reads(region, stripe)] for stripe in stripes]
        late = _late_inputs(region, stripes[-1], dict.fromkeys(read for each in reads for read in each))
        self._images = {tensor: (tensor,) if tensor in late else self._images_of(tensor) for tensor in region.inputs}
        for number, each in enumerate(reads):
            self.suffix = f"stripe{number + 1}of{len(stripes)}"
            for image, rows in ((image, rows) for tensor, rows in each for image in self._images[tensor]):
                if image not in late and (image, rows) not in self._slices:
                    self._slices[image, rows] = self._cut(image, rows)

    def rows_of(self, tensor: Tensor, rows: Rows) -> Tensor:
        """These rows of an input."""
        parts = [self._slices.get((image, rows)) or self._cut(image, rows) for image in self._images[tensor]]
        if len(parts) == 1:
            return parts[0]
        # As columns, not as a stack, in whose place they would lie better than in that of their images.
        return self._edit.joined(parts, 2, f"{stem(tensor)}/{self.suffix}/columns", tensor, is_piece=True)

    def _images_of(self, tensor: Tensor) -> tuple[Tensor, ...]:
        """Return the images of a stack, each of which has its rows in one piece; they are views."""
        count, *shape = tensor.shape
        if count == 1:
            return (tensor,)
        edit, names = self._edit, (f"{stem(tensor)}/image{at + 1}of{count}" for at in range(count))
        images = tuple(edit.activation(name, (1, *shape), tensor, is_piece=True) for name in names)
        axis = edit.constant(f"{stem(tensor)}/axis", np.asarray(0, np.int32))
        edit.operator("SPLIT", (axis, tensor), images, "SplitOptions", numSplits=count)
        return images

    def _cut(self, tensor: Tensor, rows: Rows) -> Tensor:
        return rows_of(self._edit, tensor, Rows(0, tensor.shape[1]), rows, f"{stem(tensor)}/{self.suffix}")


def _late_inputs(region: Region, last: Stripe, reads: Iterable[tuple[Tensor, Rows]]) -> set[Tensor]:
    """Return the inputs whose slices are made when they are read."""
    copies = [(tensor, rows) for tensor, rows in reads if not _is_view(tensor, rows)]
    late = {tensor for tensor, _ in copies}
    readers = [op for op in region.operators if any(tensor in region.inputs for tensor in op.present_inputs())]
    if len(late) != 1 or len(region.inputs) != 1 or len(readers) != 1:
        return late
    # Then the input and its copies are alive at once, at the end the output and the rows that the last operator reads.
    operator, row_map = region.steps[-1]
    inner = {tensor for tensor in row_map.images(operator) if tensor not in region.inputs}
    rows = last.jobs[operator].read.count
    at_end = aligned(region.exit.nbytes) + sum(aligned(rows * row_bytes(tensor)) for tensor in inner)
    at_once = sum(aligned(rows.count * row_bytes(tensor)) for tensor, rows in copies) + aligned(region.inputs[0].nbytes)
    return set() if at_once <= at_end else late


def _is_view(tensor: Tensor, rows: Rows) -> bool:
    """Tell whether rows can stay where they lie: of an image, or of each image of a stack that can be joined again."""
    images = tensor.shape[0]
    if images > MAX_PARTS or (images > 1 and tensor.nbytes // images % ARENA_ALIGNMENT):
        return False
    return rows.start * row_bytes(tensor) // images % ARENA_ALIGNMENT == 0


def row_bytes(tensor: Tensor) -> int:
    """Return the bytes of one row of an image, or of one row of each image of a stack."""
    return tensor.shape[0] * prod(tensor.shape[2:]) * tensor.dtype.arena_bytes


class StripeWriter:
    """Writes the operators of stripes, one stripe after the other.

    ``input_rows`` gives the rows of an input of the region. ``held``: for the tensors inside the region, the rows that
    the stripe before has, and where. ``join`` puts the parts of a tensor's rows together; None: CONCATENATION does.
    ``iteration``: in the body of a loop, the tensors of the body that are read whole in place of the region's. There
    what is kept is cut out after the last operator that reads it, so that it may be written over it; ``move`` tells
    whether it has written what is kept of a tensor itself. ``joins_columns``: as for ``padded``. A PAD that pads
    nothing is left out.
    """

    def __init__(
        self,
        edit: Editor,
        region: Region,
        input_rows: Callable[[Tensor, Rows], Tensor],
        held: Mapping[Tensor, Held] = _NOTHING_HELD,
        join: Callable[[Tensor, Rows, Sequence[Tensor], str], Held] | None = None,
        iteration: Mapping[Tensor, Tensor] | None = None,
        move: Callable[[Tensor], bool] = lambda _: False,
        joins_columns: bool = False,
    ) -> None:
        self._edit, self._region, self._input_rows = edit, region, input_rows
        self._join, self._move = join or self._window, move
        self._in_iteration, self._whole, self._joins = iteration is not None, iteration or {}, joins_columns
        self._name = stem if iteration is None else last_part
        self._keep: Mapping[Tensor, Rows] = {}
        self._suffix = ""
        self.held: dict[Tensor, Held] = dict(held)

    def write(self, stripe: Stripe, suffix: str, keep: Mapping[Tensor, Rows] = _NOTHING_KEPT) -> Tensor:
        """Write the operators of one stripe; returns its rows of the exit.

        Rows to ``keep`` of a tensor are cut out as soon as nothing else is read of it, since the others die there;
        ``held`` has them then.
        """
        made = self.write_some(stripe, suffix, keep)
        assert made is not None
        return made

    def write_some(self, stripe: Stripe, suffix: str, keep: Mapping[Tensor, Rows]) -> Tensor | None:
        """As ``write``; None where the stripe makes no rows of the exit."""
        previous, self.held = self.held, {}
        self._suffix, self._keep = suffix, keep
        unread = _last_reads(self._region, stripe)
        made: Tensor | None = None
        for operator, row_map in self._region.steps:
            output, job = operator.outputs[0], stripe.jobs.get(operator)
            made = None if job is None else self._run(operator, row_map, job, unread.get(operator, ()))
            window = stripe.windows.get(output)
            if window is not None and window.needed.count:
                parts = [] if made is None else [made]
                if window.kept.count:
                    whole, rows = previous[output]
                    name = f"{self._name(output)}/{suffix}/kept"
                    parts.insert(0, rows_of(self._edit, whole, rows, window.kept, name))
                self.held[output] = (parts[0], window.kept)
                if made is not None:
                    self.held[output] = self._join(output, window.needed, parts, suffix)
            if output in unread.get(operator, ()):
                self._cut_kept([output])
        return made

    def _window(self, like: Tensor, rows: Rows, parts: Sequence[Tensor], suffix: str) -> Held:
        if len(parts) == 1:
            return parts[0], rows
        return self._edit.joined(parts, 1, f"{self._name(like)}/{suffix}/window", like, is_piece=True), rows

    def _run(self, operator: Operator, row_map: RowMap, job: Job, unread: Sequence[Tensor]) -> Tensor:
        """Write an operator of a stripe; return the rows of its output that are wanted.

        ``unread``: the tensors that no later operator of the stripe reads. What is kept of them is cut out between the
        reads of this operator and the operator; in the body of a loop, behind it.
        """
        cut_before, cut_behind = ((), unread) if self._in_iteration else (unread, ())
        inputs = self._inputs(operator, row_map, job)
        self._cut_kept(cut_before)
        name = f"{self._name(operator.outputs[0])}/{self._suffix}"
        computed = self._compute(operator, row_map, job, inputs, name)
        self._cut_kept(cut_behind)
        return rows_of(self._edit, computed, job.computed, job.wanted, f"{name}/trimmed")

    def _inputs(self, operator: Operator, row_map: RowMap, job: Job) -> list[Tensor | None]:
        """The operands: rows of the images, all others whole."""
        inputs = [None if tensor is None else self._whole.get(tensor, tensor) for tensor in operator.inputs]
        rows = {tensor: self._read(tensor, job.read) for tensor in dict.fromkeys(row_map.images(operator))}
        for slot in row_map.sliced:
            tensor = operator.inputs[slot]
            inputs[slot] = None if tensor is None else rows[tensor]
        return inputs

    def _compute(
        self, operator: Operator, row_map: RowMap, job: Job, inputs: Sequence[Tensor | None], name: str
    ) -> Tensor:
        """Write the operator; a PAD that pads nothing is left out."""
        source = inputs[0]
        if source is not None and adds_nothing(operator, job):
            return source
        computed = rows_like(self._edit, name, operator.outputs[0], job.computed)
        write_rows(self._edit, operator, row_map, job, inputs, computed, f"{name}/padded", self._joins)
        return computed

    def _cut_kept(self, unread: Iterable[Tensor]) -> None:
        """Cut the rows to keep out of tensors that have no other readers."""
        for tensor in unread:
            if tensor in self.held and tensor in self._keep:
                if self._move(tensor):
                    continue
                (whole, present), rows = self.held[tensor], self._keep[tensor]
                size = _ALL if self._in_iteration and rows.end == present.end else None
                name = f"{self._name(tensor)}/{self._suffix}/kept"
                self.held[tensor] = rows_of(self._edit, whole, present, rows, name, size), rows

    def _read(self, tensor: Tensor, rows: Rows) -> Tensor:
        if tensor in self._region.inputs:
            return self._input_rows(tensor, rows)
        return rows_of(self._edit, *self.held[tensor], rows, f"{self._name(tensor)}/{self._suffix}/read")


def padded(
    edit: Editor, tensor: Tensor, padding: tuple[int, int, int, int], name: str, joins_columns: bool = False
) -> Tensor:
    """Return the tensor with rows and columns of the zero point around it: (above, below, left, right).

    ``joins_columns``: columns are joined with rows of floats: no library has a PAD of floats of its own, and that of
    TFLM computes the place of each element (pad.cc), where CONCATENATION copies the columns of a row at once.
    """
    above, below, left, right = padding
    if joins_columns and tensor.dtype is DType.FLOAT32 and (left or right):
        tensor, left, right = _between_columns(edit, tensor, left, right, name), 0, 0
    if not any((above, below, left, right)):
        return tensor
    return edit.padded(tensor, ((0, 0), (above, below), (left, right), (0, 0)), name)


def _between_columns(edit: Editor, tensor: Tensor, left: int, right: int, name: str) -> Tensor:
    images, height, _, depth = tensor.shape
    zeros = (np.full((images, height, count, depth), zero_of(tensor), np.float32) for count in (left, right))
    before, after = ([edit.constant(f"{name}/columns", each)] if each.size else [] for each in zeros)
    return edit.joined([*before, tensor, *after], 2, name, tensor)


def write_rows(
    edit: Editor,
    operator: Operator,
    row_map: RowMap,
    job: Job,
    inputs: Sequence[Tensor | None],
    computed: Tensor,
    name: str,
    joins_columns: bool = False,
) -> None:
    """Write the operator for the rows that a job computes, from the rows that it reads, which are in ``inputs``.

    A window that the job pads becomes VALID, or SAME with another stride along H; ``name``: of its padded input.
    ``joins_columns``: as for ``padded``.
    """
    source = inputs[0]
    if not row_map.is_window or job.padding is None or source is None:
        write_twin(edit, operator, inputs, computed, job.padding)
        return
    fields = {"padding": SAME, "strideH": job.step} if job.step else {"padding": VALID}
    wide = padded(edit, source, job.padding, name, joins_columns)
    edit.twin(operator, (wide, *inputs[1:]), (computed,), **fields)


def write_twin(
    edit: Editor,
    operator: Operator,
    inputs: Sequence[Tensor | None],
    output: Tensor,
    padding: tuple[int, int, int, int] | None = None,
) -> None:
    """Write the operator with another number of rows, and with the overrides that this takes.

    ``padding``: rows and columns that a PAD adds around these rows, (above, below, left, right); None: its own.
    """
    resized, overrides, source = kind_of(operator).resized, Overrides(), inputs[0]
    if isinstance(resized, ShapeOperand):
        overrides = resized.overrides_for(edit, output)
    elif resized is not None and padding is not None:
        overrides = resized.overrides_for(edit, operator, output, padding[:2])
    elif operator.name == "TRANSPOSE" and source is not None and source.shape[0] < operator.required(0).shape[0]:
        order = edit.constant(f"{output.name}/order", np.asarray((0, 1, 3, 2), np.int32))
        overrides = Overrides(operands={1: order})  # of the columns that InputSlices makes of a stack
    edit.twin(operator, overrides.apply_to(inputs), (output,), **overrides.fields)


def adds_nothing(operator: Operator, job: Job) -> bool:
    """Tell whether it is a PAD of rows alone, and this stripe is at no edge: its rows are those that it reads."""
    kind, source, output = kind_of(operator), operator.inputs[0], operator.outputs[0]
    if not isinstance(kind.resized, PaddingsOperand) or kind.beyond != "zero point":
        return False
    is_at_edge = job.padding is None or any(job.padding[:2]) or job.wanted != job.computed
    if is_at_edge or source is None or kind.resized.of(operator, 0, 0).any():
        return False
    return quantized_alike(source.quantization, output.quantization)


def _last_reads(region: Region, stripe: Stripe) -> dict[Operator, list[Tensor]]:
    """For operators of a stripe, the tensors inside the region that no later one of the stripe reads.

    A tensor that none reads in this stripe is with the operator that makes it.
    """
    last: dict[Tensor, Operator] = {}
    for operator in region.operators:
        last[operator.outputs[0]] = operator
        if operator in stripe.jobs:
            last.update((tensor, operator) for tensor in operator.present_inputs() if tensor in last)
    found: dict[Operator, list[Tensor]] = {}
    for tensor, operator in last.items():
        found.setdefault(operator, []).append(tensor)
    return found
