#!/bin/bash
# The library from outside: its names, products, error exits, threads, forks, ends, faults, thresholds and log.
# Usage: program.sh LIBRARY PROGRAM [SLOW_BLAS WRONG_SIZE]   (without the last two: some products, batches and error exits)
. "$(dirname "$0")/blas.sh"
library=$(realpath "$1")
program=$(realpath "$2")
slow=${3:+$(realpath "$3")}
wrong_size=${4:+$(realpath "$4")}
cd "$work" || exit 2
GLGEMM_BLAS_MIN_FLOPS=0 GLGEMM_BLAS_LOG=1 "$program" some >out 2>&1 || fail "the first products: $(cat out)"
grep -q 'OpenGL can.t be used' out && { cat out; missing "no OpenGL device"; }

is_mesa=$(grep -q 'OpenGL: .*Mesa.*; next' out && echo yes) # which can be told to be less than it is

# run COMMAND...: with everything on OpenGL, and its whole output in the file `out`.
run() { GLGEMM_BLAS_MIN_FLOPS=0 GLGEMM_BLAS_LOG=1 timeout 120 "$program" "$@" >out 2>&1 || fail "$*: $? $(tail -n 5 out)"; }

foreign=$(nm -D --defined-only "$library" | cut -d' ' -f3 | grep -vE '^([sdcz]gemm_(64_)?|cblas_[sdcz]gemm(_batch(_strided)?)?(64_|_64)?|pilaenv_)$')
[ -z "$foreign" ] || fail "the library exports $foreign"
[ "$(nm -D --defined-only "$library" | wc -l)" = 45 ] || fail "the library does not export 45 names: $(nm -D --defined-only "$library" | wc -l)"

run batches
for type in s d c z; do
  for routine in cblas_${type}gemm_batch cblas_${type}gemm_batch_64 cblas_${type}gemm_batch_strided cblas_${type}gemm_batch_strided64_; do
    [ "$(opengl_calls out $routine)" -ge 4 ] && [ -z "$(other_calls out $routine)" ] || fail "$routine: $(grep $routine: out)"
  done
done
# Items that share elements of C one by one, the others at once: 7 strided batches of 7 items and 4 more, 3 listed ones and 2.
run shared
for type in s d c z; do
  [ "$(opengl_calls out cblas_${type}gemm_batch_strided)" = 53 ] && [ "$(opengl_calls out cblas_${type}gemm_batch)" = 23 ] ||
    fail "shared items: $(grep cblas_${type}gemm out)"
done
run errors
[ -n "$slow" ] || finish
[ -e $openblas/libblas.so.3 ] || missing "OpenBLAS (libopenblas0-pthread)"

run products
for type in s d c z; do
  for routine in ${type}gemm_ ${type}gemm_64_ cblas_${type}gemm cblas_${type}gemm64_ cblas_${type}gemm_64; do
    [ "$(opengl_calls out $routine)" -gt 50 ] && [ -z "$(other_calls out $routine)" ] || fail "$routine: $(grep $routine: out)"
  done
done
run environment
run leave
# Callers that leave the BLAS below, and one that leaves the measurement: their later products go to OpenGL.
GLGEMM_BLAS_MIN_FLOPS=1e6 GLGEMM_BLAS_LOG=1 GLGEMM_BLAS_NEXT=$slow timeout 60 "$program" leave_next >out 2>&1 || fail "leave_next: $? $(tail -n 5 out)"
grep -q 'sgemm_: OpenGL: 12 calls, [^;]*; next BLAS, too small to gain: 4 calls' out && grep -q 'cblas_sgemm: next BLAS, too small to gain: 4 calls' out ||
  fail "leave_next: $(cat out)"
GLGEMM_BLAS_LOG=1 GLGEMM_BLAS_NEXT=$slow timeout 60 "$program" leave_measurement >out 2>&1 || fail "leave_measurement: $? $(tail -n 5 out)"
grep -q 'type s: to OpenGL: from 3.35544e+07 flops on (measured)' out || fail "leave_measurement: $(cat out)"
run memory
for number in 1 2 3 5 8 13 21 34 55 89 144 233 377; do
  run memory $number
done

# A wrong size goes to the xerbla_ of a program that has no cblas_xerbla, whichever BLAS is below. The program goes on.
for next in "$openblas" "$reference"; do
  [ -e "$next/libblas.so.3" ] || continue
  LD_LIBRARY_PATH=$next${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} GLGEMM_BLAS_MIN_FLOPS=0 "$wrong_size" >out 2>&1 || fail "a wrong size, on $next: $? $(cat out)"
done

run threads
[ -z "$(other_calls out '[a-z_]*')" ] || fail "not all of the threads' products went to OpenGL: $(cat out)"
run forks
grep -q 'next BLAS, forked: ' out || fail "no child's product went to the next BLAS: $(cat out)"

# Where the driver has no doubles, types d and z go to the next BLAS, and nothing is told but in the log.
if [ "$is_mesa" = yes ]; then
  MESA_GL_VERSION_OVERRIDE=4.5 MESA_EXTENSION_OVERRIDE=-GL_ARB_gpu_shader_fp64 run batches
  for type in d z; do
    [ "$(grep -c "cblas_${type}gemm_batch.*next BLAS, no doubles" out)" = 4 ] || fail "no doubles, $type: $(cat out)"
  done
  [ "$(opengl_calls out cblas_sgemm_batch)" = 8 ] && [ "$(opengl_calls out cblas_cgemm_batch)" = 8 ] || fail "no doubles: $(cat out)"
  grep -vqE '^glgemm_blas: pid |failures$' out && fail "no doubles: $(cat out)"
fi

# Batches where all goes to the next BLAS.
GLGEMM_BLAS_MIN_FLOPS=inf GLGEMM_BLAS_LOG=1 "$program" batches >out 2>&1 || fail "batches on the next BLAS: $(tail -n 5 out)"
GLGEMM_BLAS_MIN_FLOPS=inf "$program" shared >out2 2>&1 || fail "shared items on the next BLAS: $(tail -n 5 out2)"
grep -q 'OpenGL: not used' out || fail "OpenGL was used without need: $(cat out)"

# On the reference BLAS, which has nothing to take down: OpenBLAS crashes at times where threads still call it at the end.
[ -e $reference/libblas.so.3 ] || missing "the reference BLAS (libblas3)"
for kind in return early late busy busy busy busy busy busy_quick busy_now from_thread; do
  for time in 1 2; do
    GLGEMM_BLAS_MIN_FLOPS=0 GLGEMM_BLAS_NEXT=$reference/libblas.so.3 timeout 60 "$program" end $kind >out 2>&1 || fail "end $kind: $? $(tail -n 3 out)"
  done
done

# A context that is lost before, in and after the first products: every result is right, each error is told once.
for time in 1 2 5 20; do
  LOST_AT=$time run some
  [ "$(grep -c 'the call goes to the next BLAS' out)" -le 1 ] || fail "told more than once: $(cat out)"
  grep -qE 'next BLAS, (error|no device): ' out || fail "lost at $time, and no call failed: $(cat out)"
  [ "$(grep -c reset out)" -ge 1 ] || fail "lost at $time, and nothing was told: $(cat out)"
done
GLGEMM_DEVICE=nothing-like-it run some
grep -q 'no usable device is "nothing-like-it"' out || fail "a device that is not there: $(cat out)"

# The threshold: what is no number is told, once.
for value in abc -1 nan 1x ''; do
  GLGEMM_BLAS_MIN_FLOPS=$value "$program" some >out 2>&1 || fail "GLGEMM_BLAS_MIN_FLOPS=$value: $?"
  [ "$(grep -cF "glgemm_blas: GLGEMM_BLAS_MIN_FLOPS=$value is not a number of 0 or more" out)" = 1 ] || fail "'$value': $(cat out)"
done
GLGEMM_BLAS_NEXT=/nowhere/libblas.so "$program" some >out 2>&1 || fail "GLGEMM_BLAS_NEXT: $?"
grep -q 'GLGEMM_BLAS_NEXT=/nowhere/libblas.so can.t be loaded, and is not used' out || fail "GLGEMM_BLAS_NEXT: $(cat out)"

# Measured: OpenGL wins over a slow BLAS from the smallest size on that is measured. Small products do not cause the measurement.
export GLGEMM_BLAS_LOG=1 GLGEMM_BLAS_THRESHOLDS=$work/kept/thresholds.txt
GLGEMM_BLAS_NEXT=$slow "$program" square 512 9 >out 2>&1 || fail "512: $?"
grep -q 'type s: to OpenGL: not measured yet' out && grep -q 'sgemm_: next BLAS, too small to gain: 9 calls' out || fail "512: $(cat out)"
[ ! -e kept ] || fail "a threshold was kept without a measurement"
GLGEMM_BLAS_NEXT=$slow "$program" square 1600 7 >out 2>&1 || fail "1600: $?"
grep -q 'type s: to OpenGL: from 3.35544e+07 flops on (measured)' out || fail "measured: $(cat out)"
[ "$(opengl_calls out sgemm_)" = 1 ] || fail "the last product did not go to OpenGL: $(cat out)"
grep -q "^33554432.s.*$(basename "$slow")\$" kept/thresholds.txt || fail "kept: $(cat kept/thresholds.txt)"
# A process that comes later measures nothing.
GLGEMM_BLAS_NEXT=$slow "$program" square 1600 7 >out 2>&1 || fail "later: $?"
grep -q '(measured by a process before)' out || fail "later: $(cat out)"
# In a locale with a decimal comma numbers are read and written as in any other.
if localedef -i de_DE -f UTF-8 "$work/de_DE.UTF-8" 2>localedef; then
  sed -i 's/^33554432/33554432.25/' kept/thresholds.txt
  LOCPATH=$work LC_ALL=de_DE.UTF-8 GLGEMM_BLAS_NEXT=$slow "$program" square 1600 7 >out 2>&1 || fail "with a decimal comma: $?"
  grep -q '(measured by a process before)' out || fail "with a decimal comma: $(cat out)"
  sed -i '/\ts\t/d' kept/thresholds.txt
  LOCPATH=$work LC_ALL=de_DE.UTF-8 GLGEMM_BLAS_NEXT=$slow "$program" square 1600 7 >out 2>&1 || fail "with a decimal comma: $?"
  grep -q "^33554432.s" kept/thresholds.txt || fail "kept with a decimal comma: $(cat kept/thresholds.txt)"
  LOCPATH=$work LC_ALL=de_DE.UTF-8 GLGEMM_BLAS_MIN_FLOPS=0.5 "$program" square 100 1 >out 2>&1 || fail "with a decimal comma: $?"
  grep -q 'is not a number' out && fail "with a decimal comma: $(cat out)"
else
  echo "left out: a locale with a decimal comma (locales): $(cat localedef)"
fi
# What is no regular file is neither read nor replaced.
mkfifo pipe
echo "of another" >theirs
ln -s theirs link
for file in pipe link; do
  GLGEMM_BLAS_THRESHOLDS=$work/$file GLGEMM_BLAS_NEXT=$slow timeout 60 "$program" square 1600 7 >out 2>&1 || fail "thresholds in a $file: $?"
  grep -q '(measured)' out || fail "thresholds in a $file: $(cat out)"
done
[ -p pipe ] && [ -L link ] && [ "$(cat theirs)" = "of another" ] || fail "what is no regular file was replaced: $(ls -l pipe link theirs)"
# A damaged file is as none, and another BLAS has a threshold of its own.
printf 'x\n1e3\n-5\ts\n\0\n' >kept/thresholds.txt
GLGEMM_BLAS_NEXT=$openblas/libblas.so.3 "$program" square 2048 6 >out 2>&1 || fail "OpenBLAS: $?"
grep -q '(measured)' out || fail "OpenBLAS: $(cat out)"
echo "beside OpenBLAS: $(grep 'type s' out)"
finish
