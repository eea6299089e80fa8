"""Change a graph and keep what it computes: the engine, rules by theme, their search, tiles."""

DOOR = "boundary in_one_row loadable one_step planes sequences_along_h stage tiles turned_images"
"""The modules that other folders import; the rest is private to this one."""
