"""Search with Optuna and PyTorch: accuracy and RAM after optimization as two objectives.

pip install torch litert-torch optuna scikit-learn
python optuna_torch.py --trials 30 --epochs 10
"""

import argparse

import optuna
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn

from tflite_memopt import cost


def network(trial: optuna.Trial) -> nn.Module:
    width, kernel = trial.suggest_int("width", 8, 32, step=4), trial.suggest_categorical("kernel", (3, 5))
    stride = trial.suggest_int("stride", 1, 2)
    layers = [nn.Conv2d(1, width, kernel, stride, kernel // 2), nn.BatchNorm2d(width), nn.ReLU()]
    for block in range(trial.suggest_int("blocks", 1, 3)):
        before = 2 * width if block else width
        layers += [nn.Conv2d(before, before, kernel, 1 if block else 2, kernel // 2, groups=before), nn.ReLU()]
        layers += [nn.Conv2d(before, 2 * width, 1), nn.BatchNorm2d(2 * width), nn.ReLU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2 * width, 10))


def train(model: nn.Module, x: torch.Tensor, y: torch.Tensor, epochs: int) -> None:
    optimizer = torch.optim.Adam(model.parameters(), 2e-3)
    for _ in range(epochs):
        for batch in torch.randperm(len(x)).split(32):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x[batch]), y[batch]).backward()
            optimizer.step()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--trials", type=int, default=30)
    parser.add_argument("--epochs", type=int, default=10)
    words = parser.parse_args()
    digits = load_digits()
    images = torch.tensor(digits.images / 16, dtype=torch.float32)[:, None]
    images = nn.functional.interpolate(images, scale_factor=4.0)  # 8 x 8 pixels, four times as large
    x, x_test, y, y_test = train_test_split(images, torch.tensor(digits.target), test_size=500, random_state=0)

    def score(trial: optuna.Trial) -> tuple[float, int]:
        torch.manual_seed(trial.number)
        model = network(trial)
        ram = cost(model, "cortex-m7", shape=(1, 1, 32, 32)).optimized
        train(model, x, y, words.epochs)
        with torch.no_grad():
            right = model.eval()(x_test).argmax(1) == y_test
        return right.float().mean().item(), ram

    study = optuna.create_study(directions=["maximize", "minimize"], sampler=optuna.samplers.NSGAIISampler(seed=0))
    study.optimize(score, words.trials)
    for best in sorted(study.best_trials, key=lambda trial: trial.values[1]):
        print(f"{best.values[0]:.3f} in {best.values[1]:,.0f} bytes: {best.params}")


if __name__ == "__main__":
    main()
