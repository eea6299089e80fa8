"""The manifest of a model for ESPHome's micro_wake_word, with the arena that the model needs there.

Source: esphome/esphome commit 0867e965, esphome/components/micro_wake_word: ``MANIFEST_SCHEMA_V2`` in __init__.py, the
operators in ``register_streaming_ops_`` of streaming_model.cpp. ESPHome takes esp-tflite-micro with any esp-nn that it
allows, so that the arena is the largest of all versions unless the target names one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from ..errors import ErrorKind, ModelFormatError, UnsupportedModelError, UsageError
from ..memory.figures import operator_kinds
from ..model.io import offline_plan
from ..model.ir.model import DType, Model
from .description import OneModel
from .sizes import arena_sizes

_OPERATORS = frozenset(
    {
        *("ADD", "AVERAGE_POOL_2D", "CONCATENATION", "CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "LOGISTIC"),
        *("MAX_POOL_2D", "MEAN", "MUL", "PACK", "PAD", "QUANTIZE", "RESHAPE", "SPLIT_V", "STRIDED_SLICE"),
        *("ASSIGN_VARIABLE", "CALL_ONCE", "READ_VARIABLE", "VAR_HANDLE"),
    }
)
"""Those that ESPHome registers."""
_FEATURES = 40
_FIELDS: Mapping[str, type | tuple[type, ...]] = {
    "wake_word": str,
    "author": str,
    "trained_languages": list,
    "micro": dict,
}
_FIELDS_OF_MICRO: Mapping[str, type | tuple[type, ...]] = {
    "probability_cutoff": (int, float),
    "feature_step_size": int,
    "sliding_window_size": int,
    "minimum_esphome_version": str,
}


def manifest_of(one: OneModel, given: bytes, name: str, file: str) -> bytes:
    """Return a manifest, version 2, for a model in ``file``: ``given`` with this file and its ``tensor_arena_size``.

    ``name``: of the manifest. Raises ModelFormatError for another kind of file, UnsupportedModelError for a model that
    ESPHome cannot run, UsageError for kernels that are not those of ESP-IDF.
    """
    manifest = _read(given, name)
    fault = next(_faults(one.model), None)
    if fault is not None:
        raise UnsupportedModelError(f"ESPHome's micro_wake_word does not run this model: {fault}", ErrorKind.FORM)
    if not one.profile.name.startswith("esp-nn"):
        raise UsageError(
            "a manifest for ESPHome is for the kernels of one chip: give --target esp32, esp32s3, ...",
            ErrorKind.NO_TARGET,
        )
    planned = offline_plan.decode(one.model) or {}
    ((_, layouts),) = arena_sizes(one.model, planned, one.profile).cases.items()
    micro = {**manifest["micro"], "tensor_arena_size": layouts["int"].one}
    text = json.dumps({**manifest, "model": file, "micro": micro}, indent=2, ensure_ascii=False) + "\n"
    return text.encode("utf-8", "backslashreplace")  # which is how JSON writes what is no letter, such as \udcff


def _read(text: bytes, name: str) -> dict[str, Any]:
    try:
        manifest = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ModelFormatError(f"'{name}' is not JSON: {error}", ErrorKind.FORMAT) from None
    if not isinstance(manifest, dict) or manifest.get("type") != "micro" or manifest.get("version") != 2:
        raise ModelFormatError(f"'{name}' is not a version 2 manifest for micro_wake_word", ErrorKind.FORMAT)
    micro = manifest.get("micro")
    tables = [(_FIELDS, manifest), (_FIELDS_OF_MICRO, micro if isinstance(micro, dict) else {})]
    for fields, values in tables:
        for field, kind in fields.items():
            value = values.get(field)
            if not isinstance(value, kind) or isinstance(value, bool):
                raise ModelFormatError(f"'{name}': '{field}' is missing or has the wrong type", ErrorKind.FORMAT)
    return manifest


def _faults(model: Model) -> Iterator[str]:
    inputs, outputs = model.main.inputs, model.main.outputs
    stride = inputs[0].shape[1] if inputs and len(inputs[0].shape) == 3 else 0
    if len(inputs) != 1 or inputs[0].dtype is not DType.INT8 or inputs[0].shape != (1, stride, _FEATURES):
        yield f"its input is not int8 of 1 x stride x {_FEATURES}"
    if len(outputs) != 1 or outputs[0].dtype is not DType.UINT8 or outputs[0].elements != 1:
        yield "its output is not one uint8"
    kinds = set(operator_kinds(model))
    if "VAR_HANDLE" not in kinds:
        yield "it keeps no state in variables"
    if lacking := sorted(kinds - _OPERATORS):
        yield f"ESPHome does not register {', '.join(lacking)}"
