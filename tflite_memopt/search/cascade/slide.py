r"""A network over a window that moves along a signal: a call takes the rows of one hop, and keeps what windows share.

    window k      |edge| interior                      |edge|
    window k + 1         |edge| interior                      |edge|      hop: rows of the input
                                kept                   new

A row that depends on no padding is the same in the next window, ``hop / stride`` rows earlier: it is kept, in a tensor
that an output takes the place of, as in fed fronts. Rows that see padding are computed anew for each window, of what is
kept. The edge grows from layer to layer; where it covers the window, where a hop is no multiple of the strides so far,
and at operators that do not run row by row, sliding ends: the rest runs whole.

A tensor need not be kept: its rows are then computed again of those of the layer before. TinyDejaVu (arXiv 2512.09786)
shares rows of windows in a runtime of its own. Exactness: exact.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ...model.ir.check import check_model
from ...model.ir.copying import copy_model, drop_dead_tensors, drop_unused_codes
from ...model.ir.editor import stem
from ...model.ir.model import Graph, Model, Operator, Tensor
from ...operators.editor import Editor
from ...operators.rows import RowMap, Rows, is_image
from ...operators.table import kind_of, row_map_of
from .lower import rows_like, rows_of, write_rows
from .region import reason_against_types
from .stripes import Job, RowArrays, job_in, rows_of_operator

_NONE = Rows(0, 0)


@dataclass(frozen=True)
class Interior:
    """``rows`` of a tensor depend on no padding. A row is ``step`` rows earlier in the next window."""

    rows: Rows
    step: int

    @property
    def old(self) -> Rows:
        """The rows that the windows before have, too."""
        return Rows(self.rows.start, self.rows.end - self.step)


@dataclass(frozen=True)
class Sliding:
    """The tensors of a graph that slide, and the operators that make them, in order, each with its row map.

    ``ends``: the operators that read such a tensor and do not slide, with the reason.
    """

    interiors: Mapping[Tensor, Interior]
    steps: Mapping[Operator, RowMap]
    ends: Mapping[Operator, str]


@dataclass(frozen=True)
class Share:
    """What a call does for a tensor: ``kept`` rows of its window are there, the ``jobs`` make others, in order."""

    kept: Rows
    jobs: tuple[Job, ...] = ()


@dataclass(frozen=True)
class Slid:
    """``model`` takes ``hop`` rows of the window's ``height`` in a call; ``ties``: of what it keeps, as in ``Options``.

    ``calls``: from whatever is kept before, the last of so many gives the outputs of the window that ends there. Its
    inputs are those of the network, in their order, then the tied ones. ``kept``: which operators' outputs are.
    """

    model: Model
    hop: int
    height: int
    ties: tuple[str, ...]
    kept: tuple[str, ...]

    @property
    def calls(self) -> int:
        """Calls until all rows of a window have been given."""
        return -(-self.height // self.hop)


def sliding(graph: Graph, source: Tensor, hop: int) -> Sliding:
    """Find what slides where ``source``, an image, moves up by ``hop`` rows from window to window."""
    interiors = {source: Interior(Rows(0, source.shape[1]), hop)}
    steps: dict[Operator, RowMap] = {}
    ends: dict[Operator, str] = {}
    for operator in graph.operators:
        if interiors.keys().isdisjoint(operator.present_inputs()):
            continue
        row_map = row_map_of(operator)
        found = row_map if isinstance(row_map, str) else _interior_of(operator, row_map, interiors)
        if isinstance(row_map, str) or isinstance(found, str):
            ends[operator] = str(found)
        else:
            steps[operator], interiors[operator.outputs[0]] = row_map, found
    return Sliding(interiors, steps, ends)


def _interior_of(operator: Operator, row_map: RowMap, interiors: Mapping[Tensor, Interior]) -> Interior | str:
    """Return the rows of an output that slide, or why none does."""
    images, output, axis = row_map.images(operator), operator.outputs[0], row_map.rows
    for tensor in operator.present_inputs():
        if not tensor.is_constant and not (tensor in images and tensor in interiors):
            return f"it reads '{tensor.name}', which does not slide"
    if not all(map(is_image, (*images, output))):
        return "its input or output is no image"
    found = [interiors[tensor] for tensor in images]
    reason = reason_against_types((*images, output))
    if reason is not None or len({each.step for each in found}) > 1:
        return reason or "its inputs move by different numbers of rows"
    if axis.factor > 1:
        return "it makes several rows of one"
    step, remainder = divmod(found[0].step, axis.stride)
    if remainder:
        return f"a hop moves its input by {found[0].step}, no multiple of its stride, {axis.stride}"
    first, last = max(each.rows.start for each in found), min(each.rows.end for each in found)
    start = max(0, -(-(first + axis.before) // axis.stride))
    end = min(axis.outputs, (last + axis.before - axis.reach) // axis.stride + 1)
    if end - start <= step:
        inside = f"{max(0, end - start)} of its {axis.outputs} rows depend on no padding"
        return f"{inside}, and a hop makes {step} new"
    return Interior(Rows(start, end), step)


def shares(graph: Graph, found: Sliding, keep: Collection[Operator]) -> dict[Tensor, Share]:
    """Return what a call does for each tensor that slides, if the outputs of ``keep`` are kept where that is of use.

    Rows that others read are made of as few rows as possible, the source's as they come.
    """
    needs: dict[Tensor, list[Rows]] = {tensor: [] for tensor in found.interiors}
    for tensor in found.interiors:
        if tensor in graph.outputs or any(use.operator not in found.steps for use in tensor.uses):
            needs[tensor].append(Rows(0, tensor.shape[1]))
    made: dict[Tensor, Share] = {}
    for operator in reversed(tuple(found.steps)):
        output, row_map = operator.outputs[0], found.steps[operator]
        interior = found.interiors[output]
        kept, wanted = _split(needs[output], interior, operator in keep and not kind_of(operator).is_pad)
        made[output] = Share(kept, tuple(_job(operator, row_map, rows) for rows in wanted))
        for tensor in row_map.images(operator):
            needs[tensor] += [job.read for job in made[output].jobs]
    for tensor in found.interiors.keys() - made.keys():
        made[tensor] = Share(_split(needs[tensor], found.interiors[tensor], True)[0])
    return made


def _split(needs: Iterable[Rows], interior: Interior, keeps: bool) -> tuple[Rows, list[Rows]]:
    """Return the rows to keep, and those to make; whatever is kept is needed for the next window, too."""
    wanted, old = _united(needs), interior.old
    starts = [max(rows.start, old.start) for rows in wanted if min(rows.end, old.end) > max(rows.start, old.start)]
    if not keeps or not starts:
        return _NONE, wanted
    kept = Rows(min(starts), old.end)
    parts = [Rows(old.end, interior.rows.end)]
    for rows in wanted:
        parts += [Rows(rows.start, min(rows.end, kept.start)), Rows(max(rows.start, kept.end), rows.end)]
    return kept, _united(rows for rows in parts if rows.count)


def _united(ranges: Iterable[Rows]) -> list[Rows]:
    """Return the rows of all ranges, as ranges that do not touch, in order."""
    found: list[Rows] = []
    for rows in sorted(ranges, key=lambda each: each.start):
        if found and rows.start <= found[-1].end:
            found[-1] = found[-1].hull(rows)
        else:
            found.append(rows)
    return found


def _job(operator: Operator, row_map: RowMap, wanted: Rows) -> Job:
    axis = row_map.rows
    if kind_of(operator).is_pad:  # of padding alone no operator makes rows: one row of the input is there, too
        wanted = Rows(min(wanted.start, axis.before + axis.size - 1), max(wanted.end, axis.before + 1))
    if wanted == Rows(0, axis.outputs):
        return Job(wanted, wanted, Rows(0, axis.size))
    made = RowArrays(np.asarray([wanted.start]), np.asarray([wanted.end]))
    job = job_in(rows_of_operator(operator, row_map, "pad", made, RowArrays(made.start, made.start), made), 0)
    return job.padding_columns_itself() if row_map.is_window else job


def keepable(graph: Graph, found: Sliding) -> tuple[Operator, ...]:
    """The operators whose outputs can be kept to some use."""
    made = shares(graph, found, found.steps)
    return tuple(operator for operator in found.steps if made[operator.outputs[0]].kept.count)


def slid(model: Model, image: int, hop: int, keep: Collection[int]) -> Slid:
    """Write the network of a call; ``image``: the input that slides, by position, rows along H.

    ``keep``: operators of the main graph whose outputs are kept, by position. ``model`` stays as it is.
    """
    model = copy_model(model)
    graph = model.main
    found = sliding(graph, graph.inputs[image], hop)
    chosen = [operator for at, operator in enumerate(graph.operators) if at in keep]
    return _Writer(model, image, hop, found, shares(graph, found, chosen)).write()


@dataclass
class _Writer:
    """``_pieces``: the rows of each tensor that are there so far, in order; no two of them overlap."""

    model: Model
    image: int
    hop: int
    found: Sliding
    shares: Mapping[Tensor, Share]
    _pieces: dict[Tensor, list[tuple[Tensor, Rows]]] = field(default_factory=dict)
    _cuts: dict[tuple[Tensor, Rows], Tensor] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._graph = self.model.main
        self._edit = Editor(self.model, self._graph, 0)

    def write(self) -> Slid:
        graph, edit = self._graph, self._edit
        source, height = graph.inputs[self.image], graph.inputs[self.image].shape[1]
        new = self._like(source, Rows(height - self.hop, height), "new")
        states = {tensor: self._like(tensor, each.kept, "kept") for tensor, each in self._kept()}
        self._pieces = {tensor: [(before, self.shares[tensor].kept)] for tensor, before in states.items()}
        self._pieces.setdefault(source, []).append((new, Rows(height - self.hop, height)))
        for operator in list(graph.operators):
            edit.position = graph.operators.index(operator)
            self._write(operator)
        edit.position = len(graph.operators)
        outputs = [self._whole(tensor) if tensor in self.shares else tensor for tensor in graph.outputs]
        names = [tensor.name for tensor in graph.outputs]
        nexts = {tensor: self._next(tensor, outputs) for tensor in states}
        kept = tuple(stem(tensor) for tensor in states)
        graph.inputs = (*(new if at == self.image else each for at, each in enumerate(graph.inputs)), *states.values())
        graph.outputs = (*outputs, *nexts.values())
        model = replace(self.model, signatures=None, metadata=[], associated_files=())
        drop_dead_tensors(model)
        drop_unused_codes(model)
        new.name = source.name
        for tensor, after in nexts.items():
            after.name = edit.unique(f"{states[tensor].name}_next")
        for tensor, name in zip(outputs, names, strict=True):
            tensor.name = name
        check_model(model)
        ties = tuple(f"{after.name}:{states[tensor].name}" for tensor, after in nexts.items())
        return Slid(model, self.hop, height, ties, kept)

    def _kept(self) -> Iterator[tuple[Tensor, Share]]:
        """Yield what keeps rows, in the order in which the operators make it."""
        for tensor in self.found.interiors:
            if self.shares[tensor].kept.count:
                yield tensor, self.shares[tensor]

    def _write(self, operator: Operator) -> None:
        row_map = self.found.steps.get(operator)
        jobs = None if row_map is None else self.shares[operator.outputs[0]].jobs
        if row_map is None or jobs is None or self._is_as_it_was(operator, jobs):
            for slot, tensor in enumerate(operator.inputs):
                if tensor in self.shares and tensor is not None:
                    self._edit.position = self._graph.operators.index(operator)
                    self._graph.set_input(operator, slot, self._whole(tensor))
            if row_map is not None:
                self._pieces[operator.outputs[0]] = [(operator.outputs[0], Rows(0, row_map.rows.outputs))]
            return
        self._edit.remove(operator)
        pieces = self._pieces.setdefault(operator.outputs[0], [])
        pieces += [(self._run(operator, row_map, job), job.wanted) for job in jobs]
        pieces.sort(key=lambda each: each[1].start)

    def _is_as_it_was(self, operator: Operator, jobs: Sequence[Job]) -> bool:
        """Return whether all rows are computed anew."""
        share = self.shares[operator.outputs[0]]
        return not share.kept.count and [job.wanted for job in jobs] == [Rows(0, operator.outputs[0].shape[1])]

    def _run(self, operator: Operator, row_map: RowMap, job: Job) -> Tensor:
        output, inputs = operator.outputs[0], list(operator.inputs)
        for slot in row_map.sliced:
            inputs[slot] = self._rows(operator.required(slot), job.read)
        computed = self._like(output, job.computed, "rows")
        write_rows(self._edit, operator, row_map, job, inputs, computed, f"{stem(output)}/padded")
        return rows_of(self._edit, computed, job.computed, job.wanted, f"{stem(output)}/trimmed")

    def _whole(self, tensor: Tensor) -> Tensor:
        return self._rows(tensor, Rows(0, tensor.shape[1]))

    def _rows(self, tensor: Tensor, wanted: Rows) -> Tensor:
        """Return these rows of a tensor: of one piece, or of those that have them, which are one from now on."""
        pieces = self._pieces[tensor]
        touched = [each for each in pieces if each[1].start < wanted.end and each[1].end > wanted.start]
        if len(touched) > 1:
            present = Rows(touched[0][1].start, touched[-1][1].end)
            parts, name = [piece for piece, _ in touched], f"{stem(tensor)}/window"
            joined = self._edit.joined(parts, 1, name, tensor, is_piece=True)
            pieces[pieces.index(touched[0]) : pieces.index(touched[-1]) + 1] = [(joined, present)]
            touched = [(joined, present)]
        ((piece, present),) = touched
        if (piece, wanted) not in self._cuts:
            self._cuts[piece, wanted] = rows_of(self._edit, piece, present, wanted, f"{stem(tensor)}/read")
        return self._cuts[piece, wanted]

    def _next(self, tensor: Tensor, outputs: Collection[Tensor]) -> Tensor:
        """Return what is kept for the next window, written after all that reads what was kept before."""
        kept, step = self.shares[tensor].kept, self.found.interiors[tensor].step
        after = self._rows(tensor, Rows(kept.start + step, kept.end + step))
        if after in outputs or any(after is piece for piece, _ in self._pieces[tensor]):
            copied = self._like(tensor, kept, "kept_next")
            self._edit.slice(after, (0, 0, 0, 0), copied.shape, copied)
            return copied
        return after

    def _like(self, tensor: Tensor, rows: Rows, name: str) -> Tensor:
        return rows_like(self._edit, f"{stem(tensor)}/{name}", tensor, rows)
