"""Operator order over integers: a problem, a file or folder per method, an independent checker."""
