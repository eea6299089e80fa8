"""The table of targets for a person, and as JSON."""

from __future__ import annotations

import json

from rich.table import Table

from ..kernels.boards import BOARDS
from ..kernels.boards import CHIPS as DEVICES
from ..kernels.chips import CHIP_MEMORIES, CHIPS
from ..kernels.profiles import PROFILES
from ..kernels.targets import TARGETS


def render_targets() -> Table:
    """Return one row a target."""
    table = Table("target", "core or chip", "kernels", "pointer, bits", "enum, bytes", "measured", "only read")
    for each in TARGETS.values():
        enums = " to ".join(map(str, sorted(set(each.enum_bytes))))
        known = ("; ".join(facts) or "nothing" for facts in (each.measured, each.read))
        chips = "; ".join((each.description, *filter(None, [", ".join(CHIPS.get(each.name, ()))])))
        table.add_row(each.name, chips, each.kernels, str(each.abi.word), enums, *known)
    return table


def render_memories() -> Table:
    """Return one row per chip: what ``codegen --memory CHIP`` takes."""
    table = Table("chip", "memories of its own, in KB, the fastest first")
    for chip, memories in CHIP_MEMORIES.items():
        table.add_row(chip, ", ".join(f"{name} {size >> 10:,}" for name, size in memories.items()))
    return table


def render_devices() -> Table:
    """Return one row per board or chip whose RAM and flash ``--target`` knows."""
    table = Table("board or chip", "chip", "target", "RAM, KB", "flash, KB", "source")
    for each in (*BOARDS.values(), *DEVICES.values()):
        flash = "" if each.flash is None else f"{each.flash >> 10:,}"
        table.add_row(each.name, each.chip, each.target, f"{each.ram >> 10:,}", flash, each.source)
    return table


def targets_json() -> str:
    """Return the same, with the commits of the measurements. Facts that nobody measured, or only read, are null."""
    rows = [
        {
            "name": each.name,
            "description": each.description,
            "chips": CHIPS.get(each.name, ()),
            "kernels": each.kernels,
            "pointer_bits": each.abi.word,
            "enum_bytes": dict(zip(("min", "max"), each.enum_bytes, strict=True)),
            "alignment": each.alignment,
            "measured": each.measured or None,
            "read": each.read or None,
            "kernels_measured_at": PROFILES[each.kernels].measured_at,
        }
        for each in TARGETS.values()
    ]
    return json.dumps(rows, indent=2) + "\n"
