"""Many models: each in a process of its own, spread over a machine by joblib, or over a cluster, results in one file."""
