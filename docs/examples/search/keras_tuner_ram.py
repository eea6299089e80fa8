"""Search with KerasTuner: a network that does not fit the RAM after optimization scores 0, and is not trained.

pip install tensorflow keras-tuner tensorboard scikit-learn
python keras_tuner_ram.py --ram 12000 --trials 30 --epochs 10
"""

import argparse
import tempfile

import keras
import keras_tuner
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from tflite_memopt import cost


class Fitting(keras_tuner.HyperModel):
    """Networks of at most ``ram`` bytes of arena."""

    def __init__(self, ram: int) -> None:
        super().__init__()
        self.ram = ram

    def build(self, hp: keras_tuner.HyperParameters) -> keras.Model:
        width, kernel = hp.Int("width", 8, 32, step=4), hp.Choice("kernel", [3, 5])
        x = image = keras.Input((32, 32, 1))
        x = keras.layers.Conv2D(width, kernel, hp.Int("stride", 1, 2), "same", activation="relu")(x)
        for block in range(hp.Int("blocks", 1, 3)):
            x = keras.layers.DepthwiseConv2D(kernel, 1 if block else 2, "same", activation="relu")(x)
            x = keras.layers.Conv2D(2 * width, 1, activation="relu")(x)
        x = keras.layers.GlobalAveragePooling2D()(x)
        model = keras.Model(image, keras.layers.Dense(10, "softmax")(x))
        model.compile(keras.optimizers.Adam(5e-3), "sparse_categorical_crossentropy", metrics=["accuracy"])
        return model

    def fit(self, _: keras_tuner.HyperParameters, model: keras.Model, *data, **more):
        if not cost(model, "cortex-m7", budget=self.ram).fits:
            return {"val_accuracy": 0.0}
        return model.fit(*data, **more)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--ram", type=int, default=12_000, help="bytes of the arena")
    parser.add_argument("--trials", type=int, default=30)
    parser.add_argument("--epochs", type=int, default=10)
    words = parser.parse_args()
    digits = load_digits()
    images = np.kron(digits.images[..., None] / 16, np.ones((4, 4, 1)))  # 8 x 8 pixels, four times as large
    x, x_test, y, y_test = train_test_split(images, digits.target, test_size=500, random_state=0)
    keras.utils.set_random_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        tuner = keras_tuner.RandomSearch(
            Fitting(words.ram),
            "val_accuracy",
            max_trials=words.trials,
            seed=0,
            directory=folder,
        )
        tuner.search(x, y, validation_data=(x_test, y_test), epochs=words.epochs, verbose=0)
        (best,) = tuner.oracle.get_best_trials(1)
    found = cost(tuner.hypermodel.build(best.hyperparameters), "cortex-m7", budget=words.ram)
    print(f"{best.score:.3f} in {found.optimized:,} bytes: {best.hyperparameters.values}")


if __name__ == "__main__":
    main()
