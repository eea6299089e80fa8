"""Methods of published papers for `compare`, loaded only when somebody asks for one of them."""

DOOR = "comparison"
"""Modules that other folders may import."""
