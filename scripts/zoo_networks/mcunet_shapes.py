"""MCUNet's zoo as shapes: a convolution, a depthwise one and a 1x1, then inverted residuals, then the classes.

Sources: in0 to in4 and vww1: configurations of github.com/mit-han-lab/tinyml at e899b1b (mcunet/assets/configs) and the
file of vww1 that TinyEngine ships; vww0 and vww2: shapes of the tensors in github.com/nycu-caslab/TinyTS at e49f7e6
(models/ts_gen/MCUNet_model_zoo/1_MW10 and 2_MW320), which was made of the files of that zoo.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple


class Residual(NamedTuple):
    """An inverted residual; added to its input where the stride is 1 and the channels are as many."""

    channels: int
    expansion: int
    stride: int
    kernel: int


class Mcunet(NamedTuple):
    """``side`` of the square image of three channels; channels of the first convolution and of the 1x1."""

    side: int
    stem: int
    first: int
    classes: int
    blocks: tuple[Residual, ...]


def _blocks(*blocks: tuple[int, int, int, int]) -> tuple[Residual, ...]:
    return tuple(Residual(*block) for block in blocks)


_VWW0 = _blocks(
    *((16, 6, 2, 5), (16, 4, 1, 3), (24, 5, 2, 3), (24, 4, 1, 3), (24, 4, 1, 3), (40, 5, 2, 3), (40, 4, 1, 3)),
    *((40, 3, 1, 7), (48, 3, 1, 3), (48, 4, 1, 3), (96, 5, 2, 7), (96, 5, 1, 5), (160, 4, 1, 7)),
)
_VWW1 = _blocks(
    *((16, 6, 2, 3), (16, 3, 1, 3), (16, 3, 1, 3), (24, 3, 2, 7), (24, 6, 1, 3), (24, 5, 1, 5), (40, 6, 2, 7)),
    *((40, 6, 1, 7), (48, 6, 1, 3), (48, 4, 1, 3), (96, 5, 2, 5), (96, 5, 1, 3), (96, 4, 1, 3), (160, 3, 1, 7)),
)
_VWW2 = _blocks(
    *((16, 3, 2, 3), (16, 5, 1, 3), (16, 6, 1, 5), (16, 3, 1, 3), (24, 5, 2, 7), (24, 4, 1, 5), (24, 4, 1, 3)),
    *((24, 6, 1, 7), (40, 6, 2, 3), (40, 6, 1, 7), (40, 4, 1, 5), (40, 5, 1, 3), (48, 5, 1, 5), (48, 3, 1, 5)),
    *((48, 4, 1, 3), (48, 3, 1, 5), (96, 4, 2, 3), (96, 5, 1, 5), (96, 4, 1, 5), (96, 4, 1, 3), (160, 5, 1, 3)),
)
_IN0 = _blocks(
    *((16, 4, 2, 5), (16, 3, 1, 3), (16, 4, 1, 3), (24, 5, 2, 7), (24, 4, 1, 5), (24, 5, 1, 5), (48, 5, 2, 7)),
    *((48, 4, 1, 5), (56, 5, 1, 3), (56, 4, 1, 5), (56, 5, 1, 3), (112, 6, 2, 3), (112, 4, 1, 5), (192, 6, 1, 3)),
)
_IN1 = _blocks(
    *((16, 4, 2, 3), (16, 3, 1, 3), (24, 3, 2, 7), (24, 5, 1, 3), (40, 5, 2, 3), (40, 4, 1, 7), (48, 4, 1, 5)),
    *((48, 3, 1, 3), (48, 4, 1, 3), (96, 5, 2, 7), (96, 4, 1, 5), (96, 4, 1, 5), (160, 6, 1, 3)),
)
_IN2 = _blocks(
    *((16, 3, 2, 5), (16, 6, 1, 7), (16, 5, 1, 3), (16, 5, 1, 5), (24, 5, 2, 3), (24, 6, 1, 7), (24, 6, 1, 5)),
    *((40, 4, 2, 7), (40, 5, 1, 5), (48, 5, 1, 3), (48, 5, 1, 5), (48, 4, 1, 3), (96, 6, 2, 5), (96, 4, 1, 5)),
    *((96, 3, 1, 5), (96, 4, 1, 3), (160, 5, 1, 5)),
)
_IN3 = _blocks(
    *((16, 3, 2, 7), (16, 5, 1, 3), (16, 5, 1, 7), (16, 4, 1, 5), (24, 5, 2, 5), (24, 5, 1, 5), (24, 5, 1, 5)),
    *((40, 5, 2, 3), (40, 6, 1, 7), (40, 4, 1, 5), (48, 5, 1, 5), (48, 5, 1, 7), (48, 5, 1, 3), (96, 6, 2, 3)),
    *((96, 5, 1, 7), (96, 4, 1, 3), (160, 5, 1, 7)),
)
_IN4 = _blocks(
    *((24, 3, 2, 7), (24, 5, 1, 3), (24, 4, 1, 5), (40, 5, 2, 7), (40, 4, 1, 3), (40, 4, 1, 7), (80, 3, 2, 7)),
    *((80, 3, 1, 3), (80, 3, 1, 7), (96, 4, 1, 3), (96, 3, 1, 5), (96, 3, 1, 5), (192, 4, 2, 7), (192, 3, 1, 7)),
    *((192, 3, 1, 5), (320, 4, 1, 5)),
)
MCUNETS: Mapping[str, Mcunet] = MappingProxyType(
    {
        "mcunet_vww0": Mcunet(64, 16, 8, 2, _VWW0),
        "mcunet_vww1": Mcunet(80, 16, 8, 2, _VWW1),
        "mcunet_vww2": Mcunet(144, 16, 8, 2, _VWW2),
        "mcunet_in0": Mcunet(48, 24, 16, 1000, _IN0),
        "mcunet_in1": Mcunet(96, 16, 8, 1000, _IN1),
        "mcunet_in2": Mcunet(160, 16, 8, 1000, _IN2),
        "mcunet_in3": Mcunet(176, 16, 8, 1000, _IN3),
        "mcunet_in4": Mcunet(160, 32, 16, 1000, _IN4),
    }
)
