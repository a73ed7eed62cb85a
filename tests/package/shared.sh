#!/bin/bash
# The library alone, shared, as a part of another project by FetchContent: it builds without the tools and the tests, that project's
# programs run, it exports glgemm's names and no others, and installed programs find it by CMake and by pkg-config.
# Usage: shared.sh BUILD   (an empty or missing folder to build in)
set -euo pipefail
source=$(realpath "$(dirname "$0")/../..")
build=$1
cmake -S "$source/tests/consumer" -B "$build" -D "SOURCE=$source" -D BUILD_SHARED_LIBS=ON -D GLGEMM_INSTALL=ON \
  -D CMAKE_BUILD_TYPE=Debug -D CMAKE_CXX_FLAGS_DEBUG=-O0 -D CMAKE_UNITY_BUILD=ON -D CMAKE_UNITY_BUILD_BATCH_SIZE=16 >"$build.log" || {
  cat "$build.log"
  exit 1
}
cmake --build "$build" --parallel "$(nproc)"
libraries=$build/_deps/glgemm-build
ls "$libraries"/libglgemm*.so
[ ! -e "$libraries/libglgemm_blas.so" ] && [ ! -e "$libraries/bin" ] || {
  echo "FAILED: a part of another project is built with more than libraries: $(ls "$libraries" "$libraries/bin")"
  exit 1
}
"$build/consumer"
"$build/consumer_c"
for library in "$libraries"/libglgemm{,_headless,_verify,_weights}.so; do
  foreign=$(nm -D --defined-only "$library" | cut -d' ' -f3 | grep -vE '^(glgemm_|_ZNK?6glgemm|_ZT[ISV]N6glgemm)' || true)
  [ -z "$foreign" ] || {
    echo "FAILED: $library exports what is not glgemm's: $(head -n 5 <<<"$foreign")"
    exit 1
  }
done
cmake -D "BUILD=$build" -D CONFIG=Debug -D "WORK=$build/consumer" -D "GENERATOR=Unix Makefiles" -D CC=cc -D CXX=c++ \
  -P "$source/tests/consumer/run.cmake"
for file in share/doc/glgemm/LICENSE share/doc/glgemm/README.md; do
  [ -s "$build/consumer/moved/$file" ] || {
    echo "FAILED: $file is not in the installation"
    exit 1
  }
done
