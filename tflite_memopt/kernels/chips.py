"""The chips: core, RAM, flash; the families of chips, whose core is known; the memories of chips that have several.

Where a chip has several cores it is the one that applications run on. A Cortex-M33 in these tables has the DSP
extension, a Cortex-M55 or M85 has Helium.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

_K, _M = 1 << 10, 1 << 20


@dataclass(frozen=True)
class Chip:
    """A chip. ``target``: its core among the targets, which says what kernels it runs. ``ram``, ``flash``: in bytes.

    ``ram`` is the internal RAM of the core that applications run on; where it lies in several blocks, the largest block
    that holds data. ``flash`` is inside of the chip; None where it lies on the board. ``left``: the bytes of the RAM
    that ``left_by`` leaves to data; None where that is not known. ``spi``: hundredths of a cycle for a byte of SPI
    flash, where the chip reads constants from it and others of its target do not (``Target.spi``). ``memories``: as
    in ``MEMORIES``.
    """

    name: str
    target: str
    ram: int
    flash: int | None
    source: str
    left: int | None = None
    left_by: str | None = None
    spi: int = 0
    memories: Mapping[str, int] = field(default_factory=dict)


def _in_bytes(chip: Chip) -> Chip:
    """Return a chip whose row has KB."""
    flash, left = (None if size is None else size * _K for size in (chip.flash, chip.left))
    memories = {memory: size * _K for memory, size in chip.memories.items()}
    return replace(chip, ram=chip.ram * _K, flash=flash, left=left, memories=memories)


_NRF5340 = "Nordic nRF5340 product specification, application core"
CHIPS: Mapping[str, Chip] = {
    chip.name: _in_bytes(chip)
    for chip in (
        Chip("nRF52832", "cortex-m4", 64, 512, "Nordic nRF52832 product specification"),
        Chip("nRF52833", "cortex-m4", 128, 512, "Nordic nRF52833 product specification"),
        Chip("nRF52840", "cortex-m4", 256, 1024, "Nordic nRF52840 product specification"),
        Chip("nRF5340", "cortex-m33", 512, 1024, _NRF5340, memories={"ram": 512}),
        Chip("nRF54L15", "cortex-m33", 256, 1524, "Nordic nRF54L15 data sheet"),
        Chip("nRF9160", "cortex-m33", 256, 1024, "Nordic nRF9160 product specification"),
        Chip("RP2040", "cortex-m0", 264, None, "RP2040 data sheet", spi=400),
        Chip("RP2350", "cortex-m33", 520, None, "RP2350 data sheet", spi=400, memories={"sram": 520, "psram": 8192}),
        Chip("ESP32", "esp32", 520, None, "ESP32 data sheet", left=320, left_by="ESP-IDF"),
        Chip("ESP32-S2", "esp32", 320, None, "ESP32-S2 data sheet, 320 KB of SRAM; the cache takes a part of it"),
        Chip("ESP32-S3", "esp32s3", 512, None, "ESP32-S3 data sheet", memories={"sram": 512, "psram": 8 * 1024}),
        Chip("ESP32-C2", "esp32c3", 272, None, "ESP8684 data sheet, 16 KB of it for the cache", 256, "the cache"),
        Chip("ESP32-C3", "esp32c3", 400, None, "ESP32-C3 data sheet, 16 KB of it for the cache", 384, "the cache"),
        Chip("ESP32-C5", "esp32c3", 384, None, "ESP32-C5 data sheet, high-performance SRAM"),
        Chip("ESP32-C6", "esp32c3", 512, None, "ESP32-C6 data sheet, high-performance SRAM"),
        Chip("ESP32-H2", "esp32c3", 320, None, "ESP32-H2 data sheet, 16 KB of it for the cache", 304, "the cache"),
        Chip("ESP32-P4", "esp32p4", 768, None, "ESP32-P4 data sheet"),
        Chip("STM32F103C8", "cortex-m3", 20, 64, "ST DS5319"),
        Chip("STM32F103RB", "cortex-m3", 20, 128, "ST DS5319"),
        Chip("STM32F401RE", "cortex-m4", 96, 512, "ST DS10086"),
        Chip("STM32F407VG", "cortex-m4", 128, 1024, "ST DS8626; 64 KB of CCM beside it"),
        Chip("STM32F411RE", "cortex-m4", 128, 512, "ST DS10314"),
        Chip("STM32F446RE", "cortex-m4", 128, 512, "ST DS10693"),
        Chip("STM32F746NG", "cortex-m7", 320, 1024, "ST DS10916"),
        Chip("STM32F767ZI", "cortex-m7", 512, 2048, "ST DS11532"),
        Chip("STM32G071RB", "cortex-m0", 36, 128, "ST DS12232"),
        Chip("STM32G474RE", "cortex-m4", 128, 512, "ST DS12288"),
        Chip("STM32H563ZI", "cortex-m33", 640, 2048, "ST DS14258"),
        Chip("STM32H743ZI", "cortex-m7", 512, 2048, "ST DS12110, AXI SRAM"),
        Chip("STM32H747XI", "cortex-m7", 512, 2048, "ST DS12930, AXI SRAM"),
        Chip("STM32L475VG", "cortex-m4", 96, 1024, "ST DS10969, SRAM1"),
        Chip("STM32L476RG", "cortex-m4", 96, 1024, "ST DS10198, SRAM1"),
        Chip("STM32L4R5ZI", "cortex-m4", 640, 2048, "ST DS12023"),
        Chip("STM32L552ZE", "cortex-m33", 256, 512, "ST DS12737"),
        Chip("STM32U575ZI", "cortex-m33", 768, 2048, "ST DS13737"),
        Chip("STM32U585AI", "cortex-m33", 768, 2048, "ST DS13086"),
        Chip("STM32WB55RG", "cortex-m4", 192, 1024, "ST DS11929, SRAM1"),
        Chip("SAMD21G18", "cortex-m0", 32, 256, "Microchip SAM D21 data sheet"),
        Chip("SAMD51J19", "cortex-m4", 192, 512, "Microchip SAM D5x data sheet"),
        Chip("SAM3X8E", "cortex-m3", 64, 512, "Microchip SAM3X data sheet, SRAM0"),
        Chip("RA4M1", "cortex-m4", 32, 256, "Renesas RA4M1 data sheet"),
        Chip("i.MX RT1062", "cortex-m7", 512, None, "NXP i.MX RT1060 data sheet, OCRAM; 512 KB of FlexRAM beside it"),
        Chip("MK64FN1M0", "cortex-m4", 192, 1024, "NXP K64 data sheet, SRAM_U"),
        Chip("Apollo3", "cortex-m4", 384, 1024, "Ambiq Apollo3 Blue data sheet"),
    )
}
"""One row per chip: name, target, KB of RAM, KB of flash, source. Data sheets were looked up in November 2026; those of
the ESP32-C2, C3, C5, C6, and H2 also in Zephyr's boards/espressif/common/soc-*-features.rst."""

FAMILIES: Mapping[str, tuple[str, ...]] = {
    "cortex-m0": ("nRF51", "SAMD21", "SAML21", "STM32C0", "STM32F0", "STM32G0", "STM32L0", "STM32U0"),
    "cortex-m3": ("STM32F1", "STM32F2", "STM32L1"),
    "cortex-m4": (
        *("nRF52", "SAMD51", "SAME51", "SAME53", "SAME54", "Apollo3", "Apollo4"),
        *("STM32F3", "STM32F4", "STM32G4", "STM32L4", "STM32WB5", "STM32WL5", "STM32WLE"),
    ),
    "cortex-m7": ("STM32F7", "STM32H7", "i.MX RT10", "i.MX RT116", "i.MX RT117", "SAME70", "SAMS70", "SAMV71"),
    "cortex-m33": ("nRF53", "nRF54", "nRF91", "STM32H5", "STM32L5", "STM32U5", "STM32WBA"),
    "cortex-m55": ("Ensemble", "Apollo510", "STM32N6"),
    "cortex-m85": ("RA8",),
}
"""Beginnings of names of chips that have this core, by target. Of several that begin a name, the longest counts.

Sources: Zephyr, soc/*/Kconfig (``CPU_CORTEX_...``, ``ARMV8_M_DSP``), looked up for nRF53, nRF54, nRF91, STM32H5,
STM32U0, STM32U5, STM32WBA, STM32N6, Apollo510 and RA8; pico-sdk, cmake/preload/toolchains, for RP2350. The rest was not
looked up for this table.
"""

CORES: Mapping[str, str] = {"Cortex-M0plus": "cortex-m0", "Cortex-M1": "cortex-m0", "Cortex-M4F": "cortex-m4"}
"""Names of cores that are those of a target, too."""

MEMORIES: Mapping[str, Mapping[str, int]] = {
    "i.MX RT1170": {"dtcm": 256 * _K, "ocram": _M},
    "STM32H7": {"dtcm": 128 * _K, "axi_sram": 512 * _K},
    **{chip.name: chip.memories for chip in CHIPS.values() if chip.memories},
    "Ensemble-E8": {"dtcm": _M, "sram0": 4 * _M},
}
"""The memories of a chip or a family, the fastest first, as a firmware for its core sees them.

Sizes are those of the whole memories, in bytes: stack, heap and other data share them. Sources: the vendors' reference
manuals and data sheets. i.MX RT1170: half of the FlexRAM of 512 KB as DTCM, and OCRAM 1 and 2. STM32H743: DTCM and AXI
SRAM. nRF5340: the RAM of the application core. ESP32-S3: internal SRAM, and 8 MB of PSRAM in the package (R8). RP2350:
all SRAM banks, and 8 MB of PSRAM as boards have it. Ensemble E8: DTCM of the high-performance core, and SRAM0.
"""


def plain_name(name: str) -> str:
    """Letters and digits alone, in lower case: ``Cortex_M4`` and ``cortex-m4`` are one name.

    i.MX is MIMX in orders, and is left out in speech."""
    return re.sub(r"^m?imx", "", re.sub(r"[^a-z0-9]", "", name.lower()))


def chip_named(name: str) -> Chip | None:
    """Return a chip by its name, however it is written; None for one without a row.

    The letters of its package may be missing, if no other chip begins so: STM32F446 is the STM32F446RE. So may there be
    more letters, of a package or a module, but no digit, and not where other chips are named so: ESP32-C61 is neither
    an ESP32-C6 nor an ESP32.
    """
    plain = plain_name(name)
    known = {plain_name(each.name): each for each in CHIPS.values()}
    if plain in known:
        return known[plain]
    longer = [chip for each, chip in known.items() if each.startswith(plain)]
    if len(longer) == 1 and len(plain) >= _LEAST_LETTERS:
        return longer[0]
    shorter = (each for each in known if plain.startswith(each) and not plain[len(each)].isdigit())
    ends = (each for each in shorter if not any(other.startswith(each) for other in known if other != each))
    return known.get(max(ends, key=len, default=""))


_LEAST_LETTERS = 7
"""A family, such as STM32F4, is a target, and no chip."""


def target_of_chip(name: str) -> str | None:
    """The target that a chip is, by the name of its family or of the chip itself; None for one that is not known."""
    plain, cores = plain_name(name), {plain_name(core): target for core, target in CORES.items()}
    if plain in cores:
        return cores[plain]
    chip = chip_named(name)
    if chip is not None:
        return chip.target
    families = {plain_name(family): target for target, each in FAMILIES.items() for family in each}
    found = max((family for family in families if plain.startswith(family)), key=len, default=None)
    return None if found is None else families[found]


def names_of_target(target: str) -> tuple[str, ...]:
    """Return the families and chips of a target: no chip of a family, and not the one that gave the target its name."""
    families = FAMILIES.get(target, ())
    begins = tuple(map(plain_name, families))
    plain = {plain_name(each.name): each.name for each in CHIPS.values() if each.target == target}
    return (*families, *(name for each, name in plain.items() if each != target and not each.startswith(begins)))


def memories_of_chip(name: str) -> Mapping[str, int] | None:
    """Return the memories of a chip by its name, however it is written; None for one that is not known."""
    return {plain_name(chip): found for chip, found in MEMORIES.items()}.get(plain_name(name))
