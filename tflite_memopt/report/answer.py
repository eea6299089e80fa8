"""The answer of a command as typed data, computed once: how many bytes to reserve, and whether they fit.

Sentences are made of it in ``summary.py``; every command judges by it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from ..memory.reserve import LibraryNeed
from ..options import Objective

Judgement = Literal["right", "wrong kernels", "wrong plan", "faulty kernels", "no weights", "cannot run"]
"""Whether firmware computes what the file says: "wrong kernels": its plan is for others; "wrong plan": the plan is not
of this graph, and some bytes are overwritten too early; "faulty kernels": they have a fault that an operator meets
(docs/kernel_faults.md); "no weights": TFLM does not look where the file has them; "cannot run": TFLM has no kernel for
it."""


Planner = Literal["tflm", "table"]
"""Who places tensors when the firmware starts: TFLM as it comes, or the table that ``codegen`` writes."""


@dataclass(frozen=True)
class DeviceUse:
    """The chip or board that was named."""

    name: str
    """Name of the chip or board."""
    chip: str
    """Name of the chip."""
    ram_bytes: int
    """Largest contiguous RAM, in bytes."""
    flash_bytes: int | None
    """Flash of the chip or board, in bytes; null if unknown."""
    left_bytes: int | None = None
    """The RAM that a framework or a cache leaves to data, in bytes; null if unknown."""
    framework: str | None = None
    """What leaves it, such as ESP-IDF; null where left_bytes is."""

    @property
    def limit(self) -> int:
        """Bytes that an arena can take at most."""
        return self.ram_bytes if self.left_bytes is None else self.left_bytes


@dataclass(frozen=True)
class Fit:
    """Whether the size is within a limit: the budget, or the RAM of the named device."""

    limit: int
    """The limit, in bytes."""
    is_budget: bool
    """True for --budget, false for the RAM of the device."""
    fits: bool
    """True if the size is within the limit, with every library that may be linked."""
    spare: int
    """Bytes that are left; negative: bytes too many."""
    planner: Planner
    """The planner by which that holds: TFLM as it comes, or the one that codegen writes."""
    library: str
    """The kernel library that needs the most, by which that is judged."""


@dataclass(frozen=True)
class Answer:
    """The bytes to reserve with each kernel library that firmware may link, and whether they fit."""

    judgement: Judgement
    """Whether firmware computes what the file says: "right", "wrong kernels", "wrong plan", "faulty kernels", "no
    weights", or "cannot run"."""
    library: str
    """The kernel library that the size is for: the target's; without a target TFLM's own, or the only one."""
    reserve: int
    """Bytes of the arena to reserve, with TFLM as it comes."""
    table: int | None
    """The same with the planner that codegen writes; null where it writes none by default."""
    most: dict[str, int]
    """The library that needs the most, and its bytes; empty where it is ``library``."""
    is_estimate: bool
    """True if the kernels of that library were read from their source, and nobody measured them."""
    more_than_before: dict[str, tuple[int, int]]
    """Libraries with which the result needs more than the original, with the bytes before and after."""
    fit: Fit | None
    """Whether the size is within the budget, or within the RAM of the device; null without either."""


def answer_of(
    needs: Mapping[str, LibraryNeed],
    *,
    before: Mapping[str, LibraryNeed] | None = None,
    objective: Objective = "total",
    budget: int | None = None,
    device: DeviceUse | None = None,
    judgement: Judgement = "right",
) -> Answer:
    """Return the answer for a model that ``needs`` so much by library, the one that is counted first.

    ``before``: the needs of the original, None without one.
    """
    library, counted = next(iter(needs.items()))
    worst, most = max(needs.items(), key=lambda item: (item[1].bytes_for(objective), item[0] == library))
    more = {
        name: (before[name].required, need.required)
        for name, need in needs.items()
        if before is not None and need.required > before[name].required
    }
    return Answer(
        judgement=judgement,
        library=library,
        reserve=counted.required,
        table=counted.table,
        most={} if worst == library else {worst: most.required},
        is_estimate=not counted.measured,
        more_than_before=more,
        fit=_fit(worst, most, objective, budget, device),
    )


def _fit(
    library: str, need: LibraryNeed, objective: Objective, budget: int | None, device: DeviceUse | None
) -> Fit | None:
    limit = budget if budget is not None else device.limit if device is not None and objective == "total" else None
    if limit is None:
        return None
    size, is_budget = need.bytes_for(objective), budget is not None
    if objective == "total" and need.table is not None and need.table <= limit < size:
        return Fit(limit, is_budget, True, limit - need.table, "table", library)
    return Fit(limit, is_budget, size <= limit, limit - size, "tflm", library)
