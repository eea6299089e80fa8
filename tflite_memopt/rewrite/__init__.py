"""Changes to the graph that keep what it computes."""
