"""What judges a result: a proof for all inputs, and runs on interpreters."""
