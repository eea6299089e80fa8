"""Codec of TFLM's offline memory plan, the metadata entry ``OfflineMemoryAllocation``.

Layout (int32, little-endian): version = 1, subgraphs, n, then n offsets, one per tensor of all subgraphs in
file order, weights included; -1 leaves the tensor to TFLM. schema/offline_plan.md has the details.
Source: TFLM micro_allocation_info.cc, ``GetOfflinePlannedOffsets``.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from ...errors import ErrorKind, ModelFormatError, UnsupportedModelError
from ..ir.check import MAX_TENSOR_BYTES, is_fixed_by_npu
from ..ir.model import Model, Tensor
from .metadata import remove_entries, replace_entry

METADATA_NAME = "OfflineMemoryAllocation"
VERSION = 1
UNPLANNED = -1
_HEADER_WORDS = 3


def encode(model: Model, offsets: Mapping[Tensor, int]) -> bytes:
    """Return the bytes of the metadata buffer for a map tensor -> offset in bytes; tensors not in it get -1.

    Raises UnsupportedModelError when an offset does not fit TFLM's 32 bits.
    """
    highest = max(offsets.values(), default=0)
    if highest > MAX_TENSOR_BYTES:
        raise UnsupportedModelError(
            f"the plan reaches byte {highest} of the arena, beyond TFLM's 32-bit offsets", ErrorKind.TOO_LARGE
        )
    tensors = model.all_tensors
    words = [VERSION, len(model.graphs), len(tensors)]
    words += [offsets.get(tensor, UNPLANNED) for tensor in tensors]
    return np.asarray(words, dtype="<i4").tobytes()


def decode(model: Model) -> dict[Tensor, int] | None:
    """Return the plan in force: tensor -> offset in bytes, without the -1 entries; None when there is no plan.

    As in TFLM the last entry of that name wins, and version and subgraph count are not looked at.
    Raises ModelFormatError when the plan does not fit the model.
    """
    found = _words(model)
    if found is None:
        return None
    words, tensors = found
    wrong = misfit(model)
    if wrong is not None:
        cure = (
            "Vela keeps the plan of the file that it compiles: give it the model as it was before it was optimized"
            if is_fixed_by_npu(model)
            else "LiteRT ignores it, and optimize leaves it out"
        )
        raise ModelFormatError(f"TFLM refuses the file for its memory plan: {wrong}; {cure}", ErrorKind.DAMAGED)
    offsets = words[_HEADER_WORDS : _HEADER_WORDS + len(tensors)].tolist()
    return {t: o for t, o in zip(tensors, offsets, strict=True) if o != UNPLANNED}


def misfit(model: Model) -> str | None:
    """Say why a plan is of another graph, for which TFLM refuses the file; None where it fits, and without one."""
    found = _words(model)
    if found is None:
        return None
    words, tensors = found
    count = int(words[2])
    if count == len(tensors) and words.size >= _HEADER_WORDS + count:
        return None
    return (
        f"it is for {count} tensors and has {words.size - _HEADER_WORDS} offsets, and the model has {len(tensors)} "
        "tensors: it was made for another graph"
    )


def _words(model: Model) -> tuple[npt.NDArray[np.int32], list[Tensor]] | None:
    """Return the plan in force as words, and the tensors of the model; None without a plan."""
    buffers = [buffer for name, buffer in model.metadata if name == METADATA_NAME]
    if not buffers:
        return None
    data = buffers[-1].data
    tensors = model.all_tensors
    if data is None or data.size < 4 * _HEADER_WORDS or data.size % 4:
        raise ModelFormatError(
            "the offline plan in the metadata is too short or not made of 32-bit words", ErrorKind.DAMAGED
        )
    return np.frombuffer(data.tobytes(), dtype="<i4"), tensors


def attach(model: Model, offsets: Mapping[Tensor, int]) -> None:
    """Make this the model's one plan: older plans and their buffers go."""
    replace_entry(model, METADATA_NAME, encode(model, offsets))


def detach(model: Model) -> None:
    """Remove every offline plan and the buffers that only plans use."""
    remove_entries(model, METADATA_NAME)
