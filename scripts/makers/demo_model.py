"""Writes scripts/models/demo_int8.tflite: a MobileNet-like int8 network with seeded random weights.

    python -m scripts.makers.demo_model

It has the property that makes MobileNets hard for TFLM's planner: the stock head is above the bound of the order.
"""

from __future__ import annotations

from pathlib import Path

from tests.model_builder import ModelBuilder
from tflite_memopt.model.io.files import write_files
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.model.ir.model import Model, Signature

TARGET = Path(__file__).parents[1] / "models" / "demo_int8.tflite"


def demo_model() -> Model:
    """A [1, 96, 96, 3] image to four classes; 14 operators, about 30 KB of weights."""
    builder = ModelBuilder("demo")
    image = builder.input("image", (1, 96, 96, 3))
    x = builder.conv(image, 8, kernel=3, stride=2, seed=1)
    for number, (channels, stride) in enumerate([(16, 1), (32, 2), (32, 1), (64, 2), (128, 2)]):
        x = builder.depthwise(x, stride=stride, seed=10 + number)
        x = builder.conv(x, channels, seed=20 + number)
    x = builder.average_pool(x, x.shape[1])
    scores = builder.softmax(builder.dense(builder.reshape(x, (1, 128)), 4, seed=30))
    model = builder.finish(scores)
    model.description = "tflite_memopt demonstration model"
    model.signatures = [Signature("serving_default", model.main, (("image", image),), (("scores", scores),))]
    return model


if __name__ == "__main__":
    TARGET.parent.mkdir(exist_ok=True)
    write_files({TARGET: write_model(demo_model())})
