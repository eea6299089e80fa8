"""Run-time prices of operators: instructions of kernel libraries, in hundredths, measured one operator at a time.

Fitted to 291 single operators of 8 bits: convolutions of 1x1, 3x3, 5x5, 1xN and Nx1 from 1 to 96 channels, depthwise
ones, ADD, SUB, MUL, pooling, MEAN, PAD, SLICE, EXPAND_DIMS, DYNAMIC_UPDATE_SLICE and CONCATENATION. Each ran in
TFLM (tflite-micro 90b983c2b3f1, CMSIS-NN 4ab83cc3, GCC 12.2 -O2) under QEMU 7.2, which counts instructions: Cortex-M3,
M7 and M55, and TFLM's own kernels on the M7. LOGISTIC and TANH: as in a WaveNet, on the M7. Of convolutions and SLICE
the mean error is 1 to 7 %, of pooling up to 30 %: averages and maxima have one price. 73 more depthwise
convolutions of 3x3, 5x5, 7x7 and Nx1 are within 8 %, except that those whose channels are no multiple of 4 are up to
17 % too low without Helium. QUANTIZE and DEQUANTIZE of 12 more are within 14 %.
FULLY_CONNECTED, ADD, MUL, SUB and SOFTMAX of 38 more are within 17 %, but SUB on the M3, which is 24 % too high.
Depthwise ones with a multiplier: 18 more, within 15 %, but 8x1 on an image of one column, 27 % too low without Helium,
and 1x1 of one channel with it, 29 % too high. With a dilation and no multiplier they take 4 to 10 times what is said:
restored from SPACE_TO_BATCH_ND, which TFLM computes wrongly, they are not to be held against a limit.
Instructions are not cycles.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from .by_signature import BySignature


@dataclass(frozen=True)
class ConvolutionPrices:
    """Hundredths of an instruction. ``call``: each run of the operator; ``mac``: each multiply-accumulate.

    ``output``: each output element, which is scaled and clamped. ``tap``: each output element and place of the filter;
    ``place``: each output pixel and place of the filter, for each ``block`` of channels where these run in blocks;
    ``row``: each output pixel and row of the filter. ``patch``: each element under the filter that is copied, for each
    output pixel. ``weight``: each weight, whatever the number of pixels. ``leftover``: each multiply-accumulate, again,
    of the pixels that do not fill a block. ``line``: each output element and row of the filter that meets the input.
    ``skips_padding``: taps of the filter outside of the input cost no multiply-accumulate.
    """

    call: int
    mac: int
    output: int = 0
    tap: int = 0
    place: int = 0
    row: int = 0
    patch: int = 0
    weight: int = 0
    leftover: int = 0
    block: int = 0
    line: int = 0
    skips_padding: bool = False


@dataclass(frozen=True)
class MakingPrices:
    """Instructions of making an interpreter: for itself, each operator, each tensor, and each channel's multiplier."""

    interpreter: int
    operator: int
    tensor: int
    channel: int

    def of(self, operators: int, tensors: int, channels: int) -> int:
        """Instructions for an interpreter with this many operators, tensors and channels."""
        return self.interpreter + self.operator * operators + self.tensor * tensors + self.channel * channels


MOVED = 75
"""Of a byte that firmware moves from where a part leaves it to where the next one takes it, in blocks of 16 bytes.

In hundredths of an instruction; 71 to 76 on Cortex-M3, M7 and M55 in QEMU.
"""
WITH_DOUBLES = MakingPrices(interpreter=1_300, operator=670, tensor=2_110, channel=160)
"""On a core that computes in double precision, in which TFLM makes multipliers of scales: Cortex-M7."""
ON_HELIUM = MakingPrices(interpreter=1_310, operator=30, tensor=2_400, channel=150)
"""On Cortex-M55, which computes in double precision, too."""
WITHOUT_DOUBLES = MakingPrices(interpreter=1_300, operator=670, tensor=2_110, channel=1_050)
"""Cores whose compiler library computes doubles: Cortex-M3, and cores with single precision alone."""


@dataclass(frozen=True)
class Prices:
    """Hundredths of an instruction. ``call``: each run of an operator; ``element``: each output of an elementwise one.

    ``library``: the kernel profile that was measured. ``pool``: of pooling, where each element under the window is a
    multiply-accumulate. ``copied``: each element that SLICE and the like move, and ``run``: each pixel of them;
    ``updated`` and ``updated_run``: the same of DYNAMIC_UPDATE_SLICE. ``padded``: each element that PAD writes;
    ``joined``: each byte that CONCATENATION and the like copy. ``reduced``: each element that MEAN and the like read,
    times its dimensions (TFLM's reduce.h computes an index from all of them). ``product``: each output of MUL.
    ``curved``: each element of LOGISTIC and TANH of integers, and ``softmax``: of SOFTMAX, in fixed-point numbers.
    ``multiplied``: depthwise convolutions with a multiplier of 4, 8 and so on, and ``generic``: with another one, or
    with a dilation as well (CMSIS-NN's arm_depthwise_conv_s8.c). ``one_channel_as_window``: a depthwise convolution of
    one channel into several runs as CONV_2D does (arm_depthwise_conv_wrapper_s8.c). ``columns_as_rows``: an image of
    one column is priced as the row that it will be written as (``rewrite/in_one_row.py``).
    ``quantized``: each element of QUANTIZE from floats, ``rescaled``: from integers; ``dequantized``: of DEQUANTIZE.
    ``is_estimate``: taken from what others published. ``known``: the work of convolutions by signature (``work.py``).
    ``dense``: FULLY_CONNECTED, where a pixel is a row of its input. ``block``: the pixels that a convolution
    computes together. ``one_row_in_place``: an input of one row is read where it is (CMSIS-NN's
    arm_convolve_1_x_n_s8.c). ``depthwise_3x3``: where a library has a kernel for filters of 3x3 and 8 bits
    (arm_depthwise_conv_3x3_s8.c).
    """

    library: str
    pointwise: ConvolutionPrices
    window: ConvolutionPrices
    depthwise: ConvolutionPrices
    multiplied: ConvolutionPrices
    generic: ConvolutionPrices
    pool: ConvolutionPrices
    dense: ConvolutionPrices
    element: int
    product: int
    padded: int
    quantized: int
    dequantized: int
    block: int = 1
    call: int = 65_000
    copied: int = 400
    run: int = 806
    updated: int = 155
    updated_run: int = 5_620
    joined: int = 53
    reduced: int = 3_300
    curved: int = 46_600
    softmax: int = 53_500
    rescaled: int = 5_000
    depthwise_3x3: ConvolutionPrices | None = None
    one_row_in_place: bool = False
    one_channel_as_window: bool = False
    columns_as_rows: bool = False
    is_estimate: bool = False
    known: BySignature[int] = field(default_factory=BySignature, init=False, repr=False, compare=False)
    making: MakingPrices = WITH_DOUBLES

    def from_flash(self, byte: int) -> Prices:
        """Return the prices where each byte of weights takes as much more, in hundredths, whenever it is read."""
        kinds = ("pointwise", "window", "depthwise", "multiplied", "generic", "dense", "depthwise_3x3")
        found = {kind: price for kind in kinds if (price := getattr(self, kind)) is not None}
        return replace(self, **{kind: replace(each, weight=each.weight + byte) for kind, each in found.items()})


_REFERENCE_DEPTHWISE = ConvolutionPrices(call=90_000, mac=1_700, output=12_290, tap=980, line=2_060, skips_padding=True)
_MULTIPLIED = ConvolutionPrices(call=80_000, mac=440, output=5_600)
_GENERIC = ConvolutionPrices(call=80_000, mac=1_390, output=16_700)

REFERENCE_PRICES = Prices(
    library="reference",
    pointwise=ConvolutionPrices(call=61_000, mac=598, output=14_620),
    window=ConvolutionPrices(call=62_000, mac=599, output=12_080, tap=4_090, skips_padding=True),
    depthwise=_REFERENCE_DEPTHWISE,
    multiplied=_REFERENCE_DEPTHWISE,
    generic=_REFERENCE_DEPTHWISE,
    pool=ConvolutionPrices(call=65_000, mac=705, output=6_691, row=5_059),
    dense=ConvolutionPrices(call=65_000, mac=700, output=6_400),
    element=11_230,
    product=5_900,
    padded=3_300,
    quantized=1_800,
    dequantized=1_200,
)
"""TFLM's own kernels; also of floats with any library, and of libraries that were not measured."""

SCALAR_PRICES = Prices(
    library="cmsis-nn",
    pointwise=ConvolutionPrices(call=92_000, mac=247, output=3_770, weight=370, leftover=120),
    window=ConvolutionPrices(call=88_000, mac=248, output=4_660, place=3_620, row=2_710, patch=570, leftover=257),
    depthwise=ConvolutionPrices(call=96_000, mac=1_198, output=10_340, line=2_906, skips_padding=True),
    depthwise_3x3=ConvolutionPrices(call=67_000, mac=500, output=4_370, place=628, skips_padding=True),
    multiplied=_MULTIPLIED,
    generic=_GENERIC,
    pool=ConvolutionPrices(call=80_000, mac=956, output=493, row=6_780),
    dense=ConvolutionPrices(call=80_000, mac=339, output=3_060, row=30_000),
    element=8_400,
    product=3_600,
    padded=74,
    quantized=19_800,
    dequantized=10_900,
    block=2,
    call=80_000,
    making=WITHOUT_DOUBLES,
)
"""CMSIS-NN on cores without SIMD."""

DSP_PRICES = Prices(
    library="cmsis-nn-dsp",
    pointwise=ConvolutionPrices(call=83_000, mac=133, output=4_410, weight=377, leftover=74),
    window=ConvolutionPrices(call=79_000, mac=159, output=5_540, place=3_600, row=4_180, patch=282, leftover=123),
    depthwise=ConvolutionPrices(call=86_000, mac=195, output=4_330, tap=515, place=3_700, skips_padding=True),
    depthwise_3x3=ConvolutionPrices(call=53_000, mac=320, output=4_440, place=650, skips_padding=True),
    multiplied=_MULTIPLIED,
    generic=_GENERIC,
    pool=ConvolutionPrices(call=65_000, mac=702, output=909, row=5_501),
    dense=ConvolutionPrices(call=65_000, mac=188, output=4_970, row=11_000),
    element=8_020,
    product=3_590,
    padded=75,
    quantized=1_800,
    dequantized=1_200,
    block=2,
)
"""CMSIS-NN on cores with the DSP extension."""

MVE_PRICES = Prices(
    library="cmsis-nn-mve",
    pointwise=ConvolutionPrices(call=92_000, mac=14, output=1_590, leftover=36),
    window=ConvolutionPrices(call=110_000, mac=16, output=2_060, place=1_960, row=2_100, leftover=17),
    depthwise=ConvolutionPrices(call=277_000, mac=103, output=670, place=2_630, block=124, line=43),
    multiplied=ConvolutionPrices(call=80_000, mac=410, output=3_260),
    generic=_GENERIC,
    pool=ConvolutionPrices(call=65_000, mac=143, row=7_104),
    dense=ConvolutionPrices(call=80_000, mac=47, output=1_250, row=11_500),
    element=1_380,
    product=680,
    padded=24,
    quantized=1_400,
    dequantized=800,
    block=4,
    copied=301,
    one_row_in_place=True,
    one_channel_as_window=True,
    making=ON_HELIUM,
)
"""CMSIS-NN on cores with Helium."""

_S3_DEPTHWISE = ConvolutionPrices(call=65_000, mac=127, output=3_357)
ESP32_S3_PRICES = replace(
    REFERENCE_PRICES,
    library="esp-nn-s3",
    pointwise=ConvolutionPrices(call=61_000, mac=28, output=3_357),
    window=ConvolutionPrices(call=62_000, mac=510, output=3_357),
    depthwise=_S3_DEPTHWISE,
    multiplied=replace(_S3_DEPTHWISE, mac=189),
    generic=replace(_S3_DEPTHWISE, mac=189),
    pool=ConvolutionPrices(call=65_000, mac=420),
    dense=ConvolutionPrices(call=65_000, mac=133),
    element=4_610,
    product=2_170,
    softmax=4_340,
    is_estimate=True,
)
"""esp-nn on the ESP32-S3, and for want of a finer table on the ESP32-P4: cycles in place of instructions, of the single
kernels that its README lists (d45b843c, 240 MHz, data in external RAM), not run here. Calls and copies as on TFLM's own
kernels.
"""
