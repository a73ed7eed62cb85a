# A toolchain file: Windows programs on Debian or Ubuntu, by g++-mingw-w64-x86-64-posix. The preset mingw takes it.
set(CMAKE_SYSTEM_NAME Windows)
set(CMAKE_SYSTEM_PROCESSOR x86_64)
# The one with POSIX threads: the other has no std::thread.
set(CMAKE_C_COMPILER x86_64-w64-mingw32-gcc-posix)
set(CMAKE_CXX_COMPILER x86_64-w64-mingw32-g++-posix)
set(CMAKE_RC_COMPILER x86_64-w64-mingw32-windres)
set(CMAKE_FIND_ROOT_PATH /usr/x86_64-w64-mingw32)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
# Programs need no DLL but Windows' own.
set(CMAKE_EXE_LINKER_FLAGS_INIT -static)
# GNU's linker and archiver take minutes for what is large, LLVM's a second. GCC has the linker's path built in, whatever -fuse-ld says;
# but it looks for collect2, which calls the linker, in folders of ours first.
find_program(CMAKE_AR NAMES llvm-ar x86_64-w64-mingw32-ar)
find_program(CMAKE_RANLIB NAMES llvm-ranlib x86_64-w64-mingw32-ranlib)
find_program(GLGEMM_LLD ld.lld)
mark_as_advanced(GLGEMM_LLD)
if(GLGEMM_LLD)
  file(WRITE "${CMAKE_BINARY_DIR}/lld/collect2" "#!/bin/sh\nexec \"${GLGEMM_LLD}\" \"$@\"\n")
  file(CHMOD "${CMAKE_BINARY_DIR}/lld/collect2" PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE)
  set(lld "\"-B${CMAKE_BINARY_DIR}/lld\" -fno-use-linker-plugin")
  string(APPEND CMAKE_EXE_LINKER_FLAGS_INIT " ${lld}")
  set(CMAKE_SHARED_LINKER_FLAGS_INIT "${lld}")
endif()
set(GLGEMM_HOST_HEADERS /usr/include CACHE PATH "")
