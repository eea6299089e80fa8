"""How many examples are drawn: a tenth of them for every change, all of them with ``scripts/test --all``."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from hypothesis import settings

PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "dev")
_SHARES = {"dev": 10, "ci": 1}
_LEAST = 5

for _name in _SHARES:
    settings.register_profile(_name, deadline=None, max_examples=100 // _SHARES[_name], print_blob=True)
settings.load_profile(PROFILE)


def examples(count: int, **more: Any) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Let Hypothesis draw ``count`` examples, or the share that the profile takes of them."""
    return settings(max_examples=share(count), deadline=None, **more)


def share(count: int) -> int:
    """Return how many of ``count`` examples the profile takes."""
    return max(min(count, _LEAST), count // _SHARES[PROFILE])
