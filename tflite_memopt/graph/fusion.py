"""Which operators some optimal order runs in one go: Theorems IV.1 and IV.2, for whoever looks for candidates.

Source: Zhong et al., "Memory-aware Scheduling for Complex Wired Networks with Iterative Graph Optimization",
section IV.B.
"""

from __future__ import annotations

from typing import NamedTuple


class MemoryProfile(NamedTuple):
    """What a set of operators does to memory, in bytes on top of what is alive before its first operator.

    ``end``: alive when the set is complete. ``lightest``: alive in the lightest half-done state of *any* inner order.
    ``first_need`` and ``last_need``: least working set of any operator that can come first or last. ``peak``: the
    smallest peak of any inner order.
    """

    end: int
    lightest: int
    first_need: int
    last_need: int
    peak: int

    @property
    def is_rising(self) -> bool:
        """Theorem IV.1: no half-done state is lighter than "not begun", and the last operator needs most."""
        return self.lightest >= 0 and self.peak <= self.last_need

    @property
    def is_falling(self) -> bool:
        """Theorem IV.1 in reverse: no half-done state is lighter than "complete", and the first needs most."""
        return self.lightest >= self.end and self.peak <= self.first_need

    @property
    def is_hill(self) -> bool:
        """Theorem IV.2: no half-done state is lighter than "not begun" or than "complete"."""
        return self.lightest >= max(0, self.end)


def runs_in_one_go(profile: MemoryProfile) -> bool:
    """Whether some optimal order of the whole runs the set in one go, in its best inner order.

    Take any order of the whole, and gather the set at one moment between its first and its last operator. Every other
    operator that ran between those two then meets the set not begun or complete, instead of half done.

    - A hill never weighs less half done. Gather it where the others weigh least.
    - A rising set never weighs less half done than not begun, and its last operator needs most, whichever that is.
      Gather it at its last operator. A falling set is the mirror image.

    The paper looks at half-done states of one inner order only. Another inner order may pass through a lighter
    state, worth waiting in while others run; so every half-done state counts here.
    """
    return profile.is_hill or profile.is_rising or profile.is_falling
