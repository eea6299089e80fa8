"""The emergency stop of a search: wall time, which is no part of the answer unless it strikes."""

from __future__ import annotations

from ..graph.clock import Deadline, deadline_in


class EmergencyStop:
    """Strikes when the seconds are over, and stays struck."""

    def __init__(self, seconds: float) -> None:
        self._deadline: Deadline = deadline_in(seconds)
        self.has_struck = False

    def strikes(self) -> bool:
        """Whether the time is over."""
        self.has_struck = self.has_struck or self._deadline.left() <= 0
        return self.has_struck
