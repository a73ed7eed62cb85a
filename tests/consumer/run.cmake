# Installs the build into an empty folder, moves that elsewhere, and configures, builds and runs the consumer project's programs there.
# cmake -D BUILD=FOLDER -D CONFIG=Release -D WORK=FOLDER -D GENERATOR=NAME -D CC=COMPILER -D CXX=COMPILER -D FLAGS=FLAGS -P run.cmake
cmake_minimum_required(VERSION 3.22)

function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ECHO STDOUT COMMAND_ERROR_IS_FATAL ANY)
endfunction()

file(REMOVE_RECURSE "${WORK}")
run("${CMAKE_COMMAND}" --install "${BUILD}" --config "${CONFIG}" --prefix "${WORK}/installed")
# A package that held absolute paths would no longer be found.
file(RENAME "${WORK}/installed" "${WORK}/moved")
run("${CMAKE_COMMAND}" -S "${CMAKE_CURRENT_LIST_DIR}" -B "${WORK}/build" -G "${GENERATOR}" -D "CMAKE_PREFIX_PATH=${WORK}/moved"
  -D "CMAKE_BUILD_TYPE=${CONFIG}" -D "CMAKE_C_COMPILER=${CC}" -D "CMAKE_CXX_COMPILER=${CXX}"
  -D "CMAKE_CXX_FLAGS=${FLAGS}")
run("${CMAKE_COMMAND}" --build "${WORK}/build" --config "${CONFIG}")

foreach(program IN ITEMS consumer consumer_c)
  find_program(${program} ${program} PATHS "${WORK}/build" "${WORK}/build/${CONFIG}" NO_DEFAULT_PATH REQUIRED)
  execute_process(COMMAND "${${program}}" RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  message(STATUS "${output}")
  if(output MATCHES "no device: " AND NOT DEFINED ENV{CI})
    message(FATAL_ERROR "SKIPPED: the package is found and linked, but no OpenGL device is here to run on")
  elseif(NOT status STREQUAL "0")
    message(FATAL_ERROR "${program} ended with ${status}")
  endif()
endforeach()
