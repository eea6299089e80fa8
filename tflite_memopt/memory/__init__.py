"""Turn a model into integers and back: storages, problems, arrangement and cost, offsets, figures."""

DOOR = "arrange facts figures file layout loops problems reserve spread storage work"
"""The modules that other folders import; the rest is private to this one."""
