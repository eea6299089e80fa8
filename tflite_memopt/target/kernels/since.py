"""Builds of TFLM that firmware links: since when they have an operator, and how their structures are compiled.

Firmware may be older than the runtime that a result is verified on, and compiled otherwise than by TFLM's makefile.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import date

from ...errors import ErrorKind, UsageError
from .requests import Abi

SINCE: Mapping[str, date] = {"DYNAMIC_UPDATE_SLICE": date(2025, 11, 10)}
"""By the builtin's schema name, the day of the commit to tflite-micro's main branch; an operator that is not in here
has always been there. Only operators that the tool itself may add are here."""
LOOPS: tuple[str, ...] = ("DYNAMIC_UPDATE_SLICE", "SLICE", "WHILE")
"""Operator kinds of a region that runs as a loop."""


@dataclass(frozen=True)
class TflmBuild:
    """A build of TFLM.

    ``before``: a day before which its source was taken, so that no operator is assumed that it may lack; None for a
    present one. ``is_static``: compiled with TF_LITE_STATIC_MEMORY, which makes structures smaller. ``short_enums``:
    whether an enum takes as few bytes as its values need; None: as the target's compiler does. ``libraries``: the
    profiles of the kernels that it can be compiled with; empty for any. ``source``: where the row was read.
    """

    name: str
    before: date | None = None
    is_static: bool = True
    short_enums: bool | None = None
    libraries: tuple[str, ...] = ()
    source: str = ""

    def layout(self, abi: Abi) -> Abi:
        """Return the layout of structures of this build by the compiler of a target."""
        short = abi.short_enums if self.short_enums is None else self.short_enums
        if (short, self.is_static) == (abi.short_enums, abi.is_static):
            return abi
        enums = "short enums" if short else "enums of 4 bytes"
        static = "" if self.is_static else ", without TF_LITE_STATIC_MEMORY"
        return replace(abi, name=f"{abi.word} bits, {enums}{static}", short_enums=short, is_static=self.is_static)


_ARM = ("reference", "cmsis-nn", "cmsis-nn-dsp", "cmsis-nn-mve")
_ESP = ("reference", "esp-nn", "esp-nn-s3", "esp-nn-p4")
_ZEPHYR = "Zephyr's modules/tflite-micro/CMakeLists.txt"
PRESENT = TflmBuild("makefile", source="tensorflow/lite/micro/tools/make/Makefile")
BUILDS: Mapping[str, TflmBuild] = {
    build.name: build
    for build in (
        PRESENT,
        TflmBuild("int-enums", short_enums=False, source="the makefile's, with -fno-short-enums"),
        TflmBuild("no-static-memory", is_static=False, source="compiled without TF_LITE_STATIC_MEMORY"),
        TflmBuild(
            "arduino-2023",
            date(2023, 1, 1),
            is_static=False,
            libraries=("cmsis-nn-dsp",),
            source="tflite-micro-arduino-examples 7948b85, for the Nano 33 BLE",
        ),
        TflmBuild("esp-tflite-micro-1.3", date(2023, 12, 1), libraries=_ESP, source="its CMakeLists.txt; 1.3.0's day"),
        TflmBuild("zephyr-3.7", date(2024, 7, 26), is_static=False, libraries=_ARM, source=_ZEPHYR),
        TflmBuild("zephyr-4.1", date(2025, 3, 7), is_static=False, libraries=_ARM, source=_ZEPHYR),
        TflmBuild("zephyr-4.2", date(2025, 7, 18), is_static=False, libraries=_ARM, source=_ZEPHYR),
    )
}
"""Packaged copies of TFLM, and ways to compile it, by the name that ``--tflm`` takes.

Zephyr's days are those of its releases (``submanifests/optional.yaml`` pins an older commit); esp-tflite-micro 1.3.x
has no ``dynamic_update_slice.cc`` (read in November 2026)."""


def build_named(text: str) -> TflmBuild:
    """Return a build by its name, by the day of its source, or by both: ``zephyr-4.2@2025-03-01``.

    A day alone means TFLM's makefile. Raises UsageError for any other text.
    """
    name, at, day = text.partition("@")
    if name not in BUILDS and not at:
        name, day = PRESENT.name, name
    if name not in BUILDS:
        raise UsageError(_unknown(text), ErrorKind.UNKNOWN)
    if not day and not at:
        return BUILDS[name]
    try:
        return replace(BUILDS[name], name=text, before=date.fromisoformat(day))
    except ValueError:
        raise UsageError(_unknown(text), ErrorKind.UNKNOWN) from None


def _unknown(text: str) -> str:
    return f"'{text}' is no build of TFLM; write a day such as 2025-11-10, or one of {', '.join(BUILDS)}"


def without_newer(build: TflmBuild, since: date) -> str:
    """Return the name of the same build from the day before ``since``: it lacks what came then."""
    name = build.name.partition("@")[0]
    return f"{name if name in BUILDS else PRESENT.name}@{since.fromordinal(since.toordinal() - 1).isoformat()}"


def needed_since(operators: Iterable[str]) -> date | None:
    """Return the date of the oldest TFLM that has all these operators; None where any has them."""
    return max((SINCE[name] for name in operators if name in SINCE), default=None)


def has_operators(operators: Iterable[str], build: TflmBuild) -> bool:
    """Return whether a build of TFLM has the operators."""
    since = needed_since(operators)
    return since is None or build.before is None or since <= build.before
