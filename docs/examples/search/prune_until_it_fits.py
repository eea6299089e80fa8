"""Prune channels of a Keras network and train on, until it fits a limit of RAM after optimization.

    pip install tensorflow scikit-learn
    python prune_until_it_fits.py --ram 8000 --epochs 10

A round takes a quarter of the channels of one layer: the ones with the least sums of absolute weights (Li et al., arXiv
1608.08710), of the layer where the least such weight is lost for each byte of RAM that an estimate says is saved.
"""

import argparse
from collections.abc import Sequence

import keras
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from tflite_memopt import cost

TARGET = "cortex-m7"


def network(widths: Sequence[int]) -> keras.Model:
    x = image = keras.Input((32, 32, 1))
    for width, stride in zip(widths, (1, 2, 2), strict=True):
        x = keras.layers.Conv2D(width, 3, stride, "same", activation="relu")(x)
    x = keras.layers.GlobalAveragePooling2D()(x)
    model = keras.Model(image, keras.layers.Dense(10, "softmax")(x))
    model.compile(keras.optimizers.Adam(5e-3), "sparse_categorical_crossentropy", metrics=["accuracy"])
    return model


def narrower(widths: Sequence[int], layer: int) -> list[int]:
    return [width - width // 4 if at == layer else width for at, width in enumerate(widths)]


def pruned(model: keras.Model, widths: Sequence[int], layer: int) -> keras.Model:
    """Return the network with the filters of a layer that weigh the most."""
    weights = model.get_weights()  # of each layer the kernel, output channels last, and the bias
    sums = np.abs(weights[2 * layer]).sum((0, 1, 2))
    kept = np.sort(np.argsort(sums)[-narrower(widths, layer)[layer] :])
    weights[2 * layer], weights[2 * layer + 1] = weights[2 * layer][..., kept], weights[2 * layer + 1][kept]
    weights[2 * layer + 2] = weights[2 * layer + 2].take(kept, axis=-2)
    made = network(narrower(widths, layer))
    made.set_weights(weights)
    return made


def next_layer(model: keras.Model, widths: Sequence[int]) -> int:
    """Return the layer where the least weight is lost for each byte saved."""
    now = cost(model, TARGET, depth="estimate").optimized
    prices = {}
    for layer in (at for at, width in enumerate(widths) if width >= 4):
        saved = now - cost(network(narrower(widths, layer)), TARGET, depth="estimate").optimized
        sums = np.sort(np.abs(model.get_weights()[2 * layer]).sum((0, 1, 2)))
        prices[layer] = sums[: widths[layer] // 4].sum() / sums.sum() / max(1, saved)
    return min(prices, key=prices.__getitem__)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--ram", type=int, default=8_000, help="bytes of the arena")
    parser.add_argument("--epochs", type=int, default=10)
    words = parser.parse_args()
    digits = load_digits()
    images = np.kron(digits.images[..., None] / 16, np.ones((4, 4, 1)))  # 8 x 8 pixels, four times as large
    x, x_test, y, y_test = train_test_split(images, digits.target, test_size=500, random_state=0)
    keras.utils.set_random_seed(0)
    widths = [16, 24, 32]
    model = network(widths)
    model.fit(x, y, epochs=words.epochs, verbose=0)
    while True:
        found = cost(model, TARGET, budget=words.ram)
        print(f"{widths}: {found.optimized:,} bytes, {model.evaluate(x_test, y_test, verbose=0)[1]:.3f}", flush=True)
        if found.fits:
            break
        layer = next_layer(model, widths)
        model, widths = pruned(model, widths, layer), narrower(widths, layer)
        model.fit(x, y, epochs=max(1, words.epochs // 4), verbose=0)


if __name__ == "__main__":
    main()
