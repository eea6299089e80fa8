"""A kernel profile: facts about the kernels that the firmware links."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any

from ..model.ir.model import Operator
from ..operators.requests import ILP32, Abi, Requests
from ..operators.reuse import ReuseRule, no_reuse
from .by_signature import BySignature
from .prices import REFERENCE_PRICES, Prices

READ_AT = date(2026, 8, 20)
"""The day of the TFLM whose kernels were read."""


@dataclass(frozen=True)
class KernelProfile:
    """``requests`` returns the requests of an operator to the arena on a target with some layout of structures.

    ``relations`` tells where its kernel lets an output lie on an input; nothing for an operator it does not know.
    ``is_portable`` says that a plan made for it is right with any kernel library; ``in_wheel`` that the kernels
    of the tflite-micro wheel take the scratch of ``requests``, so that what is measured there must be what is planned.
    ``measured_at`` names the commits and the machine of the measurements behind it; None when it was only read.
    ``abi`` is the layout for which arenas are counted, and ``target`` the name of the target that chose it.
    ``releases`` are those of the library that it is for, as numbers; ``tflm`` is the day of the TFLM that calls it: an
    operator may meet faults of these (``faults.py``).
    ``libraries`` are the profiles that firmware may link when this one is chosen: none for one library.
    ``block``: its convolutions are fastest with a number of channels that is a multiple of this.
    ``prices`` are the run-time costs of its operators; those of the reference kernels if not measured. With several
    ``libraries``: those of the one on which calls and copies weigh most. ``met``: faults by signature (``faults.py``).
    """

    name: str
    description: str
    requests: Callable[[Operator, Abi], Requests]
    relations: ReuseRule = no_reuse
    is_portable: bool = True
    in_wheel: bool = True
    measured_at: str | None = None
    abi: Abi = ILP32
    target: str | None = None
    releases: tuple[tuple[int, ...], ...] = ((),)
    tflm: date = READ_AT
    libraries: tuple[KernelProfile, ...] = ()
    block: int = 4
    prices: Prices = field(default=REFERENCE_PRICES, compare=False)
    met: BySignature[tuple[Any, ...]] = field(default_factory=BySignature, init=False, repr=False, compare=False)

    @property
    def all_prices(self) -> tuple[Prices, ...]:
        """The different prices of the libraries that firmware may link; of several, those that were measured."""
        found = {each.prices.library: each.prices for each in self.libraries or (self,)}
        return tuple(each for each in found.values() if not each.is_estimate or not self.libraries)

    @property
    def with_columns_as_rows(self) -> KernelProfile:
        """Return the profile with prices for images of one column that will be written as one row."""
        libraries = tuple(each.with_columns_as_rows for each in self.libraries)
        return replace(self, libraries=libraries, prices=replace(self.prices, columns_as_rows=True))
