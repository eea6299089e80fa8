"""The tilings of a model and what is said of them, with as wide limits as a test wants."""

from __future__ import annotations

from dataclasses import replace

from tflite_memopt.kernels.profile import KernelProfile
from tflite_memopt.model.ir.model import Model
from tflite_memopt.options import Options
from tflite_memopt.search.cascade.measure import Measured
from tflite_memopt.search.cascade.select import Figures, Limits
from tflite_memopt.search.cascade.space import UNROLLED, Modes, Space
from tflite_memopt.search.cascade.tiling import ClampedLoop, MaskedLoop, Tiling

ANY = 1 << 60
"""More than any model needs, and as much as any test may add."""
STRIPES = Modes(UNROLLED, (), phases=False)
EVERY = Modes(UNROLLED, (ClampedLoop, MaskedLoop), phases=True)


def space_of(
    model: Model,
    profile: KernelProfile,
    modes: Modes = EVERY,
    limits: Limits | None = Limits(ANY, ANY, ANY),
    options: Options | None = None,
    measured: Measured | None = None,
) -> Space:
    """All tilings of these modes, each with its bound; with ``limits`` None those of the options."""
    asked = Options(jobs=1) if options is None else options
    known = Measured() if measured is None else measured
    space = Space(model, profile, asked.search, known, modes)
    if limits is not None:
        space.tilings.needs = replace(space.tilings.needs, limits=limits)
    space.bounds.fill(ANY)
    return space


def figures_of(space: Space) -> dict[Tiling, Figures]:
    """What is said of each tiling: its bound, or what was measured."""
    return {tiling: each.figures for region in space.tilings.regions for tiling, each in region.known.items()}
