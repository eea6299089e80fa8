"""The code that esp-nn has for each kind of chip."""

from __future__ import annotations

from typing import Literal

Chip = Literal["generic", "s3", "p4"]
