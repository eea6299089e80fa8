"""The chain of layers at the beginning of a model, as integers."""

from __future__ import annotations

from ...errors import ErrorKind, UnsupportedModelError
from ...model.ir.model import Graph, Operator, Tensor
from ...operators.rows import Axis
from ...operators.table import operator_macs, row_map_of
from ...operators.window import CONVOLUTIONS, POOLS
from .fusion import Layer, LayerWindow

_LAYERS = (*CONVOLUTIONS, *POOLS)


def chain_of(graph: Graph) -> tuple[Layer, ...]:
    """Convolutions and pools from the graph's input on, each reading what the one before wrote.

    A QUANTIZE in front and residual additions are passed over, as in the paper; a PAD becomes padding of the layer
    after it. The first operator of another kind ends the chain. Raises UnsupportedModelError where it has no layer.
    """
    layers: list[Layer] = []
    at = graph.inputs[0] if len(graph.inputs) == 1 else None
    passed, unpadded = {at}, at
    for operator in graph.operators:
        read = [tensor for tensor in operator.inputs if tensor is not None and not tensor.is_constant]
        if at is None or at not in read:
            break
        if operator.name in _LAYERS and len(read) == 1 and unpadded is not None:
            layer = _layer(operator, unpadded)
            if layer is None:
                break
            layers.append(layer)
            unpadded = operator.outputs[0]
        elif (operator.name == "ADD" and passed.issuperset(read)) or (operator.name == "QUANTIZE" and not layers):
            unpadded = operator.outputs[0]
        elif operator.name not in ("PAD", "PADV2") or isinstance(row_map_of(operator), str):
            break
        at = operator.outputs[0]
        passed.add(at)
    if not layers:
        raise UnsupportedModelError(
            "msf-CNN fuses convolutions and pools from the model's one input on, "
            "and this model begins with none of them; omit --with msf-cnn",
            ErrorKind.FORM,
        )
    return tuple(layers)


def _layer(operator: Operator, source: Tensor) -> Layer | None:
    """Return the layer from the tensor before its PAD; None where its shape is none that the paper's layers make."""
    found, output = row_map_of(operator), operator.outputs[0]
    if isinstance(found, str) or len(source.shape) != 4:
        return None
    rows, columns = _window(found.rows, source.shape[1]), _window(found.columns, source.shape[2])
    if rows is None or columns is None:
        return None
    taps = rows.kernel * columns.kernel  # the paper counts those of a pool as MACs
    macs = operator_macs(operator) or output.elements * taps
    pixels, out_pixels = rows.size * columns.size, rows.outputs * columns.outputs
    return Layer(rows, columns, source.nbytes // pixels, output.nbytes // out_pixels, macs // rows.outputs)


def _window(axis: Axis, size: int) -> LayerWindow | None:
    """Return the least padding, the same at each end, that makes as many outputs."""
    windows = (LayerWindow(size, axis.reach, axis.stride, padding) for padding in range(axis.reach))
    return next((window for window in windows if window.outputs == axis.outputs), None)
