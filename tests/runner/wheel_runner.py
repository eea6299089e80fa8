"""A runner over the tflite-micro wheel, in the protocol of runner.cc: wheel_runner.py REQUESTS."""

from __future__ import annotations

import sys
from collections.abc import Collection
from pathlib import Path

import numpy as np

from tflite_memopt.evidence.equivalence.adapter import RunJob, Sample
from tflite_memopt.evidence.equivalence.inputs import numpy_type
from tflite_memopt.evidence.equivalence.tflm import run_tflm
from tflite_memopt.model.io.reader import read_model

_LARGEST = 1 << 24


def main(requests: str) -> None:
    for line in Path(requests).read_text().splitlines():
        model, inputs, outputs, arena, samples, search, *kept = line.split()
        print(f"model {model}\nkernels reference\ncommit wheel", flush=True)
        data = Path(model).read_bytes()
        carried = [at for at, digit in enumerate("".join(kept)) if digit == "1"]
        given = _inputs(data, Path(inputs).read_bytes(), int(samples), carried)
        try:
            outcome = run_tflm(RunJob(data, given, int(arena) or _LARGEST, carried=tuple((-1, at) for at in carried)))
        except RuntimeError as error:
            print(f"log what the wheel said\nerror {error}", flush=True)
            continue
        Path(outputs).write_bytes(b"".join(array.tobytes() for array in outcome.arrays.values()))
        print(f"head {outcome.facts['head']}\ntail {outcome.facts['tail']}")
        if int(search):
            print("smallest_arena 4096")
        print("done", flush=True)


def _inputs(model: bytes, data: bytes, samples: int, carried: Collection[int]) -> list[Sample]:
    found, at = [], 0
    for number in range(samples):
        sample = []
        for position, tensor in enumerate(read_model(model).main.inputs):
            if number and position in carried:
                continue
            kind = numpy_type(tensor.dtype)
            count = int(np.prod(tensor.shape))
            sample.append(np.frombuffer(data, kind, count, at).reshape(tensor.shape))
            at += count * kind.itemsize
        found.append(sample)
    assert at == len(data)
    return found


if __name__ == "__main__":
    main(sys.argv[1])
