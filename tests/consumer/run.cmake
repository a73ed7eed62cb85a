# Installs the build into an empty folder, moves that elsewhere, and configures, builds and runs the consumer project's programs there,
# by CMake and by pkg-config.
# cmake -D BUILD=FOLDER -D CONFIG=Release -D WORK=FOLDER -D GENERATOR=NAME -D CC=COMPILER -D CXX=COMPILER -D FLAGS=FLAGS -D PC_FLAGS=[--static] -P run.cmake
# With -D PROJECT=glfw -D GLAD=FOLDER in place of BUILD and PC_FLAGS: the project with a window, on what was installed and moved before.
cmake_minimum_required(VERSION 3.22)

function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ECHO STDOUT COMMAND_ERROR_IS_FATAL ANY)
endfunction()

function(build source folder)
  file(REMOVE_RECURSE "${folder}")
  run("${CMAKE_COMMAND}" -S "${source}" -B "${folder}" -G "${GENERATOR}" -D "CMAKE_PREFIX_PATH=${WORK}/moved"
    -D "CMAKE_BUILD_TYPE=${CONFIG}" -D "CMAKE_C_COMPILER=${CC}" -D "CMAKE_CXX_COMPILER=${CXX}" -D "CMAKE_CXX_FLAGS=${FLAGS}" ${ARGN})
  run("${CMAKE_COMMAND}" --build "${folder}" --config "${CONFIG}")
endfunction()

# Runs programs of a folder, the one with a window for 30 frames; where there is no device, it says so, but under CI that is a failure.
function(run_programs folder)
  foreach(program IN LISTS ARGN)
    find_program(${program} ${program} PATHS "${folder}" "${folder}/${CONFIG}" NO_DEFAULT_PATH REQUIRED)
    execute_process(COMMAND "${${program}}" 30 RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
    message(STATUS "${output}")
    if(output MATCHES "no (device|window): " AND NOT DEFINED ENV{CI})
      message(FATAL_ERROR "SKIPPED: the package is found and linked, but no OpenGL device, or no window, is here to run on")
    elseif(NOT status STREQUAL "0")
      message(FATAL_ERROR "${program} ended with ${status}")
    endif()
  endforeach()
endfunction()

if(DEFINED PROJECT)
  build("${CMAKE_CURRENT_LIST_DIR}/${PROJECT}" "${WORK}/build-${PROJECT}" -D "GLAD=${GLAD}")
  run_programs("${WORK}/build-${PROJECT}" "consumer_${PROJECT}")
  return()
endif()

file(REMOVE_RECURSE "${WORK}")
run("${CMAKE_COMMAND}" --install "${BUILD}" --config "${CONFIG}" --prefix "${WORK}/installed")
# A package that held absolute paths would no longer be found.
file(RENAME "${WORK}/installed" "${WORK}/moved")
build("${CMAKE_CURRENT_LIST_DIR}" "${WORK}/build")

# A component that does not exist is refused by a sentence that names those that do.
execute_process(COMMAND "${CMAKE_COMMAND}" -S "${CMAKE_CURRENT_LIST_DIR}" -B "${WORK}/misspelt" -G "${GENERATOR}"
  -D "CMAKE_PREFIX_PATH=${WORK}/moved" -D "CMAKE_C_COMPILER=${CC}" -D "CMAKE_CXX_COMPILER=${CXX}" -D COMPONENTS=headles
  RESULT_VARIABLE status OUTPUT_QUIET ERROR_VARIABLE output)
string(REGEX REPLACE "[ \n]+" " " output "${output}")
if(status STREQUAL "0" OR NOT output MATCHES "glgemm has no component \"headles\"; it has distributed, headless, verify and weights")
  message(FATAL_ERROR "a misspelt component: ${status}: ${output}")
endif()

# The same program with pkg-config in the place of CMake.
find_program(pkg_config NAMES pkg-config pkgconf)
if(NOT pkg_config)
  if(DEFINED ENV{CI})
    message(FATAL_ERROR "pkg-config is not here")
  endif()
  message(FATAL_ERROR "SKIPPED: what CMake finds was tried; pkg-config is not here")
endif()
file(GLOB_RECURSE pc_file "${WORK}/moved/*/glgemm.pc")
get_filename_component(pc_folder "${pc_file}" DIRECTORY)
set(ENV{PKG_CONFIG_PATH} "${pc_folder}")
execute_process(COMMAND "${pkg_config}" ${PC_FLAGS} --cflags --libs glgemm-headless glgemm-verify glgemm-weights OUTPUT_VARIABLE flags COMMAND_ERROR_IS_FATAL ANY)
separate_arguments(flags UNIX_COMMAND "${flags}")
separate_arguments(compiler_flags UNIX_COMMAND "${FLAGS}")
run("${CXX}" -std=c++20 ${compiler_flags} "${CMAKE_CURRENT_LIST_DIR}/main.cpp" -o "${WORK}/build/consumer_pc" ${flags}
  "-Wl,-rpath,${pc_folder}/..")
run_programs("${WORK}/build" consumer consumer_c consumer_pc)
