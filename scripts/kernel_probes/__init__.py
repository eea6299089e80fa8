"""Where an operator's output may lie on its input: TFLM measured, against the rules of the reference profile."""
