#!/bin/bash
# The library alone, shared, as a part of another project by FetchContent, as README has it: it builds without the tools and the tests, that
# project's programs run, it exports glgemm's names and no others, and installed programs find it by CMake and by pkg-config. Where the
# project names no build type, glgemm is optimised all the same.
# Usage: shared.sh BUILD   (an empty or missing folder to build in)
. "$(dirname "$0")/../../tools/usage.sh"
set -euo pipefail
root=$(realpath "$(dirname "$0")/../..")
build=$1
. "$root/tests/package/readme_blocks.sh"
mkdir -p "$build/of_readme/app" "$build/of_readme/docs"
ln -sfn "$root/docs/examples" "$build/of_readme/docs/examples"
in_place=$(grep -o '`\(include(F\|FetchContent_\)[^`]*`' "$root/README.md" | tr -d '`')
readme_block cmake add_executable | sed "s|^find_package(glgemm.*|${in_place//$'\n'/\\n}|; s|FOLDER|$root|
  \$ a add_subdirectory($root/tests/consumer consumer)" >"$build/of_readme/app/CMakeLists.txt"
# Not optimised: that takes most of the time. abi_since.sh reads the debugging information, which takes a fifth more.
cmake -S "$build/of_readme/app" -B "$build" -D BUILD_SHARED_LIBS=ON -D GLGEMM_INSTALL=ON \
  -D CMAKE_BUILD_TYPE=Debug -D CMAKE_CXX_FLAGS_DEBUG='-O0 -g' -D CMAKE_UNITY_BUILD=ON -D CMAKE_UNITY_BUILD_BATCH_SIZE=16 >"$build.log" || {
  cat "$build.log"
  exit 1
}
cmake -S "$build/of_readme/app" -B "$build/of_readme/commands" -D CMAKE_EXPORT_COMPILE_COMMANDS=ON >/dev/null
[ "$(grep -- '"command".* -O2 ' "$build/of_readme/commands/compile_commands.json" | grep -c '/engine\.cpp\|/first\.cpp')" = 1 ] || {
  echo 'FAILED: without a build type glgemm is compiled without -O2, or the project with it'
  exit 1
}
cmake --build "$build" --parallel "$(nproc)"
libraries=$build/_deps/glgemm-build
ls "$libraries"/libglgemm*.so
[ ! -e "$libraries/libglgemm_blas.so" ] && [ ! -e "$libraries/bin" ] || {
  echo "FAILED: a part of another project is built with more than libraries: $(ls "$libraries" "$libraries/bin")"
  exit 1
}
[ "$("$build/app")" = 99 ] || {
  echo "FAILED: README's program does not print 99"
  exit 1
}
"$build/consumer/consumer"
"$build/consumer/consumer_c"
for library in "$libraries"/libglgemm{,_headless,_verify,_weights}.so; do
  foreign=$(nm -D --defined-only "$library" | cut -d' ' -f3 | grep -vE '^(glgemm_|_ZNK?6glgemm|_ZT[ISV]N6glgemm)' || true)
  [ -z "$foreign" ] || {
    echo "FAILED: $library exports what is not glgemm's: $(head -n 5 <<<"$foreign")"
    exit 1
  }
done
cmake -D "BUILD=$build" -D CONFIG=Debug -D "WORK=$build/installed" -D "GENERATOR=Unix Makefiles" -D CC=cc -D CXX=c++ \
  -P "$root/tests/consumer/run.cmake"
for file in share/doc/glgemm/LICENSE share/doc/glgemm/README.md; do
  [ -s "$build/installed/moved/$file" ] || {
    echo "FAILED: $file is not in the installation"
    exit 1
  }
done
