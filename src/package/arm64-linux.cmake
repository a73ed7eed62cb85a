# A toolchain for arm64 Linux by Debian's cross compiler (g++-aarch64-linux-gnu): `cmake --preset arm64`.
#
# The compiler searches /usr/include itself, after its own headers, so that packages of headers alone are found where they are for the
# builder. Libraries are looked for in folders of arm64 only (CMAKE_LIBRARY_ARCHITECTURE), which the builder's are not in. So is {fmt}'s
# package, of which glgemm needs headers alone: those are taken by their folders.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(GLGEMM_HOST_HEADERS /usr/include CACHE PATH "")
find_program(GLGEMM_QEMU qemu-aarch64-static)
mark_as_advanced(GLGEMM_QEMU)
if(GLGEMM_QEMU)
  set(CMAKE_CROSSCOMPILING_EMULATOR "${GLGEMM_QEMU}" -L /usr/aarch64-linux-gnu)
endif()
