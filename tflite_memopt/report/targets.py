"""The table of targets for a person, and as JSON."""

from __future__ import annotations

import json

from rich.table import Table

from ..kernels.profiles import PROFILES
from ..kernels.targets import TARGETS


def render_targets() -> Table:
    """One row a target."""
    table = Table("target", "core or chip", "kernels", "pointer, bits", "enum, bytes", "measured", "only read")
    for each in TARGETS.values():
        row = (each.name, each.description, each.kernels, str(each.abi.word), each.enum_bytes, each.measured, each.read)
        table.add_row(*row)
    return table


def targets_json() -> str:
    """The same, with the commits that each profile was measured at."""
    rows = [
        {
            "name": each.name,
            "description": each.description,
            "kernels": each.kernels,
            "pointer_bits": each.abi.word,
            "enum_bytes": each.enum_bytes,
            "alignment": each.alignment,
            "measured": each.measured,
            "read": each.read,
            "kernels_measured_at": PROFILES[each.kernels].measured_at,
        }
        for each in TARGETS.values()
    ]
    return json.dumps(rows, indent=2) + "\n"
