"""What a model's order means for memory and arithmetic: lifetimes, working sets, bounds, MACs."""
