"""A tiling: a region of a model and the form in which it runs in parts. Searches choose tilings; replays read them.

A set of tilings prints on one line, ``4-11 unrolled 8,16,24 rolling pad; 15-20 masked 2``, and is read from it.

To add a form:

1. A frozen dataclass in ``Form`` and ``NAMES``, and its words in ``Tiling.described``. Of forms whose figures are the
   same, the search keeps the one that stands first in ``NAMES``.
2. A module that replaces the region's operators, called by ``_apply``; it says of each new tensor which piece of the
   original it is (``ir/model.py``). ``lower_phases`` in ``loop.py`` writes the shortest loop; a loop over rows is a
   ``RowLoop``, whose body ``loop.py`` writes, as in ``clamped_body``.
3. Its bound: ``Figures`` in ``space.py`` that are not above the measurements; zeros cost only time.
4. Its candidates: ``TilingBounds.fill``, or ``_add_unrolled`` for stripes, which share the bounds computed there;
   ``Modes.families``, where loops stand in the first one; ``Modes`` and ``modes_of``; the operators
   that firmware needs in ``kernels/since.py``.
5. Its row in docs/how_it_works.md, its word in docs/architecture.md. Tests: ``EVERY`` in ``tests/cascade/spaces.py``,
   by which bounds and writers are tested; ``forms`` and the words in ``test_tiling.py``; ``LOOPS`` in ``forms.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from itertools import pairwise
from typing import get_args

from ...errors import ErrorKind, InfeasibleError, UsageError
from ...model.ir.copying import share_constants
from ...model.ir.model import Graph, Model
from .loop import LoopRows, loop_rows_of, lower_loop, lower_phases
from .loop_rows import Masked
from .lower import lower
from .region import Region, region_of
from .stripes import Edges, Ends, Halo, cuts_at, even_ends, stripes_of

_LARGEST_OPERAND = 64
"""Bytes of the constants that tilings add: positions, sizes, and paddings. Weights are not looked at again."""


@dataclass(frozen=True, order=True)
class Unrolled:
    """Stripes one after the other, which end with the rows ``ends`` of the region's output."""

    ends: Ends
    halo: Halo
    edges: Edges


@dataclass(frozen=True, order=True)
class RowLoop:
    """A loop; each iteration makes ``rows`` rows of the region's output."""

    rows: int


class ClampedLoop(RowLoop):
    """A loop whose iterations at the edges of the image are moved inwards."""


class MaskedLoop(RowLoop):
    """A loop that keeps rows from iteration to iteration, and masks those outside of the image."""


class CutLoop(RowLoop):
    """A masked loop that cuts out the rows that it keeps, and pads by PAD alone: of fewer tensors, but slower."""


@dataclass(frozen=True, order=True)
class PhaseLoop:
    """A loop over the phases of a dilated sequence."""

    phases: int


Form = Unrolled | RowLoop | PhaseLoop
NAMES: Mapping[str, type[Form]] = {
    "unrolled": Unrolled,
    "clamped": ClampedLoop,
    "masked": MaskedLoop,
    "cut": CutLoop,
    "phases": PhaseLoop,
}
NAME_OF: Mapping[type[Form], str] = {form: name for name, form in NAMES.items()}
_RANK: Mapping[type[Form], int] = {form: number for number, form in enumerate(NAME_OF)}


@dataclass(frozen=True)
class Tiling:
    """Steps ``first`` to ``end``, half-open, of a model in its order, in one form."""

    first: int
    end: int
    form: Form

    def __str__(self) -> str:
        values = (value if isinstance(value, tuple) else (value,) for value in astuple(self.form))
        fields = (",".join(map(str, each)) for each in values)
        return f"{self.first}-{self.end} {NAME_OF[type(self.form)]} {' '.join(fields)}"

    def __lt__(self, other: Tiling) -> bool:
        return self._key() < other._key()

    def _key(self) -> tuple[object, ...]:
        return self.first, self.end, _RANK[type(self.form)], self.form

    def described(self, height: int) -> str:
        """Return the form in words, for an output of ``height`` rows: ``6 stripes (rolling, trim)``."""
        form = self.form
        if isinstance(form, PhaseLoop):
            return f"a loop over {form.phases} phases"
        if isinstance(form, Unrolled):
            count = len(form.ends)
            modes = [] if form.ends == even_ends(height, count) else ["uneven"]
            return f"{count} stripes ({', '.join([*modes, form.halo, form.edges])})"
        return f"a {NAME_OF[type(form)]} loop, {form.rows} row{'s' * (form.rows > 1)} per iteration"


Tilings = tuple[Tiling, ...]


def has_loop(chosen: Sequence[Tiling]) -> bool:
    """Tell whether a form of these is a loop, which an older TFLM does not run."""
    return any(not isinstance(each.form, Unrolled) for each in chosen)


def text_of(chosen: Sequence[Tiling]) -> str:
    """Return the tilings on one line."""
    return "; ".join(map(str, chosen))


def tilings_in(text: str) -> Tilings:
    """Return the tilings that ``text_of`` gives this text for. Raises UsageError, naming the part that is none."""
    return tuple(_tiling_in(part.strip()) for part in text.split(";") if part.strip())


def _tiling_in(text: str) -> Tiling:
    try:
        steps, name, *fields = text.split()
        first, end = map(int, steps.split("-"))
        kind = NAMES[name]
        halos, edges = ({word: word for word in get_args(each)}.__getitem__ for each in (Halo, Edges))
        readers: dict[str, Callable[[str], object]] = {"ends": _ends, "halo": halos, "edges": edges}
        names = list(kind.__dataclass_fields__)
        values = [readers.get(name, _count)(field) for name, field in zip(names, fields, strict=True)]
        return Tiling(first, end, kind(*values))  # type: ignore[arg-type]
    except (ValueError, KeyError):
        raise UsageError(
            f"'{text}' is not a tiling; an example is '4-11 unrolled 8,16,24 rolling pad'", ErrorKind.SYNTAX
        ) from None


def _count(text: str) -> int:
    if int(text) < 1:
        raise ValueError
    return int(text)


def _ends(text: str) -> Ends:
    return tuple(map(int, text.split(",")))


def apply_tilings(model: Model, chosen: Sequence[Tiling]) -> Model:
    """``model`` itself, its main graph's regions in these forms. Steps are those before any is applied.

    Raises InfeasibleError when one does not fit the model.
    """
    operators = list(model.main.operators)
    _check_steps(chosen, len(operators))
    for each in chosen:
        region = region_of(model.main, operators[each.first : each.end])
        if isinstance(region, str):
            raise InfeasibleError(
                f"steps {each.first} to {each.end} do not form a region: {region}", ErrorKind.DECISION
            )
        reason = _apply(model, model.main, region, each.form)
        if reason is not None:
            raise InfeasibleError(f"'{each}': {reason}", ErrorKind.DECISION)
    share_constants(model, _LARGEST_OPERAND)
    return model


def _check_steps(chosen: Sequence[Tiling], count: int) -> None:
    """Raises InfeasibleError where steps are none of the ``count`` steps of a model, or in two tilings."""
    for each in chosen:
        if not 0 <= each.first < each.end <= count:
            raise InfeasibleError(f"'{each}': the model has steps 0 to {count}", ErrorKind.DECISION)
    for one, other in pairwise(sorted(chosen)):
        if other.first < one.end:
            raise InfeasibleError(f"'{one}' and '{other}' have steps in common", ErrorKind.DECISION)


def _apply(model: Model, graph: Graph, region: Region, form: Form) -> str | None:
    """Write a region in a form; returns why that cannot be."""
    if isinstance(form, PhaseLoop):
        return lower_phases(model, region, form.phases)
    if isinstance(form, Unrolled):
        return _apply_stripes(model, graph, region, form)
    loop = loop_rows_for(region, form)
    if isinstance(loop, str):
        return loop
    lower_loop(model, graph, region, loop)
    return None


def loop_rows_for(region: Region, form: RowLoop) -> LoopRows | str:
    """Return the rows of a loop's iterations, or why there is no such loop."""
    loop = loop_rows_of(region, form.rows, "clamped" if isinstance(form, ClampedLoop) else "masked")
    return replace(loop, copies=False) if isinstance(form, CutLoop) and isinstance(loop, Masked) else loop


def with_rows_cut(model: Model, tiling: Tiling) -> Tiling:
    """Return the tiling as a ``CutLoop`` where that has fewer tensors; else itself."""
    if not isinstance(tiling.form, MaskedLoop):
        return tiling
    region = region_of(model.main, model.main.operators[tiling.first : tiling.end])
    loop = region if isinstance(region, str) else loop_rows_for(region, tiling.form)
    is_larger = isinstance(loop, Masked) and loop.takes_more_tensors()
    return replace(tiling, form=CutLoop(tiling.form.rows)) if is_larger else tiling


def _apply_stripes(model: Model, graph: Graph, region: Region, form: Unrolled) -> str | None:
    height, ends = region.exit.shape[1], form.ends
    if ends[-1:] != (height,) or list(ends) != sorted(set(ends)):
        return f"{height} rows cannot be cut at {ends}"
    stripes = stripes_of(region, cuts_at(ends), form.halo, form.edges)
    if isinstance(stripes, str):
        return stripes
    lower(model, graph, region, stripes)
    return None
