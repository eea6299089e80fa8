"""Offset planning over integers: a problem, one file per strategy, an independent checker, CSV."""
