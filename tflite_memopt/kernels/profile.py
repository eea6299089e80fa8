"""A kernel profile: what is known of the kernels that the firmware links."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..ir.model import Operator
from .relations.model import ReuseRule, no_reuse
from .requests.model import Requests, Word


@dataclass(frozen=True)
class KernelProfile:
    """``requests`` tells what an operator takes from the arena on a 32- or 64-bit target.

    ``relations`` tells where its kernel lets an output lie on an input; nothing for an operator it does not know.
    ``is_portable`` says that a plan made for it is right with any kernel library; ``in_wheel`` that the kernels
    of the tflite-micro wheel take the scratch of ``requests``, so that what is measured there must be what is planned.
    """

    name: str
    description: str
    requests: Callable[[Operator, Word], Requests]
    relations: ReuseRule = no_reuse
    is_portable: bool = True
    in_wheel: bool = True
