"""The RAM of a Keras model: what the converted file needs, and a training that stops where it is too much."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

import tflite_memopt
from tflite_memopt import UsageError, ram_of
from tflite_memopt.io.reader import read_model
from tflite_memopt.keras_model import Precision, ram_callback, to_tflite

keras = pytest.importorskip("keras")
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def model() -> Any:
    made = keras.Sequential(
        [
            keras.layers.Input((16, 16, 3)),
            keras.layers.Conv2D(8, 3, padding="same", activation="relu"),
            keras.layers.GlobalAveragePooling2D(),
            keras.layers.Dense(2),
        ]
    )
    made.compile(loss="mse")
    return made


def test_it_is_that_of_the_converted_file(model: Any) -> None:
    data = to_tflite(model, Precision.INT8, seed=0)
    assert read_model(data).main.inputs[0].dtype.label == "int8"
    assert ram_of(model) == tflite_memopt.analyze(data).memory.required_bytes["32"]
    on_target = tflite_memopt.analyze(data, target="cortex-m4").memory.required_bytes["target"]
    assert ram_of(model, "cortex-m4") == on_target
    assert ram_of(model, optimized=True, kernels="reference") < ram_of(model, kernels="reference")
    assert ram_of(model, precision=Precision.FLOAT32) > ram_of(model)


def test_training_stops_before_it_starts_where_the_model_is_too_large(model: Any) -> None:
    x, y = np.zeros((1, 16, 16, 3), np.float32), np.zeros((1, 2), np.float32)
    need = ram_of(model)
    enough = ram_callback(limit=need)
    model.fit(x, y, verbose=0, callbacks=[enough])
    assert enough.ram == need
    with pytest.raises(UsageError, match="1 more than allowed"):
        model.fit(x, y, verbose=0, callbacks=[ram_callback(limit=need - 1)])


def test_without_tensorflow_the_message_says_what_to_install(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tensorflow", None)
    with pytest.raises(UsageError, match=r"pip install 'tflite-memopt\[tensorflow\]'"):
        ram_of(model)
