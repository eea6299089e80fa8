"""The report of a run: its data, and the document that a terminal and a page show."""

DOOR = (
    "answer build document documents exploration model node_data pictures/page pictures/plot receipt "
    "repository schema summary targets warnings words"
)
"""Modules that other folders may import."""
