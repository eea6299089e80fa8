"""A front of a network that takes the rows of its image as they come: one iteration of a masked loop as a main graph.

    each call   rows ----+                                     result            the image is never there as a whole
                kept ----+--> the operators --> rows of it --> result'
                counter -+                          kept'

A loop has the whole image and iterates over it. Here the firmware invokes the graph once for each iteration, with new
rows of the image. The tensors that the loop carries, kept rows and the result so far, are outputs *tied* to inputs:
each lies at the place of the input that it is in the next call (``memory/layout.py``), so that nobody copies it.

The image gets a line buffer as all that is read with a window: a PAD of nothing in front of it makes it an inner tensor
of the region. That PAD is not written.

A front with strides takes several rows of the image for one of its result. In pieces it works through them a few at a
time, so that its first tensors are small; a piece has operators of its own.

Other inputs of the network are the same in each call. They are outputs as well, so that nothing is written over them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ...firmware.description import Feed, Tie
from ...model.ir.copying import copy_model, drop_dead_tensors, drop_unused_codes
from ...model.ir.model import DType, Model, Tensor
from ...operators.editor import Editor
from ...search.cascade.loop import NHWC, IterationGraph, RollingBody, reason_against_loops, zero_rows
from ...search.cascade.loop_rows import Masked, masked, padded_in, steps_of
from ...search.cascade.region import Region, region_of
from ...search.rewrite.in_one_row import lay_in_one_row
from ...search.rewrite.sequences_along_h import image_given

NO_OPERATORS = "it has no operators"
"""Beside those that only give the image its shape."""


@dataclass(frozen=True)
class Fed:
    """A front as a model of its own, and how it is fed; its ties have no offsets yet."""

    model: Model
    feed: Feed


def fed(front: Model, rows: int, image: int = 0, pieces: int = 1) -> Fed | str:
    """``front`` on ``rows`` new rows of its input ``image`` a call, or the reason why it cannot be.

    ``front`` stays as it is. It keeps as few rows as possible; where some would have to be overwritten in part, those
    few more that need not be. ``pieces``: into how many a call cuts its rows, so that fewer rows of the first tensors
    are there at once.
    """
    found = _region_on_rows(front, image)
    if isinstance(found, str):
        return found
    model, region, stride = found
    shown = region.operators[0].outputs[0]
    if rows % stride:
        return f"{rows} rows of the image do not make whole rows of '{region.exit.name}': give a multiple of {stride}"
    loop = masked(region, rows // stride, (shown,), pieces=pieces)
    if isinstance(loop, str):
        loop = masked(region, rows // stride, (shown,), padded_in(region) - {shown}, pieces)
    return loop if isinstance(loop, str) else _written(model, region, loop)


def least_rows(front: Model, image: int = 0) -> int | str:
    """The rows of input ``image`` for one row of a front's result, or the reason why it cannot be fed."""
    found = _region_on_rows(front, image)
    return found if isinstance(found, str) else found[2]


def _region_on_rows(front: Model, at: int) -> tuple[Model, Region, int] | str:
    """A copy with an empty PAD in front of its image, its operators as a region, and rows of the image for one row."""
    model = copy_model(front)
    graph = model.main
    if not graph.inputs:
        return "it has no input"
    others = (*graph.inputs[:at], *graph.inputs[at + 1 :])
    made = [tensor for tensor in graph.outputs if tensor not in others]
    if len(made) != 1:
        return f"the front has {len(made)} outputs: only one can be in rows"
    image = image_given(graph, at)
    if len(image.shape) != 4 or image.shape[0] != 1:
        return f"'{image.name}' of shape {list(image.shape)} has no rows; those are of [1, rows, columns, channels]"
    if not graph.operators:
        return NO_OPERATORS
    edit = Editor(model, graph, 0)
    camera = edit.activation(f"{image.name}/rows", image.shape, image)
    edit.pad(camera, ((0, 0),) * 4, image)
    graph.inputs = tuple(camera if tensor is image else tensor for tensor in graph.inputs)
    region = region_of(graph, graph.operators)
    if isinstance(region, str):
        return region
    in_rows = [tensor.name for tensor in region.inputs if tensor is not camera]
    if in_rows:
        return f"'{in_rows[0]}' is read in rows as well: one input is fed, and it is the same in each call"
    reason, strides = reason_against_loops(region), steps_of(region, 1)
    if reason is not None or isinstance(strides, str):
        return reason or str(strides)
    return model, region, strides[image]


def _written(model: Model, region: Region, loop: Masked) -> Fed | str:
    (camera,), image = region.inputs, region.operators[0].outputs[0]
    window, step, count = loop.iteration.windows[image].made, loop.steps[image], len(loop.writes)
    padding = [_byte_of_padding(tensor) for tensor in (image, *loop.iteration.kept())]
    fills = tuple(byte for byte in padding if byte is not None)
    if len(fills) < len(padding):
        return "the zero point of rows that it keeps is not a single byte"
    iteration = IterationGraph(model, region, count, region.exit)
    rows = iteration.rows_like(camera, window.count, "new")
    others = [tensor for tensor in model.main.inputs if tensor is not camera]
    iteration.twins |= {tensor: iteration.graph.add_tensor(replace(tensor)) for tensor in others}
    made, kept = RollingBody(iteration, region, loop, {camera: rows}).write()
    result = iteration.grow(made, loop.writes)
    tied = ((result, iteration.result), *((after, before) for before, after in kept))
    same = [iteration.twins[tensor] for tensor in others]
    given = [iteration.twins.get(tensor, result) for tensor in model.main.outputs]
    iteration.graph.inputs = (rows, iteration.counter, *(before for _, before in tied), *same)
    iteration.graph.outputs = tuple(dict.fromkeys((*given, *(after for after, _ in tied), *same)))
    ties = tuple((iteration.graph.outputs.index(after), iteration.graph.inputs.index(before)) for after, before in tied)
    places = {tensor: iteration.graph.inputs.index(iteration.twins[tensor]) for tensor in others}
    inputs = tuple(places.get(tensor, 0) for tensor in model.main.inputs)
    rows.name, result.name = image.name, region.exit.name
    model = replace(model, graphs=[iteration.graph], ties=ties)
    drop_dead_tensors(model)
    drop_unused_codes(model)
    lay_in_one_row(model)
    states = zip(ties, tied, (None, *fills[1:]), strict=True)
    made_ties = tuple(Tie(at, output, before.nbytes, -1, fill) for (output, at), (_, before), fill in states)
    lead, row_bytes = -(window.start + loop.first_iteration * step), rows.nbytes // step
    feed = Feed(camera.nbytes // row_bytes, row_bytes, step, lead, count, fills[0], NHWC, made_ties, inputs)
    return Fed(model, feed)


def _byte_of_padding(tensor: Tensor) -> int | None:
    """Return the byte that fills the padding of a tensor; None if its bytes differ."""
    values = {int(byte) for byte in zero_rows(tensor, 1).astype(tensor.dtype.label).tobytes()}
    return values.pop() if len(values) == 1 and tensor.dtype is not DType.BOOL else None
