"""Names from the file as people can read them. Full names are in the JSON report."""

from __future__ import annotations

LONGEST = 40
"""Characters of a short name, so that a table of four columns fits a terminal."""


LONGEST_LISTED = 100
"""In lists that may wrap: a refused cascade names its region with its stripes."""


def short_name(name: str, longest: int = LONGEST) -> str:
    """The first of several names that the converter joined by ``;``, without leading scopes that do not fit.

    Bytes that are not UTF-8 become question marks. Two tensors may share a short name: show the operator's number too.
    """
    text = name.partition(";")[0].encode("utf-8", "replace").decode("utf-8")
    while len(text) > longest and "/" in text[:-1]:
        text = text.partition("/")[2]
    if len(text) <= longest:
        return text
    half = (longest - 1) // 2
    return f"{text[: longest - 1 - half]}…{text[-half:]}"
