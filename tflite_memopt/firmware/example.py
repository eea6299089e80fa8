"""The example in a generated firmware: one inference whose inputs are quantized and whose outputs are read."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from ..model.ir.model import DType, Model, Tensor
from ..model.ir.tensors import affine_of

_TYPES: Mapping[DType, str] = {
    **{each: f"{each.label}_t" for each in (DType.INT8, DType.UINT8, DType.INT16, DType.INT32, DType.INT64)},
    DType.FLOAT32: "float",
    DType.BOOL: "bool",
}
"""Of C++. Tensors of other types are left to the user."""
_QUANTIZED = (DType.INT8, DType.UINT8, DType.INT16)


@dataclass(frozen=True)
class ExampleTensor:
    """An input or output as the example has it. ``type``: of C++; None: left to the user. ``scaled``: scale and zero
    point as arguments, "" for one that is not quantized. ``labels``: one for each element, or none. ``layout``: what
    differs from the network as it was trained, "" for nothing."""

    at: int
    tensor: Tensor
    type: str | None
    scaled: str
    labels: tuple[str, ...]
    layout: str


def port_of(
    at: int, tensor: Tensor, labeled: Sequence[Model] = (), channels_last: Collection[str] = ()
) -> ExampleTensor:
    """Return the port of a tensor; ``labeled``: models whose associated files may hold labels of it;
    ``channels_last``: names of tensors that have their channels last, and had them first."""
    affine = affine_of(tensor) if tensor.dtype in _QUANTIZED else None
    numbers = "" if affine is None else f"{affine.scale!r}f, {affine.zero_point}"
    labels = next((found for model in labeled if (found := _labels(model, tensor))), ())
    layout = "channels last" if tensor.name in channels_last else ""
    return ExampleTensor(at, tensor, _TYPES.get(tensor.dtype), numbers, labels, layout)


def _labels(model: Model, output: Tensor) -> tuple[str, ...]:
    """Return the lines of the first associated file that has one for each element of the output."""
    for file in model.associated_files:
        lines = file.data.decode("utf-8", "surrogateescape").removesuffix("\n").split("\n")
        names = tuple(line.strip() for line in lines)
        if file.name.endswith(".txt") and len(names) == output.elements and all(names):
            return names
    return ()
