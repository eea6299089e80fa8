"""The arena over time: a rectangle per tensor, colored by layer, before and after in the same colors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...memory.figures import ArenaMap, PlacedTensor
from ..loops import said_of_loop
from ..model import LoopUse
from ..words import counted, in_words, short_name
from .plot import Line, Mark, Plot, Scale, ramp

_LEGEND: Mapping[str, str] = {
    "layer": "tensors, colored by the layer that writes them: first to last",
    "input": "the model's input, which your code writes",
    "view": "a view: the bytes of its input, nothing is copied",
    "over": "overwrites input bytes that are no longer needed",
    "scratch": "scratch memory of a kernel",
    "loop": "a loop: click it to see an iteration",
    "tail": "TFLM's own structures (the tail)",
}
_SHARED: Mapping[str, tuple[str, str]] = {
    "view": ("view", ", the same bytes as an input of its operator"),
    "in-place": ("over", ", written over an input of its operator"),
    "overlap": ("over", ", written over the part of an input that was read already"),
}
"""Outline and description of outputs that share bytes with an input."""
_ROOM = 1.08
"""Over the highest line, for its words."""
_APART = 7
"""Percent of the width between two numbers of operators."""


def arena_plots(
    arenas: Mapping[str, ArenaMap], loops: Sequence[LoopUse] = (), limits: Mapping[str, int] | None = None
) -> list[Plot]:
    """Return a plot per model, by its title, on one scale of bytes; layers are those of the first model.

    ``loops`` are those of the last model; ``limits``: other lines in bytes, such as a budget, by their words.
    """
    lines = limits or {}
    top = _ROOM * max(*(arena.required for arena in arenas.values()), *lines.values(), 1)
    outputs = dict.fromkeys(_key(step.output) for step in next(iter(arenas.values())).steps)
    names = {name: number for number, name in enumerate(outputs)}
    return [_plot(title, arena, top, names, loops, lines) for title, arena in arenas.items()]


def _plot(
    title: str,
    arena: ArenaMap,
    top: float,
    names: Mapping[str, int],
    loops: Sequence[LoopUse],
    limits: Mapping[str, int],
) -> Plot:
    x, y = Scale(0, max(2, arena.end)), Scale(0, top, is_vertical=True)
    shown = [tensor for tensor in arena.tensors if tensor.end > tensor.start and tensor.bytes]
    # Later ones are drawn over others: those that share bytes, and inside a loop.
    shown.sort(key=lambda tensor: (tensor.sharing != "none", tensor.start))
    layers, colors = _layers_of(arena, names), ramp(len(names) or 1)
    blocks = _blocks(arena, loops)
    marks = [_mark(arena, tensor, x, y, colors[layers.get(tensor.operator, 0)], blocks) for tensor in shown]
    size = sum(part.bytes for part in arena.tail)
    low, high = y(arena.required - size), y(arena.required)
    words = f"{_LEGEND['tail']}: {size:,} bytes"
    marks.append(Mark(0, high, words, 100, round(low - high, 3), "tail"))
    ends = [
        Line(0, y(size), 100, y(size), text=f"{name}: {size:,} bytes")
        for name, size in (("head", arena.head), ("arena", arena.required))
    ]
    ends += [Line(0, y(size), 100, y(size), "budget", f"{words}: {in_words(size)}") for words, size in limits.items()]
    kinds = {kind for mark in marks for kind in (mark.kind.split() or ["layer"])} | ({"loop"} if blocks else set())
    legend = {kind: text for kind, text in _LEGEND.items() if kind in kinds}
    ticks: list[tuple[float, str]] = []
    for number, step in enumerate(arena.steps):
        at = x((step.start + step.end) / 2)
        if step.subgraph == 0 and (not ticks or at - ticks[-1][0] >= _APART):
            ticks.append((at, str(number)))
    return Plot(
        name=f"arena-{title}",
        title=f"{title}: {arena.required:,} bytes of RAM",
        marks=marks,
        lines=ends,
        x_title="operators in execution order",
        x_ticks=ticks,
        y_title="address in the arena, bytes",
        y_ticks=y.ticks(),
        legend=legend,
    )


def _mark(
    arena: ArenaMap, tensor: PlacedTensor, x: Scale, y: Scale, color: str, blocks: Mapping[tuple[int, int], str]
) -> Mark:
    step = None if tensor.operator is None else arena.steps[tensor.operator]
    start, top = max(0, tensor.start), tensor.offset + tensor.bytes
    by = "written by your code" if tensor.kind == "input" else "passed in" if step is None else step.operator
    number = "" if tensor.operator is None else f"operator {tensor.operator}, "
    facts = [f"{short_name(tensor.name)}: {'x'.join(map(str, tensor.shape))} {tensor.type}, {tensor.bytes:,} bytes"]
    facts += [f"at {tensor.offset:,}", f"{number}{by}", f"alive in steps {start} to {tensor.end - 1}"]
    outline, shared = _SHARED.get(tensor.sharing, ("", ""))
    special = tensor.kind if tensor.kind in ("input", "scratch") else ""
    block = next((text for (a, b), text in blocks.items() if a <= start and tensor.end <= b), "")
    size = round(x(tensor.end) - x(start), 3), round(y(tensor.offset) - y(top), 3)
    look = special or outline, None if special else color
    return Mark(x(start), y(top), ", ".join(facts) + shared, *size, *look, block)


def _layers_of(arena: ArenaMap, names: Mapping[str, int]) -> dict[int | None, int]:
    """Return the layer of each step: that of its name without the suffixes of stripes; else that of the step before."""
    layers: dict[int | None, int] = {}
    last = 0
    for number in sorted(range(len(arena.steps)), key=lambda index: arena.steps[index].start):
        name = _key(arena.steps[number].output)
        while name and name not in names:
            name = name.rpartition("/")[0]
        last = layers[number] = names.get(name, last)
    return layers


def _key(name: str) -> str:
    return name.partition(";")[0]


def _blocks(arena: ArenaMap, loops: Sequence[LoopUse]) -> dict[tuple[int, int], str]:
    """Return the scopes of the outermost loops, with a sentence on each."""
    sentences = {use.result: said_of_loop(use) for use in loops}
    blocks = {}
    for number, step in enumerate(arena.steps):
        if step.subgraph or step.operator != "WHILE":
            continue
        results = (tensor.name for tensor in arena.tensors if tensor.operator == number)
        inside = sum(step.start < other.start and other.end <= step.end for other in arena.steps)
        words = next((sentences[name] for name in results if name in sentences), f"loop: {counted(inside, 'operator')}")
        blocks[step.start, step.end] = f"{words}; operator {number}"
    return blocks
