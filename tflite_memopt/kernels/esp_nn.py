"""esp-nn on the ESP32 family, as esp-tflite-micro calls it: scratch, sharing and three profiles.

``generic``: the C code (ESP32, ESP32-C3 and other chips without vector instructions), compiled and measured on the
host. ``s3``, ``p4``: assembly and intrinsics; their scratch is read from the source, and no kernel of theirs was run,
so that nothing is permitted where they are called.

An operator that has no file in esp-tflite-micro's kernels/esp_nn, and most that have when their type is not int8, run
in TFLM's reference kernels.

Source: esp-tflite-micro commit 99f49e14, tensorflow/lite/micro/kernels/esp_nn, whose wrappers add an index to the
OpData of three operators and ask for scratch when the data is int8, as those of 1.3.1 do; esp-nn at the tags v1.0.0
to v1.2.0 and the commits 79d59ae2 (1.2.1), def4d7a9 (1.2.2), d45b843c (1.2.3): src/convolution/esp_nn_conv_esp32s3.c,
esp_nn_depthwise_conv_s8_esp32s3.c and include/esp_nn_esp32s3.h for the scratch of the S3, whose kernels copy filters
and padded inputs, so that it can be larger than the activations; esp_nn_conv_esp32p4.c for the P4, where a depthwise
convolution asks for none; src/softmax. At d45b843c, src/*/*_opt.c and *_ansi.c for sharing. esp-tflite-micro takes
any esp-nn from 1.1.1 on, so that the largest scratch of all versions counts where none is named. The generic C code
was probed on the host: convolution, depthwise convolution, pooling, ADD, MUL and SOFTMAX need no more distance than
the reference kernels, in 31,236 random cases without a wrong byte, and plans for the reference kernels computed the
same bytes on all ten models that were run. The wrappers call the reference loops where taps are dilated or where ADD
and MUL broadcast.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby
from typing import Literal

from ..errors import ErrorKind, UsageError
from ..model.ir.check import misfit
from ..model.ir.model import DType, Operator
from ..operators.requests import IN0, INT, OUT0, Abi, Requests, Size, needed
from ..operators.reuse import KernelReuse
from ..operators.table import relations_of
from ..operators.window import CONVOLUTION, CONVOLUTIONS, DEPTHWISE, POOLS, KernelWindow, window_of
from ..solvers.graph.alignment import aligned
from .prices import ESP32_S3_PRICES, REFERENCE_PRICES
from .profile import KernelProfile
from .requests import requests_of

Version = tuple[int, ...]

VERSIONS = ("1.0.0", "1.0.1", "1.0.2", "1.1.0", "1.1.1", "1.1.2", "1.2.0", "1.2.1", "1.2.2", "1.2.3")
"""Releases of esp-nn that were read."""
MEASURED = VERSIONS[-1]
"""The release whose generic C was run."""
_CHANGES: tuple[Version, ...] = ((1, 0, 0), (1, 0, 2), (1, 2, 0), (1, 2, 1), (1, 2, 3))
"""The releases whose scratch or faults differ from those of the one before."""

_FULL_INPUT = 40 * 1024
FULL_COPY = 48 * 1024
"""Bytes of a copy of a depthwise convolution's input above which esp-nn 1.2.1 to 1.2.3 copies rows as it needs them: of
3x3 in 8 bits, of other filters in 16."""


def s3_convolution(w: KernelWindow, version: Version) -> int:
    """``esp_nn_get_conv_scratch_size_esp32s3``."""
    margin = 64 if version >= (1, 2, 3) else 32
    if w.is_pointwise:
        return _pointwise(w) + margin
    line, window = w.columns.taps * w.in_depth, w.taps * w.in_depth
    has_columns = version >= (1, 2, 1)
    if has_columns and line < 16 <= window:
        return w.out_depth * 4 + 16 + w.out_depth * aligned(window, 16) + 16 + aligned(window, 16) + margin
    padded = w.grown(2 * w.rows.before, 2 * w.columns.before) if w.is_padded else 0
    at_least = padded + w.taps * aligned(w.in_depth, 16) * w.out_depth + margin + 4 * w.out_depth
    if not has_columns:
        return at_least
    lines = aligned(line, 16) * w.rows.taps * w.out_depth
    below, right = max(0, w.rows.missing), max(0, w.columns.missing)
    return at_least + lines + (w.grown(below, right) if right or below else 0)


def _pointwise(w: KernelWindow) -> int:
    """A copy of the input whose channels are no multiple of 8, the filters, and 16 pixels of them."""
    depth = aligned(w.in_depth, 8)
    return (w.pixels * depth if w.in_depth % 8 else 0) + depth * w.out_depth + (16 * depth if w.pixels >= 8 else 0)


def s3_depthwise(w: KernelWindow, version: Version) -> int:
    """``esp_nn_get_depthwise_conv_scratch_size_esp32s3``."""
    multiplier, filters = w.out_depth // w.in_depth, w.taps * w.out_depth
    in_16_bits = 2 * (filters + w.grown())
    is_3x3 = multiplier == 1 and w.is_3x3 and w.in_depth % 8 == 0
    if version < (1, 2, 1):
        if is_3x3 and w.in_depth % 16 == 0:
            high, wide = _border_3x3(w)
            return filters + 16 + (w.grown(high, wide) if wide or high else 0)
        margin = 32 if version >= (1, 2) else 16
        return in_16_bits + margin if is_3x3 or multiplier % 4 == 0 else 32
    if is_3x3:
        return _depthwise_3x3(w, filters, in_16_bits)
    if multiplier == 1 and w.in_depth % 8 == 0:
        return 32 + (in_16_bits if in_16_bits <= FULL_COPY else 2 * (filters + _line(w) * w.rows.taps))
    if multiplier == 1 and w.in_depth > 3:
        depth = aligned(w.in_depth, 8)
        end = aligned(2 * w.taps * depth, 16)
        end = aligned(end + 2 * w.pixels * depth, 16)
        return aligned(end + w.out_pixels * depth, 16) + 12 * depth + 16
    return in_16_bits + 32 if multiplier % 4 == 0 else 32


def _line(w: KernelWindow, more: int = 0) -> int:
    """Return the elements of a row of the input with ``more`` columns."""
    return (w.columns.size + more) * w.in_depth


def _border_3x3(w: KernelWindow) -> tuple[int, int]:
    """Return the rows and columns that are added to the input where its depth is a multiple of 16."""
    return (2 * w.rows.before, 2 * w.columns.before) if w.is_padded else (w.rows.missing, w.columns.missing)


def _depthwise_3x3(w: KernelWindow, filters: int, in_16_bits: int) -> int:
    if w.in_depth % 16 == 0:
        high, wide = _border_3x3(w)
        full = w.grown(high, wide) if wide or high else 0
        return filters + 16 + (full if full <= _FULL_INPUT else _line(w, wide) * w.rows.taps)
    if w.in_depth >= 12:
        high, wide = (2 * axis.before + max(0, axis.missing) for axis in (w.rows, w.columns))
        return (9 + (w.rows.size + high) * (w.columns.size + wide) + w.out_pixels) * aligned(w.in_depth, 16) + 64
    return in_16_bits + 32


def s3_depthwise_writes(w: KernelWindow, version: Version) -> int:
    """Bytes of scratch that ``esp_nn_depthwise_conv_s8_esp32s3`` writes, up to the last one; at least these.

    What it asks for is ``s3_depthwise``.
    """
    multiplier, filters, has_rows = w.out_depth // w.in_depth, w.taps * w.out_depth, version >= (1, 2, 1)
    gap = 16 - filters % 16
    as_16_bits = 2 * (filters + gap + w.grown())
    is_3x3 = multiplier == 1 and w.is_3x3 and w.in_depth % 8 == 0
    if is_3x3 and w.in_depth % 16 == 0 and w.padding in ((0, 0), (1, 1)):
        more = _border_3x3(w)
        if not any(more):
            return filters
        whole = w.grown(*more)
        in_rows = has_rows and whole > _FULL_INPUT and w.is_padded
        return filters + gap + (3 * _line(w, 2) if in_rows else whole)
    if has_rows and is_3x3 and w.in_depth >= 12:
        return _padded_to_16(w)
    if has_rows and multiplier == 1 and w.in_depth % 8 and w.in_depth > 3:
        return s3_depthwise(w, version) - 16
    if has_rows and multiplier == 1 and w.in_depth % 8 == 0 and not is_3x3:
        is_whole = 2 * (filters + w.grown()) <= FULL_COPY
        return as_16_bits if is_whole else 2 * (filters + gap + _line(w) * w.rows.taps)
    return as_16_bits if is_3x3 or multiplier % 4 == 0 else 0


def _padded_to_16(w: KernelWindow) -> int:
    """Filters, padded input and output with channels that are a multiple of 16, each in a copy."""
    high, wide = (max(axis.size + 2 * axis.before, axis.outputs * axis.stride + 2) for axis in (w.rows, w.columns))
    return (9 + high * wide + w.out_pixels) * aligned(w.in_depth, 16) + 16


_ALIGNMENT_ROOM = 32
_CACHE = 32_768
"""``L1D_BUDGET``."""
_LANES = 16


def p4_convolution(w: KernelWindow, version: Version) -> int:
    """``esp_nn_get_conv_scratch_size_esp32p4``: before 1.2.3, that of the S3's first version."""
    if version < (1, 2, 3):
        return s3_convolution(w, _CHANGES[0])
    if w.is_pointwise:
        return (_pointwise(w) if w.in_depth >= _LANES else 20 * w.out_depth + 32) + _ALIGNMENT_ROOM
    sums = 4 * w.out_depth + _ALIGNMENT_ROOM
    if not w.is_padded and w.columns.taps * w.in_depth >= _LANES:
        return sums + w.taps * aligned(w.in_depth, 16) * w.out_depth
    if w.taps * w.in_depth >= _LANES:
        return sums + w.taps * w.in_depth
    if w.is_padded:
        return sums + _padded_input(w)
    return sums + (w.taps * w.out_depth + w.pixels) * _padded_depth(w)


def _padded_input(w: KernelWindow) -> int:
    """Return a copy of the padded input and the filter; in tiles where the copy is larger than the cache."""
    whole = w.grown(2 * w.rows.before, 2 * w.columns.before)
    if whole + 4 * w.out_depth <= _CACHE:
        return whole + w.taps * aligned(w.in_depth, 16) * w.out_depth
    # The window has fewer than 16 elements here, so that a row of it has, too.
    depth = _padded_depth(w)
    filters, row = w.taps * depth * w.out_depth, (w.columns.size + 2 * w.columns.before) * depth
    budget = _CACHE - 4 * w.out_depth - filters
    tall = 1
    if budget > 0 and w.rows.taps * row <= budget:
        tall = min((budget - w.rows.taps * row) // (w.rows.stride * row) + 1, w.rows.outputs)
    return ((tall - 1) * w.rows.stride + w.rows.taps + 2 * w.rows.before) * row + filters


def _padded_depth(w: KernelWindow) -> int:
    return aligned((_LANES + w.columns.taps - 1) // w.columns.taps, 16)


Chip = Literal["generic", "s3", "p4"]
"""The code that esp-nn has for each kind of chip."""

# NodeData of each wrapper; sizeof as compiled by GCC 12.2 for 32-bit Arm with enums of 4 bytes, and for x86-64.
_NODE_DATA = {**dict.fromkeys(CONVOLUTIONS, Size(60, 80)), "SOFTMAX": Size(64, 88)}


def requests(operator: Operator, abi: Abi, chip: Chip, versions: Sequence[Version] = _CHANGES) -> Requests:
    """The reference kernel's requests, and the largest of these versions' wrappers. Raises ModelFormatError.

    An operator has one scratch buffer, which is alive in its step alone: TFLM places a smaller one no higher than the
    largest.
    """
    found = requests_of(operator, abi)
    if operator.name not in _NODE_DATA or not found.known:
        return found
    found = replace(found, init=(_NODE_DATA[operator.name].on(abi),))
    if needed(operator, IN0).dtype is not DType.INT8 or needed(operator, OUT0).dtype is not DType.INT8:
        return found
    try:
        size = _softmax(operator) if operator.name == "SOFTMAX" else _window(operator, chip, versions)
    except IndexError as error:
        raise misfit(operator) from error
    return replace(found, scratch=(*found.scratch, size)) if size else found


def _softmax(operator: Operator) -> int:
    """``esp_nn_get_softmax_scratch_size``: four bytes for each of what the wrapper takes for the width, dimension 1.

    The wrapper reads past a shape of one dimension; its elements are taken here.
    Source: src/softmax/esp_nn_softmax_opt.c, kernels/esp_nn/softmax.cc.
    """
    shape = needed(operator, IN0).shape
    return INT * (shape[1] if len(shape) > 1 else needed(operator, IN0).elements)


def _window(operator: Operator, chip: Chip, versions: Sequence[Version]) -> int:
    window = window_of(operator)
    if chip == "generic" or (chip == "p4" and operator.name == DEPTHWISE):
        return 0
    convolution = p4_convolution if chip == "p4" else s3_convolution
    size = convolution if operator.name == CONVOLUTION else s3_depthwise
    return max(size(window, version) for version in versions)


REPLACED = frozenset({*CONVOLUTIONS, *POOLS, "ADD", "FULLY_CONNECTED", "MUL", "SOFTMAX"})
"""Operators that have a file in kernels/esp_nn."""
_REPLACED_ELSEWHERE = frozenset({"HARD_SWISH", "LOGISTIC", "MEAN", "RELU6"})
"""Operators for which esp-nn has a kernel that other versions of the wrappers call."""


def relations(operator: Operator, chip: Chip) -> tuple[KernelReuse, ...]:
    """Return the reference rules, but none for unprobed kernels: vector code, dense layers, groups, int4, batches."""
    if chip != "generic" and operator.name in REPLACED | _REPLACED_ELSEWHERE:
        return ()
    if operator.name == "FULLY_CONNECTED" or (operator.name in (*CONVOLUTIONS, *POOLS) and not _was_probed(operator)):
        return ()
    return relations_of(operator)


def _was_probed(operator: Operator) -> bool:
    source = operator.inputs[0]
    if source is None or len(source.shape) != 4:
        return False
    if source.dtype is not DType.INT8:
        return True
    if operator.name not in CONVOLUTIONS:
        return source.shape[0] == 1
    filters = operator.inputs[1]
    if filters is None or filters.dtype is not DType.INT8 or len(filters.shape) != 4:
        return False
    grouped = operator.name == CONVOLUTION and filters.shape[3] != source.shape[3]
    return source.shape[0] == 1 and not grouped


def of_version(profile: KernelProfile, version: str) -> KernelProfile:
    """Return the S3's or P4's profile as of one version of esp-nn; ``1.2`` stands for 1.2.0 and all others of 1.2.

    Raises UsageError for a version that was not read, and for a profile that does not depend on it.
    """
    if profile.name not in _CHIPS:
        raise UsageError(f"the scratch of {profile.name} does not depend on a version: omit it", ErrorKind.EXCLUDED)
    meant = [each for each in VERSIONS if f"{each}.".startswith(f"{version}.")]
    if not meant:
        raise UsageError(
            f"unknown version of esp-nn {version!r}: name one of {', '.join(VERSIONS)}, or a part as in 1.2",
            ErrorKind.UNKNOWN,
        )
    return _vector_profile(profile.name, tuple(map(_numbers, meant)), f"esp-nn {version}")


def _numbers(version: str) -> Version:
    return tuple(map(int, version.split(".")))


def said_of_releases(changes: Collection[Version]) -> str:
    """Name the releases that do as one of ``changes`` does, of those that were read: ``esp-nn 1.0.2 to 1.2.0``."""
    same = [max(change for change in _CHANGES if change <= _numbers(each)) in changes for each in VERSIONS]
    runs = groupby(range(len(VERSIONS)), lambda at: same[at])
    ends = [(VERSIONS[found[0]], VERSIONS[found[-1]]) for is_same, at in runs if is_same and (found := list(at))]
    return "esp-nn " + ", ".join(first if first == last else f"{first} to {last}" for first, last in ends)


_VECTOR_BLOCK = 8
"""Channels. With another number, depthwise convolutions of the S3 copy their input, and 1x1 ones leave the vector code
(esp_nn_conv_esp32s3.c, esp_nn_depthwise_conv_s8_esp32s3.c at d45b843c)."""
_CHIPS: Mapping[str, Chip] = {"esp-nn-s3": "s3", "esp-nn-p4": "p4"}
"""By the name of the profile: the chips whose scratch depends on the version."""


def _vector_profile(name: str, versions: Sequence[Version], words: str) -> KernelProfile:
    chip = _CHIPS[name]
    return _profile(name, chip, f"{words} on ESP32-{chip.upper()}, from its source, never measured", versions)


def _profile(name: str, chip: Chip, description: str, versions: Sequence[Version] = _CHANGES) -> KernelProfile:
    return KernelProfile(
        name=name,
        description=description,
        requests=partial(requests, chip=chip, versions=versions),
        relations=partial(relations, chip=chip),
        is_portable=False,
        in_wheel=False,
        measured_at=_MEASURED_AT if chip == "generic" else None,
        releases=tuple(versions),
        prices=REFERENCE_PRICES if chip == "generic" else ESP32_S3_PRICES,
        block=4 if chip == "generic" else _VECTOR_BLOCK,
    )


_MEASURED_AT = "esp-nn d45b843c with the wrappers of esp-tflite-micro 99f49e14 over tflite-micro 90b983c2b3f1, x86-64"
_TAKEN = tuple(change for change in _CHANGES if change >= (1, 1, 1) or change == (1, 0, 2))
"""The releases that esp-tflite-micro takes, from 1.1.1 on, by the changes: 1.1.1 does as 1.0.2."""
_ALL = f"esp-nn 1.1.1 to {VERSIONS[-1]}"

ESP_NN = _profile("esp-nn", "generic", f"esp-nn {MEASURED} (d45b843c), generic C: ESP32, ESP32-C3", _TAKEN)
ESP_NN_S3, ESP_NN_P4 = (_vector_profile(name, _TAKEN, _ALL) for name in _CHIPS)
