#!/bin/bash
# Netlib's testers of level 3, of Debian's package libblas-test, with all products on OpenGL: xblat3s, d, c and z for Fortran, and
# xscblat3, xdcblat3, xccblat3 and xzcblat3 for CBLAS.  Usage: netlib.sh LIBRARY [all]
#
# Their input files have sizes up to 9 and test all routines of level 3. `all` runs these; without it, and with it as well, gemm is
# tested with sizes up to 65, the testers' largest.
. "$(dirname "$0")/blas.sh"
library=$(realpath "$1")
all=${2:-}
[ -x $reference/xblat3s ] || missing "Netlib's testers (libblas-test)"
[ -e $reference/libblas.so.3 ] || missing "the reference BLAS (libblas3)"
cd "$work" || exit 2

# large FILE: the input, for gemm alone, with larger sizes: about multiples of the kernels' tiles, and not.
large() {
  sed -E -e 's/^[0-9]+ +(NUMBER OF VALUES OF N)/3 \1/' -e 's/^[0-9 ]+ (VALUES OF N)/1 32 65 \1/' \
    -e '/^([SDCZ]|cblas_[sdcz])[A-Za-z0-9]+ +T /{/(GEMM|gemm)/!s/ T / F /}' -e 's/^T( +LOGICAL FLAG, T TO TEST ERROR EXITS)/F\1/' "$1"
}

# tester NAME ROUTINE INPUT CALLS: a tester says that all passes, the log that OpenGL did at least so many calls, and no other BLAS any.
# The reference BLAS is below: CBLAS's testers need a variable of its.
tester() {
  local name=$1 routine=$2 input=$3 calls=$4 folder=$1.$(basename "$3") label
  label="$name < $(basename "$input")"
  mkdir "$folder"
  (cd "$folder" && LD_LIBRARY_PATH=$reference${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} LD_PRELOAD=$library GLGEMM_BLAS_MIN_FLOPS=0 GLGEMM_BLAS_LOG=1 timeout 900 \
    "$reference/$name" <"$input" >out 2>err) || fail "$label: status $?"
  cat "$folder"/out "$folder"/*.out >"$folder/said" 2>/dev/null
  grep -qE 'FAIL|FATAL|ABANDON|\*\*\*' "$folder/said" && fail "$label: $(grep -E 'FAIL|FATAL|ABANDON|\*\*\*' "$folder/said" | head -n 5)"
  grep -qiE "${routine%_} +PASSED THE .*COMPUTATIONAL TESTS" "$folder/said" || fail "$label: no word of ${routine%_}: $(cat "$folder/said")"
  grep -q 'END OF TESTS' "$folder/said" || fail "$label: it did not come to its end"
  local done
  done=$(opengl_calls "$folder/err" "$routine")
  [ "${done:-0}" -ge "$calls" ] && [ -z "$(other_calls "$folder/err" "$routine")" ] ||
    fail "$label: not all on OpenGL, or fewer than $calls calls: $(grep -vE "pid [0-9]+: type" "$folder/err")"
  echo "$label: $done calls of $routine on $(sed -n 's/.*OpenGL: \(.*\); next BLAS.*/\1/p' "$folder/err")"
}

# One of each pair at a time on each of two cores.
testers() { # testers LETTER...
  local letter
  for letter in "$@"; do
    large "$reference/${letter}blat3.in" >"$work/large-${letter}blat3"
    large "$reference/${letter}in3" >"$work/large-${letter}in3"
    tester xblat3$letter ${letter}gemm_ "$work/large-${letter}blat3" 1900
    tester x${letter}cblat3 cblas_${letter}gemm "$work/large-${letter}in3" 3800
    [ -n "$all" ] || continue
    tester xblat3$letter ${letter}gemm_ $reference/${letter}blat3.in 10000
    tester x${letter}cblat3 cblas_${letter}gemm $reference/${letter}in3 20000
  done
  exit $failures
}
testers s z >first 2>&1 &
first=$!
testers d c >second 2>&1 &
second=$!
wait $first
failures=$?
wait $second
failures=$((failures + $?))
cat first second
[ -n "$(cat first)" ] && [ -n "$(cat second)" ] || fail "nothing ran"
finish "$work"
