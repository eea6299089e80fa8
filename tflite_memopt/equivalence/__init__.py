"""Verify that two models compute the same: interpreters in subprocesses, inputs, comparison, verdicts."""
