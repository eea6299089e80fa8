"""The targets of chips by vendor name, and the memories of some chips.

Where a chip has several cores it is the one that applications run on. A Cortex-M33 in this table has the DSP
extension, a Cortex-M55 or M85 has Helium. Sources: Zephyr, soc/*/Kconfig (``CPU_CORTEX_...``, ``ARMV8_M_DSP``),
looked up for nRF53, nRF54, nRF91, STM32H5, STM32U0, STM32U5, STM32WBA, STM32N6, Apollo510 and RA8; pico-sdk,
cmake/preload/toolchains, for RP2350. The rest was not looked up for this table.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

CHIPS: Mapping[str, tuple[str, ...]] = {
    "cortex-m0": (
        *("RP2040", "nRF51", "SAMD21", "SAML21"),
        *("STM32C0", "STM32F0", "STM32G0", "STM32L0", "STM32U0"),
    ),
    "cortex-m3": ("STM32F1", "STM32F2", "STM32L1"),
    "cortex-m4": (
        *("nRF52", "SAMD51", "SAME51", "SAME53", "SAME54", "Apollo3", "Apollo4"),
        *("STM32F3", "STM32F4", "STM32G4", "STM32L4", "STM32WB5", "STM32WL5", "STM32WLE"),
    ),
    "cortex-m7": ("STM32F7", "STM32H7", "i.MX RT10", "i.MX RT116", "i.MX RT117", "SAME70", "SAMS70", "SAMV71"),
    "cortex-m33": ("RP2350", "nRF53", "nRF54", "nRF91", "STM32H5", "STM32L5", "STM32U5", "STM32WBA"),
    "cortex-m55": ("Ensemble", "Apollo510", "STM32N6"),
    "cortex-m85": ("RA8",),
    "esp32": ("ESP32-S2",),
    "esp32c3": ("ESP32-C2", "ESP32-C3", "ESP32-C5", "ESP32-C6", "ESP32-H2"),
    "esp32s3": ("ESP32-S3",),
    "esp32p4": ("ESP32-P4",),
}
"""By target, beside the chip that gave a target its name. Of several that begin a chip's name, the longest counts."""

CORES: Mapping[str, str] = {"Cortex-M0plus": "cortex-m0", "Cortex-M1": "cortex-m0", "Cortex-M4F": "cortex-m4"}
"""Names of cores that are those of a target, too."""

_K, _M = 1 << 10, 1 << 20

CHIP_MEMORIES: Mapping[str, Mapping[str, int]] = {
    "i.MX RT1170": {"dtcm": 256 * _K, "ocram": _M},
    "STM32H7": {"dtcm": 128 * _K, "axi_sram": 512 * _K},
    "nRF5340": {"ram": 512 * _K},
    "ESP32-S3": {"sram": 512 * _K, "psram": 8 * _M},
    "RP2350": {"sram": 520 * _K, "psram": 8 * _M},
    "Ensemble-E8": {"dtcm": _M, "sram0": 4 * _M},
}
"""The memories of a chip, the fastest first, as a firmware for the core in ``CHIPS`` sees them.

Sizes are those of the whole memories, in bytes: stack, heap and other data share them. Sources: the vendors' reference
manuals and data sheets. i.MX RT1170: half of the FlexRAM of 512 KB as DTCM, and OCRAM 1 and 2. STM32H743: DTCM and AXI
SRAM. nRF5340: the RAM of the application core. ESP32-S3: internal SRAM, and 8 MB of PSRAM in the package (R8). RP2350:
all SRAM banks, and 8 MB of PSRAM as boards have it. Ensemble E8: DTCM of the high-performance core, and SRAM0.
"""


def plain_name(name: str) -> str:
    """Letters and digits alone, in lower case: ``Cortex_M4`` and ``cortex-m4`` are one name.

    i.MX is MIMX in orders, and is left out in speech."""
    return re.sub(r"^m?imx", "", re.sub(r"[^a-z0-9]", "", name.lower()))


def target_of_chip(name: str) -> str | None:
    """The target that a chip is, by the name of its family or of the chip itself; None for one that is not known."""
    plain, cores = plain_name(name), {plain_name(core): target for core, target in CORES.items()}
    if plain in cores:
        return cores[plain]
    families = {plain_name(chip): target for target, chips in CHIPS.items() for chip in chips}
    found = max((family for family in families if plain.startswith(family)), key=len, default=None)
    return None if found is None else families[found]


def memories_of_chip(name: str) -> Mapping[str, int] | None:
    """Return the memories of a chip by its name, however it is written; None for one that is not known."""
    return {plain_name(chip): found for chip, found in CHIP_MEMORIES.items()}.get(plain_name(name))
