r"""A region in stripes, written in stock operators.

    x ---> A ---> B ---> y      =>      x --SLICE--> A/stripe1of2 --> B/stripe1of2 --+
                                        |                                         CONCATENATION --> y
                                        +---SLICE--> A/stripe2of2 --> B/stripe2of2 --+

Slices and the last concatenation are contiguous rows, so that the planner makes them views. All slices of the
region's inputs come first: then an input is only rows, which are released stripe by stripe. Weights are the same
tensors in every stripe. Exactness: exact.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..ir.builder import VALID
from ..ir.constants import integers
from ..ir.editor import Editor
from ..ir.model import Graph, Model, Operator, Tensor
from ..ir.names import stem
from ..ir.origin import piece_of
from .receptive_field import Rows
from .region import Region
from .stripes import Job, Stripe

MAX_CONCATENATION_INPUTS = 10
"""TFLM's limit (concatenation.cc, kMaxInputNum)."""


def lower(model: Model, graph: Graph, region: Region, stripes: Sequence[Stripe]) -> None:
    """Replace the region's operators by their stripes, in place."""
    last = graph.operators.index(region.operators[-1])
    edit = Editor(model, graph, last + 1)
    for operator in region.operators:
        edit.remove(operator)
    _Lowering(edit, region, stripes).run()
    dead = [op.outputs[0] for op in region.operators[:-1]]
    graph.remove_tensors(dead)


class _Lowering:
    def __init__(self, edit: Editor, region: Region, stripes: Sequence[Stripe]) -> None:
        self._edit, self._region, self._stripes = edit, region, stripes
        self._slices: dict[tuple[Tensor, Rows], Tensor] = {}
        self._held: dict[Tensor, tuple[Tensor, Rows]] = {}

    def run(self) -> None:
        for number, stripe in enumerate(self._stripes):
            self._slice_inputs(stripe, self._suffix(number))
        parts = [self._stripe(stripe, self._suffix(number)) for number, stripe in enumerate(self._stripes)]
        self._join(parts, self._region.exit, f"{stem(self._region.exit)}/rows")

    def _suffix(self, number: int) -> str:
        return f"stripe{number + 1}of{len(self._stripes)}"

    def _slice_inputs(self, stripe: Stripe, suffix: str) -> None:
        for operator, way in zip(self._region.operators, self._region.ways, strict=True):
            job = stripe.jobs.get(operator)
            for slot in way.sliced if job else ():
                tensor = operator.inputs[slot]
                if job is not None and tensor is not None and tensor in self._region.inputs:
                    key = (tensor, job.read)
                    if key not in self._slices:
                        self._slices[key] = self._rows(
                            tensor, Rows(0, tensor.shape[1]), job.read, f"{stem(tensor)}/{suffix}"
                        )

    def _stripe(self, stripe: Stripe, suffix: str) -> Tensor:
        """Write the operators of one stripe; returns its rows of the exit."""
        previous, self._held = self._held, {}
        made: Tensor | None = None
        for operator in self._region.operators:
            output, job = operator.outputs[0], stripe.jobs.get(operator)
            made = None if job is None else self._run(operator, job, suffix)
            window = stripe.windows.get(output)
            if window is None or not window.needed.count:
                continue
            parts = [] if made is None else [made]
            if window.kept.count:
                whole, rows = previous[output]
                parts.insert(0, self._rows(whole, rows, window.kept, f"{stem(output)}/{suffix}/kept"))
            joined = parts[0] if len(parts) == 1 else self._window(output, window.needed, parts, suffix)
            self._held[output] = joined, window.needed
        assert made is not None
        return made

    def _window(self, like: Tensor, rows: Rows, parts: Sequence[Tensor], suffix: str) -> Tensor:
        joined = self._activation(f"{stem(like)}/{suffix}/window", like, rows)
        self._edit.operator("CONCATENATION", parts, (joined,), "ConcatenationOptions", axis=1)
        return joined

    def _run(self, operator: Operator, job: Job, suffix: str) -> Tensor:
        way = self._region.ways[self._region.operators.index(operator)]
        name = f"{stem(operator.outputs[0])}/{suffix}"
        inputs = list(operator.inputs)
        for slot in way.sliced:
            tensor = operator.inputs[slot]
            assert tensor is not None
            if tensor in self._region.inputs:
                inputs[slot] = self._slices[tensor, job.read]
            else:
                whole, rows = self._held[tensor]
                inputs[slot] = self._rows(whole, rows, job.read, f"{stem(tensor)}/{suffix}/read")
        computed = self._activation(name, operator.outputs[0], job.computed)
        if operator.name in ("PAD", "PADV2"):
            self._pad(operator, inputs, computed, job)
        elif way.is_window and job.padding is not None:
            inputs[0] = self._padded(inputs[0], job.padding, f"{name}/padded")
            self._edit.twin(operator, inputs, (computed,), padding=VALID)
        else:
            self._edit.twin(operator, inputs, (computed,))
        wanted = self._rows(computed, job.computed, job.wanted, f"{name}/trimmed")
        computed.origin = None  # rows beyond the wanted ones saw padding where the original has rows
        wanted.origin = piece_of(operator.outputs[0], 1, job.wanted.start)
        return wanted

    def _pad(self, operator: Operator, inputs: list[Tensor | None], computed: Tensor, job: Job) -> None:
        """PAD itself: the rows above and below only where the stripe is at the edge."""
        amounts = integers(inputs[1])
        assert amounts is not None
        assert job.padding is not None
        amounts[2:4] = job.padding[:2]
        paddings = amounts.reshape(4, 2).astype(np.int32)
        inputs[1] = self._edit.constant(f"{computed.name}/paddings", paddings)
        self._edit.twin(operator, inputs, (computed,))

    def _padded(self, tensor: Tensor | None, padding: tuple[int, int, int, int], name: str) -> Tensor:
        assert tensor is not None
        if not any(padding):
            return tensor
        above, below, left, right = padding
        _, height, width, depth = tensor.shape
        shape = (1, height + above + below, width + left + right, depth)
        amounts = np.asarray([[0, 0], [above, below], [left, right], [0, 0]], np.int32)
        padded = self._edit.activation(name, shape, tensor)
        self._edit.operator("PAD", (tensor, self._edit.constant(f"{name}/paddings", amounts)), (padded,), "PadOptions")
        return padded

    def _rows(self, tensor: Tensor, present: Rows, wanted: Rows, name: str) -> Tensor:
        """The wanted rows of a tensor that has the present ones: a slice, unless they are the same."""
        if wanted == present:
            return tensor
        start = wanted.start - present.start
        cut = self._activation(name, tensor, Rows(start, start + wanted.count))
        first = np.asarray([0, start, 0, 0], np.int32)
        begin = self._edit.constant(f"{cut.name}/begin", first)
        size = self._edit.constant(f"{cut.name}/size", np.asarray(cut.shape, np.int32))
        self._edit.operator("SLICE", (tensor, begin, size), (cut,), "SliceOptions")
        return cut

    def _activation(self, name: str, like: Tensor, rows: Rows) -> Tensor:
        """A tensor with the given rows of ``like``."""
        shape = (1, rows.count, *like.shape[2:])
        return self._edit.activation(name, shape, like, origin=piece_of(like, 1, rows.start))

    def _join(self, parts: list[Tensor], whole: Tensor, name: str) -> None:
        """Concatenate along H, in groups where there are more parts than TFLM takes."""
        while len(parts) > MAX_CONCATENATION_INPUTS:
            groups = -(-len(parts) // MAX_CONCATENATION_INPUTS)
            ends = [len(parts) * (k + 1) // groups for k in range(groups)]
            parts = [self._group(parts[i:j], name) for i, j in zip([0, *ends], ends, strict=False)]
        self._edit.operator("CONCATENATION", parts, (whole,), "ConcatenationOptions", axis=1)

    def _group(self, parts: list[Tensor], name: str) -> Tensor:
        rows = Rows(0, sum(part.shape[1] for part in parts))
        joined = self._activation(name, parts[0], rows)
        self._edit.operator("CONCATENATION", parts, (joined,), "ConcatenationOptions", axis=1)
        return joined
