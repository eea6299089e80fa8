"""Builds of TFLM that firmware links: since when they have an operator, and how their structures are compiled.

Firmware may be older than the runtime that a result is verified on, and compiled otherwise than by TFLM's makefile.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date
from itertools import chain

from ..errors import ErrorKind, UsageError
from ..model.ir.model import Model, Operator
from ..operators.kind import ARM_LIBRARIES, Arrival
from ..operators.requests import Abi
from ..operators.table import BY_LABEL, kind_of

FIRST_DAY = date(2023, 2, 14)
"""The day of the oldest TFLM that is named here; what TFLM had before was not read."""
_BY_OPERATOR: Mapping[str, tuple[Arrival, ...]] = {
    name: tuple(replace(each, operator=name) for each in kind.since) for name, kind in BY_LABEL.items()
}
ARRIVALS: tuple[Arrival, ...] = tuple(sorted(chain.from_iterable(_BY_OPERATOR.values()), key=lambda each: each.day))
"""What came to TFLM after ``FIRST_DAY``; what is not in here has been there since then.

Sources, in the history of tflite-micro up to 90b983c2b3f1: for operators the commit that adds a method to
``micro_mutable_op_resolver.h``, for types the one that adds a case to the file of the kernel in
``tensorflow/lite/micro/kernels``; the types in all of these files were compared between the two ends. Before 47b545074
FULLY_CONNECTED refuses more than one scale, since 71fba59b5 (2024-05-29), or takes the first one for all channels.
Between 47b545074 and 10ebaab9f it computes a part of an output that has not two dimensions. Before 5e4e51bbe
TRANSPOSE_CONV of int16 reads the type of a bias that is not there. Of the rows from 2024 on, those of builtin operators
were also run: 233 models of one operator on 27 wheels of tflite-micro of 2023-10-10 to 2025-11-10 agree.
"""
SINCE: Mapping[str, date] = {each.operator: each.day for each in ARRIVALS if each.dtype is None}
"""By name, the day of operators that came as a whole."""
LOOPS: tuple[str, ...] = ("DYNAMIC_UPDATE_SLICE", "SLICE", "WHILE")
"""Operator kinds of a region that runs as a loop."""


@dataclass(frozen=True)
class TflmBuild:
    """A build of TFLM.

    ``day``: of its source, which has what came to TFLM up to then; None for a present one. ``is_static``: compiled with
    TF_LITE_STATIC_MEMORY, which makes structures smaller. ``short_enums``: whether an enum takes as few bytes as its
    values need; None: as the target's compiler does. ``libraries``: the profiles of the kernels that it can be compiled
    with; empty for any. ``kernels``: the profile for plans where nobody names one; None for the target's usual one.
    ``has``: arrivals of a later day that it has all the same; ``without``: of an earlier day that it lacks. ``source``:
    where the row was read.
    """

    name: str
    day: date | None = None
    is_static: bool = True
    short_enums: bool | None = None
    libraries: tuple[str, ...] = ()
    kernels: str | None = None
    has: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    source: str = ""

    def lacks(self, arrival: Arrival) -> bool:
        """Return whether this build does without what came to TFLM."""
        if str(arrival) in self.without:
            return True
        if self.day is None or arrival.day <= self.day or str(arrival) in self.has:
            return False
        return not self.libraries or not set(self.libraries) <= set(arrival.had_by)

    def layout(self, abi: Abi) -> Abi:
        """Return the layout of structures of this build by the compiler of a target."""
        short = abi.short_enums if self.short_enums is None else self.short_enums
        if (short, self.is_static) == (abi.short_enums, abi.is_static):
            return abi
        enums = "short enums" if short else "enums of 4 bytes"
        static = "" if self.is_static else ", without TF_LITE_STATIC_MEMORY"
        return replace(abi, name=f"{abi.word} bits, {enums}{static}", short_enums=short, is_static=self.is_static)


_ARM = ("reference", *ARM_LIBRARIES)
_ESP = ("reference", "esp-nn", "esp-nn-s3", "esp-nn-p4")
_NOT_MEASURED = "portable"
"""For builds whose CMSIS-NN is older than the one that was measured: plans that are right with any kernels."""
PRESENT = TflmBuild("makefile", source="tensorflow/lite/micro/tools/make/Makefile")


def _esp(name: str, day: date, version: str, has_channels: bool = True) -> TflmBuild:
    """``has_channels``: whether its FULLY_CONNECTED of int8 takes a scale per channel if its TFLM does.

    The file of that kernel is Espressif's own: until 312a65a (1.3.4) it took one scale of these, and still takes one of
    int16.
    """
    without = tuple(f"FULLY_CONNECTED of {kind} with a scale per channel" for kind in ("int8", "int16")[has_channels:])
    return TflmBuild(name, day, libraries=_ESP, without=without, source=f"espressif/esp-tflite-micro {version}")


def _zephyr(version: str, day: date, commit: str) -> TflmBuild:
    source = f"zephyrproject-rtos/tflite-micro {commit}, pinned by Zephyr's submanifests/optional.yaml"
    return TflmBuild(f"zephyr-{version}", day, is_static=False, libraries=_ARM, source=source)


def _silicon_labs(name: str, source: str) -> TflmBuild:
    source = f"{source}, whose component names tflite-micro 02414075e; without the kernels of the MVP"
    return TflmBuild(name, date(2023, 6, 16), libraries=ARM_LIBRARIES[:2], kernels=_NOT_MEASURED, source=source)


BUILDS: Mapping[str, TflmBuild] = {
    build.name: build
    for build in (
        PRESENT,
        TflmBuild("int-enums", short_enums=False, source="the makefile's, with -fno-short-enums"),
        TflmBuild("no-static-memory", is_static=False, source="compiled without TF_LITE_STATIC_MEMORY"),
        TflmBuild(
            "arduino-2023",
            date(2023, 2, 27),
            is_static=False,
            libraries=("cmsis-nn-dsp",),
            kernels=_NOT_MEASURED,
            source="tensorflow/tflite-micro-arduino-examples 7948b85, of tflite-micro 4e62ea7b8; for the Nano 33 BLE",
        ),
        TflmBuild(
            "edge-impulse",
            date(2023, 2, 14),
            is_static=False,
            kernels=_NOT_MEASURED,
            has=(*("ADD of int32", "BATCH_MATMUL", "CAST of bool", "REDUCE_ALL", "REDUCE_MIN"),),
            source="edgeimpulse/inferencing-sdk-cpp 919819f (1.93.20; since 29ca890 of 2023-11-15), of tflite-micro "
            "4aa157e5e with changed kernels; its interpreter, not its EON Compiler",
        ),
        _esp("esphome", date(2024, 12, 19), "1.3.3~1, which esphome/esphome 003c7c5 pins", False),
        _esp("esp-tflite-micro-1.3", date(2024, 4, 23), "v1.3.0, the oldest 1.3", False),
        _esp("esp-tflite-micro-1.3.1", date(2024, 5, 29), "v1.3.1", False),
        _esp("esp-tflite-micro-1.3.2", date(2024, 9, 27), "v1.3.2", False),
        _esp("esp-tflite-micro-1.3.3", date(2024, 12, 19), "v1.3.3", False),
        _esp("esp-tflite-micro-1.3.4", date(2025, 8, 25), "v1.3.4"),
        _esp("esp-tflite-micro-1.3.5", date(2025, 11, 10), "v1.3.5"),
        _esp("esp-tflite-micro-1.3.7", date(2026, 5, 6), "v1.3.7"),
        _esp("esp-tflite-micro-1.3.8", date(2026, 7, 8), "v1.3.8"),
        _esp("esp-tflite-micro-1.4", date(2026, 7, 8), "99f49e1"),
        _silicon_labs("gecko-sdk-4.4", "SiliconLabs/gecko_sdk v4.4.1 (4.3.1 and later)"),
        TflmBuild(
            "openmv-4.8",
            date(2024, 7, 25),
            libraries=ARM_LIBRARIES,
            kernels=_NOT_MEASURED,
            source="openmv/libtflm 73eb1aa (firmware 4.6 to 4.8): tflite-micro a57349f0b; 5.0 has another one",
        ),
        _silicon_labs("simplicity-sdk-2024.6", "SiliconLabs/simplicity_sdk a1a37fa"),
        _zephyr("3.7", date(2024, 5, 29), "48613f7b"),
        _zephyr("4.1", date(2025, 2, 7), "8d404de7"),
        _zephyr("4.2", date(2025, 2, 7), "8d404de7"),
        _zephyr("4.4", date(2026, 2, 12), "fcc760af"),
    )
}
"""Packaged copies of TFLM, and ways to compile it, by the name that ``--tflm`` takes.

The day of a copy is that of the last commit to tflite-micro that is in it: each of its kernels and headers was compared
with all versions of that file, and no file has a later change, but for files that a later commit turned back. Copies
that are not in here: those of OpenMV 5.0 (libtflm 5b8e786f) and of Silicon Labs' AI/ML extension (tflite-micro
0d761e34) were not to be had; Gecko SDK 4.0 to 4.3.0 are older than ``FIRST_DAY``.
"""


def build_named(text: str) -> TflmBuild:
    """Return a build by its name, by the day of its source, or by both: ``zephyr-4.2@2025-03-01``.

    A day alone means TFLM's makefile. Raises UsageError for any other text, and for a day before ``FIRST_DAY``.
    """
    name, at, day = text.partition("@")
    if name not in BUILDS and not at:
        name, day = PRESENT.name, name
    if name not in BUILDS:
        raise UsageError(_unknown(text), ErrorKind.UNKNOWN)
    if not day and not at:
        return BUILDS[name]
    try:
        found = replace(BUILDS[name], name=text, day=date.fromisoformat(day))
    except ValueError:
        raise UsageError(_unknown(text), ErrorKind.UNKNOWN) from None
    if found.day is not None and found.day < FIRST_DAY:
        raise UsageError(f"'{text}': the operators of TFLM are known from {FIRST_DAY} on", ErrorKind.UNKNOWN)
    return found


def _unknown(text: str) -> str:
    return f"'{text}' is no build of TFLM; write a day such as 2025-11-10, or one of {', '.join(BUILDS)}"


def without_newer(build: TflmBuild, since: date) -> str:
    """Return the name of the same build from the day before ``since``: it lacks what came then."""
    name = build.name.partition("@")[0]
    return f"{name if name in BUILDS else PRESENT.name}@{since.fromordinal(since.toordinal() - 1).isoformat()}"


def arrivals_of(operator: Operator) -> Iterator[Arrival]:
    """Yield what came to TFLM that an operator needs."""
    for each in _BY_OPERATOR.get(operator.opcode.label, ()):
        activation = operator.operand(kind_of(operator).tflm.activation)
        is_of_type = each.dtype is None or (activation is not None and activation.dtype is each.dtype)
        if is_of_type and each.meets(operator):
            yield each


def lacking(operator: Operator, build: TflmBuild) -> Arrival | None:
    """Return the last arrival that an operator needs and a build of TFLM lacks; None where it lacks none."""
    return max((each for each in arrivals_of(operator) if build.lacks(each)), key=lambda each: each.day, default=None)


def runs_on(model: Model, build: TflmBuild) -> bool:
    """Return whether no operator came later than a build of TFLM."""
    return all(lacking(each, build) is None for each in model.all_operators)


def newest_of(*models: Model) -> date | None:
    """Return the day of the oldest TFLM that runs all operators; None where any does."""
    operators = (operator for model in models for operator in model.all_operators)
    return max((each.day for operator in operators for each in arrivals_of(operator)), default=None)


def needed_since(kinds: Iterable[str]) -> date | None:
    """Return the day of the oldest TFLM that has these operator kinds of some type; None where any has them."""
    return max((SINCE[name] for name in kinds if name in SINCE), default=None)


def has_operators(kinds: Iterable[str], build: TflmBuild) -> bool:
    """Return whether a build of TFLM has operator kinds, of some type."""
    whole = (each for name in kinds for each in _BY_OPERATOR.get(name, ()) if each.dtype is None)
    return not any(map(build.lacks, whole))
