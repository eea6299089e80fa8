"""A region in stripes as one loop: the operators of a stripe exist once, and WHILE runs them for all stripes."""
