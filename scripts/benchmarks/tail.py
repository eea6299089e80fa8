"""The tail by kind, before and after, and the least that stock TFLM permits: docs/results/tail.csv."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import click

from tflite_memopt.kernels import arena
from tflite_memopt.kernels.profile import KernelProfile
from tflite_memopt.kernels.requests import requests_in
from tflite_memopt.kernels.targets import profile_for
from tflite_memopt.memory.figures import tail_parts
from tflite_memopt.memory.file import read_planned
from tflite_memopt.model.ir.model import Model, Operator
from tflite_memopt.options import Options
from tflite_memopt.run.pipeline import optimize
from tflite_memopt.solvers.graph.alignment import aligned

from .figures import Row, keep

_STRUCTURES = ("structures of tensors", "structures of operators")
_REST = "allocator, inputs, outputs and alignment"
_KINDS = {"tail": "all", "tensors": _STRUCTURES[0], "operators": _STRUCTURES[1]} | {
    "kernels with weights": "weights",
    "other kernels": "others",
    "the rest": _REST,
}
_WITH_WEIGHTS = ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "TRANSPOSE_CONV", "SVDF")


@click.command()
@click.argument("models", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--target", default="cortex-m4", show_default=True)
def tail(models: tuple[Path, ...], target: str) -> None:
    """TFLM's own structures in MODELS: bytes as it came/optimized with every byte, by kind, and the least."""
    keep("tail", f"scripts/bench tail FILES --target {target}", _rows(models, target))


def _rows(models: tuple[Path, ...], target: str) -> Iterator[Row]:
    options = Options(target=target, verify=False, every_byte=True)
    profile = profile_for(target)
    for path in models:
        data = path.read_bytes()
        result = optimize(data, options)
        before, after = result.report.before.tail_for_target, result.report.after.tail_for_target
        pair = [_by_kind(read_planned(data), profile, before), _by_kind(read_planned(result.model), profile, after)]
        sizes: dict[str, object] = {
            f"{name} {when}, bytes": each[kind]
            for name, kind in _KINDS.items()
            for when, each in zip(("before", "after"), pair, strict=True)
        }
        least = {"least, bytes": _least(read_planned(result.model), profile)}
        yield Row(path.stem, target, "--changes all --no-verify", sizes | least)


def _by_kind(model: Model, profile: KernelProfile, nbytes: int) -> Counter[str]:
    found = Counter({"all": nbytes})
    for part in tail_parts(model, profile, nbytes):
        kind = part.name.removeprefix("kernels of ")
        place = part.name if kind == part.name else "weights" if kind in _WITH_WEIGHTS else "others"
        found[place] += part.bytes
    return found


def _least(model: Model, profile: KernelProfile) -> int:
    """Return the tail of the operators with weights alone, each set of weights once, in one chain.

    TFLM keeps the structures of a kernel for every operator, and no two sets of weights fit one operator. Each has a
    tensor of weights, one of biases, and an output.
    """
    abi, asked = profile.abi, requests_in(model, profile.abi, profile.requests)
    distinct: dict[object, Operator] = {}
    for operator in asked:
        if operator.name in _WITH_WEIGHTS and operator.inputs[1] is not None:
            distinct.setdefault(id(operator.inputs[1].buffer), operator)
    structures = (arena.BUFFER_ALLOCATOR, arena.MEMORY_PLANNER, arena.MICRO_ALLOCATOR, arena.BUILTIN_DATA_ALLOCATOR)
    found = sum(size.on(abi) for size in (*structures, arena.SUBGRAPH_ALLOCATIONS, arena.EVAL_TENSOR))
    for operator in distinct.values():
        each = asked[operator]
        tensors = len(list(operator.present_inputs())) * arena.EVAL_TENSOR.on(abi)
        found += tensors + arena.NODE_AND_REGISTRATION.on(abi) + each.params
        found += sum(map(aligned, (*each.init, *each.prepare)))
    return found
