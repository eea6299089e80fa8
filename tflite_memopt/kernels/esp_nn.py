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
from ..solvers.graph.alignment import aligned
from .prices import ESP32_S3_PRICES, REFERENCE_PRICES
from .profile import KernelProfile
from .relations import KernelReuse, ReuseRule, reference_relations
from .requests import IN0, OUT0, Abi, Requests, Size, needed, requests_of
from .window import KernelWindow, window_of

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
    if w.taps_high == w.taps_wide == w.stride_high == w.stride_wide == 1 and not (w.pad_high or w.pad_wide):
        depth = aligned(w.in_depth, 8)
        padded = w.in_width * w.in_height * depth if w.in_depth % 8 else 0
        turned = 16 * depth if w.in_width * w.in_height >= 8 else 0
        return padded + depth * w.out_depth + turned + margin
    line, window = w.taps_wide * w.in_depth, w.taps_wide * w.taps_high * w.in_depth
    has_columns = version >= (1, 2, 1)
    if has_columns and line < 16 <= window:
        return w.out_depth * 4 + 16 + w.out_depth * aligned(window, 16) + 16 + aligned(window, 16) + margin
    padded = 0
    if w.pad_high or w.pad_wide:
        padded = (w.in_width + 2 * w.pad_wide) * (w.in_height + 2 * w.pad_high) * w.in_depth
    filters = w.taps_wide * w.taps_high * aligned(w.in_depth, 16) * w.out_depth
    if not has_columns:
        return padded + filters + margin + 4 * w.out_depth
    lines = aligned(line, 16) * w.taps_high * w.out_depth
    right, below = max(0, w.missing_wide), max(0, w.missing_high)
    border = (w.in_width + right) * (w.in_height + below) * w.in_depth if right or below else 0
    return padded + filters + lines + border + margin + 4 * w.out_depth


def s3_depthwise(w: KernelWindow, version: Version) -> int:
    """``esp_nn_get_depthwise_conv_scratch_size_esp32s3``."""
    multiplier, filters = w.out_depth // w.in_depth, w.taps_wide * w.taps_high * w.out_depth
    copied = w.in_width * w.in_height * w.in_depth
    if version < (1, 2, 1):
        return _s3_depthwise_before_strips(w, 32 if version >= (1, 2) else 16)
    if multiplier == 1 and w.in_depth % 8 == 0:
        if w.taps_wide == w.taps_high == 3:
            return _depthwise_3x3(w, filters, copied)
        if 2 * (filters + copied) <= FULL_COPY:
            return 2 * (filters + copied) + 32
        return 2 * filters + 2 * w.in_width * w.taps_high * w.in_depth + 32
    if multiplier == 1 and w.in_depth > 3:
        depth = aligned(w.in_depth, 8)
        end = aligned(2 * w.taps_wide * w.taps_high * depth, 16)
        end = aligned(end + 2 * w.in_width * w.in_height * depth, 16)
        end = aligned(end + w.out_width * w.out_height * depth, 16)
        return end + 12 * depth + 16
    return 2 * (filters + copied) + 32 if multiplier % 4 == 0 else 32


def _s3_depthwise_before_strips(w: KernelWindow, margin: int) -> int:
    multiplier, filters = w.out_depth // w.in_depth, w.taps_wide * w.taps_high * w.out_depth
    if multiplier == 1 and w.in_depth % 16 == 0 and w.taps_wide == w.taps_high == 3:
        wide, high = _border_3x3(w)
        padded = (w.in_width + wide) * (w.in_height + high) * w.in_depth if wide or high else 0
        return filters + padded + 16
    is_3x3 = multiplier == 1 and w.in_depth % 8 == 0 and w.taps_wide == w.taps_high == 3
    if is_3x3 or multiplier % 4 == 0:
        return 2 * (filters + w.in_width * w.in_height * w.in_depth) + margin
    return 32


def _border_3x3(w: KernelWindow) -> tuple[int, int]:
    """Return the columns and rows that are added to the input where its depth is a multiple of 16."""
    return (2 * w.pad_wide, 2 * w.pad_high) if w.pad_wide or w.pad_high else (w.missing_wide, w.missing_high)


def _depthwise_3x3(w: KernelWindow, filters: int, copied: int) -> int:
    if w.in_depth % 16 == 0:
        wide, high = _border_3x3(w)
        if not (wide or high):
            return filters + 16
        full = (w.in_width + wide) * (w.in_height + high) * w.in_depth
        return filters + 16 + (full if full <= _FULL_INPUT else (w.in_width + wide) * w.taps_high * w.in_depth)
    if w.in_depth >= 12:
        depth = aligned(w.in_depth, 16)
        wide, high = 2 * w.pad_wide + max(0, w.missing_wide), 2 * w.pad_high + max(0, w.missing_high)
        padded = (w.in_width + wide) * (w.in_height + high) * depth
        return 9 * depth + padded + w.out_width * w.out_height * depth + 64
    return 2 * (filters + copied) + 32


def s3_depthwise_writes(window: KernelWindow, version: Version) -> int:
    """Bytes of scratch that ``esp_nn_depthwise_conv_s8_esp32s3`` writes, up to the last one; at least these.

    What it asks for is ``s3_depthwise``.
    """
    multiplier, taps = window.out_depth // window.in_depth, window.taps
    filters, copied = taps * window.out_depth, window.in_height * window.in_width * window.in_depth
    gap = 16 - filters % 16
    as_16_bits = 2 * (filters + gap + copied)
    is_3x3 = multiplier == 1 and window.taps_high == window.taps_wide == 3 and window.in_depth % 8 == 0
    pads = window.pad_high, window.pad_wide
    if is_3x3 and window.in_depth % 16 == 0 and pads in ((0, 0), (1, 1)):
        more = (2, 2) if pads == (1, 1) else (window.missing_high, window.missing_wide)
        if not any(more):
            return filters
        whole = (window.in_height + more[0]) * (window.in_width + more[1]) * window.in_depth
        in_rows = version >= (1, 2, 1) and whole > _FULL_INPUT and pads == (1, 1)
        return filters + gap + (3 * (window.in_width + 2) * window.in_depth if in_rows else whole)
    if version >= (1, 2, 1) and is_3x3 and window.in_depth >= 12:
        return _padded_to_16(window)
    if version >= (1, 2, 1) and multiplier == 1 and window.in_depth % 8 and window.in_depth > 3:
        return s3_depthwise(window, version) - 16
    if version >= (1, 2, 1) and multiplier == 1 and window.in_depth % 8 == 0 and not is_3x3:
        if 2 * (filters + copied) > FULL_COPY:
            return 2 * (filters + gap + window.in_width * window.taps_high * window.in_depth)
        return as_16_bits
    return as_16_bits if is_3x3 or multiplier % 4 == 0 else 0


def _padded_to_16(window: KernelWindow) -> int:
    """Filters, padded input and output with channels that are a multiple of 16, each in a copy."""
    depth = -(-window.in_depth // 16) * 16
    high, wide = window.in_height + 2 * window.pad_high, window.in_width + 2 * window.pad_wide
    high += max(0, window.out_height * window.stride_high + 2 - high)
    wide += max(0, window.out_width * window.stride_wide + 2 - wide)
    return 9 * depth + 16 + high * wide * depth + window.out_height * window.out_width * depth


_ALIGNMENT_ROOM = 32
_CACHE = 32_768
"""``L1D_BUDGET``."""
_LANES = 16


def p4_convolution(w: KernelWindow, version: Version) -> int:
    """``esp_nn_get_conv_scratch_size_esp32p4``: before 1.2.3, that of the S3's first version."""
    if version < (1, 2, 3):
        return s3_convolution(w, _CHANGES[0])
    padded = bool(w.pad_high or w.pad_wide)
    if w.taps == 1 and w.stride_high == w.stride_wide == 1 and not padded:
        return _pointwise(w)
    sums = 4 * w.out_depth + _ALIGNMENT_ROOM
    if not padded and w.taps_wide * w.in_depth >= _LANES:
        return sums + w.taps * aligned(w.in_depth, 16) * w.out_depth
    if w.taps * w.in_depth >= _LANES:
        return sums + w.taps * w.in_depth
    if not padded:
        depth = _padded_depth(w)
        return sums + w.taps * depth * w.out_depth + w.in_width * w.in_height * depth
    return sums + _padded_input(w)


def _pointwise(w: KernelWindow) -> int:
    if w.in_depth < _LANES:
        return 4 * w.out_depth + 16 * w.out_depth + 32 + _ALIGNMENT_ROOM
    depth, pixels = aligned(w.in_depth, 8), w.in_width * w.in_height
    copied = pixels * depth if w.in_depth % 8 else 0
    turned = 16 * depth if pixels >= 8 else 0
    return copied + depth * w.out_depth + turned + _ALIGNMENT_ROOM


def _padded_input(w: KernelWindow) -> int:
    """Return a copy of the padded input and the filter; in tiles where the copy is larger than the cache."""
    wide = w.in_width + 2 * w.pad_wide
    whole = wide * (w.in_height + 2 * w.pad_high) * w.in_depth
    if whole + 4 * w.out_depth <= _CACHE:
        return whole + w.taps * aligned(w.in_depth, 16) * w.out_depth
    # The window has fewer than 16 elements here, so that a row of it has, too.
    depth = _padded_depth(w)
    filters = w.taps * depth * w.out_depth
    row = wide * depth
    budget = _CACHE - 4 * w.out_depth - filters
    tall = 1
    if budget > 0 and w.taps_high * row <= budget:
        tall = min((budget - w.taps_high * row) // (w.stride_high * row) + 1, w.out_height)
    return ((tall - 1) * w.stride_high + w.taps_high + 2 * w.pad_high) * row + filters


def _padded_depth(w: KernelWindow) -> int:
    return aligned((_LANES + w.taps_wide - 1) // w.taps_wide, 16)


Chip = Literal["generic", "s3", "p4"]
"""The code that esp-nn has for each kind of chip."""

# NodeData of each wrapper; sizeof as compiled by GCC 12.2 for 32-bit Arm with enums of 4 bytes, and for x86-64.
_NODE_DATA: Mapping[str, Size] = {
    "CONV_2D": Size(60, 80),
    "DEPTHWISE_CONV_2D": Size(60, 80),
    "SOFTMAX": Size(64, 88),
}
_INT32 = 4


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
    return _INT32 * (shape[1] if len(shape) > 1 else needed(operator, IN0).elements)


def _window(operator: Operator, chip: Chip, versions: Sequence[Version]) -> int:
    window = window_of(operator)
    if chip == "generic" or (chip == "p4" and operator.name == "DEPTHWISE_CONV_2D"):
        return 0
    convolution = p4_convolution if chip == "p4" else s3_convolution
    size = convolution if operator.name == "CONV_2D" else s3_depthwise
    return max(size(window, version) for version in versions)


REPLACED = frozenset(
    {
        "ADD",
        "AVERAGE_POOL_2D",
        "CONV_2D",
        "DEPTHWISE_CONV_2D",
        "FULLY_CONNECTED",
        "MAX_POOL_2D",
        "MUL",
        "SOFTMAX",
    }
)
"""Operators that have a file in kernels/esp_nn."""
_REPLACED_ELSEWHERE = frozenset({"HARD_SWISH", "LOGISTIC", "MEAN", "RELU6"})
"""Operators for which esp-nn has a kernel that other versions of the wrappers call."""
_WINDOWS = frozenset({"AVERAGE_POOL_2D", "CONV_2D", "DEPTHWISE_CONV_2D", "MAX_POOL_2D"})


def relations(operator: Operator, chip: Chip) -> tuple[KernelReuse, ...]:
    """Return the reference rules, but none for unprobed kernels: vector code, dense layers, groups, int4, batches."""
    if chip != "generic" and operator.name in REPLACED | _REPLACED_ELSEWHERE:
        return ()
    if operator.name == "FULLY_CONNECTED" or (operator.name in _WINDOWS and not _was_probed(operator)):
        return ()
    return reference_relations(operator)


def _was_probed(operator: Operator) -> bool:
    source = operator.inputs[0]
    if source is None or len(source.shape) != 4:
        return False
    if source.dtype is not DType.INT8:
        return True
    if operator.name not in ("CONV_2D", "DEPTHWISE_CONV_2D"):
        return source.shape[0] == 1
    filters = operator.inputs[1]
    if filters is None or filters.dtype is not DType.INT8 or len(filters.shape) != 4:
        return False
    grouped = operator.name == "CONV_2D" and filters.shape[3] != source.shape[3]
    return source.shape[0] == 1 and not grouped


def rule_for(chip: Chip) -> ReuseRule:
    """Return the rule of one kind of chip."""
    return partial(relations, chip=chip)


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
        relations=rule_for(chip),
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
