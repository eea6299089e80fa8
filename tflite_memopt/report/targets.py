"""The table of targets for a person, and as JSON."""

from __future__ import annotations

import json

from rich.table import Table

from ..kernels.boards import BOARDS, device_named
from ..kernels.chips import CHIPS, MEMORIES, names_of_target
from ..kernels.profiles import PROFILES
from ..kernels.since import BUILDS
from ..kernels.targets import TARGETS


def render_targets() -> Table:
    """Return one row a target; ``targets --json`` has what was measured and what was only read."""
    table = _table("target", "core or chip", "kernels", "evidence")
    for each in TARGETS.values():
        chips = "; ".join((each.description, *filter(None, [", ".join(names_of_target(each.name))])))
        table.add_row(each.name, chips, each.kernels, "measured" if each.measured else "read, never run")
    return table


def render_builds() -> Table:
    """Return one row a build of TFLM: what ``--tflm`` takes."""
    table = _table("--tflm", "day of its source", "static memory", "enums", "kernels", "read in")
    for each in BUILDS.values():
        day = "" if each.day is None else each.day.isoformat()
        enums = "of the target" if each.short_enums is None else "short" if each.short_enums else "4 bytes"
        static, libraries = "yes" if each.is_static else "no", ", ".join(each.libraries) or "any"
        table.add_row(each.name, day, static, enums, libraries, each.source)
    return table


def render_memories() -> Table:
    """Return one row per chip: what ``codegen --memory CHIP`` takes."""
    table = _table("chip", "memories of its own, in KB, the fastest first")
    for chip, memories in MEMORIES.items():
        table.add_row(chip, ", ".join(f"{name} {size >> 10:,}" for name, size in memories.items()))
    return table


def render_devices() -> Table:
    """Return one row per board or chip whose RAM and flash ``--target`` knows."""
    table = _table("board or chip", "chip", "target", "RAM, KB", "flash, KB", "--tflm", "source")
    for name in (*BOARDS, *CHIPS):
        device = device_named(name)
        assert device is not None
        chip, flash = device.chip, "" if device.flash is None else f"{device.flash >> 10:,}"
        ram = f"{chip.ram >> 10:,}" + ("" if chip.left is None else f"; {chip.left_by} leaves {chip.left >> 10}")
        table.add_row(device.name, chip.name, device.target, ram, flash, device.tflm or "", chip.source)
    return table


def _table(first: str, *others: str) -> Table:
    """Return a table without rows, whose cells are wrapped and never cut."""
    table = Table(title_justify="left")
    table.add_column(first, no_wrap=True)
    for column in others:
        table.add_column(column, overflow="fold")
    return table


def targets_json() -> str:
    """Return the same, with the commits of the measurements. Facts that nobody measured, or only read, are null."""
    rows = [
        {
            "name": each.name,
            "description": each.description,
            "chips": names_of_target(each.name),
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
