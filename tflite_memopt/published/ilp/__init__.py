"""Integer programming on a graph made small by fusion and partition."""
