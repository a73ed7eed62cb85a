#!/bin/bash
# ScaLAPACK's psgemm_ over 1, 2 and 4 MPI ranks with the local products on OpenGL: docs/blas.md has the recipe.
# Usage: scalapack.sh LIBRARY
. "$(dirname "$0")/blas.sh"
library=$(realpath "$1")
for tool in mpicc mpirun; do
  command -v $tool >/dev/null || missing "$tool (openmpi-bin, libopenmpi-dev)"
done
[ -e $libraries/libscalapack-openmpi.so ] || missing "ScaLAPACK (libscalapack-openmpi-dev)"
cd "$work" || exit 2
mpicc -O1 -Wall -Wextra -Werror "$tests/psgemm.c" -o psgemm -lscalapack-openmpi || fail "psgemm.c does not compile"

export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 LP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
# ranks COUNT N [VARIABLE=VALUE...]: a product of N x N matrices; its output and log in the file `out`.
ranks() {
  local count=$1 n=$2
  shift 2
  env "$@" timeout 120 mpirun --oversubscribe -n "$count" -x GLGEMM_BLAS_MIN_FLOPS=0 -x GLGEMM_BLAS_LOG=1 -x LD_PRELOAD="$library" \
    ./psgemm "$n" 64 >out 2>&1 || fail "$count ranks: $? $(cat out)"
  grep -q "^$count ranks: 0 wrong elements" out || fail "$count ranks: $(cat out)"
  [ "$(grep -c ': sgemm_: OpenGL: ' out)" = "$count" ] || fail "not each of $count ranks used OpenGL: $(cat out)"
  [ -z "$(other_calls out sgemm_)" ] || fail "not all on OpenGL: $(cat out)"
}
for count in 1 2 4; do
  ranks $count 500
  sed -n 's/.* wrong elements, //p' out >sum.$count
  cmp -s sum.1 sum.$count || fail "$count ranks and one differ: $(cat sum.1 sum.$count)"
  # k is not cut into steps of 32, which would be 16 calls and more.
  calls=$(opengl_calls out sgemm_)
  [ "$calls" -le 8 ] || fail "$count ranks: $calls calls of sgemm_ on one"
  echo "$count ranks: $calls calls of sgemm_ on one"
done
finish
