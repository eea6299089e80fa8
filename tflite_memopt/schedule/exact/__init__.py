"""What best_first is made of: blocks, their contraction, the search from both ends."""
