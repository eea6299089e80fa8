"""What ilp is made of: fusion, partition, the integer program and its solver."""
