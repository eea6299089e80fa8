"""Patterns of concatenation and operator, at random, for the rules that take a concatenation apart.

All patterns of a test are branches of one model, so that one start of an interpreter runs them all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np
import numpy.typing as npt

from tests.model_builder import ModelBuilder
from tests.profiles import share
from tests.two_models import compare_models
from tflite_memopt.evidence.equivalence.inputs import seeded_inputs
from tflite_memopt.evidence.proof import Status, prove
from tflite_memopt.model.io.reader import read_model
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.model.ir.change import Changed
from tflite_memopt.model.ir.model import DType, Model, Quantization, Tensor
from tflite_memopt.model.ir.tensors import per_tensor
from tflite_memopt.search.rewrite.engine import Driver, Rule
from tflite_memopt.search.rewrite.stage import SPLITS

ARENA = 64 << 20
F32, I8, I16, I32 = DType.FLOAT32, DType.INT8, DType.INT16, DType.INT32
LITERT, TFLM = "litert", "tflm"
Array = npt.NDArray[Any]


@dataclass
class Branch:
    """A builder, a source of choices, and names that no other branch has."""

    builder: ModelBuilder
    random: Random
    number: int
    outputs: list[Tensor] = field(default_factory=list)

    def name(self, of: str) -> str:
        return f"b{self.number}/{of}{len(self.builder.graph.tensors)}"

    def quantization(self, dtype: DType) -> dict[str, Any]:
        if dtype not in (I8, I16):
            return {}
        zero_point = self.random.randint(-128, 127) if dtype is I8 else 0
        return {"scale": round(self.random.uniform(0.004, 0.1), 4), "zero_point": zero_point}

    def input(self, shape: Sequence[int], dtype: DType, **quantization: Any) -> Tensor:
        return self.builder.input(self.name("x"), shape, dtype, **quantization)

    def tensor(self, shape: Sequence[int], dtype: DType, **quantization: Any) -> Tensor:
        return self.builder.tensor(self.name("y"), shape, dtype, **quantization)

    def constant(self, values: Array, quantization: Quantization | None = None) -> Tensor:
        return self.builder.constant(self.name("c"), values, quantization)

    def ints(self, *values: int) -> Tensor:
        return self.constant(np.asarray(values, np.int32))

    def values(self, shape: Sequence[int], dtype: DType) -> Array:
        rng = np.random.default_rng(self.random.getrandbits(32))
        if dtype is F32:
            return rng.uniform(-1, 1, shape).astype(np.float32)
        info = np.iinfo(dtype.label)
        return rng.integers(info.min, info.max, shape, endpoint=True).astype(dtype.label)

    def concat(self, dtype: DType, shape: Sequence[int] | None = None, channels: Sequence[int] = ()) -> Tensor:
        """A concatenation along the channels; at times of one tensor twice, and at times returned by the graph too."""
        pick = self.random
        rows = tuple(shape or (pick.choice((1, 1, 2)), pick.randint(2, 7), pick.randint(2, 7)))
        counts = list(channels) or [pick.choice((1, 1, 2, 3, 5, 16)) for _ in range(pick.randint(2, 4))]
        quantization = self.quantization(dtype)
        parts = [self.input((*rows, count), dtype, **quantization) for count in counts]
        if not channels and pick.random() < 0.2:
            parts.append(parts[0])
        joined = self.tensor((*rows, sum(part.shape[-1] for part in parts)), dtype, **quantization)
        axis = pick.choice((-1, len(joined.shape) - 1))
        self.builder.operator("CONCATENATION", parts, (joined,), "ConcatenationOptions", axis=axis)
        if pick.random() < 0.2:
            self.outputs.append(joined)
        return joined

    def run(self, op: str, inputs: Sequence[Tensor | None], output: Tensor, kind: str | None = None, **at: Any) -> None:
        self.builder.operator(op, inputs, (output,), kind, **at)
        self.outputs.append(output)


Pattern = Callable[[Branch], None]


def model_of(pattern: Pattern, seed: int, count: int) -> tuple[Model, list[int]]:
    """A model of ``count`` branches, and the branch that each output is of."""
    builder = ModelBuilder()
    owners: list[int] = []
    outputs: list[Tensor] = []
    for number in range(count):
        branch = Branch(builder, Random(seed * 100_003 + number), number)
        pattern(branch)
        outputs += branch.outputs
        owners += [number] * len(branch.outputs)
    return builder.finish(*outputs), owners


def rule_named(name: str) -> Rule:
    """The rule that takes concatenations apart and has this name in reports."""
    (found,) = (rule for rule in SPLITS if rule.name == name)
    return found


def assert_exact(
    rule: Rule,
    pattern: Pattern,
    seed: int,
    count: int,
    runtimes: Sequence[str] = (LITERT, TFLM),
) -> None:
    """The rule applies in every branch, and each runtime computes the same bits as before, proved for all inputs.

    ``count``: of branches with ``scripts/test --all``.
    """
    count = share(count)
    model, owners = model_of(pattern, seed, count)
    original = write_model(model)
    driver = Driver(model)
    driver.apply_everywhere((rule,))
    assert not driver.refused, next(iter(driver.refused.values()))
    assert len(driver.applied) == count
    assert_same_bits(original, write_model(model), owners, seed, runtimes)


def assert_same_bits(
    original: bytes,
    rewritten: bytes,
    owners: Sequence[int],
    seed: int,
    runtimes: Sequence[str] = (LITERT, TFLM),
) -> None:
    """Each runtime computes the same, for all inputs; ``owners`` says which branch an output is of."""
    proof = prove(read_model(original), read_model(rewritten))
    wrong = [f"branch {owners[at]}" for at in proof.outputs]
    assert proof.status is Status.PROVED, (str(proof), wrong, f"seed {seed}")
    samples = seeded_inputs(read_model(original), 2, seed)
    for runtime in runtimes:
        verdict = compare_models(runtime, original, rewritten, samples, ARENA)
        owner = None if verdict.difference is None else f"branch {owners[verdict.difference.output]}, seed {seed}"
        assert verdict.equal, (runtime, verdict.reason, owner)


def names_of(changed: Changed) -> tuple[str, ...]:
    """The names of all that a pass has changed."""
    return tuple(name for use in changed.uses for name in use.operators)


def refusals(model: Model, rule: Rule) -> list[str]:
    """The reasons that the rule gives."""
    driver = Driver(model)
    driver.apply_everywhere((rule,))
    assert not driver.applied
    return [refused.reason for refused in driver.refused.values()]


def assert_refused(model: Model, rule: Rule, *names: str) -> None:
    """The rule changes nothing, and the reason names these: tensors, figures, or what it is about."""
    reason, *_ = refusals(model, rule)
    assert [name for name in names if name not in reason] == [], reason


def weights_quantization(branch: Branch, channels: int, axis: int) -> Quantization:
    """Per tensor or per channel."""
    if branch.random.random() < 0.3:
        return per_tensor(0.01, 0)
    rng = np.random.default_rng(branch.random.getrandbits(32))
    scale = rng.uniform(0.002, 0.02, channels).astype(np.float32)
    return Quantization(scale, np.zeros(channels, np.int64), axis)


def quantization_of(x: Tensor) -> dict[str, Any]:
    """To make another tensor with it."""
    if x.quantization is None:
        return {}
    return {"scale": float(x.quantization.scale[0]), "zero_point": int(x.quantization.zero_point[0])}
