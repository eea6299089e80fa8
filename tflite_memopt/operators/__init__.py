"""One table of operator kinds: how each is cut, what it asks of the arena, what it may overwrite, what TFLM takes."""

DOOR = "boxes control editor kind move overrides recurrent reduce requests reuse rows table window"
"""The modules that other folders import; the rest is private to this one."""
