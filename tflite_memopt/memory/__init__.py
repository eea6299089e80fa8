"""The model as integers and back: lifetimes and kernels become problems, solutions become offsets and figures."""
