"""The default method: contraction, then a best-first search on the largest working set."""
