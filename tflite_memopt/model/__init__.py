"""A .tflite file as data: graphs and tensors, how they are read and written, what follows from them alone."""
