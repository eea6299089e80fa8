"""Figures for docs/results.md."""
