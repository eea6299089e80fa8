"""Operator order over integers: a problem, one file per method, an independent checker."""
