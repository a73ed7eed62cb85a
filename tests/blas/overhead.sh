#!/bin/bash
# What an 8 x 8 sgemm costs that is handed on, against calling OpenBLAS directly: at most 1.3 times.  Usage: overhead.sh PROGRAM
. "$(dirname "$0")/blas.sh"
program=$(realpath "$1")
[ -e $openblas/libblas.so.3 ] || missing "OpenBLAS (libopenblas0-pthread)"
export GLGEMM_BLAS_NEXT=$openblas/libblas.so.3
# A machine that does other work as well may disturb a measurement, but not three.
for time in 1 2 3; do
  "$program" overhead "$GLGEMM_BLAS_NEXT" && finish
done
fail "more than 1.3 times"
finish
