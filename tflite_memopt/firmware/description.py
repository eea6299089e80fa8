"""What firmware is written from: models with their arenas, and networks that run in one arena. All sizes are bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256

from ..kernels.profile import KernelProfile
from ..kernels.since import TflmBuild
from ..model.ir.model import DType, Model, Tensor
from ..model.ir.tensors import Affine, affine_of
from ..operators.control import shared_names
from .cpp_text import literal
from .plan_table import Table
from .resolver import Registrations
from .sizes import ArenaSizes


@dataclass(frozen=True)
class Move:
    """``nbytes`` from one offset of the arena to another; the ranges may overlap.

    With ``turned`` above 0 they stay at ``target``, and the first ``turned`` of them change places with the rest.
    """

    source: int
    target: int
    nbytes: int
    turned: int = 0


@dataclass(frozen=True)
class OneModel:
    """A model as firmware has it. ``name``: of its C++ namespace. ``source``: of its file, for comments. ``build``: of
    TFLM.

    ``whom``: the target, in words. ``overlaps``: the plan is right with the kernels of the profile only. ``table``: the
    plan as a table; None: TFLM reads it in the file. ``tied``: positions of inputs that an output is written in place
    of. ``warm_up``: the first call after a reset with right outputs. ``clears_inputs``: a variable shares bytes with
    an input. ``is_apart``: temporaries have a buffer of their own. ``channels_last``: names of inputs and outputs that
    have their channels last, and had them first.
    """

    name: str
    data: bytes
    model: Model
    registrations: Registrations
    source: str | None
    whom: str
    profile: KernelProfile
    build: TflmBuild
    overlaps: bool
    sizes: ArenaSizes
    table: Table | None
    tied: tuple[int, ...]
    warm_up: int
    clears_inputs: bool
    is_apart: bool
    channels_last: frozenset[str]

    @property
    def origin(self) -> str:
        """The file, as comments name it."""
        return origin_of(() if self.source is None else (self.source,), len(self.data), sha256(self.data).hexdigest())

    @property
    def variables(self) -> int:
        """Resource variables: for ``MicroResourceVariables::Create``."""
        return len(shared_names(self.model))


def origin_of(names: Sequence[str], nbytes: int, digest: str) -> str:
    """Return where generated files come from, as their comments say it."""
    return ", ".join([*map(literal, names), f"{nbytes} bytes", f"SHA-256 {digest}"])


@dataclass(frozen=True)
class PartModel:
    """A model of a network, in a folder; ``before``, ``after``: moves around its creation, its table of moves begins at
    ``first_move``."""

    model: OneModel
    folder: str
    before: tuple[Move, ...] = ()
    after: tuple[Move, ...] = ()
    first_move: int = 0


@dataclass(frozen=True)
class Tie:
    """The state that a fed part carries from call to call: an input, and the output at its place, by their positions.

    ``fill``: each byte of the input before the first call; None: they do not matter.
    """

    input: int
    output: int
    bytes: int
    offset: int
    fill: int | None


@dataclass(frozen=True)
class Feed:
    """The input of the first part: ``calls`` invocations, with ``rows`` rows in its input 0 each time.

    An image has ``height`` rows of ``row_bytes`` bytes. The first ``lead`` rows of the first call, and what comes after
    the image, are padding, each byte of which is ``padding``. Input 1 is an int32: ``step`` times the number of the
    call, from 0. The other inputs are those of the ``ties``, and the model's own, which stay: its input k is number
    ``inputs[k]``, 0 that of the image. The first outputs are the tensors that cross the cut, after the last call.
    """

    height: int
    row_bytes: int
    rows: int
    lead: int
    calls: int
    padding: int
    step: int
    ties: tuple[Tie, ...]
    inputs: tuple[int, ...] = (0,)

    @property
    def others(self) -> tuple[int, ...]:
        """The model's inputs beside the image, among those of the first part."""
        return tuple(each for each in self.inputs if each)

    @property
    def states(self) -> tuple[Tie, ...]:
        """The ties whose bytes matter before the first call."""
        return tuple(tie for tie in self.ties if tie.fill is not None)


@dataclass(frozen=True)
class Network:
    """The models that one class runs, in an arena of ``arena`` bytes if it is alone.

    ``member``: the object, in the programs. ``kept``: its place among the interpreters that stay alive, None if it is
    re-created. ``rows``: how it takes its input; None: whole. ``outputs``: the model's.
    """

    name: str
    member: str
    parts: tuple[PartModel, ...]
    arena: int
    kept: int | None
    rows: Feed | None
    outputs: tuple[Tensor, ...]

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """Of the first part."""
        return tuple(self.parts[0].model.model.main.inputs)

    @property
    def moves(self) -> tuple[Move, ...]:
        """Of all parts, in the order of the table."""
        return tuple(move for part in self.parts for move in (*part.before, *part.after))

    @cached_property
    def drawn(self) -> tuple[Tensor, ...]:
        """The inputs as the test writes them: those beside a fed image come first."""
        if self.rows is None:
            return self.inputs
        return (*(self.inputs[at] for at in self.rows.others), self._image(self.rows.height))

    @cached_property
    def row(self) -> Tensor | None:
        """One row of a fed image."""
        return None if self.rows is None else self._image(1)

    @property
    def affine(self) -> Affine | None:
        """Scale and zero point of rows that may be given as floats or pixels."""
        return affine_of(self.inputs[0]) if self.inputs[0].dtype is DType.INT8 else None

    def _image(self, height: int) -> Tensor:
        assert self.rows is not None
        elements = height * self.rows.row_bytes // self.inputs[0].dtype.arena_bytes
        return replace(self.inputs[0], shape=(elements,))


@dataclass(frozen=True)
class Networks:
    """Networks in one arena of ``arena`` bytes, one at a time, in the namespace ``name``.

    ``is_one``: one network, whose class has the arena. ``anew``: of the largest that does not stay alive; ``tail``: of
    the structures of those that do.
    """

    name: str
    networks: tuple[Network, ...]
    arena: int
    whom: str
    profile: KernelProfile
    origin: str
    is_one: bool
    anew: int = 0
    tail: int = 0

    @property
    def model(self) -> Model:
        """All graphs of all parts as one model."""
        models = [part.model.model for network in self.networks for part in network.parts]
        return replace(models[0], graphs=[graph for model in models for graph in model.graphs])
