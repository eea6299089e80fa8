"""Optimize many models on the workers of a Dask cluster; a file of JSON lines has the results."""

DOOR = "cluster find results run"
"""Modules that other folders may import."""
