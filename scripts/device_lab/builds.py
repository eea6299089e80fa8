"""The table of runners that can be built."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

_LIBRARIES = {"reference": "reference", "cmsis": "cmsis-nn", "cmsisdsp": "cmsis-nn", "espnn": "esp-nn"}


@dataclass(frozen=True)
class Build:
    """One runner: a core, a kernel library, and the target and kernel profile of tflite_memopt that stand for them.

    ``core``, ``kernels`` and ``enums`` are the makefile's words; ``machine`` is QEMU's, None elsewhere.
    """

    core: str
    kernels: str
    machine: str | None
    target: str
    profile: str
    enums: str = "short"

    @property
    def library(self) -> str:
        """The kernel library as documents call it, and as the runner does."""
        return _LIBRARIES[self.kernels]

    @property
    def pointer_bits(self) -> int:
        """32 on a microcontroller and in a module, 64 on the host."""
        return 64 if self.core == "host" else 32

    @property
    def is_module(self) -> bool:
        """Whether it is a WebAssembly module and no program."""
        return self.core == "wasm"


_M3, _M7, _M55 = "mps2-an385", "mps2-an500", "mps3-an547"

BUILDS: Mapping[str, Build] = {
    "host-reference": Build("host", "reference", None, "host", "reference"),
    "host-cmsis-nn": Build("host", "cmsis", None, "host", "cmsis-nn"),
    "host-esp-nn": Build("host", "espnn", None, "host", "esp-nn"),
    "cortex-m3-cmsis-nn": Build("m3", "cmsis", _M3, "cortex-m3", "cmsis-nn"),
    "cortex-m7-cmsis-nn": Build("m7", "cmsis", _M7, "cortex-m7", "cmsis-nn-dsp"),
    "cortex-m55-cmsis-nn": Build("m55", "cmsis", _M55, "cortex-m55", "cmsis-nn-mve"),
    "cortex-m7-reference": Build("m7", "reference", _M7, "cortex-m7", "reference"),
}

MODULES: Mapping[str, Build] = {
    "tflm-reference": Build("wasm", "reference", None, "riscv32", "reference", "int"),
    "tflm-cmsis-nn": Build("wasm", "cmsis", None, "cortex-m3", "cmsis-nn"),
    "tflm-cmsis-nn-dsp": Build("wasm", "cmsisdsp", None, "cortex-m7", "cmsis-nn-dsp"),
    "tflm-esp-nn": Build("wasm", "espnn", None, "esp32", "esp-nn", "int"),
}
"""The modules that the tool verifies with; their enums are as wide as those of the targets' compilers."""
