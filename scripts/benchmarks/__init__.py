"""Figures for docs/benchmarks."""
