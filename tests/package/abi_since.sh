#!/bin/bash
# What programs that were linked with the shared libraries of an earlier version would notice of this tree's: functions that are gone,
# members of structs that have moved, values of enumerators that have changed. By abidiff (package abigail-tools), against the files in
# abi/: what abidw reads from debugging information, of what is promised alone (abi_promised.py). The files hold for GCC on x86-64:
# its versions 11 and 12 agree, optimising or not.
# Usage: abi_since.sh [--write] [--libraries FOLDER] [REVISION]
#   FOLDER: of libraries that GCC has built with -g, optimised or not; without it they are built in a temporary folder
#   REVISION: compares with that revision's files
#   --write: writes the files anew, but none over a break. For a new major version they are removed first. The lists in interface/ are
#   made before
# Ends with 1 where something breaks, and with 77 where the files do not hold.
. "$(dirname "$0")/../../tools/usage.sh"
set -euo pipefail
write='' folder='' revision=''
while [ $# -gt 0 ]; do
  case $1 in
    --write) write=1 ;;
    --libraries)
      folder=$(realpath "${2:?--libraries FOLDER}")
      shift
      ;;
    *) revision=$1 ;;
  esac
  shift
done
cd "$(dirname "$0")/../.."
for program in abidw abidiff; do
  command -v $program >/dev/null || { echo "abi_since.sh: there is no $program (package abigail-tools)" >&2 && exit 2; }
done
compiler=${CXX:-c++}
[[ "$(echo '__x86_64__ __LP64__ __GNUC__ __clang__' | "$compiler" -E -P -x c++ -)" =~ ^1\ 1\ [0-9]+\ __clang__$ ]] || {
  echo "left out: the files in tests/package/abi/ hold for GCC on x86-64, and $compiler is another compiler, or for another machine"
  exit 77
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

if [ -z "$folder" ]; then
  folder=$work/build
  cmake -S . -B "$folder" -D BUILD_SHARED_LIBS=ON -D GLGEMM_BUILD_TOOLS=OFF -D GLGEMM_BUILD_TESTS=OFF -D GLGEMM_BUILD_BLAS=OFF \
    -D GLGEMM_BUILD_DISTRIBUTED=OFF -D CMAKE_BUILD_TYPE=Debug -D CMAKE_CXX_FLAGS_DEBUG='-O0 -g' -D CMAKE_UNITY_BUILD=ON >"$work/log"
  cmake --build "$folder" --parallel "$(nproc)" >>"$work/log" || { cat "$work/log" && exit 1; }
fi
promised() { PYTHONDONTWRITEBYTECODE=1 python3 tests/package/abi_promised.py "$@"; }
# Of classes with virtual functions GCC tells only where these are defined, unless it is told to.
promised source "$compiler" >"$work/types.cpp"
"$compiler" -std=c++20 -g -femit-class-debug-always -fPIC -shared -I include -x c++ - -o "$work/types.so" <"$work/types.cpp"

status=0
mkdir -p "$work/former" "$work/now"
[ -z "$write" ] || mkdir -p tests/package/abi
for name in types libglgemm libglgemm_headless libglgemm_verify libglgemm_weights; do
  echo "== $name"
  library=$work/types.so
  [ $name = types ] || library=$folder/$name.so
  readelf -S --wide "$library" | grep -q '\.debug_info' || { echo "FAILED: $library has no debugging information" && exit 1; }
  promised specification "$library" >"$work/promised"
  # Neither places nor paths: they change with every line, and from machine to machine.
  abidw --suppressions "$work/promised" --drop-undefined-syms --exported-interfaces-only --no-show-locs --no-corpus-path --no-comp-dir-path \
    --no-elf-needed --no-parameter-names --no-write-default-sizes --type-id-style hash "$library" |
    sed -E "s|( path=')[^']*/|\1|; s|^ +||" >"$work/now/$name.abi"
  # abidiff takes an opaque type for any other of its name, so that a file of opaque types alone would pass.
  grep -q layout-offset-in-bits "$work/now/$name.abi" || { echo 'FAILED: abidw finds no members' && exit 1; }
  former=tests/package/abi/$name.abi
  if [ -n "$revision" ]; then
    former=$work/former/$name.abi
    git show "$revision:tests/package/abi/$name.abi" >"$former"
  fi
  if [ ! -e "$former" ] && [ -z "$write" ]; then
    echo "FAILED: there is no $former, which --write makes"
    status=1
    continue
  fi
  if [ -e "$former" ]; then
    promised fitted "$former" "$work/now/$name.abi" >"$work/fitted"
    abidiff --no-added-syms "$former" "$work/fitted" || {
      echo "FAILED: $name breaks programs that were linked before, which needs a new major version: see docs/versions.md"
      status=1
      continue
    }
  fi
  [ -z "$write" ] || cp "$work/now/$name.abi" tests/package/abi/
done
exit $status
