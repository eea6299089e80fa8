"""Optimize many models on the workers of a Dask cluster; a file of JSON lines has the results."""
