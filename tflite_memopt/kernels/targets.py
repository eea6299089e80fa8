"""The table of targets: kernels and layout of structures for every core or chip.

Cores and their kernels: CMSIS-NN commit 4ab83cc3, Include/arm_nn_math_types.h (ARM_MATH_DSP, ARM_MATH_MVEI, from the
compiler's __ARM_FEATURE_DSP and __ARM_FEATURE_MVE); esp-nn commit d45b843c, include/esp_nn.h. Short enums: the default
of GCC and Arm Compiler for bare-metal Arm; Xtensa and RISC-V take 4 bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches

from ..errors import ErrorKind, UsageError
from ..operators.requests import ILP32, ILP32_SHORT_ENUMS, LP64, WHEEL_IN_CPP, Abi
from ..solvers.graph.alignment import ARENA_ALIGNMENT
from .boards import BOARDS, device_named
from .chips import CHIPS, FAMILIES, plain_name, target_of_chip
from .esp_nn import MEASURED, VERSIONS, of_version
from .prices import WITHOUT_DOUBLES
from .profile import READ_AT as PRESENT_DAY
from .profile import KernelProfile
from .profiles import PORTABLE, profile_named
from .since import PRESENT, TflmBuild


@dataclass(frozen=True)
class Target:
    """A core or chip, with the kernels that firmware for it links as a rule.

    ``kernels`` names a profile, ``abi`` is the layout of structures, ``alignment`` that of the arena in bytes.
    ``measured`` lists facts from runs on it or on a stand-in, ``read`` facts from source.
    ``has_doubles``: whether the core computes in double precision by itself. ``esp_nn``: the version of esp-nn that the
    name chose; None for all. ``spi``: hundredths of a cycle for a byte of constants from SPI flash; 0 where they are
    not read from it. It follows from the core's clock and a bus of four bits: 240 and 80 MHz on ESP32 and ESP32-S3, 160
    and 80 on ESP32-C3, 360 and 80 on ESP32-P4, 125 and 62.5 on RP2040, 150 and 75 on RP2350. Arithmetic from data
    sheets: no cache is counted. Others measured 2.8 times between SRAM and flash (CFU-Playground, pull request 206).
    """

    name: str
    description: str
    kernels: str
    abi: Abi
    measured: tuple[str, ...]
    read: tuple[str, ...]
    alignment: int = ARENA_ALIGNMENT
    has_doubles: bool = False
    esp_nn: str | None = None
    spi: int = 0


_CORTEX_M0 = ("requests and results as on Cortex-M3, the same code",)
_CORTEX_M3 = ("requests, smallest arenas and overlap, GCC 12.2, Cortex-M3 in QEMU",)
_DSP = ("requests, smallest arenas and overlap, GCC 12.2, Cortex-M7 in QEMU",)
_MVE = ("requests, smallest arenas and overlap, GCC 12.2, Cortex-M55 in QEMU",)
_GENERIC = ("scratch and overlap of the C code, compiled for x86-64",)
_LAYOUT = "sizes of structures: 32 bits with enums of 4 bytes, measured on Arm"
_AS_ON_ARM = ("smallest arenas and overlap, as built with enums of 4 bytes for Cortex-M7 in QEMU",)
_LAYOUT_OF_RISCV = ("RISC-V's own layout, taken for the same",)
_HOST, _OF_HOST = ("smallest arenas and overlap, GCC 12.2, x86-64",), "x86-64 or other 64-bit machines"
_WHEEL = ("smallest arenas, tflite-micro 0.dev20261023",)
_OF_WHEEL = "the TFLM of PyPI's tflite-micro, called from C++ on x86-64"
_OWN = "TFLM's reference kernels"
_ARM_COMPILER = ("Arm Compiler 6 asks for 4 bytes an input channel more in a 1x1 convolution",)

TARGETS: Mapping[str, Target] = {
    target.name: target
    for target in (
        Target("cortex-m0", "Cortex-M0, M0+, M1", "cmsis-nn", ILP32_SHORT_ENUMS, _CORTEX_M0, ()),
        Target("cortex-m3", "Cortex-M3", "cmsis-nn", ILP32_SHORT_ENUMS, _CORTEX_M3, ()),
        Target("cortex-m4", "Cortex-M4", "cmsis-nn-dsp", ILP32_SHORT_ENUMS, _DSP, _ARM_COMPILER),
        Target("cortex-m7", "Cortex-M7", "cmsis-nn-dsp", ILP32_SHORT_ENUMS, _DSP, _ARM_COMPILER, has_doubles=True),
        Target("cortex-m33", "Cortex-M33 with DSP", "cmsis-nn-dsp", ILP32_SHORT_ENUMS, _DSP, _ARM_COMPILER),
        Target("cortex-m55", "Cortex-M55 with Helium", "cmsis-nn-mve", ILP32_SHORT_ENUMS, _MVE, (), has_doubles=True),
        Target("cortex-m85", "Cortex-M85 with Helium", "cmsis-nn-mve", ILP32_SHORT_ENUMS, _MVE, (), has_doubles=True),
        Target("esp32", "ESP32: Xtensa LX6", "esp-nn", ILP32, _GENERIC, (_LAYOUT,), spi=600),
        Target("esp32c3", "ESP32-C3: RISC-V", "esp-nn", ILP32, _GENERIC, (_LAYOUT,), spi=400),
        Target("esp32s3", "ESP32-S3: Xtensa LX7", "esp-nn-s3", ILP32, (), ("scratch", _LAYOUT), spi=600),
        Target("esp32p4", "ESP32-P4: RISC-V", "esp-nn-p4", ILP32, (), ("scratch", _LAYOUT), spi=900),
        Target("riscv32", f"32-bit RISC-V, {_OWN}", "reference", ILP32, _AS_ON_ARM, _LAYOUT_OF_RISCV),
        Target("host", f"{_OF_HOST}, {_OWN}", "reference", LP64, _HOST, (), has_doubles=True),
        Target("wheel", _OF_WHEEL, "reference", WHEEL_IN_CPP, _WHEEL, (), has_doubles=True),
    )
}


def target_named(name: str) -> Target:
    """Return a target by its name, however it is written, or by that of a chip or board.

    ``esp32s3@esp-nn-1.1`` is a target with one version of esp-nn. Raises UsageError for an unknown one.
    """
    if not isinstance(name, str):
        raise UsageError(f"target {name!r} is not the name of a target", ErrorKind.UNKNOWN)
    name, at, library = name.partition("@")
    if at:
        return _with_version(target_named(name), library)
    names = {plain_name(target): target for target in TARGETS}
    device = device_named(name)
    found = names.get(plain_name(name)) or (target_of_chip(name) if device is None else device.target)
    if found is not None and found not in TARGETS:
        raise UsageError(f"the row of '{name}' has the target '{found}', which is none of TARGETS", ErrorKind.UNKNOWN)
    if found is not None:
        return TARGETS[found]
    names |= {plain_name(board): board for board in BOARDS}
    names |= {plain_name(chip): chip for chip in (*CHIPS, *(each for family in FAMILIES.values() for each in family))}
    plain = plain_name(name)
    inside = [each for each in names if len(plain) >= _LEAST_LETTERS and plain in each]
    close = inside or get_close_matches(plain, names, 1, _ALIKE)
    meant = f"did you mean {' or '.join(names[each] for each in close)}? Choose" if close else "choose"
    raise UsageError(
        f"unknown target {name!r}: {meant} one of {', '.join(TARGETS)}, or name your chip or board: "
        "tflite-memopt targets lists them",
        ErrorKind.UNKNOWN,
    )


_LEAST_LETTERS = 4
_ALIKE = 0.75
"""How alike a name must be to be meant: esp8266 is no ESP32."""


def _with_version(target: Target, library: str) -> Target:
    if not library.startswith(_ESP_NN):
        raise UsageError(
            f"unknown library '{library}' of {target.name}: name a version as in {_EXAMPLE}", ErrorKind.UNKNOWN
        )
    version = library.removeprefix(_ESP_NN)
    of_version(profile_named(target.kernels), version)  # refuses what is unknown
    return replace(target, name=f"{target.name}@{library}", esp_nn=version)


_ESP_NN, _EXAMPLE = "esp-nn-", "esp32s3@esp-nn-1.1"


def esp_nn_to_pin(target: str | None) -> str:
    """Return the version of esp-nn that a target names, for a package manager; the measured one if it names none."""
    named = None if target is None else target_named(target).esp_nn
    return MEASURED if named is None else named if named in VERSIONS else f"{named}.*"


def profile_for(
    target: str | None, kernels: str | None = None, chip: str | None = None, build: TflmBuild = PRESENT
) -> KernelProfile:
    """Return the profile of a target, which counts arenas in its layout; of ``kernels`` alone without a target.

    ``kernels``: those that the firmware links; None for the usual ones of the target, or for any where none is named,
    or where those of the ``build`` are not the measured ones.
    ``chip``: from whose flash weights are read, where it is known. ``build``: how the firmware's TFLM is compiled.
    Raises UsageError for an unknown name.
    """
    if target is None:
        profile = profile_named(kernels or PORTABLE.name)
        return _compiled(profile, build, profile.abi)
    found = target_named(target)
    profile = profile_named(kernels or build.kernels or found.kernels)
    if profile.libraries and kernels in (None, build.kernels):
        # Plans are right with any kernels, and sizes are those of the usual ones: a file's label names the first alone.
        profile = replace(profile, libraries=(profile_named(found.kernels),))
    if found.esp_nn is not None and profile.name == found.kernels:
        profile = of_version(profile, found.esp_nn)
    prices = profile.prices if found.has_doubles else replace(profile.prices, making=WITHOUT_DOUBLES)
    named = CHIPS.get(chip or "")
    prices = prices.from_flash((0 if named is None else named.spi) or found.spi)
    return replace(_compiled(profile, build, found.abi), target=found.name, prices=prices)


def _compiled(profile: KernelProfile, build: TflmBuild, abi: Abi) -> KernelProfile:
    """Return a profile with the layout of a build, and the libraries that the build can have."""
    layout, day = build.layout(abi), PRESENT_DAY if build.day is None else build.day
    linked = tuple(
        replace(each, abi=layout, tflm=day)
        for each in profile.libraries
        if not build.libraries or each.name in build.libraries
    )
    # The library that arenas are counted for comes first: TFLM's own kernels, if the build can have them.
    requests = linked[0].requests if linked else profile.requests
    return replace(profile, abi=layout, tflm=day, libraries=linked, requests=requests)
