"""Run a region of operators stripe by stripe, so that the tensors inside it never exist whole."""
