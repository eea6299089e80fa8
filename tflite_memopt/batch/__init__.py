"""Many models, each in a process of its own: spread over a machine or a cluster, results in one file."""
