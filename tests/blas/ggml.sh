#!/bin/bash
# ggml and llama.cpp of Debian's packages with the products of ggml's BLAS backend on OpenGL: ggml's own tests of that backend, and the
# logits of small models beside those that OpenBLAS gives. docs/ggml.md has the recipe.
# Usage: ggml.sh LIBRARY [COMMAND...], where COMMAND runs a program on a system that has the packages, as `LAB/run mesa-26` does.
. "$(dirname "$0")/blas.sh"
library=$(realpath "$1")
shift
backend_tests=/usr/libexec/$(uname -m)-linux-gnu/ggml/test-backend-ops
cd "$work" || exit 2

# there VARIABLE=VALUE... PROGRAM...: runs it there, with OpenBLAS as the system's BLAS.
inside=("$@")
there() { timeout 300 "${inside[@]}" env LD_LIBRARY_PATH="$openblas" "$@"; }
# on_opengl PROGRAM...: all products of cblas_sgemm on OpenGL, and a log of them at the end.
on_opengl() { there LD_PRELOAD="$library" GLGEMM_BLAS_MIN_FLOPS=0 GLGEMM_BLAS_LOG=1 "$@"; }
# all_on_opengl LABEL CALLS LOG: the log says that OpenGL did at least so many calls, and no other BLAS any.
all_on_opengl() {
  local done
  done=$(opengl_calls "$3" cblas_sgemm)
  [ "${done:-0}" -ge "$2" ] && [ -z "$(other_calls "$3" cblas_sgemm)" ] ||
    fail "$1: not all on OpenGL, or fewer than $2 products: $(tail -n 20 "$3")"
  echo "$1: $done products on $(sed -n 's/.*OpenGL: \(.*\); next BLAS.*/\1/p' "$3")"
}

for program in "$backend_tests" /usr/bin/llama-results; do
  there test -x "$program" || missing "$program (libggml0, libggml0-backend-blas, llama.cpp-tools-extra)"
done
there /usr/bin/python3 -c 'import gguf' || missing "python3-gguf"

on_opengl "$backend_tests" test -b BLAS >ggml.out 2>ggml.log || fail "test-backend-ops: $(grep FAIL ggml.out | head -n 3)"
passed=$(sed -n 's/^ *\([0-9]*\)\/\([0-9]*\) tests passed/\1 \2/p' ggml.out)
[ -n "$passed" ] && [ "${passed% *}" = "${passed#* }" ] && [ "${passed% *}" -ge 11 ] || fail "test-backend-ops: passed: ${passed:-none}"
all_on_opengl "test-backend-ops, ${passed% *} tests" 84 ggml.log

# Two layers of seven products, and the last one: 15, if a batch of all tokens gets there. Attention in f32, so that products alone differ.
printf 'The quick brown fox jumps over the lazy dog. %.0s' 1 2 3 4 5 >prompt
options=(-f prompt -c 512 --no-repack --flash-attn off -ctk f32 -ctv f32)
for type in f32 f16 q8_0 q4_0; do
  there /usr/bin/python3 "$tests/small_llama.py" $type $type.gguf >python.log 2>&1 || fail "$type: no model: $(cat python.log)"
  there llama-results -m $type.gguf "${options[@]}" --output openblas.gguf >$type.openblas.log 2>&1 ||
    fail "$type on OpenBLAS: status $?: $(tail -n 5 $type.openblas.log)"
  on_opengl llama-results -m $type.gguf "${options[@]}" --output opengl.gguf >$type.log 2>&1 || fail "$type: status $?: $(tail -n 5 $type.log)"
  all_on_opengl "llama-results, weights of $type" 15 $type.log
  there /usr/bin/python3 "$tests/logits.py" openblas.gguf opengl.gguf 1e-4 || fail "$type: logits differ"
  rm -f openblas.gguf opengl.gguf
done

# What docs/ggml.md says of batches: 31 tokens at once are too few for ggml's backend.
on_opengl llama-results -m f32.gguf "${options[@]}" -ub 31 --output few.gguf >few.log 2>&1 || fail "31 tokens: status $?"
[ -s few.gguf ] && ! grep -q cblas_sgemm few.log || fail "31 tokens at once reach BLAS: $(grep cblas_sgemm few.log)"
finish "$work"
