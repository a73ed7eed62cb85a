#!/bin/bash
# The library alone, shared: it builds and installs without the tools and the tests, exports the names that the packages promise and no
# others, and programs find it by CMake and by pkg-config.
# Usage: shared.sh BUILD   (an empty or missing folder to build in)
set -euo pipefail
source=$(realpath "$(dirname "$0")/../..")
build=$1
cmake -S "$source" -B "$build" -D BUILD_SHARED_LIBS=ON -D GLGEMM_BUILD_TOOLS=OFF -D GLGEMM_BUILD_TESTS=OFF -D GLGEMM_INSTALL=ON \
  -D GLGEMM_BUILD_BLAS=OFF -D CMAKE_BUILD_TYPE=Debug -D CMAKE_CXX_FLAGS_DEBUG=-O0 \
  -D CMAKE_UNITY_BUILD=ON -D CMAKE_UNITY_BUILD_BATCH_SIZE=16 >"$build.log" || {
  cat "$build.log"
  exit 1
}
cmake --build "$build" --parallel "$(nproc)"
for library in "$build"/libglgemm{,_headless,_verify,_weights}.so; do  # the BLAS has a test of its own
  foreign=$(nm -D --defined-only "$library" | cut -d' ' -f3 | grep -vE '^(glgemm_|_ZNK?6glgemm|_ZT[ISV]N6glgemm)' || true)
  [ -z "$foreign" ] || {
    echo "FAILED: $library exports what is not glgemm's: $(head -n 5 <<<"$foreign")"
    exit 1
  }
done
"$source/tests/package/abi.py" "$build"
cmake -D "BUILD=$build" -D CONFIG=Debug -D "WORK=$build/consumer" -D "GENERATOR=Unix Makefiles" -D CC=cc -D CXX=c++ \
  -P "$source/tests/consumer/run.cmake"
for file in share/doc/glgemm/LICENSE share/doc/glgemm/README.md; do
  [ -s "$build/consumer/moved/$file" ] || {
    echo "FAILED: $file is not in the installation"
    exit 1
  }
done
