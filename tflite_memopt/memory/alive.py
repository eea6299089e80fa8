"""What is alive at the steps of a model in its own order: lower bounds on the head, for any plan."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ..ir.model import Model
from ..kernels.profile import KernelProfile
from .layout import memory_layout
from .relations import saved_bytes
from .schedule_problem import atoms_in, schedule_problem

Integers = npt.NDArray[np.int64]


class Alive:
    """Bytes of the main graph's tensors by step, and around intervals of steps."""

    def __init__(self, model: Model, profile: KernelProfile) -> None:
        self._layout = memory_layout(model, profile)
        self._problem = schedule_problem(model.main, self._layout)
        self._atoms, self._operators = atoms_in(model.main, self._layout).of, model.main.operators
        count, steps = len(self._problem.sizes), len(self._problem.steps)
        self._sizes: Integers = np.asarray(self._problem.sizes, np.int64)
        self._born: Integers = np.full(count, steps, np.int64)
        self._dies: Integers = np.full(count, -1, np.int64)
        self._born[list(self._problem.inputs)] = -1
        self._touched = [list({*step.inputs, *step.outputs}) for step in self._problem.steps]
        for at, step in enumerate(self._problem.steps):
            self._born[list(step.outputs)] = at
            self._dies[self._touched[at]] = at
        self._dies[list(self._problem.outputs)] = steps
        self._across: dict[tuple[int, int], int] = {}

    def needs(self) -> list[int]:
        """Bytes of the working set of each step, less what its kernel may save at most.

        The scheduler's working set counts a saving only where the input is one range of bytes. Here an input saves
        what dies of it, in however many ranges.
        """
        found = []
        for at, (operator, step) in enumerate(zip(self._operators, self._problem.steps, strict=True)):
            alive = int(self._sizes[(self._born <= at) & (self._dies >= at)].sum())
            saved = 0
            for reuse in self._layout.reuses.get(operator, ()):
                if reuse.kind != "view":
                    atoms = np.asarray(self._atoms.get(reuse.input, ()), np.int64)
                    dying = int(self._sizes[atoms[self._dies[atoms] == at]].sum())
                    saved = max(saved, min(saved_bytes(reuse), dying))
            found.append(alive + step.scratch - saved)
        return found

    def across(self, first: int, end: int) -> int:
        """Bytes that are alive during all of steps ``first`` to ``end``, half-open, and that none of them touches.

        Less what the inputs of these steps have in common: measured alone, the region has it twice.
        """
        if (first, end) not in self._across:
            alive = (self._born < first) & (self._dies >= end)
            alive[[atom for touched in self._touched[first:end] for atom in touched]] = False
            self._across[first, end] = int(self._sizes[alive].sum()) - self._in_common(first, end)
        return self._across[first, end]

    def _in_common(self, first: int, end: int) -> int:
        """Bytes of inputs that are views of one another, beyond those of one of them."""
        inside = {operator.outputs[0] for operator in self._operators[first:end]}
        read = (tensor for operator in self._operators[first:end] for tensor in operator.present_inputs())
        inputs = dict.fromkeys(tensor for tensor in read if tensor not in inside)
        atoms = [atom for tensor in inputs for atom in self._atoms.get(tensor, ())]
        return int(self._sizes[atoms].sum() - self._sizes[list(set(atoms))].sum())
