"""Proofs of pairs of models in a folder, and of mutants."""
