#!/bin/bash
# The tests for Windows, under Wine on a display of its own (Xvfb), with the OpenGL that Wine hands on from the host: the preset mingw is
# built, then run the CPU tests, the OpenGL tests and the tool from outside, and last the DLLs.
# Usage: wine.sh [BUILD]   (BUILD: what is built already, with bin/glgemm.exe; else build-mingw is built)
# Ends with 77 where Wine, Xvfb or mingw-w64 is missing.
. "$(dirname "$0")/../../tools/usage.sh"
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 2
for program in x86_64-w64-mingw32-g++-posix wine xvfb-run; do
  command -v $program >/dev/null && continue
  echo "LEFT OUT: there is no $program (g++-mingw-w64-x86-64-posix, wine, wine64, xvfb and xauth)"
  exit 77
done
if [ -z "${DISPLAY:-}" ] || [ -z "${GLGEMM_WINE_DISPLAY:-}" ]; then
  GLGEMM_WINE_DISPLAY=1 exec xvfb-run -a "$0" "$@"
fi

build=${1:-}
if [ -z "$build" ]; then
  build=build-mingw
  cmake --preset mingw -D GLGEMM_WERROR=ON >/dev/null || exit
  cmake --build --preset mingw --parallel "$(nproc)" --target glgemm_tool glgemm_tests glgemm_gl_tests || exit
fi
build=$(realpath "$build")
tests=$(realpath tests)
work=$(mktemp -d)
export WINEPREFIX=$work/wine WINEARCH=win64 WINEDEBUG=-all WINEDLLOVERRIDES=mscoree,mshtml,winedbg.exe= GLGEMM_PROGRAM_CACHE= GLGEMM_TUNING=
trap 'wineserver -k 2>/dev/null; rm -rf "$work"' EXIT
wine wineboot >/dev/null 2>&1
failed=0

# What cannot run there, with the reason; each is named in the output.
left_out=(
  "program reports:*|Wine has a debug callback of its own before the application's, so that glgemm sets none there"
  "an API is asked for by an option*|Wine 8 lacks WGL_EXT_create_context_es2_profile"
  "no usable device at all:*|the host's driver gets no variables of a program under Wine: Mesa cannot be told to be too old"
  "program cache: a second process makes its programs in less*|likewise: Mesa cannot be told to keep no programs itself"
)
without=()
for entry in "${left_out[@]}"; do
  count=$(cd "$build/tests" && wine ../bin/glgemm_gl_tests.exe -c -tc="${entry%%|*}" | sed -n 's/.*current filters: \([0-9]*\).*/\1/p')
  echo "LEFT OUT: '${entry%%|*}', $count cases: ${entry#*|}"
  [ "${count:-0}" -gt 0 ] || {
    echo "FAILED: there is no such case"
    failed=1
  }
  without+=("${entry%%|*}")
done

suite() { # suite PROGRAM [ARGUMENTS...]
  echo "==== $*"
  (mkdir -p "$build/tests" && cd "$build/tests" && nice wine "../bin/$1.exe" "${@:2}") || {
    echo "FAILED: $1: status $?"
    failed=1
  }
}
suite glgemm_tests
suite glgemm_gl_tests -tce="$(IFS=,; echo "${without[*]}")"

echo "==== the tool"
"$tests/windows/tool.sh" "$build/bin/glgemm.exe" || failed=1

echo "==== the DLLs"
if "$tests/windows/links.sh" "$work/shared" && cmake --build "$work/shared" --parallel "$(nproc)" --target glgemm_verify; then
  x86_64-w64-mingw32-g++-posix -std=c++20 -include windows.h -I include -I "$work/shared/generated/include" "$tests/consumer/main.cpp" \
    -o "$work/shared/consumer.exe" -L "$work/shared" -lglgemm_verify -lglgemm_weights -lglgemm_headless -lglgemm || failed=1
  compiler=$(dirname "$(x86_64-w64-mingw32-g++-posix -print-file-name=libstdc++-6.dll)")
  export WINEPATH="$work/shared/bin;$work/shared;$compiler;/usr/x86_64-w64-mingw32/lib"
  for program in errors consumer_c consumer; do
    wine "$work/shared/$program.exe" || {
      echo "FAILED: $program with the DLLs: status $?"
      failed=1
    }
  done
else
  failed=1
fi
exit $failed
