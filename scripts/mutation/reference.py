"""What a mutant would show in a long run: its operators alone, over what 1,000 inputs of the whole model give them.

An operator whose outputs stay the same for the same inputs changes nothing behind it, so a run of the whole model would
say no more. Where an operator cannot be run alone, the whole model is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from scripts.mutation.mutant import Mutant
from tflite_memopt.equivalence.adapter import REFERENCE, Array, Run, RunJob, Sample
from tflite_memopt.equivalence.baseline import arena_for
from tflite_memopt.equivalence.exposure import computed_tensors, run_exposed
from tflite_memopt.equivalence.inputs import has_state, is_exchanged, seeded_inputs
from tflite_memopt.equivalence.pool import Interpreters
from tflite_memopt.io.reader import read_model
from tflite_memopt.io.writer import write_model
from tflite_memopt.ir.model import Model

_SEED = 4_711
"""Other inputs than those of the verification."""
_CHUNK = 100


class LongRun:
    """The original over many inputs, on LiteRT if that can run it, else on TFLM."""

    def __init__(self, data: bytes, samples: int, interpreters: Interpreters) -> None:
        self._model, self._data, self._interpreters = read_model(data), data, interpreters
        drawn = seeded_inputs(self._model, samples, _SEED)
        size = samples if has_state(self._model.main) else _CHUNK
        self._chunks = [drawn[start : start + size] for start in range(0, samples, size)]
        self.runtime = "litert"
        self._traces = [self._trace(data, chunk) for chunk in self._chunks[:1]]
        if self._traces[0] is None:
            self.runtime = "tflm"
            self._traces = [self._trace(data, chunk) for chunk in self._chunks[:1]]
        self._traces += [self._trace(data, chunk) for chunk in self._chunks[1:]]

    def shows(self, mutant: Mutant) -> bool:
        """Whether any inner value of any input is another one."""
        if self.runtime == "litert" and mutant.touched and not has_state(self._model.main):
            found = [self._shows_alone(mutant, step) for step in mutant.touched]
            if None not in found:
                return any(found)
        return any(
            _differ(before, self._trace(mutant.data, chunk))
            for chunk, before in zip(self._chunks, self._traces, strict=True)
        )

    def _trace(self, data: bytes, samples: list[Sample]) -> Run | None:
        model = read_model(data)
        if self.runtime == "tflm":
            found = run_exposed(self._interpreters["tflm"], data, samples, 2 * arena_for(model))
            return found if found.ran else None
        job = RunJob(data, samples, 0, computed_tensors(model.main), REFERENCE)
        run = self._interpreters["litert"].run(job)
        return run if run.ran else None

    def _shows_alone(self, mutant: Mutant, step: int) -> bool | None:
        """None when the operator cannot be run alone."""
        alone = _alone(read_model(mutant.data), step)
        if alone is None:
            return None
        data, inputs, outputs = alone
        for before in self._traces:
            if before is None or any(index not in before.tensors for index in (*inputs, *outputs)):
                return None
            samples = [list(row) for row in zip(*(before.tensors[index] for index in inputs), strict=True)]
            run = self._interpreters["litert"].run(RunJob(data, samples, 0, (), REFERENCE))
            if not run.ran:
                return True  # it runs in the original
            found = run.outputs
            wanted = {at: before.tensors[index] for at, index in enumerate(outputs)}
            if _arrays_differ(wanted, found):
                return True
        return False


def _alone(model: Model, step: int) -> tuple[bytes, Sequence[int], Sequence[int]] | None:
    """A model of one operator, and the positions of its inputs and outputs in the whole model."""
    graph = model.main
    operator = graph.operators[step]
    operands = tuple(dict.fromkeys(tensor for tensor in operator.present_inputs() if not tensor.is_constant))
    if not operands or any(tensor.is_variable or not is_exchanged(tensor.dtype) for tensor in operands):
        return None
    for other in [each for each in graph.operators if each is not operator]:
        graph.remove_operator(other)
    graph.inputs, graph.outputs, model.signatures = operands, operator.outputs, None
    positions = {tensor: index for index, tensor in enumerate(graph.tensors)}
    return write_model(model), [positions[each] for each in operands], [positions[each] for each in operator.outputs]


def _differ(before: Run | None, after: Run | None) -> bool:
    if before is None or after is None:
        return before is not None
    return _arrays_differ(before.tensors, after.tensors) or _arrays_differ(before.outputs, after.outputs)


def _arrays_differ(before: Mapping[int, list[Array]], after: Mapping[int, list[Array]]) -> bool:
    return any(
        at not in after or any(a.tobytes() != b.tobytes() for a, b in zip(values, after[at], strict=True))
        for at, values in before.items()
    )
