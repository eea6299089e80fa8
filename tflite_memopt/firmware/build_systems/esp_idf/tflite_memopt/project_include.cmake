# ESP-IDF reads this once for the whole project, ahead of its components.
include("${CMAKE_CURRENT_LIST_DIR}/../../tflite_memopt-config.cmake")
