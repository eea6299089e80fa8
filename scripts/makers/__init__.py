"""Generators: schemas, the demo model, the table of the README."""
