"""The table of targets for a person, and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from ..kernels.boards import BOARDS, device_named
from ..kernels.chips import CHIPS, MEMORIES, names_of_target
from ..kernels.profiles import PROFILES
from ..kernels.since import BUILDS
from ..kernels.targets import TARGETS
from .document import TextTable


def target_tables() -> Iterator[TextTable]:
    """Yield the targets; what ``--tflm`` takes; boards and chips; the memories that ``codegen --memory CHIP`` takes."""
    rows = list[Sequence[str]]()
    for target in TARGETS.values():
        chips = "; ".join((target.description, *filter(None, [", ".join(names_of_target(target.name))])))
        rows.append((target.name, chips, target.kernels, "measured" if target.measured else "read, never run"))
    yield TextTable("", ("target", "core or chip", "kernels", "evidence"), rows, keeps_names=True)
    rows = list[Sequence[str]]()
    for build in BUILDS.values():
        day = "" if build.day is None else build.day.isoformat()
        enums = "of the target" if build.short_enums is None else "short" if build.short_enums else "4 bytes"
        static, libraries = "yes" if build.is_static else "no", ", ".join(build.libraries) or "any"
        rows.append((build.name, day, static, enums, libraries, build.source))
    columns = ["--tflm", "day of its source", "static memory", "enums", "kernels", "read in"]
    yield TextTable("", columns, rows, keeps_names=True)
    rows = list[Sequence[str]]()
    for device in map(device_named, (*BOARDS, *CHIPS)):
        assert device is not None
        chip, flash = device.chip, "" if device.flash is None else f"{device.flash >> 10:,}"
        ram = f"{chip.ram >> 10:,}" + ("" if chip.left is None else f"; {chip.left_by} leaves {chip.left >> 10}")
        rows.append((device.name, chip.name, device.target, ram, flash, device.tflm or "", chip.source))
    columns = ["board or chip", "chip", "target", "RAM, KB", "flash, KB", "--tflm", "source"]
    yield TextTable("", columns, rows, keeps_names=True)
    rows = [
        (chip, ", ".join(f"{name} {size >> 10:,}" for name, size in memories.items()))
        for chip, memories in MEMORIES.items()
    ]
    yield TextTable("", ("chip", "memories of its own, in KB, the fastest first"), rows, keeps_names=True)


def targets_json() -> str:
    """Return the same, with the commits of the measurements. Facts that nobody measured, or only read, are null."""
    rows = [
        {
            "name": target.name,
            "description": target.description,
            "chips": names_of_target(target.name),
            "kernels": target.kernels,
            "pointer_bits": target.abi.word,
            "enum_bytes": {"min": 1 if target.abi.short_enums else 4, "max": 4},
            "alignment": target.alignment,
            "measured": target.measured or None,
            "read": target.read or None,
            "kernels_measured_at": PROFILES[target.kernels].measured_at,
        }
        for target in TARGETS.values()
    ]
    return json.dumps(rows, indent=2) + "\n"
