"""Estimate the arena that a model needs after optimization, without a search.

The operators in their order are parted into sections, each of which runs whole, stripe by stripe, or in tiles:

    op 0 | op 1  op 2  op 3 | op 4 | ...       a section whole: its working set, less what its kernel permits to share
         '- stripes of h rows -'               in stripes: input, output, what is alive beside them, the rows between
                                               its operators that one stripe needs, and the structures of its copies;
                                               rows that two stripes read are computed twice, or kept
                                               in tiles: the same with some channels between two operators

For a limit on added instructions (``memory/work.py``) the least head is that of the best parting: the smallest size
for which the cheapest parting into sections of at most that size stays within the limit (a shortest path). This is the
model of msf-CNN (Huang and Baccelli, arXiv 2505.11483, section 4) with stripes of whole rows, any graph in its
given order, and kernels that overwrite. It leaves out other orders, offsets, and loops, whose operators exist once.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ..kernels.arena import EVAL_TENSOR, NODE_AND_REGISTRATION
from ..kernels.profile import KernelProfile
from ..memory.figures import params_bytes
from ..memory.storage import saved_bytes
from ..memory.work import copied_work, operator_work
from ..model.analysis.lifetimes import compute_timeline
from ..model.ir.model import Model, Operator, Tensor
from ..operators.rows import RowMap
from ..operators.table import kind_of, row_map_of
from ..operators.window import CONVOLUTIONS, DEPTHWISE
from ..solvers.graph.alignment import aligned
from ..solvers.graph.interval import intersect

HEIGHTS = (1, 2, 4, 8, 16)
"""Rows of a stripe that are tried."""
LONGEST = 16
"""Operators of a section in stripes at most."""
TILES = (2, 3, 4)
"""Tiles of channels that are tried."""
_UNIT = 1_000_000


@dataclass(frozen=True)
class Section:
    """Operators ``[first, end)`` that need ``nbytes`` of the head, and ``extra`` more work than whole ones."""

    first: int
    end: int
    nbytes: int
    extra: int


def estimated_head(model: Model, profile: KernelProfile, limit: float) -> int:
    """Return the estimated bytes of the head; ``limit``: the fraction of the run time that may be added."""
    run = _Run(model, profile)
    sections = [*_whole(run), *_in_stripes(run), *_in_tiles(run)]
    return least_size(sections, len(run.operators), int(limit * _UNIT))


def least_size(sections: Sequence[Section], end: int, most: int) -> int:
    """Return the smallest size for which a path of sections from 0 to ``end`` adds at most ``most``."""
    sizes = sorted({section.nbytes for section in sections})
    if not sizes:
        return 0
    by_end = sorted(sections, key=lambda section: section.end)
    return sizes[bisect_left(sizes, True, hi=len(sizes) - 1, key=lambda size: _added(by_end, end, size) <= most)]


def _added(by_end: Sequence[Section], end: int, size: int) -> float:
    """Return the least that a path of sections of at most this size adds."""
    least = [0.0] + [float("inf")] * end
    for section in by_end:
        if section.nbytes <= size:
            least[section.end] = min(least[section.end], least[section.first] + section.extra)
    return least[end]


class _Run:
    """A model and what is known of its operators, whole and for some rows."""

    def __init__(self, model: Model, profile: KernelProfile) -> None:
        self.profile, self.prices, self.timeline = profile, profile.all_prices, compute_timeline(model)
        self.operators = model.main.operators
        self.maps = [row_map_of(operator) for operator in self.operators]
        self.works = {each: [operator_work(each, prices) for prices in self.prices] for each in self.operators}
        self.whole = self.work_of(self.operators)
        self.readers: dict[Tensor, list[int]] = {}
        for at, operator in enumerate(self.operators):
            for tensor in operator.present_inputs():
                self.readers.setdefault(tensor, []).append(at)
        for tensor in model.main.outputs:
            self.readers.setdefault(tensor, []).append(len(self.operators))
        self._striped: dict[tuple[Operator, int, int], tuple[int, list[int]]] = {}

    def work_of(self, operators: Iterable[Operator]) -> list[int]:
        """Return the work of operators with each library."""
        return [sum(each) for each in zip(*map(self.works.__getitem__, operators), strict=True)]

    def beside(self, first: int, end: int) -> int:
        """Return the bytes that are alive while a section runs, but for what only its own operators see."""
        inner = {operator.outputs[0] for operator in self.operators[first : end - 1]}
        start, last = (self.timeline.spans[self.operators[at]] for at in (first, end - 1))
        return sum(
            aligned(tensor.nbytes)
            for tensor, life in self.timeline.tensors.items()
            if life.start < last.end and start.start < life.end and tensor not in inner
        )

    def share(self, added: Sequence[int]) -> int:
        """Return added work in millionths of the model's, with the library that gets slowest."""
        pairs = zip(added, self.whole, strict=True)
        return max((_UNIT * more // max(1, before) for more, before in pairs), default=0)

    def scratch(self, operator: Operator) -> int:
        """Return the bytes of the head that its kernel requests."""
        return sum(map(aligned, self.profile.requests(operator, self.profile.abi).scratch))

    def structures(self, operator: Operator) -> int:
        """Return the bytes of the tail that one more operator like it takes, beside its input and output."""
        requests, abi = self.profile.requests(operator, self.profile.abi), self.profile.abi
        plain = NODE_AND_REGISTRATION.on(abi) + EVAL_TENSOR.on(abi)
        return plain + params_bytes(requests) + sum(map(aligned, (*requests.init, *requests.prepare)))

    def cut(self, tensor: Tensor, rows: int) -> list[int]:
        """Return the work of a SLICE of so many rows."""
        shape = (1, rows, *tensor.shape[2:])
        return [prices.call + copied_work(shape, prices) for prices in self.prices]

    def padded(self, operator: Operator, rows: RowMap, needed: Mapping[Tensor, int]) -> tuple[int, list[int]]:
        """Return bytes and work of a PAD before an operator with SAME padding, which stripes turn into VALID."""
        axis = rows.columns
        around = axis.before + axis.after + (1 if rows.rows.before + rows.rows.after else 0)
        if not rows.is_window or not around:
            return 0, [0] * len(self.prices)
        (image,) = rows.images(operator)
        elements = needed[image] * (axis.size + axis.before + axis.after) * image.shape[3]
        size = aligned(elements * image.nbytes // max(1, image.elements))
        return size, [prices.call + prices.padded * elements for prices in self.prices]

    def striped(
        self, operator: Operator, rows: RowMap, needed: Mapping[Tensor, int], made: int
    ) -> tuple[int, list[int]]:
        """Return scratch and work of an operator that makes so many rows of its output."""
        output, images = operator.outputs[0], rows.images(operator)
        key = operator, made, needed[images[0]] if images else 0
        if key not in self._striped:
            slots = [_cut(x, needed[x]) if x is not None and x in images else x for x in operator.inputs]
            some = Operator(operator.opcode, tuple(slots), (_cut(output, made),), operator.options)
            self._striped[key] = self.scratch(some), [operator_work(some, prices) for prices in self.prices]
        return self._striped[key]


def _cut(tensor: Tensor, rows: int) -> Tensor:
    shape = (tensor.shape[0], rows, *tensor.shape[2:])
    return Tensor(tensor.name, shape, tensor.dtype, tensor.buffer, tensor.quantization)


def _whole(run: _Run) -> Iterator[Section]:
    for at, operator in enumerate(run.operators):
        span, tensors = run.timeline.spans[operator], run.timeline.tensors
        alive = (tensor.nbytes for tensor, life in tensors.items() if intersect(life, span))
        reuses = run.profile.relations(operator)
        dying = (each for each in reuses if each.input in tensors and tensors[each.input].end == span.end)
        shared = max(map(saved_bytes, dying), default=0)
        yield Section(at, at + 1, sum(map(aligned, alive)) - shared + run.scratch(operator), 0)


def _in_stripes(run: _Run) -> Iterator[Section]:
    for end in range(1, len(run.operators) + 1):
        for first in range(end - 1, max(-1, end - 1 - LONGEST), -1):
            if isinstance(run.maps[first], str):
                break
            if _is_region(run.operators, run.readers, first, end):
                found = _Stripes(run, first, end)
                for height in HEIGHTS:
                    for rolls in (False, True) if height < found.rows else ():
                        yield Section(first, end, *found.cost(height, rolls))


def _in_tiles(run: _Run) -> Iterator[Section]:
    """An operator that makes channels from weights of their own, and the depthwise one behind it, some at a time."""
    for first, maker in enumerate(run.operators):
        end = first + 1
        while end < len(run.operators) and run.readers.get(run.operators[end - 1].outputs[0]) == [end]:
            end += 1
            if not kind_of(run.operators[end - 1]).is_pad:
                break
        if maker.name in CONVOLUTIONS and end > first + 1 and run.operators[end - 1].name == DEPTHWISE:
            for count in TILES:
                if count < maker.outputs[0].shape[-1]:
                    yield Section(first, end, *_tiled(run, first, end, count))


def _tiled(run: _Run, first: int, end: int, count: int) -> tuple[int, int]:
    """Return bytes, and what so many tiles add in millionths of the model's instructions."""
    whole = run.operators[first:end]
    tile = [_of_channels(operator, count, operator is not whole[0]) for operator in whole]
    exit_, image = whole[-1].outputs[0], whole[0].inputs[0]
    inner = [0, *(aligned(operator.outputs[0].nbytes) for operator in tile[:-1]), 0]
    peak = max(before + after + run.scratch(op) for before, after, op in zip(inner, inner[1:], tile, strict=False))
    joining = aligned(exit_.nbytes) - (0 if image is None else aligned(image.nbytes))
    added = [
        count * sum(operator_work(operator, prices) for operator in tile) + prices.call + prices.joined * exit_.nbytes
        for prices in run.prices
    ]
    work = run.share([more - before for more, before in zip(added, run.work_of(whole), strict=True)])
    tail = (count - 1) * sum(map(run.structures, whole))
    return run.beside(first, end) + max(peak, joining) + tail, work


def _of_channels(operator: Operator, count: int, reads_some: bool) -> Operator:
    """Return the operator that makes one of so many tiles, by shapes; ``reads_some``: of as many channels."""
    axes = {1: kind_of(operator).channel_axis or 0, 2: 0} if operator.name in CONVOLUTIONS else {}
    axes |= {0: -1} if reads_some else {}
    inputs = (
        tensor if tensor is None or slot not in axes else _narrow(tensor, axes[slot], count)
        for slot, tensor in enumerate(operator.inputs)
    )
    return Operator(operator.opcode, tuple(inputs), (_narrow(operator.outputs[0], -1, count),), operator.options)


def _narrow(tensor: Tensor, axis: int, count: int) -> Tensor:
    shape = list(tensor.shape)
    shape[axis] = -(-shape[axis] // count)
    return replace(tensor, shape=tuple(shape))


def _is_region(operators: Sequence[Operator], readers: Mapping[Tensor, list[int]], first: int, end: int) -> bool:
    """Tell whether all that is made in the section and read behind it is made by its last operator."""
    inner = (operator.outputs[0] for operator in operators[first : end - 1])
    return all(tensor in readers and readers[tensor][-1] < end for tensor in inner)


class _Stripes:
    """The figures of one section in stripes."""

    def __init__(self, run: _Run, first: int, end: int) -> None:
        self.run, self.steps = run, list(zip(run.operators, run.maps, strict=True))[first:end]
        self.exit = run.operators[end - 1].outputs[0]
        self.rows = self.exit.shape[1]
        self.inside = {operator.outputs[0] for operator, _ in self.steps}
        self.kept = run.beside(first, end)

    def cost(self, height: int, rolls: bool) -> tuple[int, int]:
        """Return bytes, and what stripes of so many rows add in millionths of the model's instructions.

        ``rolls``: rows that two stripes read are kept; else each stripe computes them again.
        """
        stripes = -(-self.rows // height)
        made, needed = {self.exit: height}, dict[Tensor, int]()
        for operator, rows in reversed(self.steps):
            assert isinstance(rows, RowMap)
            output = operator.outputs[0]
            made.setdefault(output, -(-output.shape[1] // stripes) if rolls else needed.get(output, 0))
            start, end = rows.rows.reads(0, made[output])
            for tensor in rows.images(operator):
                needed[tensor] = max(min(end - start, tensor.shape[1]), needed.get(tensor, 0))
        kept = {tensor: needed[tensor] - made[tensor] for tensor in self.inside if needed.get(tensor, 0) > made[tensor]}
        last = {tensor: at for at, (operator, _) in enumerate(self.steps) for tensor in operator.present_inputs()}
        alive, peak = dict[Tensor, int](), 0
        work = [-before for before in self.run.work_of(operator for operator, _ in self.steps)]
        for at, (operator, rows) in enumerate(self.steps):
            assert isinstance(rows, RowMap)
            output = operator.outputs[0]
            cuts = [(x, needed[x]) for x in rows.images(operator) if x not in self.inside and x not in alive]
            alive |= {tensor: _bytes(tensor, count) for tensor, count in cuts}
            cuts += [(output, count) for count in (kept.get(output, 0), needed.get(output, 0)) if output in kept]
            scratch, each = self.run.striped(operator, rows, needed, made[output])
            padded, padding = self.run.padded(operator, rows, needed)
            more = [each, padding, *(self.run.cut(*cut) for cut in cuts)]
            work = [so_far + stripes * sum(some) for so_far, *some in zip(work, *more, strict=True)]
            new = 0 if output is self.exit else _bytes(output, made[output])
            window = _bytes(output, needed[output]) if output in kept else 0
            left = {tensor: size for tensor, size in alive.items() if last.get(tensor, -1) > at}
            reads = sum(alive.values()) if not padded else sum(left.values())
            peak = max(
                peak, sum(alive.values()) + padded, reads + new + padded + scratch, sum(left.values()) + new + window
            )
            alive = left if output is self.exit else left | {output: window or new}
        carried = sum(_bytes(tensor, count) for tensor, count in kept.items())
        joined = [prices.call + prices.joined * self.exit.nbytes for prices in self.run.prices]
        tail = (stripes - 1) * sum(self.run.structures(operator) for operator, _ in self.steps)
        return self.kept + carried + peak + tail, self.run.share(
            [one + other for one, other in zip(work, joined, strict=True)]
        )


def _bytes(tensor: Tensor, rows: int) -> int:
    return aligned(tensor.nbytes * rows // tensor.shape[1])
