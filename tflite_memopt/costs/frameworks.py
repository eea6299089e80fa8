"""The structure of a network of Keras or PyTorch, by the framework's own converter, once for each structure.

The graph is not read from the framework itself: which operators a layer becomes, what is fused, and where a TRANSPOSE
stands is the converter's decision, and RAM depends on it. Weights are converted as they are and then dropped
(``structure``): a quantization with samples would take longer than the conversion, and leave the same shapes.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stdout
from copy import deepcopy
from functools import partial
from hashlib import sha256
from io import StringIO
from typing import Any

from ..errors import ErrorKind, UsageError, imported
from ..model.io.reader import read_model
from ..model.io.writer import write_model
from .store import Store
from .structure import as_int8


def is_module(model: object) -> bool:
    """Tell whether it is a network of Keras or PyTorch. A framework that nobody has imported has none."""
    return _is_keras(model) or _is_torch(model)


def _is_keras(model: object) -> bool:
    return any(
        isinstance(model, module.Model)
        for name in ("keras", "tf_keras")
        if (module := sys.modules.get(name)) is not None and hasattr(module, "Model")
    )


def _is_torch(model: object) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(model, torch.nn.Module)


def file_of(model: Any, shape: Sequence[int] | None, store: Store) -> bytes:
    """Return the int8 .tflite of a network's structure.

    ``shape``: of the input, batch 1 included, for PyTorch; Keras knows it. Raises UsageError without it, and where the
    converter is not installed.
    """
    convert: Callable[[Any], bytes]
    if _is_keras(model):
        key, convert = _of_keras(model), _from_keras
    else:
        if shape is None:
            raise UsageError("a PyTorch module does not know its input: give shape=(1, 3, 96, 96)", ErrorKind.COUNT)
        torch = sys.modules["torch"]
        model, inputs = deepcopy(model).cpu().eval(), (torch.zeros(tuple(shape)),)  # one in training stays in it
        # The graph that the converter begins with: operators with shapes, in which weights are names.
        key, convert = f"torch {torch.export.export(model, inputs)}", partial(_from_torch, inputs=inputs)
    digest = sha256(key.encode()).hexdigest()
    known = store[digest]
    if known is None:
        with warnings.catch_warnings(), redirect_stdout(StringIO()):  # dozens of lines a network
            warnings.simplefilter("ignore")
            found = convert(model)
        known = write_model(as_int8(read_model(found)))
        store[digest] = known
    return known


def _of_keras(model: Any) -> str:
    """Return the configuration with its layers' names as numbers: Keras counts them on from network to network."""
    config = json.loads(json.dumps([{"class_name": "", "config": model.get_config()}, model.input_shape], default=str))
    text = json.dumps(config)
    for number, name in enumerate(dict.fromkeys(_names_in(config))):
        text = text.replace(json.dumps(name), json.dumps(f"layer {number}"))
    return f"keras {text}"


def _names_in(config: Any) -> Iterator[str]:
    """Yield the names of a configuration's layers, inputs among them; those of types of numbers stay."""
    if isinstance(config, dict):
        inner = config.get("config")
        if isinstance(inner, dict) and isinstance(inner.get("name"), str) and config.get("class_name") != "DTypePolicy":
            yield inner["name"]
    for each in config.values() if isinstance(config, dict) else config if isinstance(config, list) else ():
        yield from _names_in(each)


def _from_keras(model: Any) -> bytes:
    tensorflow = imported("tensorflow", "the network's converter is missing: pip install tensorflow")
    converter = tensorflow.lite.TFLiteConverter.from_keras_model(model)
    found: bytes = converter.convert()
    return found


def _from_torch(model: Any, inputs: tuple[Any, ...]) -> bytes:
    converter = imported("litert_torch", "the network's converter is missing: pip install litert-torch")
    found: bytes = converter.convert(model, inputs).model_content()
    return found
