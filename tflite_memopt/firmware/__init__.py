"""C++ files for a firmware that runs a model on TensorFlow Lite Micro."""
