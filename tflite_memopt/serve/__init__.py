"""A page on this computer where a person drops a model: one job at a time, each a process of its own."""

DOOR = "page"
"""Modules that other folders may import."""
