"""Boards by name: the chip, and the flash and the TFLM that come with the board."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .chips import CHIPS, Chip, chip_named, plain_name

_K = 1 << 10


@dataclass(frozen=True)
class Device:
    """A chip, or a board with one. ``flash``: in bytes, that of the board where the chip has none.

    ``tflm``: the name of the build of TFLM that people flash on the board; None where there is no usual one.
    """

    name: str
    chip: Chip
    flash: int | None
    tflm: str | None = None

    @property
    def target(self) -> str:
        """The core among the targets."""
        return self.chip.target


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
"""Name, chip, and KB of flash on the board where the chip has none. Sources: the boards' product pages, looked up in
November 2026."""
_ARDUINO, _ARDUINO_TFLM = "arduino-", "arduino-2023"
"""What names of Arduino's boards begin with, and the library that Arduino's IDE offers for them."""


def _board(name: str, chip: str, flash: int | None) -> Device:
    tflm = _ARDUINO_TFLM if name.startswith(_ARDUINO) else None
    return Device(name, CHIPS[chip], CHIPS[chip].flash if flash is None else flash * _K, tflm)


BOARDS: Mapping[str, Device] = {name: _board(name, chip, flash) for name, chip, flash in _BOARDS}


def usual_tflm(name: str | None) -> str | None:
    """Return the build of TFLM that people flash on a board, by the board's name; None where there is no usual one."""
    device = None if name is None else device_named(name)
    return None if device is None else device.tflm


def device_named(name: str) -> Device | None:
    """Return a board or a chip by its name, however it is written; None where it names neither.

    The version of a library after "@" is left out.
    """
    name = name.partition("@")[0]
    board = {plain_name(each): device for each, device in BOARDS.items()}.get(plain_name(name))
    chip = None if board is not None else chip_named(name)
    return board if chip is None else Device(chip.name, chip, chip.flash)
