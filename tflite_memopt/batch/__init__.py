"""Many models on the workers of a Dask cluster, on this machine or on many; one file of JSON lines has the results."""
