"""The work of operators: an estimate of the instructions that they execute, from shapes and a library's prices.

It is there to compare a model with itself in stripes: copies, calls, padding and narrow rows cost what no
multiply-accumulate shows. All figures are integers, in hundredths of an instruction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

from ..kernels.cmsis_nn import convolution_path, depthwise_path
from ..kernels.mend import kept_forms, mend
from ..kernels.prices import MOVED, REFERENCE_PRICES, ConvolutionPrices, Prices
from ..kernels.profile import KernelProfile
from ..model.analysis.loops import Loop, loops_of
from ..model.ir.check import misfit, reachable
from ..model.ir.copying import copy_model
from ..model.ir.model import DType, Model, Operator, Tensor
from ..model.ir.tensors import FLOATS
from ..operators.kind import Price
from ..operators.table import kind_of, operator_macs
from ..operators.window import CONVOLUTION, DEPTHWISE, KernelWindow, window_of


def instructions(model: Model, profile: KernelProfile) -> dict[str, int]:
    """The estimate of one invocation, by the kernel library, for each of the profile's libraries that was measured.

    The reference kernels stand for a library that was not.
    """
    loops = loops_of(model)
    return {prices.library: model_work(model, prices, loops) // 100 for prices in profile.all_prices}


def instructions_to_compare(model: Model, profile: KernelProfile) -> dict[str, int]:
    """Return the instructions that a limit on added run time counts from, by kernel library.

    Where a library of the profile computes the model wrongly, they are at least those of the form that is right.
    """
    own, mended = instructions(model, profile), mend(copy_model(model), profile, kept_forms(model, profile))
    if not mended.uses:
        return own
    return {name: max(own[name], each) for name, each in instructions(mended.model, profile).items()}


def weights_read(model: Model) -> int:
    """Bytes of constants that the operators of one invocation read, as often as they run: stripes read theirs again."""
    times = _times(model, loops_of(model))
    return sum(
        times.get(id(graph), 1) * sum(tensor.nbytes for each in graph.operators for tensor in _weights(each))
        for graph in model.graphs
    )


def _weights(operator: Operator) -> list[Tensor]:
    slots = () if kind_of(operator).channel_axis is None else operator.inputs[1:2]
    return [tensor for tensor in slots if tensor is not None and tensor.is_constant]


def construction(model: Model, profile: KernelProfile) -> dict[str, int]:
    """Return the estimate of making an interpreter for the model and allocating its tensors, by the kernel library."""
    operators = model.all_operators
    filters = [operator.operand(1) for operator in operators if kind_of(operator).channel_axis is not None]
    scales = [each.quantization.scale.size for each in filters if each is not None and each.quantization is not None]
    parts = len(operators), len(model.all_tensors), sum(scales)
    return {prices.library: prices.making.of(*parts) for prices in profile.all_prices}


def moving(nbytes: int) -> int:
    """Return the estimated instructions to move ``nbytes`` bytes between two parts of a program, for any library."""
    return MOVED * nbytes // 100


def slowdowns(before: Mapping[str, int], after: Mapping[str, int]) -> dict[str, float]:
    """Compute the added instructions, as a fraction, by the library; the slowest first. Both as ``instructions``."""
    found = {name: after[name] / before[name] - 1 if before[name] else 0.0 for name in after}
    return dict(sorted(found.items(), key=lambda each: -each[1]))


def slowest(before: Mapping[str, int], after: Mapping[str, int]) -> float:
    """Compute the added instructions, as a fraction, with the library that gets slowest."""
    return max(slowdowns(before, after).values(), default=0.0)


@dataclass(frozen=True)
class WorkLimit:
    """The run time that may be added to a model: ``extra``, as a fraction of its ``instructions`` with any library."""

    before: Mapping[str, int]
    extra: float
    profile: KernelProfile

    def is_kept_by(self, model: Model) -> bool:
        """Tell whether no library gets slower by more than that with this model instead."""
        return self.allows(instructions(model, self.profile))

    def allows(self, work: Mapping[str, int]) -> bool:
        """Tell the same of a model's ``instructions``."""
        return slowest(self.before, work) <= self.extra

    def left_for(self, model: Model) -> float:
        """Return the run time that may still be added to a model, as a fraction of its own, from 0 to 1."""
        now = instructions(model, self.profile)
        return max(0.0, min(1.0, *(self.before[name] * (1 + self.extra) / max(1, now[name]) - 1 for name in now)))


def model_work(model: Model, prices: Prices, loops: Sequence[Loop] | None = None) -> int:
    """Of one invocation; a loop's body counts as often as it runs, as in ``model_macs``."""
    times = _times(model, loops_of(model) if loops is None else loops)
    total = sum(times.values()) * prices.call
    for graph in model.graphs:
        total += times.get(id(graph), 1) * sum(operator_work(operator, prices) for operator in graph.operators)
    return total


def _times(model: Model, loops: Sequence[Loop]) -> dict[int, int]:
    """How often the graphs of loops run, and those that nothing calls, by identity."""
    times: dict[int, int] = {}
    for loop in loops:
        if loop.iterations is not None:
            times |= {id(loop.body): loop.iterations, id(loop.condition): loop.iterations + 1}
    called = reachable(model, 0)
    return times | {id(graph): 0 for at, graph in enumerate(model.graphs) if at not in called}


def prices_of(tensor: Tensor, prices: Prices) -> Prices:
    """Return the prices of an operator that writes the tensor: no library has kernels of its own for floats."""
    return REFERENCE_PRICES if tensor.dtype in FLOATS else prices


def _prices_for(operator: Operator, prices: Prices) -> Prices:
    return prices_of(operator.outputs[0], prices) if operator.outputs else prices


def operator_work(operator: Operator, prices: Prices) -> int:
    """Return the work of one run."""
    price = kind_of(operator).price
    if price == "converted":
        return prices.call + _conversion(operator, prices)
    prices = _prices_for(operator, prices)
    if price == "window":
        return _convolution(operator, prices)
    if price == "pooled":
        return _pooling(operator, prices)
    if price == "dense" and [len(each.shape) for each in operator.outputs] == [2]:  # else as 1x1
        return _dense(operator, prices.dense)
    return prices.call + _plain(operator, price, prices)


def _plain(operator: Operator, price: Price, prices: Prices) -> int:
    """Without the call."""
    outputs, first = sum(tensor.elements for tensor in operator.outputs), next(iter(operator.inputs), None)
    if price == "free":
        return 0
    if price == "moved":
        return sum(copied_work(tensor.shape, prices) for tensor in operator.outputs)
    if price == "updated" and operator.inputs[1] is not None:
        part = operator.inputs[1]
        return prices.updated * part.elements + prices.updated_run * prod(part.shape[:-1])
    is_whole = price == "chosen" and first is not None and first.elements == 1  # one value chooses between two tensors
    if price == "joined" or is_whole:
        return prices.joined * sum(tensor.nbytes for tensor in operator.outputs)
    if price == "reduced" and first is not None:
        return _reduction(operator, first, prices)
    macs = operator_macs(operator)
    if macs:
        return prices.pointwise.mac * macs + prices.pointwise.output * outputs
    is_float = not operator.outputs or operator.outputs[0].dtype in FLOATS
    # No library has kernels of its own for operands of several shapes.
    is_of_one_shape = len({tensor.shape for tensor in operator.present_inputs()}) == 1
    own = prices if is_of_one_shape and price != "plain element" else REFERENCE_PRICES
    each = {"padded": prices.padded, "copied": prices.copied, "product": own.product}
    of_integers = {"curve": prices.curved, "softmax": prices.softmax}
    return (each if is_float else each | of_integers).get(price, own.element) * outputs


def _conversion(operator: Operator, prices: Prices) -> int:
    """Without the call. The cost to or from floats depends on the core: no library has kernels for it."""
    price = prices.dequantized
    if operator.name == "QUANTIZE":
        is_of_floats = any(tensor.dtype in FLOATS for tensor in operator.present_inputs())
        price = prices.quantized if is_of_floats else prices.rescaled
    return price * sum(tensor.elements for tensor in operator.outputs)


def _dense(operator: Operator, price: ConvolutionPrices) -> int:
    output = operator.outputs[0]
    rows = prod(output.shape[:-1])
    filters = operator.operand(1)
    read = 0 if filters is None else price.weight * filters.elements
    return price.call + price.mac * operator_macs(operator) + price.output * output.elements + price.row * rows + read


def _reduction(operator: Operator, source: Tensor, prices: Prices) -> int:
    """Without the call. Only means of floats over an image have a loop of their own in TFLM's reduce.h."""
    output = operator.outputs[0]
    if operator.name == "MEAN" and output.dtype in FLOATS and output.shape[1:-1] == (1, 1):
        return prices.pool.mac * source.elements
    return prices.reduced * source.elements * len(source.shape)


def _pooling(operator: Operator, prices: Prices) -> int:
    rows, columns = (int(operator.option(side, 1)) for side in ("filterHeight", "filterWidth"))
    outputs, price = operator.outputs[0].elements, prices.pool
    if not operator.outputs[0].shape:
        raise misfit(operator)
    if prices.columns_as_rows and columns == 1 and operator.outputs[0].shape[2:3] == (1,):
        rows, columns = columns, rows
    pixels = outputs // max(1, operator.outputs[0].shape[-1])
    each = price.mac * outputs * rows * columns + price.output * outputs + price.row * pixels * rows
    return price.call + each


def copied_work(shape: tuple[int, ...], prices: Prices) -> int:
    """Of moving a tensor of that shape, without the call."""
    return prices.copied * prod(shape) + prices.run * prod(shape[:-1])


def _convolution(operator: Operator, prices: Prices) -> int:
    source, filters = operator.inputs[:2]
    output = operator.outputs[0]
    if source is None or filters is None or {len(tensor.shape) for tensor in (source, filters, output)} != {4}:
        raise misfit(operator)
    if any(int(operator.option(f"stride{letter}", 1)) < 1 for letter in "HW"):
        raise misfit(operator)
    window = _priced_window(operator, prices)
    signature = operator.name, window, filters.shape, output.shape, output.dtype
    work = prices.known.get(signature)
    if work is None:
        work = prices.known[signature] = _window_work(operator, window, filters, prices)
    return work


def _window_work(operator: Operator, window: KernelWindow, filters: Tensor, prices: Prices) -> int:
    output, macs = operator.outputs[0], operator_macs(operator)
    price = _convolution_price(operator, window, prices)
    pixels = output.elements // max(1, output.shape[3])
    each = price.output * output.elements + price.tap * output.elements * window.taps
    if not (prices.one_row_in_place and operator.name == CONVOLUTION and convolution_path(window) == "1xn"):
        blocks = -(-output.shape[3] // price.block) if price.block else 1
        each += (price.place * blocks * window.taps + price.row * window.rows.taps) * pixels
    each += price.patch * pixels * window.taps * filters.shape[3]
    inside = macs
    if price.line or price.skips_padding:
        each += price.line * output.elements * window.rows.taps_inside() // max(1, window.rows.outputs)
        if price.skips_padding:
            inside = macs * window.taps_inside // max(1, window.rows.outputs * window.columns.outputs * window.taps)
    each += price.mac * inside
    each += price.leftover * (macs // max(1, pixels)) * (pixels % prices.block)
    return each + _convolution_call(price, filters)


def _priced_window(operator: Operator, prices: Prices) -> KernelWindow:
    """Return the window; of images of one column, with ``columns_as_rows``, the one that they have as a row."""
    window = window_of(operator)
    is_column = window.columns.size == window.columns.outputs == window.columns.taps == 1
    return window.transposed if is_column and prices.columns_as_rows else window


def _filters(operator: Operator) -> Tensor | None:
    return operator.inputs[1] if kind_of(operator).price == "window" else None


def skips_padding(operator: Operator, prices: Prices) -> bool:
    """Tell whether a kernel for windows takes less time where it sees padding."""
    filters = _filters(operator)
    if filters is None:
        return False
    return _convolution_price(operator, window_of(operator), _prices_for(operator, prices)).skips_padding


def call_work(operator: Operator, prices: Prices) -> int:
    """Return the part of ``operator_work`` that a run of any number of rows takes."""
    prices, filters = _prices_for(operator, prices), _filters(operator)
    if filters is None:
        return prices.call
    return _convolution_call(_convolution_price(operator, _priced_window(operator, prices), prices), filters)


def _convolution_price(operator: Operator, window: KernelWindow, prices: Prices) -> ConvolutionPrices:
    if operator.name == DEPTHWISE:
        return _depthwise_price(operator, window, prices)
    return prices.window if window.taps > 1 else prices.pointwise


def _depthwise_price(operator: Operator, window: KernelWindow, prices: Prices) -> ConvolutionPrices:
    depth, outputs = window.in_depth, window.taps_depth
    if depth == outputs:
        special = prices.depthwise_3x3
        if special is None or operator.outputs[0].dtype is not DType.INT8:
            return prices.depthwise
        return special if depthwise_path(window, "dsp") == "3x3" else prices.depthwise
    if depth == 1 and prices.one_channel_as_window:
        return prices.window
    return prices.generic if window.is_dilated or outputs % (4 * depth) else prices.multiplied


def _convolution_call(price: ConvolutionPrices, filters: Tensor) -> int:
    return price.call + price.weight * filters.elements
