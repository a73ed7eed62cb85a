#!/bin/bash
# Under Wine, in a minute: the programs that links.sh has built, with their DLLs, and the tests of files, on drives and on a share.
# CI runs it; wine.sh beside this runs all tests.
# Usage: run.sh BUILD [PROGRAM...]   (BUILD: what links.sh has built; PROGRAM: one of its, by default those that it links itself)
# Ends with 77 where Wine, Xvfb or mingw-w64 is missing.
. "$(dirname "$0")/../../tools/usage.sh"
set -uo pipefail
. "$(dirname "$0")/prefix.sh"
source=$(realpath "$(dirname "$0")/../..")
build=$(realpath "$1")
shift
failed=0
# glgemm's own DLLs, and the compiler's, which lie in two places.
compiler=$(dirname "$(x86_64-w64-mingw32-g++-posix -print-file-name=libstdc++-6.dll)")
export WINEPATH="$build/bin;$build;$compiler;/usr/x86_64-w64-mingw32/lib"
for program in ${*:-errors consumer_c}; do
  timeout 120 wine "$build/$program.exe" || {
    echo "FAILED: $program with the DLLs: status $?"
    failed=1
  }
done

# The tests of files need neither OpenGL nor all of glgemm.
mkdir -p "$work/headers" "$work/objects"
ln -s /usr/include/fmt /usr/include/doctest "$work/headers"
printf '#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN\n#include <doctest/doctest.h>\n' >"$work/main.cpp"
cd "$source" || exit
compile() {
  x86_64-w64-mingw32-g++-posix -std=c++20 -O0 -w -DUNICODE -DFMT_HEADER_ONLY -DGLGEMM_STATIC -DDOCTEST_CONFIG_SUPER_FAST_ASSERTS \
    -isystem "$work/headers" -I tests -I tools -I src -I include -I "$build/generated/include" \
    -c "$1" -o "$work/objects/${1//\//_}.o"
}
export -f compile
export work build
printf '%s\n' "$work/main.cpp" tests/files/{files,windows_files}.cpp tools/files/files.cpp \
  tools/system/windows/{files,program}.cpp tools/terminal/texts.cpp src/base/system.cpp src/base/system_windows.cpp src/gl/program_cache.cpp |
  xargs -P "$(nproc)" -I FILE bash -c 'compile FILE'
x86_64-w64-mingw32-g++-posix -static "$work"/objects/*.o -o "$work/files.exe" -lshell32 &&
  (cd "$work" && timeout 120 wine files.exe) || {
  echo "FAILED: the tests of files"
  failed=1
}
exit $failed
