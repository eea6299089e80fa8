"""Parts of a long benchmark, each kept in a file of its own, so that an interrupted run goes on where it ended."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class KeptParts:
    """``folder``: one JSON file a part; None keeps nothing."""

    folder: Path | None

    def part(self, name: str, make: Callable[[], T]) -> T:
        """What ``make`` returns, as JSON gives it back; made only if it is not kept yet."""
        if self.folder is None:
            return make()
        path = self.folder / f"{name}.json"
        if not path.exists():
            self.folder.mkdir(parents=True, exist_ok=True)
            unfinished = path.with_suffix(".unfinished")
            unfinished.write_text(json.dumps(make()))
            unfinished.rename(path)
        kept: T = json.loads(path.read_text())
        return kept
