"""Search with Optuna and Keras: the best accuracy within a limit of RAM after optimization.

pip install tensorflow optuna scikit-learn
python optuna_keras.py --ram 12000 --trials 30 --epochs 10
"""

import argparse

import keras
import numpy as np
import optuna
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from tflite_memopt import cost


def network(trial: optuna.Trial) -> keras.Model:
    width, kernel = trial.suggest_int("width", 8, 32, step=4), trial.suggest_categorical("kernel", (3, 5))
    x = image = keras.Input((32, 32, 1))
    x = keras.layers.Conv2D(width, kernel, trial.suggest_int("stride", 1, 2), "same", activation="relu")(x)
    for block in range(trial.suggest_int("blocks", 1, 3)):
        x = keras.layers.DepthwiseConv2D(kernel, 1 if block else 2, "same", activation="relu")(x)
        x = keras.layers.Conv2D(2 * width, 1, activation="relu")(x)
    x = keras.layers.GlobalAveragePooling2D()(x)
    return keras.Model(image, keras.layers.Dense(10, "softmax")(x))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--ram", type=int, default=12_000, help="bytes of the arena")
    parser.add_argument("--trials", type=int, default=30)
    parser.add_argument("--epochs", type=int, default=10)
    words = parser.parse_args()
    digits = load_digits()
    images = np.kron(digits.images[..., None] / 16, np.ones((4, 4, 1)))  # 8 x 8 pixels, four times as large
    x, x_test, y, y_test = train_test_split(images, digits.target, test_size=500, random_state=0)

    def score(trial: optuna.Trial) -> float:
        keras.utils.set_random_seed(trial.number)
        model = network(trial)
        if cost(model, "cortex-m7", depth="estimate").optimized > 1.5 * words.ram:
            raise optuna.TrialPruned
        found = cost(model, "cortex-m7", budget=words.ram)
        if not found.fits:
            raise optuna.TrialPruned
        trial.set_user_attr("RAM", found.optimized)
        model.compile(keras.optimizers.Adam(5e-3), "sparse_categorical_crossentropy", metrics=["accuracy"])
        model.fit(x, y, epochs=words.epochs, verbose=0)
        return model.evaluate(x_test, y_test, verbose=0)[1]

    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=0))
    study.optimize(score, words.trials)
    best = study.best_trial
    print(f"{best.value:.3f} in {best.user_attrs['RAM']:,} bytes: {best.params}")


if __name__ == "__main__":
    main()
