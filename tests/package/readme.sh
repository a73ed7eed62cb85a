#!/bin/bash
# README's way to a program of one's own, by its commands as they stand: after ./tools/demo, which builds the tool and what it needs, the
# installation and a program that finds it. A copy of the build's folder lacks what the demo has not built.
# Usage: readme.sh BUILD   (BUILD: a whole build, in whose place the copy is for the commands)
. "$(dirname "$0")/../../tools/usage.sh"
set -euo pipefail
build=$(realpath "$1")
root=$(realpath "$(dirname "$0")/../..")
. "$root/tests/package/readme_blocks.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export HOME=$work/home XDG_RUNTIME_DIR=$work
mkdir -p "$work/tree/build/bin" "$work/tree/app"
cd "$work/tree"
ln -s "$root/docs" .
# CMake's scripts of the installation have the folder's whole name.
(cd "$build" && find . -name cmake_install.cmake) | while read -r script; do
  mkdir -p "build/$(dirname "$script")"
  sed "s|$build|$work/tree/build|g" "$build/$script" >"build/$script"
done
for folder in generated python; do [ ! -e "$build/$folder" ] || ln -s "$build/$folder" build; done
[ ! -e "$build/src/package/CMakeFiles/Export" ] || ln -s "$build/src/package/CMakeFiles" build/src/package
for file in "$build"/*.a "$build"/libglgemm*.so*; do
  case $file in *'*'* | */libglgemm_blas*) ;; *) ln -s "$file" build ;; esac
done
ln -s "$build/bin/glgemm" build/bin

readme_block cmake add_executable >app/CMakeLists.txt
readme_block sh 'cmake --install' >commands
[ -s app/CMakeLists.txt ] && [ -s commands ] || { echo 'FAILED: README.md has no such blocks' && exit 1; }
bash -e commands >out 2>&1 || {
  cat out
  ! grep -q 'no device' out || [ -n "${CI:-}" ] || { echo 'SKIPPED: the program is linked, but no OpenGL device is here' && exit 77; }
  exit 1
}
[ "$(tail -n 1 out)" = 99 ] || { cat out && echo "FAILED: it does not print 99" && exit 1; }
[ -x "$HOME/glgemm/bin/glgemm" ] || { echo 'FAILED: the tool is not installed' && exit 1; }
