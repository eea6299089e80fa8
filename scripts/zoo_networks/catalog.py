"""Every network of the zoo by name, in the order of the size of its file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType

import keras

from scripts.zoo_networks.amoebanet import amoebanet
from scripts.zoo_networks.applications import narrow
from scripts.zoo_networks.blazeface import blazeface
from scripts.zoo_networks.darts import darts, first_cell
from scripts.zoo_networks.hrnet import (
    TINY_V1,
    TINY_V2,
    TINY_W32,
    W18_SMALL_V1,
    W18_SMALL_V2,
    W18_SMALL_V2_NARROW,
    W32,
    W32_NARROW,
    Settings,
    hrnet,
)
from scripts.zoo_networks.mobilenets import deeplab, mobilenet_like, posenet
from scripts.zoo_networks.randwire import randwire
from scripts.zoo_networks.swiftnet import swiftnet
from scripts.zoo_networks.vgg import vgg_like


@dataclass(frozen=True)
class Network:
    """Builders of the full and the tiny network, and whether the float file keeps its weights as int8."""

    full: Callable[[], keras.Model]
    tiny: Callable[[], keras.Model]
    small_weights: bool = False


def _application(make: Callable[..., keras.Model], tiny_size: int, divisor: int, size: int = 224) -> Network:
    full = partial(make, weights=None, input_shape=(size, size, 3))
    return Network(full, partial(narrow, make, tiny_size, divisor))


def _randwire(seed: int) -> Network:
    return Network(partial(randwire, seed), partial(randwire, seed, size=64, channels=2, features=8, classes=10))


def _hrnet(settings: Settings, tiny: Settings, small_weights: bool = False) -> Network:
    return Network(partial(hrnet, settings), partial(hrnet, tiny, size=64), small_weights)


NETWORKS: Mapping[str, Network] = MappingProxyType(
    {
        "swiftnet": Network(swiftnet, partial(swiftnet, size=32, channels=(8, 12, 16, 32))),
        "darts_cell": Network(first_cell, partial(first_cell, size=8, channels=4)),
        "blazeface": Network(blazeface, partial(blazeface, size=32, divisor=4)),
        "mobilenet_like": Network(mobilenet_like, partial(mobilenet_like, 32, 1 / 32, 10)),
        "deeplab": Network(deeplab, partial(deeplab, 33, 1 / 16, 1, 8, 3)),
        "posenet": Network(posenet, partial(posenet, 33, 1 / 32)),
        "mobilenet_v2": _application(keras.applications.MobileNetV2, 64, 16),
        "mobilenet_v1": _application(keras.applications.MobileNet, 64, 32),
        "darts": Network(darts, partial(darts, size=64, channels=4, cells=6, classes=10)),
        "amoebanet": Network(amoebanet, partial(amoebanet, size=64, channels=4, repeats=1, classes=10)),
        "nasnet": _application(keras.applications.NASNetMobile, 64, 11),
        "randwire1": _randwire(1),
        "randwire2": _randwire(2),
        "randwire3": _randwire(3),
        "hrnet_w32": _hrnet(W32, TINY_W32, small_weights=True),
        "hrnet_w32_narrow": _hrnet(W32_NARROW, TINY_W32, small_weights=True),
        "hrnet_w18_small_v1": _hrnet(W18_SMALL_V1, TINY_V1),
        "hrnet_w18_small_v2": _hrnet(W18_SMALL_V2, TINY_V2),
        "hrnet_w18_small_v2_narrow": _hrnet(W18_SMALL_V2_NARROW, TINY_V2),
        "vgg_like": Network(vgg_like, partial(vgg_like, size=32, divisor=32, classes=10)),
        "inception_v3": _application(keras.applications.InceptionV3, 75, 32, size=299),
    }
)
