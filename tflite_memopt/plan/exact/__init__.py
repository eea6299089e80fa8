"""Exact: branch and bound over canonical placements, with proof."""
