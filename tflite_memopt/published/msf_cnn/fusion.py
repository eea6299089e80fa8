"""Fused blocks as the edges of a graph: the least RAM under a limit on MACs (P1), the fewest MACs in some RAM (P2).

Nodes are the tensors between the layers of a chain, and a path from the first to the last is a choice of blocks:

    t0 --conv--> t1 --depthwise--> t2 --conv--> t3         an edge is a layer that runs whole,
     \\_______________________________________^             or a block: all its layers, patch by patch

A block makes one row and one column of its output at a time. Before each of its layers it keeps the columns that the
window reads, as high as the patch (the H-cache): columns are computed once, rows between two patches again. Residual
additions are not counted.
Source: Huang and Baccelli, "msf-CNN: Patch-based Multi-Stage Fusion with Convolutional Neural Networks for TinyML"
(NeurIPS 2025, arXiv 2505.11483). Where the paper leaves it open, figures are those of its code, github.com/TinyPART/
msf-CNN at fd74a7c: a cache is as high as in the last patch, which has the padding at the end of the image.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod


@dataclass(frozen=True)
class LayerWindow:
    """The pixels that a layer reads along one axis; ``padding`` is that of each end."""

    size: int
    kernel: int
    stride: int = 1
    padding: int = 0

    @property
    def outputs(self) -> int:
        """Pixels of the output."""
        return self.outputs_of(self.size + 2 * self.padding)

    def outputs_of(self, size: int) -> int:
        """Return the pixels that come of ``size`` pixels without padding."""
        return (size - self.kernel) // self.stride + 1


@dataclass(frozen=True)
class Layer:
    """A layer of the chain. ``pixel_bytes``: one pixel of its input; ``row_macs``: MACs of one row of its output."""

    rows: LayerWindow
    columns: LayerWindow
    pixel_bytes: int
    out_pixel_bytes: int
    row_macs: int

    @property
    def in_bytes(self) -> int:
        """Bytes of the whole input."""
        return self.rows.size * self.columns.size * self.pixel_bytes

    @property
    def out_bytes(self) -> int:
        """Bytes of the whole output."""
        return self.rows.outputs * self.columns.outputs * self.out_pixel_bytes

    @property
    def macs(self) -> int:
        """MACs of the layer where it runs whole."""
        return self.rows.outputs * self.row_macs


@dataclass(frozen=True)
class Block:
    """Layers ``start`` to ``end``, half-open: an edge between the tensors of these numbers."""

    start: int
    end: int
    peak_bytes: int
    macs: int


@dataclass(frozen=True)
class Setting:
    """A path: blocks one after the other; ``peak_bytes`` is that of the largest, ``macs`` those of all."""

    blocks: tuple[Block, ...]

    @property
    def peak_bytes(self) -> int:
        """Bytes of RAM of the block that needs most."""
        return max(block.peak_bytes for block in self.blocks)

    @property
    def macs(self) -> int:
        """MACs of all blocks, with what patches compute again."""
        return sum(block.macs for block in self.blocks)


def fusion_graph(layers: Sequence[Layer], with_ends: bool) -> tuple[Block, ...]:
    """Return all blocks of a chain, those of one layer among them; without those whose patch is larger than the image.

    ``with_ends``: the input of the first layer and the output of the last are counted; the paper leaves them out.
    O(n^3) for n layers.
    """
    spans = ((start, end) for start in range(len(layers)) for end in range(start + 1, len(layers) + 1))
    blocks = (_block(layers, start, end, with_ends) for start, end in spans)
    return tuple(block for block in blocks if block is not None)


def least_ram(graph: Sequence[Block], most_macs: int | None = None) -> Setting | None:
    """P1: the setting of the lowest peak with ``most_macs`` MACs at most (None: any); of these that of fewest MACs.

    None where no setting has so few. With more RAM the fewest MACs never grow, so bisection finds the peak.
    O(blocks * log blocks).
    """
    peaks = sorted({block.peak_bytes for block in graph})

    def is_enough(peak: int) -> bool:
        found = _fewest_macs(graph, peak)
        return found is not None and (most_macs is None or found.macs <= most_macs)

    at = bisect_left(peaks, True, key=is_enough)
    return _fewest_macs(graph, peaks[at]) if at < len(peaks) else None


def least_macs(graph: Sequence[Block], most_bytes: int) -> Setting | None:
    """P2: the setting of fewest MACs whose peak is ``most_bytes`` at most; of these that of the lowest peak.

    None where no setting fits.
    """
    found = _fewest_macs(graph, most_bytes)
    return None if found is None else least_ram(graph, found.macs)


def _fewest_macs(graph: Sequence[Block], most_bytes: int) -> Setting | None:
    """The shortest path over blocks that fit. Blocks come by their start, and all lead onwards: one pass is enough."""
    last = max(block.end for block in graph)
    best: dict[int, tuple[int, Block | None]] = {0: (0, None)}
    for block in graph:
        if block.peak_bytes > most_bytes or block.start not in best:
            continue
        macs = best[block.start][0] + block.macs
        if block.end not in best or macs < best[block.end][0]:
            best[block.end] = (macs, block)
    path: list[Block] = []
    before = best[last][1] if last in best else None
    while before is not None:
        path.append(before)
        before = best[before.start][1]
    return Setting(tuple(reversed(path))) if path else None


def _block(layers: Sequence[Layer], start: int, end: int, with_ends: bool) -> Block | None:
    fused = layers[start:end]
    counted = fused[0].in_bytes if start or with_ends else 0
    counted += fused[-1].out_bytes if end < len(layers) or with_ends else 0
    if len(fused) == 1:
        return Block(start, end, counted, fused[0].macs)
    tile = _tile([layer.rows for layer in fused])
    if tile > fused[0].rows.size or _tile([layer.columns for layer in fused]) > fused[0].columns.size:
        return None
    return Block(start, end, counted + _cache_bytes(fused, tile), _block_macs(fused, tile))


def _tile(windows: Sequence[LayerWindow]) -> int:
    """Return the pixels of the input behind one pixel of the output."""
    tile = 1
    for window in reversed(windows):
        tile = (tile - 1) * window.stride + window.kernel
    return tile


def _cache_bytes(fused: Sequence[Layer], tile: int) -> int:
    """Return the bytes of the caches before each layer, as high as the last patch is there."""
    step = prod(layer.rows.stride for layer in fused)
    position = (fused[0].rows.size - tile) // step * step
    total, stride, rows = 0, 1, tile
    for layer in fused:
        window = layer.rows
        total += layer.columns.kernel * rows * layer.pixel_bytes
        stride *= window.stride
        at = position // stride
        padding = window.padding * ((at == 0) + (at + rows >= window.size))
        rows = window.outputs_of(rows + padding)
    return total


def _block_macs(fused: Sequence[Layer], tile: int) -> int:
    step = prod(layer.rows.stride for layer in fused)
    total = 0
    for layer in fused:
        window = layer.rows
        patches = (window.size + 2 * window.padding - tile) // step + 1
        tile = window.outputs_of(tile)
        step //= window.stride
        total += patches * tile * layer.row_macs
    return total
