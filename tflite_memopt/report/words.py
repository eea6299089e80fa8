"""Numbers in sentences: singular and plural, and changes in percent that are never shown as "-0 %"."""

from __future__ import annotations


def counted(number: int, noun: str) -> str:
    """``1 output``, ``2 outputs``, ``1,024 bytes``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def change_in_percent(before: int, after: int) -> str:
    """``+12 %``, ``-0.4 %``, or that it is less than a tenth of one; empty without a change, or from nothing."""
    if before == after or before == 0:
        return ""
    share = 100 * (after - before) / before
    if abs(share) < 0.05:
        return f"{'more' if share > 0 else 'less'} by under 0.1 %"
    return f"{share:+.1f} %" if abs(share) < 0.95 else f"{share:+.0f} %"
