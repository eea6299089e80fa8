"""When an operator's output may lie on its input: views, in-place, overlap. One file for each kind of kernel."""
