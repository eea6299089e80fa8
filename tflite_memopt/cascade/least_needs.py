"""A lower bound on the head while each step of a model runs, for any plan of its own order."""

from __future__ import annotations

from ..ir.model import Model
from ..kernels.profile import KernelProfile
from ..memory.layout import memory_layout
from ..memory.relations import saved_bytes
from ..memory.schedule_problem import atoms_in, schedule_problem


def least_needs(model: Model, profile: KernelProfile) -> list[int]:
    """Bytes of the working set of each step of the main graph, less what its kernel may save at most.

    The scheduler's working set counts a saving only where the input is one range of bytes. Here an input saves what
    dies of it, in however many ranges.
    """
    layout = memory_layout(model, profile)
    problem = schedule_problem(model.main, layout)
    atoms = atoms_in(model.main, layout)
    sizes, end = problem.sizes, len(problem.steps)
    dies = dict.fromkeys(range(len(sizes)), -1)
    for at, step in enumerate(problem.steps):
        dies.update(dict.fromkeys((*step.inputs, *step.outputs), at))
    dies.update(dict.fromkeys(problem.outputs, end))
    alive = sum(sizes[a] for a in set(problem.inputs) if dies[a] >= 0)
    needs = []
    for at, (operator, step) in enumerate(zip(model.main.operators, problem.steps, strict=True)):
        alive += sum(sizes[a] for a in step.outputs)
        saved = 0
        for reuse in layout.reuses.get(operator, ()):
            if reuse.kind != "view":
                dying = sum(sizes[a] for a in atoms.of.get(reuse.input, ()) if dies[a] == at)
                saved = max(saved, min(saved_bytes(reuse), dying))
        needs.append(alive + step.scratch - saved)
        alive -= sum(sizes[a] for a in {*step.inputs, *step.outputs} if dies[a] == at)
    return needs
