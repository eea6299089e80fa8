"""Fronts of a model that take rows of its image as they come: their needs, and the file of the chosen one.

A front is the first stretch of a program whose first part is fed. It is one graph whatever the limits are; their
numbers stand for the rows that it makes of its result in a call, and for the pieces of a call.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import product

from ...errors import ErrorKind, ModelFormatError
from ...firmware.description import Feed
from ...kernels.arena import arena_beside_head
from ...kernels.since import PRESENT, newest_of, runs_on
from ...memory.arrange import ModelPlacement, arrange
from ...memory.file import attach_plan
from ...memory.work import construction, instructions
from ...model.io import offline_plan
from ...model.io.writer import write_model
from ...model.ir.change import NOTHING_DECIDED
from ...model.ir.check import check_model
from ...model.ir.model import Model, Operator
from ...options import Options
from ...solvers.graph.alignment import aligned
from ..streamed import fed_input, in_rows
from .choice import Price, Stretch
from .cutting import part_of, why_whole
from .fed import NO_OPERATORS, Fed, fed, least_rows
from .files import MANIFEST
from .space import counted_library, part_space
from .stretch import StretchCosts

AUTO = 0
"""As many rows a call as iteration out best."""
ROWS_MADE = (1, 2, 4)
"""Rows of the result that are tried; more of them make line buffers larger and calls fewer."""
PIECES = (1, 2, 4)
"""Into how many pieces a call cuts its rows, of those that are tried."""
IMPOSSIBLE = 1 << 60
"""Bytes of a stretch that cannot be a front."""


@dataclass
class FeedCosts(StretchCosts):
    """As ``StretchCosts``; the stretches from step 0 on are fronts that are fed ``rows`` rows a call, or ``AUTO``.

    ``image``: which input is fed, by its position. ``most``: bytes; fronts that certainly need more are not built.
    """

    rows: int = AUTO
    image: int = 0
    most: int | None = None
    placed: dict[tuple[Stretch, int], tuple[Fed, ModelPlacement]] = field(default_factory=dict)
    reasons: dict[Stretch, str] = field(default_factory=dict)
    _ways: dict[Stretch, list[Fed]] = field(default_factory=dict)

    def least(self, stretch: Stretch) -> int:
        """Return a lower bound in bytes at once: a front takes all that it hands on."""
        return super().least(stretch) if stretch[0] else self.least_side(stretch[1]) + self.least_filters(stretch)

    def estimate(self, stretch: Stretch) -> int:
        """Permanent parts of a front at the start of a call: rows, all tied tensors, and TFLM's structures."""
        if stretch[0]:
            return super().estimate(stretch)
        return min((self._at_least(way) for way in self._fronts(stretch)), default=IMPOSSIBLE)

    def least_work(self, stretch: Stretch) -> int:
        """Of a front below 0 where it has fewer instructions than the operators as they are."""
        if stretch[0]:
            return super().least_work(stretch)
        return min((self._added_by(stretch, way) for way in self._fronts(stretch)), default=0)

    def least_work_before(self, at: int) -> int:
        """A front, and what is between it and the cut as one part."""
        ends = (end for end in self.positions[1:] if end <= at and self._fronts((0, end)))
        return min(
            (self.least_work((0, end)) + (self.least_work((end, at)) if end < at else 0) for end in ends), default=0
        )

    def bound(self, stretch: Stretch) -> Price | None:
        """Of a front as well where all is one."""
        return super().bound(stretch) if stretch[0] else Price(self.estimate(stretch), self.least_work(stretch))

    def draft(self, stretch: Stretch) -> list[Price]:
        """Of a front for each of the ways to feed it."""
        if stretch[0]:
            return super().draft(stretch)
        return [Price(self._at_least(way), self._added_by(stretch, way)) for way in self._fronts(stretch)]

    def more(self, stretch: Stretch, other: Stretch) -> int:
        """Of a front what other stretches need says nothing."""
        return super().more(stretch, other) if other[0] else -IMPOSSIBLE

    def measure(self, stretch: Stretch, limit: int) -> Price:
        """Return the price of a front; the limit says how many rows it takes in a call, and in how many pieces."""
        if stretch[0]:
            return super().measure(stretch, limit)
        front = self._fronts(stretch)[limit]
        self.progress(f"measuring operators 0 to {stretch[1] - 1} as a front on {front.feed.rows} rows")
        check_model(front.model)
        placement = arrange(front.model, self._profile, self.options.search).placement
        front.model.main.reorder(placement.order)
        self.placed[stretch, limit] = front, placement
        if self.counts_head:
            return Price(placement.memory.arena_bytes, self._added_by(stretch, front))
        space = part_space(front.model, counted_library(self._profile), placement.offsets)
        return Price(space.required, self._added_by(stretch, front))

    def _added_by(self, stretch: Stretch, front: Fed) -> int:
        """Return the work that a front adds to the operators as they are."""
        own = self.own_work(stretch)
        made, iteration = construction(front.model, self._profile), instructions(front.model, self._profile)
        return max(self._share(name, front.feed.calls * iteration[name] + made[name] - own[name]) for name in own)

    def why_none(self) -> str | None:
        """Return why no front can be fed, of the first one that has operators; None where one can."""
        reasons = []
        for end in self.positions[1:]:
            if self._fronts((0, end)):
                return None
            reasons.append(self.reasons[0, end])
        return next((each for each in reasons if each != NO_OPERATORS), NO_OPERATORS)

    def _fronts(self, stretch: Stretch) -> list[Fed]:
        """Return the ways to feed a front, those that make fewer rows first."""
        if stretch not in self._ways and self.most is not None and self.least(stretch) > self.most:
            self.reasons[stretch] = f"a front takes {self.least(stretch):,} bytes at least"
            self._ways[stretch] = []
        if stretch not in self._ways:
            front, found = part_of(self.model, *stretch), []
            one = least_rows(front, self.image)  # why not, where there is nothing to feed: then for any number
            counts = [one * made for made in ROWS_MADE] if self.rows == AUTO and isinstance(one, int) else [self.rows]
            for rows, pieces in product(counts, PIECES):
                way = fed(front, rows, self.image, pieces)
                if isinstance(way, Fed) and not runs_on(way.model, self.options.build):
                    way = f"it needs TFLM of {newest_of(way.model)} or later, and --tflm is {self.options.tflm}"
                if isinstance(way, Fed):
                    found.append(way)
                else:
                    self.reasons.setdefault(stretch, way)
            self._ways[stretch] = found
        return self._ways[stretch]

    def _at_least(self, front: Fed) -> int:
        taken = sum(aligned(tensor.nbytes) for tensor in front.model.main.inputs)
        if self.counts_head:
            return taken
        profile = counted_library(self._profile)
        return taken + arena_beside_head(front.model, profile.requests, profile.abi, planner="table").tail

    def chosen(self, stretch: Stretch, limit: int) -> FrontFile:
        """Return the file of a front that was measured."""
        front, placement = self.placed[stretch, limit]
        said = {} if self.options.tflm == PRESENT.name else {"tflm": self.options.tflm}
        device = self.options.device
        attach_plan(front.model, self._profile, placement, front.model, NOTHING_DECIDED, said, device)
        inputs, offsets = front.model.main.inputs, placement.offsets
        ties = tuple(replace(tie, offset=offsets[inputs[tie.input]]) for tie in front.feed.ties)
        return FrontFile(write_model(front.model), stretch[1], placement, replace(front.feed, ties=ties))


@dataclass(frozen=True)
class FrontFile:
    """A front that was chosen: its file, how many operators of the original it computes, and how it is fed."""

    data: bytes
    operators: int
    placement: ModelPlacement
    feed: Feed


def others_late(model: Model, image: int) -> None:
    """Move operators that read nothing of the image to where the first one reads them that does, in place.

    A front is all steps before a cut, and it cannot hold tensors that are computed once.
    """
    graph = model.main
    of_image = {graph.inputs[image]} if graph.inputs else set()
    first: dict[Operator, int] = {}
    for at, operator in enumerate(graph.operators):
        if not of_image.isdisjoint(operator.present_inputs()):
            of_image.update(operator.outputs)
            first[operator] = at
    last = len(graph.operators)
    for operator in reversed(graph.operators):
        readers = (first[use.operator] for output in operator.outputs for use in output.uses)
        first.setdefault(operator, min(readers, default=last))
    places = {operator: at for at, operator in enumerate(graph.operators)}
    graph.reorder([places[each] for each in sorted(graph.operators, key=lambda each: (first[each], places[each]))])


def with_ties(front: Model, feed: Feed) -> Model:
    """Return a front that was read from its file, itself, with its ties. Raises ModelFormatError for another feed."""
    fault = _fault_of(feed, front)
    if fault is not None:
        raise ModelFormatError(f"the feed in {MANIFEST} {fault}: run optimize --feed again", ErrorKind.DAMAGED)
    front.ties = tuple((tie.output, tie.input) for tie in feed.ties)
    return front


def _fault_of(feed: Feed, front: Model) -> str | None:
    """Return what of a feed is not so in its front."""
    inputs, outputs, planned = front.main.inputs, front.main.outputs, offline_plan.decode(front) or {}
    tied, given = [tie.input for tie in feed.ties], sorted(feed.inputs)
    if sorted((1, *tied, *given)) != [*range(len(inputs))] or given[:1] != [0]:
        return f"has inputs {[*given, 1, *tied]}, its first part {len(inputs)}"
    if feed.rows < 1 or feed.rows * feed.row_bytes != inputs[0].nbytes:
        return f"has {feed.rows} rows of {feed.row_bytes} bytes a call, the first part takes {inputs[0].nbytes}"
    for tie in feed.ties:
        source, output = inputs[tie.input], outputs[tie.output] if 0 <= tie.output < len(outputs) else None
        if output is None or (output.shape, output.dtype) != (source.shape, source.dtype):
            return f"ties input {tie.input} to output {tie.output}, which is unlike it"
        if (tie.bytes, tie.offset) != (source.nbytes, planned.get(source)):
            return f"has {tie.bytes} bytes at {tie.offset} for '{source.name}'"
    return None


def said_of_feeding(model: Model, options: Options) -> str | None:
    """Estimate the RAM of a model whose image arrives in rows; None where that is no less than its image takes."""
    at, model = fed_input(model), in_rows(model, options)
    others_late(model, at)
    costs = FeedCosts(model, options, lambda _: None, image=at)
    if why_whole(model) is not None or costs.why_none() is not None:
        return None
    image, least = model.main.inputs[at], min(costs.estimate((0, end)) for end in costs.positions[1:])
    if least >= image.nbytes:
        return None
    return (
        f"input  the image takes {image.nbytes:,} bytes, below which no plan goes; the layers that read it in rows may "
        f"need as few as {least:,} (optimize --feed auto --parts auto)"
    )
