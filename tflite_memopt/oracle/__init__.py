"""The RAM of many candidates, for searches for architectures: from bounds in microseconds to stripes."""
