"""The DSP instructions in plain C, compiled to WebAssembly: each against its definition, on all corner values."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import wasmtime

from scripts.device_lab.build import NATIVE, zig

HALVES = (0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFF)
CORNERS = tuple(high << 16 | low for high, low in product(HALVES, HALVES))
"""Each half word of a word is at an end of what a byte or a half word holds, or beside one."""
START = 1 << 20
"""Of the arrays in the module's memory, behind what is its own."""
FEW = (0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x7FFF8000, 0x80007FFF)


def signed(value: int, bits: int) -> int:
    return (value & (1 << bits) - 1) - ((value >> bits - 1 & 1) << bits)


def parts(value: int, bits: int) -> list[int]:
    """The signed numbers of so many bits in a word, lowest first."""
    return [signed(value >> at, bits) for at in range(0, 32, bits)]


def word(values: Sequence[int], bits: int) -> int:
    return sum((value & (1 << bits) - 1) << at * bits for at, value in enumerate(values))


def saturated(value: int, bits: int) -> int:
    return max(-(1 << bits - 1), min(value, (1 << bits - 1) - 1))


def ror(x: int, bits: int) -> int:
    return (x >> bits % 32 | x << 32 - bits % 32) & 0xFFFFFFFF


def sxtb16(x: int) -> int:
    return word([signed(x, 8), signed(x >> 16, 8)], 16)


def sxtab16(to: int, x: int) -> int:
    return word([a + b for a, b in zip(parts(to, 16), parts(sxtb16(x), 16), strict=True)], 16)


def products(a: int, b: int) -> list[int]:
    return [x * y for x, y in zip(parts(a, 16), parts(b, 16), strict=True)]


ROTATIONS = tuple(range(33))
SHIFTS = (0, 1, 8, 15, 16)
WIDE = (0, 1, -1, 2**63 - 1, -(2**63), 2**31, -(2**31) - 1)
DEFINITIONS: Mapping[str, tuple[Callable[..., int], tuple[Sequence[int], ...]]] = {
    "ROR": (ror, (CORNERS, ROTATIONS)),
    "SXTB16": (sxtb16, (CORNERS,)),
    "SXTAB16": (sxtab16, (CORNERS, CORNERS)),
    "SXTB16_RORn": (lambda x, bits: sxtb16(ror(x, bits)), (CORNERS, ROTATIONS)),
    "SXTAB16_RORn": (lambda to, x, bits: sxtab16(to, ror(x, bits)), (FEW, CORNERS, (0, 4, 8, 16, 24))),
    "SMULBB": (lambda a, b: products(a, b)[0], (CORNERS, CORNERS)),
    "SMULTT": (lambda a, b: products(a, b)[1], (CORNERS, CORNERS)),
    "SMLABB": (lambda a, b, to: products(a, b)[0] + to, (CORNERS, CORNERS, FEW)),
    "SMLATT": (lambda a, b, to: products(a, b)[1] + to, (CORNERS, CORNERS, FEW)),
    "SMLAD": (lambda a, b, to: sum(products(a, b)) + to, (CORNERS, CORNERS, FEW)),
    "SMLALD": (lambda a, b, to: sum(products(a, b)) + to, (CORNERS, CORNERS, WIDE)),
    "PKHBT": (lambda a, b, bits: a & 0xFFFF | b << bits & 0xFFFF0000, (CORNERS, CORNERS, SHIFTS)),
    "PKHTB": (lambda a, b, bits: a & 0xFFFF0000 | signed(b, 32) >> bits & 0xFFFF, (CORNERS, CORNERS, SHIFTS)),
    "QADD": (lambda a, b: saturated(signed(a, 32) + signed(b, 32), 32), (CORNERS, CORNERS)),
    "QSUB16": (
        lambda a, b: word([saturated(x - y, 16) for x, y in zip(parts(a, 16), parts(b, 16), strict=True)], 16),
        (CORNERS, CORNERS),
    ),
    "QSUB8": (
        lambda a, b: word([saturated(x - y, 8) for x, y in zip(parts(a, 8), parts(b, 8), strict=True)], 8),
        (CORNERS, CORNERS),
    ),
    "SADD16": (
        lambda a, b: word([x + y for x, y in zip(parts(a, 16), parts(b, 16), strict=True)], 16),
        (CORNERS, CORNERS),
    ),
}


Function = Callable[..., list[int]]


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Function]:
    """The functions of the header, by name; each takes arrays."""
    compiler = zig()
    if compiler is None:
        pytest.skip("ziglang is not installed; scripts/runners installs it")
    folder: Path = tmp_path_factory.mktemp("dsp")
    lines = ['#include "dsp_instructions.h"']
    for name, (_, domains) in DEFINITIONS.items():
        kinds = ["int64_t" if domain is WIDE else "uint32_t" for domain in domains]
        given = "".join(f", const {kind}* x{at}" for at, kind in enumerate(kinds))
        called = ", ".join(f"x{at}[i]" for at in range(len(kinds)))
        result = "int64_t" if WIDE in domains else "uint32_t"
        lines.append(f'__attribute__((export_name("{name}"))) void f_{name}(int n, {result}* y{given}) {{')
        lines.append(f"  for (int i = 0; i < n; ++i) y[i] = {name}({called});\n}}")
    (folder / "all.c").write_text("\n".join((*lines, "")))
    command = [str(compiler), "cc", "-target", "wasm32-wasi", "-O2", "-mexec-model=reactor", f"-I{NATIVE}"]
    subprocess.run([*command, str(folder / "all.c"), "-o", str(folder / "all.wasm")], check=True)
    engine = wasmtime.Engine()
    store = wasmtime.Store(engine)
    exports = wasmtime.Instance(store, wasmtime.Module.from_file(engine, str(folder / "all.wasm")), []).exports(store)

    memory: Any = exports["memory"]
    memory.grow(store, 64)

    def function(name: str) -> Function:
        found: Any = exports[name]

        def run(result: str, *arrays: np.ndarray) -> list[int]:
            at, places = START, []
            for array in arrays:
                memory.write(store, array.tobytes(), at)
                places.append(at)
                at += -(-array.nbytes // 8) * 8
            found(store, len(arrays[0]), at, *places)
            size = len(arrays[0]) * np.dtype(result).itemsize
            return [int(value) for value in np.frombuffer(memory.read(store, at, at + size), result)]

        return run

    return function


@pytest.mark.parametrize("name", DEFINITIONS)
def test_an_instruction_does_what_its_definition_says(name: str, compiled: Callable[[str], Function]) -> None:
    definition, domains = DEFINITIONS[name]
    values = list(product(*domains))
    columns = [
        np.array([each[at] for each in values], "int64" if domain is WIDE else "uint32")
        for at, domain in enumerate(domains)
    ]
    bits = 64 if WIDE in domains else 32
    found = compiled(name)("int64" if WIDE in domains else "uint32", *columns)
    wrong = [
        [hex(value) for value in given]
        for given, result in zip(values, found, strict=True)
        if signed(result, bits) != signed(definition(*given), bits)
    ]
    assert wrong == []
