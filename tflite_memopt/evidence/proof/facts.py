"""The facts about kernels that a proof leans on, beyond that a kernel is a function of what an element depends on.

Each has a name, by which a proof says that it has used it, and a test on real kernels in tests/proof/test_facts.py.
"""

from __future__ import annotations

from collections.abc import Mapping

WINDOW = "window"
SUM_OF_INTEGERS = "sum of integers"
ZERO_TAP = "zero tap"
WINDOW_OF_ONE = "window of one"
EQUAL_SCALES = "equal scales"
SAME_QUANTIZATION = "same quantization"
DENSE_PIXEL = "dense pixel"
NEVER_MINUS_ZERO = "never minus zero"
EITHER_WAY_ROUND = "either way round"
SAME_EITHER_WAY = "same either way"
UNORDERED = "unordered"
INTEGER_ARITHMETIC = "integer arithmetic"
WIDER_FLOAT = "wider float"
ROUNDED_ONCE = "rounded once"
CLAMPED_AFTER = "clamped after"
RESCALED = "rescaled"
TABLE = "table"
CHOSEN = "chosen"

FACTS: Mapping[str, str] = {
    WINDOW: "a convolution, pool or dense layer computes an output element from its window, its channel's weights, "
    "bias and scale, and the parameters alone",
    SUM_OF_INTEGERS: "integers are added exactly, in any order: an accumulator is the sum modulo a power of two",
    ZERO_TAP: "a weight of zero, and a pixel of the zero point or of a window's padding, add nothing to a sum; "
    "of floats where the other factor is finite, which is checked of weights and assumed of data",
    WINDOW_OF_ONE: "a pool over one element, with no activation and one quantization, gives it back; a float average "
    "only where it is not -0",
    EQUAL_SCALES: "a convolution treats one scale for all channels as that scale for each",
    SAME_QUANTIZATION: "CAST, and QUANTIZE of integers, between equal types and quantizations changes nothing",
    DENSE_PIXEL: "CONV_2D of 1x1 and FULLY_CONNECTED add the same float products in the same order, and then the bias",
    NEVER_MINUS_ZERO: "a sum of float products starts from +0 and is never -0, so that adding +0 changes no bit of it",
    EITHER_WAY_ROUND: "MUL of two floats gives the same either way round; as real numbers, 0 where one of them is 0",
    SAME_EITHER_WAY: "SELECT and IF of two equal values give this value",
    INTEGER_ARITHMETIC: "ADD, SUB and MUL of integers of 32 bits that are not quantized are exact modulo a power of "
    "two, and a condition is cast to 0 or 1",
    WIDER_FLOAT: "DEQUANTIZE of float16 gives the same number in float32",
    ROUNDED_ONCE: "DEQUANTIZE of integers gives scale * (q - zero point) of each channel, rounded once to float32",
    CLAMPED_AFTER: "RELU6 of integers with another scale or zero point on the output is RELU with these, and then "
    "RELU6 with those of the output on both sides, which changes nothing where 6 is the largest integer or beyond",
    RESCALED: "int8 sums and averages are rescaled to within two steps of the real number, 0 to the zero point, and "
    "clamped by the activation, so that some channels are the zero point for all inputs: by the proof's derivation "
    "(ranges.py) and by that of rewrites (model/analysis/ranges.py)",
    TABLE: "DEQUANTIZE, QUANTIZE to no more than twice the scale, RELU, RELU6 and RELU_N1_TO_1 of floats, RELU and "
    "RELU6 of integers of one scale, and MAXIMUM and MINIMUM of integers and one integer make of each stored integer "
    "what rounding to the next one gives, where no quotient is within 2**-13 (of 16 bits, 2**-5) of halfway",
    CHOSEN: "REDUCE_MAX and REDUCE_MIN of one scale give one of the stored integers; and of numbers that do not "
    "decrease with these the number of it",
    UNORDERED: "a maximum or minimum of integers does not depend on the order of what it is taken of",
}
"""Why each holds, by name."""
