"""Memories of chips, the fastest first, as a firmware for the core that ``chips.py`` takes sees them.

Sizes are those of the whole memories, in bytes: stack, heap and other data share them. Sources: the vendors' reference
manuals and data sheets. i.MX RT1170: half of the FlexRAM of 512 KB as DTCM, and OCRAM 1 and 2. STM32H743: DTCM and AXI
SRAM. nRF5340: the RAM of the application core. ESP32-S3: internal SRAM, and 8 MB of PSRAM in the package (R8). RP2350:
all SRAM banks, and 8 MB of PSRAM as boards have it. Ensemble E8: DTCM of the high-performance core, and SRAM0.
"""

from __future__ import annotations

from collections.abc import Mapping

from .chips import plain_name

_K, _M = 1 << 10, 1 << 20

CHIP_MEMORIES: Mapping[str, Mapping[str, int]] = {
    "i.MX RT1170": {"dtcm": 256 * _K, "ocram": _M},
    "STM32H7": {"dtcm": 128 * _K, "axi_sram": 512 * _K},
    "nRF5340": {"ram": 512 * _K},
    "ESP32-S3": {"sram": 512 * _K, "psram": 8 * _M},
    "RP2350": {"sram": 520 * _K, "psram": 8 * _M},
    "Ensemble-E8": {"dtcm": _M, "sram0": 4 * _M},
}


def memories_of_chip(name: str) -> Mapping[str, int] | None:
    """The memories of a chip by its name, however it is written; None for one that is not known."""
    return {plain_name(chip): found for chip, found in CHIP_MEMORIES.items()}.get(plain_name(name))
