"""Reading and writing .tflite files: the only code that knows the file format."""
