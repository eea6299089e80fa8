#!/usr/bin/env bash
# KerasTuner with TensorFlow 2.21 fails every trial for want of tensorboard, which neither package asks for.
#
# Each trial imports tensorboard.plugins.hparams, whether or not a callback of TensorBoard is given; TensorFlow before 2.21
# brought it. `pip install tensorboard` mends it.
# Versions: keras-tuner 1.4.8, tensorflow-cpu 2.21.0, keras 3.15.1; seen on 2026-11-30.
# Source: a search over one dense layer
# Exits with 1 if this changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/python" -m pip install --quiet --disable-pip-version-check keras-tuner==1.4.8 tensorflow-cpu==2.21.0 keras==3.15.1
cat > "$folder/search.py" << 'PYTHON'
import sys

import keras
import keras_tuner
import numpy as np

def build(hp):
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(hp.Int("width", 1, 2))])
    model.compile("sgd", "mse")
    return model

tuner = keras_tuner.RandomSearch(build, "loss", max_trials=1, directory=sys.argv[1])
tuner.search(np.zeros((8, 4)), np.zeros((8, 1)), verbose=0)
PYTHON
TF_CPP_MIN_LOG_LEVEL=3 "$folder/env/bin/python" "$folder/search.py" "$folder/trials" > "$folder/log" 2>&1 || true
grep -q "No module named 'tensorboard'" "$folder/log"
