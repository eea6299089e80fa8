"""RAM of networks as other tools publish it: bytes, what they count, and where it is said."""

from __future__ import annotations

from typing import Literal, NamedTuple

from scripts.zoo_networks.msf_cnn import CHAINS

Counts = Literal["all", "tensors", "between"]
"""All that the runtime takes; tensors and buffers of kernels, with the network's input and output; those between."""


class Published(NamedTuple):
    """One figure. ``macs``: times those of the network, None where it is not said."""

    network: str
    tool: str
    bytes: int
    counts: Counts
    macs: float | None = None


SOURCES = {
    "ST": "Edge AI Core 3.0.0, STM32H7, total RAM: `README.md` of `image_classification/mobilenetv1`, `mobilenetv2`, "
    "`object_detection/st_yololcv1` in github.com/STMicroelectronics/stm32ai-modelzoo at 7f3764d",
    "TinyEngine": "0363956, STM32H743, kB of 1,024 bytes: `README.md` of github.com/mit-han-lab/tinyengine at 47bb283",
    "X-CUBE-AI": "7.3.0, the same table",
    "TinyTS": "`arena_size` in `models/ts_gen/MCUNet_model_zoo/*/DF_1/gen_model/src/ctx.cc`, "
    "github.com/nycu-caslab/TinyTS at e49f7e6",
    "msf-CNN": "arXiv 2505.11483 and github.com/TinyPART/msf-CNN at fd74a7c, `analysis_optimization.py -p P1 -c1 inf`; "
    "for `t` without the two lines that leave the ends out. `compare --with msf-cnn` gives the same bytes",
    "MCUNetV2": "kB of 1,000 bytes, as arXiv 2505.11483 quotes it; what is counted is not said, but holds the input",
    "StreamNet": "the same paper",
    "ExecuTorch": "1.1.0, Cortex-M55, total, float input and output: github.com/pytorch/executorch issue 17651",
    "TFLM": "6ce10ee, the same issue",
}
_ST = {
    "st_mobilenet_v1_0.25_96": 63.74,
    "st_mobilenet_v1_0.25_96_gray": 53.1,
    "st_mobilenet_v1_0.25_224": 271.74,
    "st_mobilenet_v1_0.5_224": 457.37,
    "st_mobilenet_v1_1.0_224": 900.08,
    "st_mobilenet_v2_0.35_128": 240.68,
    "st_mobilenet_v2_0.35_224": 702.68,
    "st_mobilenet_v2_1.0_224": 1436.49,
    "st_yololcv1_192": 166.29,
    "st_yololcv1_224": 217.29,
    "st_yololcv1_256": 278.29,
}
# TinyEngine and X-CUBE-AI in KiB, TinyTS in bytes (None: not published).
_MCUNET = {
    "mcunet_vww0": (59, 88, 27_200),
    "mcunet_vww1": (92, 113, 36_960),
    "mcunet_vww2": (174, 201, 119_168),
    "mcunet_in0": (49, 69, 22_752),
    "mcunet_in1": (96, 106, 42_240),
    "mcunet_in2": (215, 238, 150_240),
    "mcunet_in3": (260, 243, 168_256),
    "mcunet_in4": (416, 342, None),
}


# As msf-CNN's paper quotes them, in kB.
_PATCHES = {"msf_mbv2_w0.35": (63, 66), "msf_mn2_vww5": (45, 44), "msf_mn2_320k": (215, 208)}


def published() -> list[Published]:
    """Every figure, network by network."""
    found = [Published(name, "ST", round(1024 * size), "all") for name, size in _ST.items()]
    for tool, size in (("ExecuTorch", 1_563_213), ("TFLM", 1_668_468)):
        found.append(Published("st_mobilenet_v2_1.0_224", tool, size, "all"))
    for name, (tiny_engine, cube, tiny_ts) in _MCUNET.items():
        found.append(Published(name, "TinyEngine", 1024 * tiny_engine, "all"))
        found.append(Published(name, "X-CUBE-AI", 1024 * cube, "all"))
        found += [] if tiny_ts is None else [Published(name, "TinyTS", tiny_ts, "tensors")]
    for name, chain in CHAINS.items():
        found.append(Published(name, "msf-CNN", chain.without_ends, "between", chain.mac_factor))
        found.append(Published(name, "msf-CNN", chain.with_ends, "tensors", chain.mac_factor_with_ends))
        for tool, size in zip(("MCUNetV2", "StreamNet"), _PATCHES[name], strict=True):
            found.append(Published(name, tool, 1000 * size, "tensors"))
    return found
