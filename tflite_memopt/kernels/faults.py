"""Known faults of kernel libraries: operators that they compute wrongly, or whose kernels write beyond their scratch.

One row is one fault: the library, the releases that have it, the operators that meet it, and its source. Nothing that
this package writes meets a fault of the libraries that it is for (``mend.py`` writes the operator otherwise); an
original that meets one is named. ``evidence`` says how it is known: *run* here (esp-nn's C of each release on the host,
with stand-ins for its assembly), or *read* in the source and in the change that mends it.

Releases of esp-nn are versions. CMSIS-NN and TFLM's own kernels come with TFLM, so that theirs are days of TFLM:
CMSIS-NN's are the days on which TFLM's makefile began to download the mended commit. Rows without an end were not
fixed in what was read: tflite-micro 90b983c2b3f1 (2026-08-20), esp-nn d45b843c (1.2.3).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from functools import partial
from math import frexp
from typing import Literal, TypeVar

import numpy as np

from ..model.ir.model import DType, Model, Operator, Tensor
from ..model.ir.tensors import QUANTIZED, Affine, affine_of, has_several_scales, integers
from ..operators.kind import ARM_LIBRARIES
from ..operators.rows import Axis
from ..operators.window import CONVOLUTIONS, POOLS, KernelWindow, transposed_window_of, window_of
from .cmsis_nn import convolution_path, is_reversed
from .esp_nn import FULL_COPY, Version, s3_depthwise, s3_depthwise_writes, said_of_releases
from .esp_nn import MEASURED as NEWEST
from .profile import READ_AT, KernelProfile

_T = TypeVar("_T")
Effect = Literal["wrong values", "writes beyond its scratch", "leaves bytes unwritten", "forgets its state"]
Evidence = Literal["run", "read"]
Meets = Callable[[Operator, Version], bool]
"""Whether an operator meets a fault in a release of the library."""
FORGETS: Effect = "forgets its state"
"""The effect that makes no single inference wrong: what is lost is kept between two of them."""
ESP_NN, CMSIS_NN, TFLM = "esp-nn", "CMSIS-NN", "TFLM"


@dataclass(frozen=True)
class Fault:
    """``profiles``: the kernel profiles that have it. ``meets``: whether an operator meets it.

    ``first`` to ``fixed``, half-open: releases of esp-nn, where ``meets`` looks at the release as well. ``since`` to
    ``until``, half-open: days of TFLM. None: as far as was read. ``condition`` names the operators in words.
    """

    name: str
    condition: str
    source: str
    meets: Meets
    library: str
    profiles: tuple[str, ...]
    effect: Effect = "wrong values"
    evidence: Evidence = "run"
    first: Version | None = None
    fixed: Version | None = None
    since: date | None = None
    until: date | None = None

    def is_in(self, version: Version) -> bool:
        """Tell whether a release of esp-nn has it; of other libraries always."""
        return (self.first is None or self.first <= version) and (self.fixed is None or version < self.fixed)

    def was_in(self, day: date) -> bool:
        """Tell whether TFLM of a day has it; of esp-nn, which has releases of its own, always."""
        return (self.since is None or self.since <= day) and (self.until is None or day < self.until)

    @property
    def is_wrong(self) -> bool:
        """Whether one inference is wrong."""
        return self.effect != FORGETS

    @property
    def releases(self) -> str:
        """The releases that have it, in words."""
        if self.library == ESP_NN:
            start, end = (None if each is None else ".".join(map(str, each)) for each in (self.first, self.fixed))
            library, newest = self.library, NEWEST
        else:
            start, end = (None if each is None else str(each) for each in (self.since, self.until))
            library, newest = TFLM if self.library == TFLM else f"{self.library} in TFLM", str(READ_AT)
        first = "" if start is None else f" from {start} on"
        return f"{library}{first}, {f'until {newest}, the newest that was read' if end is None else f'fixed in {end}'}"


Form = tuple[object, ...]
"""What a fault may depend on, of an operator. Names are no part of it: a file may give one to all tensors, or none."""


def form_of(operator: Operator) -> Form:
    """Return the kind and options of an operator, and of each tensor the type, shape, and whether zero is not 0.

    Numbers in the file are a part where they are an operand of the operation, as a padding is, not weights or a bias.
    """
    fields = {} if operator.options is None else operator.options.fields
    options = sorted((at, str(each)) for at, each in fields.items())
    return operator.name, tuple(options), tuple(map(_tensor_form, (*operator.inputs, None, *operator.outputs)))


def _tensor_form(tensor: Tensor | None) -> Form | None:
    if tensor is None:
        return None
    operand = None if tensor.quantization is not None else integers(tensor)
    numbers = None if operand is None else tuple(operand.tolist())
    return tensor.dtype, tensor.shape, _has_offset(tensor), tensor.is_constant, numbers


def _has_offset(tensor: Tensor) -> bool:
    return tensor.quantization is not None and bool(tensor.quantization.zero_point.any())


@dataclass(frozen=True)
class FaultMet:
    """An operator that meets a fault, by its kind and its first output as a person knows it, and by its ``form``.

    ``library``: the profile that has it. ``met``: the profile's releases in which this operator meets it.
    """

    operator: str
    output: str
    fault: Fault
    library: str
    met: tuple[Version, ...]
    form: Form = field(repr=False)

    @property
    def releases(self) -> str:
        """The releases in which the operator meets it, in words: of esp-nn those that the profile is for."""
        return said_of_releases(self.met) if self.fault.library == ESP_NN else self.fault.releases

    def __str__(self) -> str:
        return f"{self.operator} '{self.output}': {self.fault.effect} ({self.fault.name}: {self.releases})"


def faults_of(operator: Operator, profile: KernelProfile) -> tuple[FaultMet, ...]:
    """Return the faults that an operator meets in any of the profile's releases, each with the first such library.

    ``profile``: of several libraries, that of all of them.
    """
    libraries = profile.libraries or (profile,)
    if not any(operator.name in _BY_PROFILE.get(library.name, {}) for library in libraries):
        return ()
    signature = _signature(operator)
    met = profile.met.get(signature) if signature is not None else None
    if met is None:
        met = tuple(_met(operator, profile))
        if signature is not None:
            profile.met[signature] = met
    if not met:
        return ()
    form = form_of(operator)
    name = operator.outputs[0].name
    return tuple(FaultMet(operator.name, name, fault, library, releases, form) for fault, library, releases in met)


def _signature(operator: Operator) -> Hashable:
    """Return the same for convolutions of images that meet the same faults; None for another operator."""
    source = operator.operand(0)
    if operator.name not in CONVOLUTIONS or source is None or operator.operand(1) is None:
        return None
    operands = tuple((each.dtype, _has_offset(each)) for each in operator.present_inputs())
    return operator.name, source.shape, _window(operator), operands


def _met(operator: Operator, profile: KernelProfile) -> Iterator[tuple[Fault, str, tuple[Version, ...]]]:
    """Yield each fault that an operator meets, with the first library that has it, and its releases."""
    found = set[str]()
    for library in profile.libraries or (profile,):
        for fault in _BY_PROFILE.get(library.name, {}).get(operator.name, ()):
            releases = (each for each in library.releases if fault.is_in(each) and fault.was_in(profile.tflm))
            met = tuple(each for each in releases if fault.meets(operator, each))
            if met and fault.name not in found:
                found.add(fault.name)
                yield fault, library.name, met


def faults_in(model: Model, profile: KernelProfile) -> tuple[FaultMet, ...]:
    """Return the operators of all graphs that meet a fault with the libraries of a profile, whatever the plan."""
    return tuple(each for operator in model.all_operators for each in faults_of(operator, profile))


def new_faults(model: Model, original: Model, profile: KernelProfile) -> tuple[FaultMet, ...]:
    """Return the faults that operators meet beyond those that operators of the same form meet in the original.

    A fault that the original meets once hides one in the model, and only at an operator of that form: the second is
    new, and so is one at an operator that was changed. Which of several operators of one form is the new one is not
    known, nor whether one stands for another that is gone: they are computed equally wrong.
    """
    known, new = Counter((each.form, each.fault.name) for each in faults_in(original, profile)), list[FaultMet]()
    for each in faults_in(model, profile):
        known[each.form, each.fault.name] -= 1
        if known[each.form, each.fault.name] < 0:
            new.append(each)
    return tuple(new)


def right_releases(model: Model, profile: KernelProfile) -> tuple[Version, ...]:
    """Return the releases of the library, of those that the profile is for, that compute the whole model rightly."""
    wrong = {release for each in faults_in(model, profile) for release in each.met}
    return tuple(release for release in profile.releases if release not in wrong)


def _where(found: Callable[[Operator], _T | None], holds: Callable[[_T], bool]) -> Meets:
    """An operator that has what ``found`` looks for, of which ``holds`` is true."""

    def meets(operator: Operator, _: Version) -> bool:
        thing = found(operator)
        return thing is not None and holds(thing)

    return meets


def _at(slot: int, *types: DType) -> Callable[[Operator], Tensor | None]:
    """The input in a slot, if it is there and of one of the types; without types of any."""

    def found(operator: Operator) -> Tensor | None:
        tensor = operator.operand(slot)
        return tensor if tensor is not None and tensor.dtype in (types or DType) else None

    return found


def _is_of_images(operator: Operator, slot: int) -> bool:
    """Whether a convolution, whose data is in a slot, is of int8 images."""
    tensors = operator.operand(slot), operator.operand(1), operator.outputs[0]
    is_int8 = tensors[0] is not None and tensors[0].dtype is DType.INT8
    return is_int8 and all(each is not None and len(each.shape) == 4 for each in tensors)


def _window(operator: Operator) -> KernelWindow | None:
    """The window of an int8 convolution of images; None for another operator."""
    return window_of(operator) if _is_of_images(operator, 0) else None


# esp-nn ---------------------------------------------------------------------------------------------------------------


def _writes_too_far(operator: Operator, version: Version) -> bool:
    window = _window(operator)
    if window is None or window.is_dilated:  # the wrapper runs TFLM's own loops for these
        return False
    return s3_depthwise_writes(window, version) > s3_depthwise(window, version)


def _pads_rows_by_the_zero_point(operator: Operator, _: Version) -> bool:
    """Rows are converted as they are needed, and what stands for those outside is no zero."""
    window = _window(operator)
    if window is None or window.is_dilated or window.out_depth != window.in_depth or window.in_depth % 8:
        return False
    is_in_rows = 2 * (window.taps * window.in_depth + window.grown()) > FULL_COPY
    has_rows = window.rows.before or window.rows.trailing
    return bool(is_in_rows and not window.is_3x3 and has_rows and _has_offset(operator.required(0)))


def _copied_window(operator: Operator, version: Version) -> KernelWindow | None:
    """The window of a CONV_2D that the S3's general kernel runs, on a padded copy of its input; None of another one."""
    window = _window(operator)
    if window is None or window.is_dilated or window.is_grouped:
        return None
    is_pointwise = window.taps == window.rows.stride == window.columns.stride == 1
    return None if is_pointwise or _is_by_columns(window, version) else window


def _is_by_columns(window: KernelWindow, version: Version) -> bool:
    return version >= (1, 2, 1) and window.columns.taps * window.in_depth < 16 <= window.taps * window.in_depth


def _pads_too_little(operator: Operator, version: Version) -> bool:
    """Both ends are padded by the leading padding; before 1.2.1, without such, nothing is."""
    window = _copied_window(operator, version)
    if window is None or (not window.is_padded and version >= (1, 2, 1)):
        return False
    return any(axis.trailing > axis.before for axis in (window.rows, window.columns))


def _pads_from_the_wrong_row(operator: Operator, version: Version) -> bool:
    """The padded copy begins one row down, however many rows of padding there are."""
    window = _copied_window(operator, version)
    return window is not None and window.rows.before != 1 and window.is_padded


def _reads_beyond_a_small_input(operator: Operator, version: Version) -> bool:
    """Which windows lie inside the input is rounded towards zero where the filter is larger than the input."""
    window = _window(operator)
    if window is None or window.is_dilated or not _is_by_columns(window, version):
        return False
    taken = [(axis, _taken_for_inside(axis)) for axis in (window.rows, window.columns)]
    ends = ((axis, (inside.stop - 1) * axis.stride - axis.before + axis.taps) for axis, inside in taken)
    return all(inside for _, inside in taken) and any(end > axis.size for axis, end in ends)


def _taken_for_inside(axis: Axis) -> range:
    """The windows along an axis that the kernel reads without looking at the ends; division as in C."""
    last = int((axis.size - axis.taps + axis.before) / axis.stride)
    return range(-(-axis.before // axis.stride), min(axis.outputs, last + 1))


# CMSIS-NN and the code of TFLM that calls it --------------------------------------------------------------------------


def _transposed(operator: Operator) -> KernelWindow | None:
    """The window of an int8 TRANSPOSE_CONV of images that CMSIS-NN does not run as a convolution; None for another."""
    window = transposed_window_of(operator) if _is_of_images(operator, 2) else None
    return None if window is None or is_reversed(window) else window


def _asks_as_without_groups(operator: Operator, _: Version) -> bool:
    """The buffer's size is that of a 1x1 or one-row kernel, and the kernel is the one for groups."""
    window = _window(operator)
    if window is None or not window.is_grouped or window.is_dilated:
        return False
    is_pointwise = window.taps == 1 and not window.is_padded
    return is_pointwise or window.rows.size == window.rows.taps == 1


def _has_several_images(tensor: Tensor) -> bool:
    return tensor.shape[:1] > (1,)


def _is_adjoint(operator: Operator, _: Version) -> bool:
    source = operator.operand(0)
    is_integer = source is not None and source.dtype in QUANTIZED
    return is_integer and any(operator.option(side, False) for side in ("adjX", "adjY"))


def _folds_batches(operator: Operator, _: Version) -> bool:
    """Batches of the left matrix are folded into its rows, which is wrong where it is read transposed."""
    left, right = operator.operand(0), operator.operand(1)
    if left is None or right is None or not operator.option("adjX", False):
        return False
    return len(left.shape) == 3 and len(right.shape) == 2


def _pads_batches(operator: Operator, _: Version) -> bool:
    paddings = integers(operator.operand(2))
    return paddings is None or bool(paddings.any())


# TFLM's own kernels ---------------------------------------------------------------------------------------------------


def _has_several_scales(tensor: Tensor) -> bool:
    """The kernel takes the first scale and the first zero point for all elements."""
    return has_several_scales(tensor.quantization)


def _multiplies_by_several_scales(operator: Operator, _: Version) -> bool:
    sides = operator.operand(0), operator.operand(1)
    is_integer = sides[0] is not None and sides[0].dtype in QUANTIZED
    return is_integer and any(side is not None and _has_several_scales(side) for side in sides)


MOST_STEPS: Mapping[DType, int] = {DType.INT8: 2, DType.INT16: 16}
"""The most steps by which a right kernel differs from real numbers. Two of 256: one that it rounds, and one where it
rounds twice (a product before a sum). 16 of 65,536: kernels of 16 bits interpolate curves between 513 values, and
SOFTMAX, the least exact of them, is 7 off. Everything else that was measured is within a step, or 10 or more off."""


def copied_steps(source: Affine, target: Affine, dtype: DType) -> float:
    """Return the most steps by which an integer copied from one scale to the other is off."""
    limits = np.iinfo(dtype.label)
    ends = np.asarray([limits.min, limits.max], np.float64)
    reached = (ends - target.zero_point) * (target.scale / source.scale) + source.zero_point
    copied = np.clip(np.concatenate([ends, reached]), limits.min, limits.max)  # linear but where it is clipped
    right = (copied - source.zero_point) * (source.scale / target.scale) + target.zero_point
    return float(np.abs(np.clip(right, limits.min, limits.max) - copied).max())


def _clamps_without_rescaling(operator: Operator, _: Version) -> bool:
    """The kernel clamps integers between those for 0 and 6 of the input, and writes them as they are."""
    source, target = operator.operand(0), operator.outputs[0]
    if source is None or source.dtype not in MOST_STEPS:
        return False
    one, other = affine_of(source), affine_of(target)
    if one is None or other is None or one == other or 0 in (one.scale, other.scale):
        return False
    return copied_steps(one, other, source.dtype) > MOST_STEPS[source.dtype]


_OF_TANH = Affine(1 / 128, 0)


def _writes_128ths(operator: Operator, _: Version) -> bool:
    output = operator.outputs[0]
    given = affine_of(output)
    if output.dtype is not DType.INT8 or given is None or given == _OF_TANH or not given.scale:
        return False
    return copied_steps(_OF_TANH, given, DType.INT8) > MOST_STEPS[DType.INT8]


def _sums_without_activation(operator: Operator, _: Version) -> bool:
    return operator.outputs[0].dtype is DType.INT32 and operator.option("fusedActivationFunction", 0) != 0


def _shifts_too_far(operator: Operator, _: Version) -> bool:
    """The quotient of the smallest by the largest is shifted right by more than 31 bits, which C++ leaves undefined.

    Source: DivElementwise and MultiplyByQuantizedMultiplierSmallerThanOneExp of kernels/internal/reference/div.h.
    """
    sides = [operator.operand(slot) for slot in (0, 1)]
    tensors = [*(each for each in sides if each is not None), operator.outputs[0]]
    found = [affine_of(each) for each in tensors if each.dtype is DType.INT8]
    known = [each for each in found if each is not None and each.scale]
    if len(known) != 3:
        return False
    top, bottom, result = known
    shift = frexp(top.scale / (bottom.scale * result.scale))[1]
    largest = max(127 - bottom.zero_point, 128 + bottom.zero_point)
    headroom = 31 if top.zero_point > -128 else 30  # leading bits that are the sign's, of -1 or of 1
    return shift - (largest.bit_length() - 1) - headroom < -31


_ESP = ("esp-nn", "esp-nn-s3", "esp-nn-p4")
_EVERYWHERE = ("reference", *ARM_LIBRARIES, *_ESP)
_of_s3 = partial(Fault, library=ESP_NN, profiles=_ESP[1:2])
_of_esp_nn = partial(Fault, library=ESP_NN, profiles=_ESP)
_of_cmsis_nn = partial(Fault, library=CMSIS_NN, profiles=ARM_LIBRARIES)
_of_helium = partial(Fault, library=CMSIS_NN, profiles=ARM_LIBRARIES[2:])
_of_every_library = partial(Fault, library=TFLM, profiles=_EVERYWHERE)
_ISSUES = "github.com/espressif/esp-nn/issues"
_MEASURED = "a lone operator on the tflite-micro wheel of 2026-10-23 and on LiteRT 2.3.0, against real numbers"


def _of_tflm(name: str, condition: str, meets: Meets, litert: str) -> Fault:
    """A fault of TFLM's own kernel that every library has, found by ``scripts/fuzz runtimes``."""
    return _of_every_library(name, condition, f"{_MEASURED}; {litert}", meets)


_WEIGHTS_OFF_ZERO = _of_tflm(
    "weights off zero",
    "int8 or int4 weights with a zero point other than 0: the specification asks for 0, and it is not read",
    _where(_at(1, DType.INT8, DType.INT4), _has_offset),
    "LiteRT does not read it either, or refuses the file",
)

_WIDE: Mapping[DType, DType] = {DType.INT8: DType.INT64}
_WIDE_OR_NARROW: Mapping[DType, DType] = {**_WIDE, DType.INT16: DType.INT32}


def _bias(slot: int, wrong: Mapping[DType, DType]) -> Fault:
    """``wrong``: the type of bias that is read as another one, by that of the output."""

    def meets(operator: Operator, _: Version) -> bool:
        bias = operator.operand(slot)
        return bias is not None and wrong.get(operator.outputs[0].dtype) is bias.dtype

    condition = (
        "int8 with a bias of int64, and in DEPTHWISE_CONV_2D and TRANSPOSE_CONV int16 with one of int32: it is read as "
        "if it were of the other width"
    )
    return _of_tflm("bias of another width", condition, meets, "LiteRT the same, or refuses it")


_ROWS: Mapping[str, Fault | tuple[Fault, ...]] = {
    "ADD": _of_tflm(
        "TFLM's ADD of int32 with an activation",
        "int32 with a fused activation, which is left out",
        _sums_without_activation,
        "LiteRT is right",
    ),
    "DIV": _of_tflm(
        "DIV of small quotients",
        "int8 whose output is coarse: quotients near 0 are shifted by more than 31 bits, which is undefined in C++",
        _shifts_too_far,
        "LiteRT does the same, up to the whole range on x86-64; by reading, cores of Arm are a step off",
    ),
    "FULLY_CONNECTED": _bias(2, _WIDE),
    "TANH": _of_tflm(
        "TFLM's TANH of another scale",
        "int8 whose output has not the scale 1/128 and the zero point 0, which the kernel takes for granted",
        _writes_128ths,
        "LiteRT is right",
    ),
    "DEPTHWISE_CONV_2D": (
        _WEIGHTS_OFF_ZERO,
        _bias(2, _WIDE_OR_NARROW),
        _of_s3(
            "esp-nn 30",
            "int8 whose kernel copies more than its size function counts: 3x3 with channels a multiple of 16 and "
            "leading pads other than (0, 0) and (1, 1); from 1.2.1 on, such 3x3 of over 40 KB with padding at the end "
            "alone; before 1.2.0 multipliers of 4 and 8",
            f"{_ISSUES}/30 for the first, fixed by pull request 37 of 2026-08-26; the second is in a file that has "
            "that pull request, and not in a later one; commit dd785b0 (1.2.0) for the third",
            _writes_too_far,
            effect="writes beyond its scratch",
        ),
        _of_s3(
            "esp-nn rows of padding",
            "int8 with a filter other than 3x3, channels a multiple of 8, over 48 KB in 16 bits, rows of padding and a "
            "zero point other than 0",
            "esp_nn_depthwise_conv_s8_esp32s3.c at d45b843c: a row of padding is filled with the input offset, which "
            "other rows have added; a later file fills it with 0",
            _pads_rows_by_the_zero_point,
            evidence="read",
            first=(1, 2, 1),
        ),
    ),
    "CONV_2D": (
        _WEIGHTS_OFF_ZERO,
        _bias(2, _WIDE),
        _of_s3(
            "esp-nn 31",
            "int8 whose padding at the end is wider than at the start; from 1.2.1 on only with padding at the start, "
            "and lines of the filter of 16 elements or more",
            f"{_ISSUES}/31 of 2026-07-27; commit 27d1f4a (1.2.1) for those without padding at the start",
            _pads_too_little,
        ),
        _of_s3(
            "esp-nn 8",
            "int8 with padding, of which not one row is at the start",
            f"{_ISSUES}/8 of 2023-10-06; commit d3a674a (1.0.2)",
            _pads_from_the_wrong_row,
            effect="writes beyond its scratch",
            fixed=(1, 0, 2),
        ),
        _of_s3(
            "esp-nn small inputs",
            "int8 with a stride, an input smaller than the filter, and lines of the filter below 16 elements",
            "esp_nn_conv_esp32s3.c at 79d59ae2 (1.2.1) and d45b843c: (input - filter + pad) / stride of C rounds to 0",
            _reads_beyond_a_small_input,
            first=(1, 2, 1),
        ),
        _of_esp_nn(
            "esp-nn groups",
            "int8 with groups",
            "commit 9d9c32f (1.2.3): filters are indexed as if they had all input channels",
            _where(_window, lambda window: window.is_grouped),
            effect="writes beyond its scratch",
            evidence="read",
            fixed=(1, 2, 3),
        ),
        # Helium's one-row kernel takes left paddings of different widths for one, and reads beyond windows that leave
        # out columns: of 310 shapes that were run, 129 were wrong, by up to 84 steps, all with padding or columns out.
        _of_helium(
            "CMSIS-NN one row",
            "int8, one row, a filter of 1xN and a stride above 1",
            "arm_convolve_1_x_n_s8.c; 129 of 310 shapes on Cortex-M55 in QEMU",
            _where(_window, lambda window: convolution_path(window) == "1xn" and window.columns.stride > 1),
        ),
        _of_cmsis_nn(
            "CMSIS-NN 200",
            "int8 with groups and a filter of 1x1 or one row",
            "github.com/ARM-software/CMSIS-NN/pull/200 (c01c0a14, 2026-03-06); in TFLM since d0890bb45",
            _asks_as_without_groups,
            effect="writes beyond its scratch",
            evidence="read",
            since=date(2024, 2, 8),
            until=date(2026, 5, 21),
        ),
    ),
    "TRANSPOSE_CONV": (
        _WEIGHTS_OFF_ZERO,
        _bias(3, _WIDE_OR_NARROW),
        _of_cmsis_nn(
            "CMSIS-NN 230",
            "int8 whose padding along the rows is no multiple of the stride, such as 4x4 with stride 2, with 16 input "
            "channels or fewer or a stride above 2",
            "github.com/ARM-software/CMSIS-NN/issues/230 of 2026-07-01, pull request 233 (4a8f5b5d, 2026-07-14)",
            _where(_transposed, lambda window: window.rows.before % window.rows.stride != 0),
            evidence="read",
        ),
        _of_cmsis_nn(
            "CMSIS-NN 243",
            "int8 with a stride along the columns above that along the rows and the width of the filter",
            "github.com/ARM-software/CMSIS-NN/pull/243 of 2026-09-10; read at 99f736a6",
            _where(_transposed, lambda window: window.columns.stride > max(window.columns.taps, window.rows.stride)),
            effect="writes beyond its scratch",
            evidence="read",
        ),
        _of_cmsis_nn(
            "CMSIS-NN images",
            "int8 of several images",
            "other values than TFLM's own kernels, C and DSP at 4ab83cc3",
            _where(_at(2, DType.INT8), _has_several_images),
        ),
    ),
    "TRANSPOSE": _of_cmsis_nn(
        "CMSIS-NN five dimensions",
        "int8 of five dimensions or more",
        "other values than TFLM's own kernels, C and DSP at 4ab83cc3",
        _where(_at(0, DType.INT8), lambda source: len(source.shape) > 4),
    ),
    **dict.fromkeys(
        POOLS,
        _of_cmsis_nn(
            "tflite-micro 3584",
            "int8 of several images",
            "github.com/tensorflow/tflite-micro/pull/3584 (63819227b)",
            _where(_at(0, DType.INT8), _has_several_images),
            effect="leaves bytes unwritten",
            evidence="read",
            until=date(2026, 6, 1),
        ),
    ),
    "BATCH_MATMUL": (
        _of_cmsis_nn(
            "tflite-micro 2740",
            "int8 or int16 with an adjoint side",
            "github.com/tensorflow/tflite-micro/issues/2740, pull request 2741 (924500284)",
            _is_adjoint,
            evidence="read",
            since=date(2024, 9, 9),
            until=date(2024, 11, 6),
        ),
        _of_every_library(
            "tflite-micro 3412",
            "three dimensions by two with the left side adjoint",
            "github.com/tensorflow/tflite-micro/issues/3412, pull request 3413 (c36885e9e)",
            _folds_batches,
            evidence="read",
            until=date(2026, 4, 9),
        ),
        _of_every_library(
            "BATCH_MATMUL of several scales",
            "int8 or int16 with a scale per channel on one side: the first is taken for all; LiteRT does the same",
            f"{_MEASURED}: outputs off by up to the whole range on both, and not by the same",
            _multiplies_by_several_scales,
        ),
    ),
    "DEQUANTIZE": _of_every_library(
        "TFLM's DEQUANTIZE of several scales",
        "with a scale or zero point per channel: the first is taken for all",
        "a lone operator of int8, int16, and uint8 on the tflite-micro wheel of 2026-10-23; LiteRT 2.3.0 is right",
        _where(_at(0), _has_several_scales),
    ),
    "RELU6": _of_every_library(
        "TFLM's RELU6 of another scale",
        "int8 or int16 whose output has another scale or zero point than the input, by which values change by more "
        "than 2 of 256 or 16 of 65,536 steps: integers are copied",
        "a lone operator on the tflite-micro wheel of 2026-10-23; LiteRT 2.3.0 rescales, as TFLM's RELU does",
        _clamps_without_rescaling,
    ),
    "UNIDIRECTIONAL_SEQUENCE_LSTM": _of_cmsis_nn(
        "tflite-micro 3564",
        "int8 or int16: each call begins with a state of zero, where TFLM's own kernel goes on with the last one",
        "github.com/tensorflow/tflite-micro/pull/3564 of 2026-05-21, not merged; cmsis_nn/"
        "unidirectional_sequence_lstm.cc at 90b983c2b3f1",
        _where(_at(0, *QUANTIZED), lambda _: True),
        effect=FORGETS,
        evidence="read",
    ),
    "SPACE_TO_BATCH_ND": _of_every_library(
        "TFLM's padding of batches",
        "with padding: the output's padding has the bytes that were in the arena before",
        "a lone operator on the tflite-micro wheel of 2026-10-23, with three fills of the arena",
        _pads_batches,
        effect="leaves bytes unwritten",
    ),
}
FAULTS: Mapping[str, tuple[Fault, ...]] = {
    kind: rows if isinstance(rows, tuple) else (rows,) for kind, rows in _ROWS.items()
}
"""By operator kind."""

_BY_PROFILE: Mapping[str, Mapping[str, tuple[Fault, ...]]] = {
    name: {kind: kept for kind, rows in FAULTS.items() if (kept := tuple(row for row in rows if name in row.profiles))}
    for name in _EVERYWHERE
}
