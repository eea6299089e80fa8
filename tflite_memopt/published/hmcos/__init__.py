"""HMCOS: a coarse graph of sequences and groups, scheduled by dynamic programming."""
