#!/usr/bin/env bash
# C++17: each C++ header is refused by the sentence that names C++20, before any other error, and the C headers compile as C++11.
# Usage: older_cpp.sh COMPILER INCLUDE...   (the folders of the headers, the first one has all of them)
. "$(dirname "$0")/../../tools/usage.sh"
set -u
compiler=$1
shift
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
touch "$work/mpi.h"  # of which this is not about
check() {  # $1: the standard; $2: a header; prints the errors
  "$compiler" -std="$1" -x c++ -fsyntax-only "${folders[@]}" - <<<"#include <glgemm/$2>" 2>&1 | grep 'error:'
}
folders=("-I$work" "${@/#/-I}")
failed=0
for path in "$1"/glgemm/*.h*; do
  header=$(basename "$path")
  case $header in
    export.hpp | version.hpp | *.h) wrong=$(check c++11 "$header") ;;
    *)
      errors=$(check c++17 "$header")
      wrong=
      [[ $(head -n 1 <<<"$errors") == *"glgemm needs C++20"* && $(wc -l <<<"$errors") -le 2 ]] || wrong="${errors:-no error}"
      ;;
  esac
  [ -z "$wrong" ] || { printf '%s:\n%s\n' "$header" "$wrong"; failed=1; }
done
exit $failed
