# Configures, builds and runs the project with a window against the package that ../run.cmake has installed and moved.
# cmake -D CONFIG=Release -D WORK=FOLDER -D GENERATOR=NAME -D CXX=COMPILER -D FLAGS=FLAGS -P run.cmake
cmake_minimum_required(VERSION 3.22)

function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ECHO STDOUT COMMAND_ERROR_IS_FATAL ANY)
endfunction()

set(build "${WORK}/build-glfw")
file(REMOVE_RECURSE "${build}")
run("${CMAKE_COMMAND}" -S "${CMAKE_CURRENT_LIST_DIR}" -B "${build}" -G "${GENERATOR}" -D "CMAKE_PREFIX_PATH=${WORK}/moved"
  -D "CMAKE_BUILD_TYPE=${CONFIG}" -D "CMAKE_CXX_COMPILER=${CXX}" -D "CMAKE_CXX_FLAGS=${FLAGS}")
run("${CMAKE_COMMAND}" --build "${build}" --config "${CONFIG}")

find_program(consumer_glfw consumer_glfw PATHS "${build}" "${build}/${CONFIG}" NO_DEFAULT_PATH REQUIRED)
execute_process(COMMAND "${consumer_glfw}" RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
message(STATUS "${output}")
if(output MATCHES "no device: " AND NOT DEFINED ENV{CI})
  message(FATAL_ERROR "SKIPPED: the package is found and linked, but no window with OpenGL 4.3 can be had here")
elseif(NOT status STREQUAL "0")
  message(FATAL_ERROR "consumer_glfw ended with ${status}")
endif()
