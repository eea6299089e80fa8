# Models that are optimized when a firmware is built. `tflite-memopt --cmake-dir` prints the folder of this file:
#
#   execute_process(COMMAND tflite-memopt --cmake-dir OUTPUT_VARIABLE tflite_memopt_DIR OUTPUT_STRIP_TRAILING_WHITESPACE)
#   find_package(tflite_memopt CONFIG REQUIRED)
#   tflite_memopt_add_model(TARGET app MODEL model.tflite BUDGET 64K TARGET_CPU cortex-m4)
#
# The target then has the files that `codegen` writes: #include "model/arena.h". See docs/device.md.
cmake_minimum_required(VERSION 3.18)

find_program(TFLITE_MEMOPT_EXECUTABLE tflite-memopt DOC "the command of tflite-memopt")
if(NOT TFLITE_MEMOPT_EXECUTABLE)
  message(FATAL_ERROR "tflite-memopt is not on the path: activate its environment, or set TFLITE_MEMOPT_EXECUTABLE")
endif()
set(_tflite_memopt_version "${CMAKE_CURRENT_LIST_DIR}/../../version.py")

# TARGET      executable or library that gets the model
# MODEL       the .tflite file, relative to the current source folder
# NAME        C++ namespace, and folder of the headers; by default the model's name without its ending
# TARGET_CPU  core or chip, as `tflite-memopt targets` lists them; without it the result is correct with any kernels
# BUDGET      RAM that the model may take, such as 64K: the build fails if it takes more
# OPTIONS     more options of `tflite-memopt optimize`
# CODEGEN     more options of `tflite-memopt codegen`
# MAIN        also compile the program main.cc, which runs the model once
# AS_IS       leave the model as it is, to see what it needs
function(tflite_memopt_add_model)
  cmake_parse_arguments(PARSE_ARGV 0 arg "MAIN;AS_IS" "TARGET;MODEL;NAME;TARGET_CPU;BUDGET" "OPTIONS;CODEGEN")
  foreach(needed IN ITEMS TARGET MODEL)
    if(NOT arg_${needed})
      message(FATAL_ERROR "tflite_memopt_add_model: ${needed} is missing")
    endif()
  endforeach()
  if(arg_UNPARSED_ARGUMENTS OR arg_KEYWORDS_MISSING_VALUES)
    message(FATAL_ERROR "tflite_memopt_add_model: wrong: ${arg_UNPARSED_ARGUMENTS} ${arg_KEYWORDS_MISSING_VALUES}")
  endif()
  if(arg_AS_IS AND (arg_BUDGET OR arg_OPTIONS))
    message(FATAL_ERROR "tflite_memopt_add_model: with AS_IS nothing is optimized, so that BUDGET and OPTIONS say nothing")
  endif()
  get_filename_component(model "${arg_MODEL}" ABSOLUTE)
  if(NOT arg_NAME)
    get_filename_component(arg_NAME "${arg_MODEL}" NAME_WLE)
    string(MAKE_C_IDENTIFIER "${arg_NAME}" arg_NAME)
  endif()
  set(folder "${CMAKE_CURRENT_BINARY_DIR}/tflite_memopt")
  set(files "${folder}/${arg_NAME}")
  set(cpu "")
  if(arg_TARGET_CPU)
    set(cpu --target "${arg_TARGET_CPU}")
  endif()
  if(arg_AS_IS)
    set(source "${model}")
    set(optimize COMMAND "${CMAKE_COMMAND}" -E make_directory "${folder}")
  else()
    set(source "${folder}/${arg_NAME}.tflite")
    set(budget "")
    if(arg_BUDGET)
      set(budget --budget "${arg_BUDGET}")
    endif()
    set(optimize
        COMMAND "${CMAKE_COMMAND}" -E make_directory "${folder}"
        COMMAND "${TFLITE_MEMOPT_EXECUTABLE}" optimize "${model}" -o "${source}" --force -q ${cpu} ${budget} ${arg_OPTIONS})
  endif()
  set(made "${files}/model_data.cc" "${files}/model_data.h" "${files}/arena.h" "${files}/resolver.h" "${files}/main.cc")
  add_custom_command(
    OUTPUT ${made}
    ${optimize}
    COMMAND "${TFLITE_MEMOPT_EXECUTABLE}" codegen "${source}" -o "${files}" --force --name "${arg_NAME}" ${cpu} ${arg_CODEGEN}
    DEPENDS "${model}" "${_tflite_memopt_version}"
    COMMENT "tflite-memopt: ${arg_MODEL} for ${arg_TARGET}"
    VERBATIM)
  # The target may be of another folder, where CMake does not see that these files are made.
  add_custom_target(${arg_TARGET}_${arg_NAME}_files DEPENDS ${made})
  add_dependencies(${arg_TARGET} ${arg_TARGET}_${arg_NAME}_files)
  set(compiled "${files}/model_data.cc")
  if(arg_MAIN)
    list(APPEND compiled "${files}/main.cc")
  endif()
  set_source_files_properties(${compiled} TARGET_DIRECTORY ${arg_TARGET} PROPERTIES GENERATED TRUE)
  target_sources(${arg_TARGET} PRIVATE ${compiled})
  target_include_directories(${arg_TARGET} PRIVATE "${folder}")
endfunction()
