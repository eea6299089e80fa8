"""RAM of networks as other tools publish it: bytes, what they count, and where it is said."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

from scripts.zoo_networks.msf_cnn import CHAINS

Counts = Literal["all", "tensors", "between", "without input"]
"""All that the runtime takes; tensors and buffers of kernels, with the network's input and output; those between; all
but the input."""


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
    "Plumerai": "its inference engine; it and the other tools at 0.30 and 80x80 as its page of 2021-10 quotes them; "
    "what is counted is not said",
    "EON": "Edge Impulse's compiler, the same page",
    "ST 4": "Edge AI Core 4.0.1 on an F4, --optimization balanced, total RAM; it is not said whether input and output "
    "count: `results/st_analyze.jsonl` of mcufit-bench at 88f8d23 (2026-08-16)",
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


# Networks that others publish as files. ST's total, TinyTS's tensors, and TinyTS's without the input, in bytes.
_FILES: Mapping[str, tuple[int | None, int | None, int | None]] = {
    "tflm_person_detect": (41_456, None, None),
    "mlperf_kws_int8": (18_556, 9_920, 9_920),
    "mlperf_ic_int8": (44_712, 14_272, 13_568),
    "mlperf_ad_int8": (2_048, None, None),
    "mlperf_vww_int8": (None, 29_568, 13_824),
    "ad_micronet_large": (None, 67_872, 67_424),
    "kws_cnn_l": (None, 19_328, 19_328),
    "kws_ds_cnn_l": (None, 36_144, 36_144),
    "kws_micronet_l": (None, 62_208, 62_208),
    "vww_micronet_vww2": (None, 15_616, 15_232),
    "vww_micronet_vww3": (None, 46_992, 46_992),
    "vww_micronet_vww4": (None, 42_816, 42_816),
}
FILES: Mapping[str, str] = {
    name: (
        f"`models/tflm_format/ARM_ML_zoo/{name}/model_data.cc`, a C array, in github.com/nycu-caslab/TinyTS at e49f7e6"
        if name.startswith(("ad_", "kws_", "vww_"))
        else "github.com/tensorflow/tflite-micro"
        if name.startswith("tflm")
        else "github.com/mlcommons/tiny"
    )
    for name in _FILES
}
"""Where a reader gets the files, which this project does not have."""


# As msf-CNN's paper quotes them, in kB.
_PATCHES = {"msf_mbv2_w0.35": (63, 66), "msf_mn2_vww5": (45, 44), "msf_mn2_320k": (215, 208)}

# MobileNetV2 0.30 with 1,000 classes, in kB of 1,024 bytes.
_MOBILENETS = {
    "mobilenet_v2_0.30_64": {"TinyEngine": 61, "X-CUBE-AI": 88},
    "mobilenet_v2_0.30_80": {"Plumerai": 80, "TinyEngine": 98, "X-CUBE-AI": 109, "EON": 153, "TFLM": 155},
}


def published() -> list[Published]:
    """Every figure, network by network."""
    found = [Published(name, "ST", round(1024 * size), "all") for name, size in _ST.items()]
    for tool, size in (("ExecuTorch", 1_563_213), ("TFLM", 1_668_468)):
        found.append(Published("st_mobilenet_v2_1.0_224", tool, size, "all"))
    for name, (tiny_engine, cube, tiny_ts) in _MCUNET.items():
        found.append(Published(name, "TinyEngine", 1024 * tiny_engine, "all"))
        found.append(Published(name, "X-CUBE-AI", 1024 * cube, "all"))
        found += [] if tiny_ts is None else [Published(name, "TinyTS", tiny_ts, "tensors")]
    for name, sizes in _MOBILENETS.items():
        found += [Published(name, tool, 1024 * size, "all") for tool, size in sizes.items()]
    for name, (st, tensors, without_input) in _FILES.items():
        found += [] if st is None else [Published(name, "ST 4", st, "all")]
        found += [] if tensors is None else [Published(name, "TinyTS", tensors, "tensors")]
        found += [] if without_input is None else [Published(name, "TinyTS", without_input, "without input")]
    for name, chain in CHAINS.items():
        found.append(Published(name, "msf-CNN", chain.without_ends, "between", chain.mac_factor))
        found.append(Published(name, "msf-CNN", chain.with_ends, "tensors", chain.mac_factor_with_ends))
        for tool, size in zip(("MCUNetV2", "StreamNet"), _PATCHES[name], strict=True):
            found.append(Published(name, tool, 1000 * size, "tensors"))
    return found
