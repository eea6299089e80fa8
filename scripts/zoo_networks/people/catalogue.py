"""The networks by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import keras

from scripts.zoo_networks.people import decoders, images, sequences

PEOPLE: Mapping[str, Callable[[], keras.Model]] = MappingProxyType(
    {
        "tcn": sequences.tcn,
        "wavenet": sequences.wavenet,
        "motion_cnn1d": sequences.motion,
        "ecg_cnn1d": sequences.ecg,
        "keyword_transformer": sequences.keyword_transformer,
        "lstm": sequences.lstm,
        "lstm_unrolled": sequences.lstm_unrolled,
        "gru_unrolled": sequences.gru_unrolled,
        "ds_cnn": images.ds_cnn,
        "resnet8": images.resnet8,
        "resnet18": images.resnet18,
        "mobilenet_v3_small": images.mobilenet_v3_small,
        "efficientnet_lite": images.efficientnet_lite,
        "squeeze_excite": images.squeeze_excite,
        "fomo": images.fomo,
        "ssd": images.ssd,
        "yolo_tiny": images.yolo_tiny,
        "unet": decoders.unet,
        "unet_resize": decoders.unet_resize,
        "autoencoder": decoders.autoencoder,
        "super_resolution": decoders.super_resolution,
    }
)
"""Builders of the networks, without weights that were trained."""
