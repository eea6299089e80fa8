"""The networks by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType

import keras

from scripts.zoo_networks.people import decoders, images, sequences
from scripts.zoo_networks.people.convert import NUMBERS, Numbers


@dataclass(frozen=True)
class PeoplesNetwork:
    """The builder of a network, and the types of numbers that it can be converted to."""

    make: Callable[[], keras.Model]
    numbers: tuple[Numbers, ...] = NUMBERS


PEOPLE: Mapping[str, PeoplesNetwork] = MappingProxyType(
    {
        "tcn": PeoplesNetwork(sequences.tcn),
        "wavenet": PeoplesNetwork(sequences.wavenet),
        "motion_cnn1d": PeoplesNetwork(sequences.motion),
        "ecg_cnn1d": PeoplesNetwork(sequences.ecg),
        "keywords_raw": PeoplesNetwork(sequences.keywords_raw),
        "keywords_spectrogram": PeoplesNetwork(sequences.keywords_spectrogram),
        "keyword_transformer": PeoplesNetwork(sequences.keyword_transformer),
        # The converter of TensorFlow 2.21 ends with a segmentation fault where an LSTM gets integers.
        "lstm": PeoplesNetwork(sequences.lstm, ("float",)),
        "lstm_unrolled": PeoplesNetwork(sequences.lstm_unrolled),
        "gru_unrolled": PeoplesNetwork(sequences.gru_unrolled),
        "ds_cnn": PeoplesNetwork(images.ds_cnn),
        "resnet8": PeoplesNetwork(images.resnet8),
        "resnet18": PeoplesNetwork(images.resnet18),
        "mobilenet_v3_small": PeoplesNetwork(images.mobilenet_v3_small),
        "efficientnet_lite": PeoplesNetwork(images.efficientnet_lite),
        "squeeze_excite": PeoplesNetwork(images.squeeze_excite),
        "fomo": PeoplesNetwork(images.fomo),
        "ssd": PeoplesNetwork(images.ssd),
        "yolo_tiny": PeoplesNetwork(images.yolo_tiny),
        "unet": PeoplesNetwork(decoders.unet),
        "unet_256": PeoplesNetwork(partial(decoders.unet, 256), ("int8",)),
        "unet_resize": PeoplesNetwork(decoders.unet_resize),
        "autoencoder": PeoplesNetwork(decoders.autoencoder),
        "super_resolution": PeoplesNetwork(decoders.super_resolution),
    }
)
