"""The intermediate representation: objects that refer to objects and know nothing of the file format."""

DOOR = "change check copying editor model tensors"
"""The modules that other folders import; the rest is private to this one."""
