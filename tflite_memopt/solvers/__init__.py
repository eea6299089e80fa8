"""Solvers of integer problems: orders, offsets, and what they share. They know no model."""
