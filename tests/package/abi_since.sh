#!/bin/bash
# The long tier: what programs that were linked with the shared libraries of an older revision would notice of this tree's: functions
# that are gone, members of structs that have moved, values of enums that have changed. By abidiff (package abigail-tools), which reads it
# from debugging information. Ends with 1 where something changed that may break them.
# Usage: abi_since.sh REVISION [WORK]   (WORK: a folder that keeps what is built; without it a temporary one)
. "$(dirname "$0")/../../tools/usage.sh"
set -euo pipefail
cd "$(dirname "$0")/../.."
[ $# -ge 1 ] || bad 'since which revision? (--help explains)'
command -v abidiff >/dev/null || { echo "abi_since.sh: there is no abidiff (package abigail-tools)" >&2; exit 2; }
revision=$(git rev-parse --verify --quiet "$1^{commit}") || { echo "abi_since.sh: '$1' is no revision" >&2; exit 2; }
work=${2:-$(mktemp -d)}
[ $# -ge 2 ] || trap 'rm -rf "$work"' EXIT

mkdir -p "$work/former"
git archive "$revision" | tar -C "$work/former" -x
for tree in former now; do
  source=$work/former
  [ $tree = former ] || source=$PWD
  cmake -S "$source" -B "$work/$tree.build" -D BUILD_SHARED_LIBS=ON -D GLGEMM_BUILD_TOOLS=OFF -D GLGEMM_BUILD_TESTS=OFF -D GLGEMM_BUILD_BLAS=OFF \
    -D GLGEMM_BUILD_DISTRIBUTED=OFF -D CMAKE_BUILD_TYPE=Debug -D CMAKE_CXX_FLAGS_DEBUG='-O0 -g' -D CMAKE_UNITY_BUILD=ON >"$work/$tree.log"
  cmake --build "$work/$tree.build" --parallel "$(nproc)" >>"$work/$tree.log"
done
status=0
for library in glgemm glgemm_headless glgemm_verify glgemm_weights; do
  echo "== lib$library"
  # What is new breaks nothing.
  abidiff --no-added-syms --headers-dir1 "$work/former/include" --headers-dir2 include "$work/former.build/lib$library.so" \
    "$work/now.build/lib$library.so" || status=1
done
exit $status
