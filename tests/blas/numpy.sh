#!/bin/bash
# NumPy multiplies, solves and runs an SVD with all products on OpenGL.  Usage: numpy.sh LIBRARY
. "$(dirname "$0")/blas.sh"
library=$(realpath "$1")
cd "$work" || exit 2
python=/usr/bin/python3 # which has Debian's NumPy
[ -x $python ] || missing "$python"
status=0
GLGEMM_BLAS_MIN_FLOPS=0 GLGEMM_BLAS_LOG=1 LD_PRELOAD=$library $python "$tests/numpy_calls.py" >out 2>log || status=$?
[ $status = 77 ] && missing "$(sed 's/^SKIPPED: //' out)"
[ $status = 0 ] || fail "status $status: $(cat out log)"
# Products are cblas_?gemm there; LAPACK, which computes in doubles alone there, calls ?gemm_.
for routine in cblas_sgemm cblas_dgemm cblas_cgemm cblas_zgemm dgemm_ zgemm_; do
  done=$(opengl_calls log $routine)
  [ "${done:-0}" -ge 4 ] && [ -z "$(other_calls log $routine)" ] || fail "$routine: $(grep "$routine" log)"
done
cat out
finish
