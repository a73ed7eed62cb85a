# What the tests of libglgemm_blas.so have in common: an empty folder to work in as $work, and how failures are counted.
# Each begins with:  . "$(dirname "$0")/blas.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../../tools/usage.sh"
set -u
export LC_ALL=C GLGEMM_PROGRAM_CACHE= GLGEMM_TUNING= GLGEMM_BLAS_THRESHOLDS=
unset GLGEMM_BLAS_MIN_FLOPS GLGEMM_BLAS_LOG GLGEMM_BLAS_NEXT
tests=$(realpath "$(dirname "${BASH_SOURCE[0]}")")
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
export XDG_RUNTIME_DIR=$work # without it some drivers write to stderr
failures=0

fail() {
  echo "FAILED: $*"
  failures=$((failures + 1))
}

# Ends the script as skipped, or under CI as failed, where something is missing.
missing() {
  echo "SKIPPED: $*"
  [ -n "${CI:-}" ] && exit 1
  exit 77
}

# finish [FOLDER]: ends the script, with 1 if anything failed. Where a log in the folder says that there is no device, that is why.
finish() {
  echo "$failures failures"
  [ $failures = 0 ] && exit
  [ -n "${1:-}" ] && grep -rqs "glgemm_blas: OpenGL can't be used" "$1" && missing "no OpenGL device"
  exit 1
}

libraries=/usr/lib/$(uname -m)-linux-gnu
reference=$libraries/blas           # libblas3's libblas.so.3, and the testers of libblas-test
openblas=$libraries/openblas-pthread # libopenblas0-pthread's

# opengl_calls FILE ROUTINE: how many calls of the routine the log in the file says OpenGL did.
opengl_calls() { sed -n "s/.*pid [0-9]*: $2: OpenGL: \([0-9]*\) calls.*/\1/p" "$1" | head -n 1; }
# other_calls FILE ROUTINE: what the log says of calls that went to the next BLAS; empty if there is none.
other_calls() { grep -E "pid [0-9]+: $2:.*next BLAS" "$1"; }
