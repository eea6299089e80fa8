"""What kernels save where an input dies: the output lies on its bytes.

``exact`` is what the scheduler counts: an input that is one range of bytes, all of which die. ``bound`` is what no plan
exceeds: an input's bytes that die, whatever ranges they are.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from .cut_table import Integers


@dataclass
class Credits:
    """Bytes saved in each cell of a ``StepTable``, steps counted from its end."""

    steps: int
    columns: int
    exact: Integers = field(init=False)
    bound: Integers = field(init=False)

    def __post_init__(self) -> None:
        self.exact = np.zeros((self.steps, self.columns), np.int64)
        self.bound = np.zeros((self.steps, self.columns), np.int64)

    def save(self, step: int, exact: Integers, bound: Integers) -> None:
        """Bytes that a step saves by one of its inputs; the largest of them counts."""
        np.maximum(self.exact[step], exact, out=self.exact[step])
        np.maximum(self.bound[step], bound, out=self.bound[step])

    def doubled(self) -> Credits:
        """The same with as much room above."""
        larger = Credits(2 * self.steps, self.columns)
        larger.exact[self.steps :], larger.bound[self.steps :] = self.exact, self.bound
        return larger

    def last(self, steps: int) -> Credits:
        """A copy of the last steps."""
        copied = Credits(steps, self.columns)
        copied.exact[:], copied.bound[:] = self.exact[self.steps - steps :], self.bound[self.steps - steps :]
        return copied
