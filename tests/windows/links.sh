#!/bin/bash
# The cross build for Windows, quickly: the library, glgemm::headless and the C interface as DLLs with import libraries, and a program
# in C++ and one in C that link them. Nothing is run; wine.sh beside this runs all tests.
# Usage: links.sh BUILD   (an empty or missing folder to build in). Ends with 77 where there is no mingw-w64.
set -euo pipefail
source=$(realpath "$(dirname "$0")/../..")
build=$1
command -v x86_64-w64-mingw32-g++-posix >/dev/null || {
  echo "LEFT OUT: there is no x86_64-w64-mingw32-g++-posix (g++-mingw-w64-x86-64-posix)"
  exit 77
}
mkdir -p "$build"
(cd "$source" && cmake --preset mingw-shared -B "$build" -D CMAKE_BUILD_TYPE=Debug -D CMAKE_CXX_FLAGS_DEBUG=-O0 -D GLGEMM_WERROR=ON \
  -D CMAKE_UNITY_BUILD=ON -D CMAKE_UNITY_BUILD_BATCH_SIZE=16) >"$build.log" || {
  cat "$build.log"
  exit 1
}
cmake --build "$build" --parallel "$(nproc)" --target glgemm_headless glgemm_verify

# What a DLL exports is glgemm's own.
failed=0
for library in libglgemm libglgemm_headless libglgemm_verify; do
  names=$(x86_64-w64-mingw32-nm --defined-only --extern-only "$build/$library.dll.a" | awk '$2 == "T" {print $3}')
  [ "$(wc -l <<<"$names")" -gt 5 ] || {
    echo "FAILED: $library.dll exports next to nothing: $names"
    failed=1
  }
  foreign=$(grep -vE '^(glgemm_|_ZNK?6glgemm)' <<<"$names" || true)
  [ -z "$foreign" ] || {
    echo "FAILED: $library.dll exports what is not glgemm's: $(head -n 5 <<<"$foreign")"
    failed=1
  }
done
flags=(-I "$source/include" -I "$build/generated/include" -L "$build")
x86_64-w64-mingw32-g++-posix -std=c++20 "${flags[@]}" "$source/tests/windows/first.cpp" -o "$build/first.exe" -lglgemm_headless -lglgemm
x86_64-w64-mingw32-gcc-posix "${flags[@]}" "$source/tests/windows/first.c" -o "$build/first_c.exe" -lglgemm_headless -lglgemm
exit $failed
