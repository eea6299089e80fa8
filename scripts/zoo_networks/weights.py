"""Random weights that keep a deep network alive."""

from __future__ import annotations

import keras
import numpy as np

from scripts.zoo_networks.layers import CLASS_LAYERS

SHARPNESS = 8  # Times the logits of a classifier: a softmax of small ones is flat, in int8 the same value everywhere.


def randomize(model: keras.Model, seed: int) -> None:
    """Random biases and batch norms, with the statistics that one random image has in the network.

    With the biases and batch norms that Keras starts from (0 and 1), the converter drops operators and shares tensors
    that a trained network has. With statistics that do not fit, the output of a deep network is the same for every
    input, and comparing the outputs of two models proves nothing.
    """
    random = np.random.default_rng(seed)
    for layer in model.layers:
        if isinstance(layer, keras.layers.BatchNormalization):
            if layer.scale:
                layer.gamma.assign(random.uniform(0.5, 1.5, layer.gamma.shape))
            layer.beta.assign(random.normal(0, 0.2, layer.beta.shape))
            layer.momentum = 0  # The next image's statistics replace the old ones.
        elif getattr(layer, "bias", None) is not None:
            layer.bias.assign(random.normal(0, 0.1, layer.bias.shape))
        if layer.name in CLASS_LAYERS and layer.weights:  # MobileNet V1 calls its softmax "predictions".
            layer.kernel.assign(SHARPNESS * layer.kernel)
    model([random.uniform(-1, 1, (1, *tensor.shape[1:])).astype(np.float32) for tensor in model.inputs], training=True)
