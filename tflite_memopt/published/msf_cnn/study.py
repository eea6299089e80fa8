"""Both problems of msf-CNN under the limits of the paper's tables, in both ways to count RAM."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...report.model import FusionUse
from .fusion import Layer, Setting, fusion_graph, least_macs, least_ram

MAC_FACTORS = (1.1, 1.2, 1.3, 1.4, 1.5, None)
MOST_BYTES = (16_000, 32_000, 64_000, 128_000, 256_000)


def fusion_uses(layers: Sequence[Layer]) -> tuple[FusionUse, ...]:
    """No fusion, the least RAM for each factor of MACs, the fewest MACs for each number of bytes."""
    return tuple(use for with_ends in (False, True) for use in _uses(layers, with_ends))


def _uses(layers: Sequence[Layer], with_ends: bool) -> Iterator[FusionUse]:
    graph = fusion_graph(layers, with_ends)
    whole = Setting(tuple(block for block in graph if block.end == block.start + 1))
    yield FusionUse("no fusion", None, with_ends, whole.peak_bytes, whole.macs, ())
    for factor in MAC_FACTORS:
        found = least_ram(graph, None if factor is None else int(factor * whole.macs))
        yield FusionUse("least RAM", factor, with_ends, *_figures(found))
    for most in MOST_BYTES:
        yield FusionUse("fewest MACs", most, with_ends, *_figures(least_macs(graph, most)))


def _figures(setting: Setting | None) -> tuple[int | None, int | None, tuple[str, ...]]:
    if setting is None:
        return None, None, ()
    fused = (block for block in setting.blocks if block.end > block.start + 1)
    return setting.peak_bytes, setting.macs, tuple(f"{block.start}-{block.end - 1}" for block in fused)
