"""Reading and writing .tflite files: the only code that knows flatbuffers."""
