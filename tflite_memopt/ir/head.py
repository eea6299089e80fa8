"""Which tensors TFLM places in the head of its arena."""

from __future__ import annotations

from .model import Tensor


def in_head(tensor: Tensor) -> bool:
    """Whether TFLM places a tensor in the head: constants are in the file, variables in the tail.

    A placeholder is a variable that the plan has an offset for: then it is in the head as well (micro_allocator.cc).

    The handle that VAR_HANDLE gives lives in the kernel's own data (TFLM kernels/var_handle.cc).
    """
    if tensor.is_placeholder:
        return tensor.nbytes != 0
    is_handle = tensor.producer is not None and tensor.producer.name == "VAR_HANDLE"
    return not (tensor.is_constant or tensor.is_variable or tensor.nbytes == 0 or is_handle)
