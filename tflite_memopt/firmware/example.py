"""The example in a generated firmware: one inference whose inputs are quantized and whose outputs are read."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from ..ir.model import DType, Model, Tensor
from ..ir.tensors import affine_of
from .cpp_text import literal

_TYPES: Mapping[DType, str] = {
    DType.INT8: "int8_t",
    DType.UINT8: "uint8_t",
    DType.INT16: "int16_t",
    DType.INT32: "int32_t",
    DType.INT64: "int64_t",
    DType.FLOAT32: "float",
    DType.BOOL: "bool",
}
"""Of C++. Tensors of other types are left to the user."""
_QUANTIZED = (DType.INT8, DType.UINT8, DType.INT16)


def example_words(model: Model, tied: Collection[int]) -> dict[str, str]:
    """Return the words of templates/example.cc.in; ``tied``: positions of the inputs that hold a state."""
    inputs, outputs = model.main.inputs, model.main.outputs
    labels = {at: found for at, tensor in enumerate(outputs) if (found := _labels(model, tensor))}
    return {
        "labels": "".join(_array(at, names) for at, names in labels.items()),
        "write": "\n".join(line for at, x in enumerate(inputs) if at not in tied for line in _write(at, x)),
        "read": "\n".join(line for at, y in enumerate(outputs) for line in _read(at, y, at in labels)),
    }


def _labels(model: Model, output: Tensor) -> Sequence[str]:
    """Return the lines of the first associated file that has one for each element of the output."""
    for file in model.associated_files:
        lines = file.data.decode("utf-8", "surrogateescape").removesuffix("\n").split("\n")
        names = [line.strip() for line in lines]
        if file.name.endswith(".txt") and len(names) == output.elements and all(names):
            return names
    return ()


def _array(at: int, names: Sequence[str]) -> str:
    return f"constexpr const char* kLabels{at}[] = {{{', '.join(map(literal, names))}}};\n\n"


def _write(at: int, tensor: Tensor) -> Iterator[str]:
    """Yield the lines that write an input."""
    yield f"  // Input {_described(at, tensor)}"
    type_ = _TYPES.get(tensor.dtype)
    if type_ is None:
        yield f"  // Write interpreter.input({at})->data.data."
        return
    scaled = _scaled(tensor)
    value = f"Value({at}, at)"
    given = f"Quantized<{type_}>({value}, {scaled})" if scaled else f"static_cast<{type_}>({value})"
    yield f"  auto* const x{at} = static_cast<{type_}*>(interpreter.input({at})->data.data);"
    yield f"  for (int at = 0; at < {tensor.elements}; ++at) x{at}[at] = {given};"


def _read(at: int, tensor: Tensor, has_labels: bool) -> Iterator[str]:
    """Yield the lines that read an output."""
    yield f"  // Output {_described(at, tensor)}"
    type_ = _TYPES.get(tensor.dtype)
    if type_ is None:
        yield f"  // Read interpreter.output({at})->data.data."
        return
    scaled = _scaled(tensor)
    value = f"Real(y{at}[largest{at}], {scaled})" if scaled else f"static_cast<float>(y{at}[largest{at}])"
    label = f"kLabels{at}[largest{at}]" if has_labels else '""'
    yield f"  const auto* const y{at} = static_cast<const {type_}*>(interpreter.output({at})->data.data);"
    yield f"  int largest{at} = 0;"
    yield f"  for (int at = 1; at < {tensor.elements}; ++at) {{"
    yield f"    if (y{at}[at] > y{at}[largest{at}]) largest{at} = at;"
    yield "  }"
    yield f"  Print({literal(tensor.name)}, largest{at}, {value}, {label});"


def _described(at: int, tensor: Tensor) -> str:
    return f"{at}, {literal(tensor.name)}: {tensor.dtype.label}, {' x '.join(map(str, tensor.shape)) or 'one number'}."


def _scaled(tensor: Tensor) -> str:
    """Return scale and zero point as arguments; nothing for a tensor that is not quantized."""
    affine = affine_of(tensor) if tensor.dtype in _QUANTIZED else None
    return "" if affine is None else f"{affine.scale!r}f, {affine.zero_point}"
