#!/usr/bin/env bash
# What is deprecated warns where it is used, in C and in C++, by the text that says what takes its place; it does not where a
# program wants none of it, nor does what takes its place.
# Usage: deprecated.sh C_COMPILER CXX_COMPILER INCLUDE...   (the folders of the headers)
. "$(dirname "$0")/../../tools/usage.sh"
set -u
c=$1
cxx=$2
shift 2
compile() {  # $1: the function that is used; $2: c or c++; $3: the standard; then options
  local compiler=$c
  [ "$2" = c ] || compiler=$cxx
  "$compiler" -x "$2" -std="$3" -fsyntax-only -Wall -Werror=deprecated-declarations "${@:4}" "${folders[@]}" - 2>&1 <<EOF
#include <glgemm/glgemm.h>
int used(glgemm_job* job, glgemm_fence** fence);
int used(glgemm_job* job, glgemm_fence** fence) { return $1(job, fence); }
EOF
}
folders=("${@/#/-I}")
failed=0
fault() {
  printf '%s\n' "$@"
  failed=1
}
for language in 'c c99' 'c++ c++11' 'c++ c++20'; do
  read -r name standard <<<"$language"
  said=$(compile glgemm_job_fence "$name" "$standard") && fault "$standard: the old name is no error: $said"
  [[ $said == *"glgemm_job_fence_create() is its name"* ]] || fault "$standard: the new name is not told: $said"
  said=$(compile glgemm_job_fence "$name" "$standard" -DGLGEMM_NO_DEPRECATED_WARNINGS) ||
    fault "$standard: it warns all the same: $said"
  said=$(compile glgemm_job_fence_create "$name" "$standard") || fault "$standard: the new name is refused: $said"
done
exit $failed
