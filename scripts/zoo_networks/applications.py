"""Networks that Keras has: MobileNet V1 and V2, Inception V3, NASNet-A mobile."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras

from scripts.zoo_networks.layers import CLASS_LAYERS


def narrow(make: Callable[..., keras.Model], size: int, divisor: int) -> keras.Model:
    """The network that ``make`` makes, for ten classes, with 1 / ``divisor`` of the channels in every convolution."""
    model = make(weights=None, input_shape=(size, size, 3), classes=10)

    def copy(layer: Any) -> Any:
        settings = layer.get_config()
        if "filters" in settings and layer.name not in CLASS_LAYERS:
            settings["filters"] = max(1, settings["filters"] // divisor)
        return type(layer).from_config(settings)

    return keras.models.clone_model(model, clone_function=copy)
