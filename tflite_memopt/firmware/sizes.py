"""Sizes of the arena of a firmware, for each layout of structures that its compiler may choose.

What a compiler can tell of the kernels it tells by its own macros, and by those that the build of each library defines.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..kernels.arena import MemoryPlanner, TwoArenasUse, two_arenas_use
from ..kernels.profile import KernelProfile
from ..memory.layout import heads_with
from ..memory.reserve import LibraryNeed, reserve
from ..model.ir.model import Model, Tensor
from ..operators.requests import ILP32, ILP32_SHORT_ENUMS, LP64, WHEEL_IN_CPP, Abi
from ..solvers.graph.alignment import aligned

_CMSIS, _ESP = "defined(CMSIS_NN)", "defined(ESP_NN)"
_DSP, _MVE = "defined(__ARM_FEATURE_DSP)", "defined(__ARM_FEATURE_MVE)"
_OPTIMIZED = "defined(CONFIG_NN_OPTIMIZED)"
_S3 = "defined(CONFIG_IDF_TARGET_ESP32S3)"
_P4 = "(defined(CONFIG_IDF_TARGET_ESP32P4) || defined(CONFIG_IDF_TARGET_ESP32S31))"
_MACROS: Mapping[str, str] = {
    "reference": f"!{_CMSIS} && !{_ESP}",
    "cmsis-nn": f"{_CMSIS} && !{_DSP} && !{_MVE}",
    "cmsis-nn-dsp": f"{_CMSIS} && {_DSP} && !{_MVE}",
    "cmsis-nn-mve": f"{_CMSIS} && {_MVE}",
    "esp-nn": f"{_ESP} && !({_OPTIMIZED} && ({_S3} || {_P4}))",
    "esp-nn-s3": f"{_ESP} && {_OPTIMIZED} && {_S3}",
    "esp-nn-p4": f"{_ESP} && {_OPTIMIZED} && {_P4}",
}
"""CMSIS_NN and ESP_NN are what TFLM's makefile and esp-tflite-micro define; CONFIG_... are of ESP-IDF's sdkconfig.h, by
which esp-nn chooses its code (include/esp_nn.h); the others are the compiler's own."""


@dataclass(frozen=True)
class KernelCase:
    """The libraries that firmware may link where a preprocessor's ``condition`` holds, and none before it."""

    condition: str
    libraries: tuple[str, ...]


CASES = (
    KernelCase(_S3, ("reference", "esp-nn", "esp-nn-s3")),
    KernelCase(_P4, ("reference", "esp-nn", "esp-nn-p4")),
    KernelCase("defined(CONFIG_IDF_TARGET)", ("reference", "esp-nn")),
    KernelCase(_ESP, ("reference", "esp-nn", "esp-nn-s3", "esp-nn-p4")),
    KernelCase(_MVE, ("reference", "cmsis-nn-mve")),
    KernelCase(_DSP, ("reference", "cmsis-nn-dsp")),
    KernelCase("", ("reference", "cmsis-nn")),
)
"""For a plan that is right with any kernels. The chip decides and not CMSIS_NN or ESP_NN, which a program may have left
undefined; but ESP_NN alone names no chip. The last one, without a condition, is for everything else."""


def condition_of(kernels: str) -> str:
    """Return the preprocessor's condition under which the kernels of a profile are linked; "1" for any kernels."""
    return _MACROS.get(kernels, "1")


LAYOUTS: Mapping[str, Abi] = {"short": ILP32_SHORT_ENUMS, "int": ILP32, "wide": LP64}
"""32 bits with enums as small as their values, 32 bits with enums of 4 bytes, 64 bits."""


@dataclass(frozen=True)
class ArenaBytes:
    """Bytes to reserve for one layout of structures: one arena, or two.

    ``two``: the arena of tensors and scratch, which wants the fastest memory, and the persistent one. ``temporary``:
    memory that TFLM needs while it prepares, beside the one arena where they are apart.
    """

    one: int
    two: TwoArenasUse
    temporary: int


@dataclass(frozen=True)
class ArenaSizes:
    """By preprocessor condition and layout, sizes that are enough for every library that may be linked there.

    An empty condition stands for what no other one does. ``by_library``: on the layout of the profile. ``exact``: False
    when an operator is not in the tables.
    """

    cases: dict[str, dict[str, ArenaBytes]]
    by_library: dict[str, LibraryNeed]
    exact: bool


def arena_sizes(
    model: Model,
    planned: Mapping[Tensor, int],
    profile: KernelProfile,
    in_table: int | None = None,
    planner: MemoryPlanner = "tflm",
) -> ArenaSizes:
    """Return the sizes for the libraries of a profile, ``planned`` the offsets in the file, or none.

    ``in_table``: bytes that a table of the plan takes of the one arena, None where TFLM's own planner works there;
    ``planner``: which of them. Two arenas are always TFLM's.
    """
    libraries = {each.name: each for each in profile.libraries or (profile,)}
    heads = dict(zip(libraries, heads_with(model, list(libraries.values()), planned), strict=True))
    cases = CASES if profile.libraries else (KernelCase("", (profile.name,)),)
    in_one = heads if in_table is None else dict.fromkeys(heads, in_table)
    uses = {name: reserve(model, in_one[name], each, planner) for name, each in libraries.items()}

    def largest(names: Sequence[str], abi: Abi) -> ArenaBytes:
        one = [reserve(model, in_one[name], libraries[name], planner, abi) for name in names]
        two = [two_arenas_use(model, heads[name], libraries[name].requests, abi) for name in names]
        apart = TwoArenasUse(max(use.head for use in two), max(use.tail for use in two))
        return ArenaBytes(max(use.required for use in one), apart, aligned(max(use.temporaries for use in one)))

    in_wheel = next(iter(libraries.values())).abi.in_wheel
    layouts = {**LAYOUTS, "wide": WHEEL_IN_CPP} if in_wheel else LAYOUTS
    by_case = {each.condition: {name: largest(each.libraries, abi) for name, abi in layouts.items()} for each in cases}
    is_measured = {name: each.measured_at is not None for name, each in libraries.items()}
    needs = {name: LibraryNeed(in_one[name], use.required, is_measured[name]) for name, use in uses.items()}
    return ArenaSizes(by_case, needs, all(use.exact for use in uses.values()))
