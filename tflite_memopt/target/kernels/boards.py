"""Chips and boards by name: the core, the RAM that one array can take, and the flash.

``ram`` is the internal RAM of the core that applications run on; where it lies in several blocks, the largest block
that holds data. ``flash`` is shared by code and constants of the firmware, inside the chip or on the board; None
where the board decides. Sources: the vendors' data sheets and the boards' product pages, looked up in November 2026.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from .chips import plain_name

_K, _M = 1 << 10, 1 << 20


@dataclass(frozen=True)
class Device:
    """A chip, or a board with one. ``target``: its core among the targets. ``ram``, ``flash``: in bytes.

    ``left``: what the vendor's ``framework`` leaves of the RAM to data; None where that is not known.
    """

    name: str
    chip: str
    target: str
    ram: int
    flash: int | None
    source: str
    left: int | None = None
    framework: str | None = None


_LEFT: Mapping[str, tuple[int, str]] = {"ESP32": (320 * _K, "ESP-IDF")}
"""By chip, the bytes that a framework leaves to data, and its name. ESP-IDF's of the ESP32: its data sheet."""


def _chips(*rows: tuple[str, str, int, int | None, str]) -> dict[str, Device]:
    return {
        name: Device(
            name, name, target, ram * _K, None if flash is None else flash * _K, source, *_LEFT.get(name, (None, None))
        )
        for name, target, ram, flash, source in rows
    }


CHIPS: Mapping[str, Device] = _chips(
    ("nRF52832", "cortex-m4", 64, 512, "Nordic nRF52832 product specification"),
    ("nRF52833", "cortex-m4", 128, 512, "Nordic nRF52833 product specification"),
    ("nRF52840", "cortex-m4", 256, 1024, "Nordic nRF52840 product specification"),
    ("nRF5340", "cortex-m33", 512, 1024, "Nordic nRF5340 product specification, application core"),
    ("nRF54L15", "cortex-m33", 256, 1524, "Nordic nRF54L15 data sheet"),
    ("nRF9160", "cortex-m33", 256, 1024, "Nordic nRF9160 product specification"),
    ("RP2040", "cortex-m0", 264, None, "RP2040 data sheet"),
    ("RP2350", "cortex-m33", 520, None, "RP2350 data sheet"),
    ("ESP32", "esp32", 520, None, "ESP32 data sheet"),
    ("ESP32-S3", "esp32s3", 512, None, "ESP32-S3 data sheet"),
    ("ESP32-C3", "esp32c3", 400, None, "ESP32-C3 data sheet"),
    ("ESP32-P4", "esp32p4", 768, None, "ESP32-P4 data sheet"),
    ("STM32F103C8", "cortex-m3", 20, 64, "ST DS5319"),
    ("STM32F103RB", "cortex-m3", 20, 128, "ST DS5319"),
    ("STM32F401RE", "cortex-m4", 96, 512, "ST DS10086"),
    ("STM32F407VG", "cortex-m4", 128, 1024, "ST DS8626; 64 KB of CCM beside it"),
    ("STM32F411RE", "cortex-m4", 128, 512, "ST DS10314"),
    ("STM32F446RE", "cortex-m4", 128, 512, "ST DS10693"),
    ("STM32F746NG", "cortex-m7", 320, 1024, "ST DS10916"),
    ("STM32F767ZI", "cortex-m7", 512, 2048, "ST DS11532"),
    ("STM32G071RB", "cortex-m0", 36, 128, "ST DS12232"),
    ("STM32G474RE", "cortex-m4", 128, 512, "ST DS12288"),
    ("STM32H563ZI", "cortex-m33", 640, 2048, "ST DS14258"),
    ("STM32H743ZI", "cortex-m7", 512, 2048, "ST DS12110, AXI SRAM"),
    ("STM32H747XI", "cortex-m7", 512, 2048, "ST DS12930, AXI SRAM"),
    ("STM32L475VG", "cortex-m4", 96, 1024, "ST DS10969, SRAM1"),
    ("STM32L476RG", "cortex-m4", 96, 1024, "ST DS10198, SRAM1"),
    ("STM32L4R5ZI", "cortex-m4", 640, 2048, "ST DS12023"),
    ("STM32L552ZE", "cortex-m33", 256, 512, "ST DS12737"),
    ("STM32U575ZI", "cortex-m33", 768, 2048, "ST DS13737"),
    ("STM32U585AI", "cortex-m33", 768, 2048, "ST DS13086"),
    ("STM32WB55RG", "cortex-m4", 192, 1024, "ST DS11929, SRAM1"),
    ("SAMD21G18", "cortex-m0", 32, 256, "Microchip SAM D21 data sheet"),
    ("SAMD51J19", "cortex-m4", 192, 512, "Microchip SAM D5x data sheet"),
    ("SAM3X8E", "cortex-m3", 64, 512, "Microchip SAM3X data sheet, SRAM0"),
    ("RA4M1", "cortex-m4", 32, 256, "Renesas RA4M1 data sheet"),
    ("i.MX RT1062", "cortex-m7", 512, None, "NXP i.MX RT1060 data sheet, OCRAM; 512 KB of FlexRAM beside it"),
    ("MK64FN1M0", "cortex-m4", 192, 1024, "NXP K64 data sheet, SRAM_U"),
    ("Apollo3", "cortex-m4", 384, 1024, "Ambiq Apollo3 Blue data sheet"),
)

_BOARDS: tuple[tuple[str, str, int | None], ...] = (
    ("arduino-nano-33-ble", "nRF52840", None),
    ("arduino-nicla-vision", "STM32H747XI", None),
    ("arduino-portenta-h7", "STM32H747XI", None),
    ("arduino-uno-r4", "RA4M1", None),
    ("arduino-zero", "SAMD21G18", None),
    ("arduino-due", "SAM3X8E", None),
    ("xiao-ble-sense", "nRF52840", None),
    ("feather-nrf52840", "nRF52840", None),
    ("feather-m4", "SAMD51J19", None),
    ("wio-terminal", "SAMD51J19", None),
    ("sparkfun-edge", "Apollo3", None),
    ("teensy40", "i.MX RT1062", 1984),
    ("teensy41", "i.MX RT1062", 7936),
    ("pico", "RP2040", 2048),
    ("pico-w", "RP2040", 2048),
    ("pico2", "RP2350", 4096),
    ("esp32-devkitc", "ESP32", 4096),
    ("esp32-cam", "ESP32", 4096),
    ("esp32-s3-devkit", "ESP32-S3", 8192),
    ("esp32-s3-eye", "ESP32-S3", 8192),
    ("xiao-esp32s3", "ESP32-S3", 8192),
    ("esp32-c3-devkit", "ESP32-C3", 4096),
    ("esp32-p4-function-ev", "ESP32-P4", 16384),
    ("nrf52dk", "nRF52832", None),
    ("nrf52840dk", "nRF52840", None),
    ("nrf5340dk", "nRF5340", None),
    ("nrf54l15dk", "nRF54L15", None),
    ("thingy53", "nRF5340", None),
    ("nucleo-f103rb", "STM32F103RB", None),
    ("nucleo-f401re", "STM32F401RE", None),
    ("nucleo-f411re", "STM32F411RE", None),
    ("nucleo-f446re", "STM32F446RE", None),
    ("nucleo-f767zi", "STM32F767ZI", None),
    ("nucleo-g071rb", "STM32G071RB", None),
    ("nucleo-g474re", "STM32G474RE", None),
    ("nucleo-h563zi", "STM32H563ZI", None),
    ("nucleo-h743zi", "STM32H743ZI", None),
    ("nucleo-l476rg", "STM32L476RG", None),
    ("nucleo-l4r5zi", "STM32L4R5ZI", None),
    ("nucleo-u575zi", "STM32U575ZI", None),
    ("nucleo-wb55rg", "STM32WB55RG", None),
    ("stm32f4-discovery", "STM32F407VG", None),
    ("stm32f746g-disco", "STM32F746NG", None),
    ("b-l475e-iot01a", "STM32L475VG", None),
    ("b-u585i-iot02a", "STM32U585AI", None),
    ("frdm-k64f", "MK64FN1M0", None),
    ("bluepill", "STM32F103C8", None),
)
"""Name, chip, and KB of flash on the board where the chip has none."""

BOARDS: Mapping[str, Device] = {
    name: replace(CHIPS[chip], name=name, flash=CHIPS[chip].flash if flash is None else flash * _K)
    for name, chip, flash in _BOARDS
}


def device_named(name: str) -> Device | None:
    """Return a board or a chip by its name, however it is written; None where it names neither.

    A chip may be named without the letters of its package: STM32F446 is the STM32F446RE, if no other chip begins so.
    The version of a library after "@" is left out.
    """
    plain = plain_name(name.partition("@")[0])
    known = {plain_name(each): device for each, device in (*CHIPS.items(), *BOARDS.items())}
    if plain in known:
        return known[plain]
    longer = [device for each, device in CHIPS.items() if plain_name(each).startswith(plain)]
    return longer[0] if len(longer) == 1 and len(plain) >= _LEAST_LETTERS else None


_LEAST_LETTERS = 7
"""A family, such as STM32F4, is a target, and no chip."""
