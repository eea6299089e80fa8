"""Lets tests and scripts import each other in a plain ``pytest``: the checkout comes last, behind an installed one."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent))
