"""One rewrite a file; :mod:`tflite_memopt.rewrite.table` lists them."""
