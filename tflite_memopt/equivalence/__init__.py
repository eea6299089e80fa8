"""Verification that two models compute the same: real interpreters in subprocesses, same inputs, compared bytes."""
