#!/bin/bash
# Distributed products on 1, 2 and 4 ranks: exact on integers, with the same bits on any number of ranks; what is refused is refused on
# all ranks by one message; a task that fails ends all; a rank that is killed, or has no device, ends all.
# Usage: ranks.sh GLGEMM GLGEMM_DISTRIBUTED_TESTS
program=$(realpath "$2")
set -- "$1"
. "$(dirname "$0")/../support/cli.sh"
export LP_NUM_THREADS=1 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export TMPDIR=$work GLGEMM_PROGRAM_CACHE=$work/programs GLGEMM_TUNING=
need_device

ranks() { # ranks N COMMAND...: its status; 124 where it hangs
  local n=$1
  shift
  timeout 120 mpirun -q --oversubscribe -np "$n" "$@" >stdout 2>stderr
}
int8() { # int8 FILE ROWS COLUMNS: bytes of the tool itself
  {
    npy_header '|i1' "($2, $3)"
    tail -c +100000 "$glgemm" | head -c $(($2 * $3))
  } >"$1"
}
left() { find . -maxdepth 1 -name '.glgemm-*' -o -maxdepth 1 -name 'glgemm-starpu-*' | wc -l; }

# ---- The library

for n in 1 2 4; do
  ranks $n "$program" exact bits refusals || fail "$n ranks: status $?: $(cat stdout stderr)"
  grep -q WRONG stdout && fail "$n ranks: $(grep WRONG stdout)"
  [ "$(grep -c '^right' stdout)" -eq 31 ] || fail "$n ranks: $(grep -c '^right' stdout) products instead of 31"
  grep '^bits' stdout >"bits$n"
  [ "$(wc -l <"bits$n")" -eq 8 ] || fail "$n ranks: no bits"
  cmp -s bits1 "bits$n" || fail "$n ranks: other bits than on one: $(diff bits1 "bits$n")"
  cp stdout "refusals$n"
done
refused() { # refused NAME TEXT: on 4 ranks
  grep -q "^$1: .*$2" refusals4 || fail "$1: not refused with '$2': $(grep "^$1:" refusals4)"
}
refused dtype 'DTYPE is 501'
refused 'negative size' 'M x N is 64x-1'
refused 'no tile' 'is 0x16'
refused 'outside the grid' '(9, 0) of a grid of 2x2'
refused 'lld of one rank' 'LLD is 3, and the rank has 32 rows (on rank 3 of 4'
refused context 'CTXT is 0 for A, 0 for B and 5 for C'
refused 'too small' 'M x N is 64x64, and the product takes 64x65'
refused 'tiles along m' 'along m the tiles of op(A) have 8 elements and the tiles of C 16'
refused 'tiles along n' 'along n the tiles of op(B) have 8 elements and the tiles of C 16'
refused 'tiles along k' 'along k the tiles of op(A) have 16 elements and the tiles of op(B) 8'
refused null 'A is a null pointer.*on rank 3'
refused 'C in A on one rank' 'distributed multiply: C overlaps A (on rank 3 of 4'
refused 'C in B' 'C overlaps B (on rank 0 of 4'
refused 'C in the scales' 'C overlaps A'
refused run 'run_k is -5'
refused disagreement "the ranks disagree: NB of B's descriptor is 16 on rank 0 and 32 here (on rank 3"
refused 'other alpha' 'the ranks disagree: alpha is 1.5 on rank 0 and 0.25 here'
refused 'other beta' "the ranks disagree: beta's imaginary part is 0 on rank 0 and -3 here"
refused 'other type' "the ranks disagree: B's type number is 0 on rank 0 and 4 here"
refused 'codes across k' 'A is q4_0, and its codes do not lie along k'
refused 'no scales' "A's array of scales is a null pointer"
refused 'no zeros' "A's array of zeros is a null pointer"
refused 'parts of blocks' 'the descriptor of A: MB is 16, no multiple of 32 codes, and A is q4_0'
refused 'parts of bytes' 'the descriptor of A: MB is 16, no multiple of 32 codes, and A is nbits:bits=4,group=16,zeros=1'
refused 'no such group' 'group is 48'
refused 'two quantised' 'A is per_row and B is q4_0: one of them can be quantised'
refused 'codes of f64' 'A is q4_0, whose codes stand for f32, and its type is f64'
refused types 'A is f32 and B is f64: their products have no common type of sums'
refused 'type of C' 'A and B are f32 and C is f16; it must be f32'
refused 'memory of sums' 'the sums of C 4096, and the rank may have 1000'
refused 'other format' "the ranks disagree: A's format number is 0 on rank 0 and 2 here"
refused 'other group' "the ranks disagree: A's group is 16 on rank 0 and 32 here"
refused 'other bits' "the ranks disagree: A's number of bits is 4 on rank 0 and 8 here"
refused 'other zeros' "the ranks disagree: A's number of zeros for a group is 0 on rank 0 and 1 here"
refused 'other scales' "the ranks disagree: A's scales' type number is 0 on rank 0 and 2 here"
refused 'other codes' "the ranks disagree: A's codes' type number is 6 on rank 0 and 11 here"
refused 'other type of C' "the ranks disagree: C's type number is 0 on rank 0 and 2 here"
refused memory 'and the rank may have 1000'

ranks 2 "$program" windows || fail "windows: status $?: $(cat stdout stderr)"
[ "$(grep -c '^right' stdout)" -eq 8 ] || fail "windows: $(cat stdout)"
ranks 2 "$program" faulty || fail "faulty accelerators: status $?: $(cat stdout stderr)"
[ "$(grep -c '^faulty: kernel naive.*: the driver refuses the shader' stdout)" -eq 2 ] || fail "faulty accelerators: $(cat stdout)"
grep -q 'on rank [01] of 2' stdout || fail "faulty accelerators: no rank is named: $(cat stdout)"

# What is sent is what tools/distributed-model says, to the byte.
python3 "$tests/../tools/distributed-model" --check "$program" --size 256 >stdout 2>stderr || fail "the model: $(cat stdout stderr)"

# ---- The tool

multiply() { # multiply RANKS OPTIONS...
  local n=$1
  shift
  ranks "$n" "$glgemm" multiply --distributed "$@"
}
int8 A.npy 150 110
int8 B.npy 110 130
int8 At.npy 110 150
int8 C0.npy 150 130
"$glgemm" multiply A.npy B.npy --type f32 -o whole.npy --check full >stdout 2>stderr || fail "on one device: $(cat stderr)"
"$glgemm" multiply At.npy B.npy --op-a t --alpha 2 --beta -1 --c C0.npy --kernel naive -o whole_t.npy >stdout 2>stderr || fail "on one device: $(cat stderr)"
for n in 1 2 4; do
  multiply $n A.npy B.npy --type f32 -o C.npy --tile 32 --run 64 || fail "$n ranks: $(cat stderr)"
  cmp -s whole.npy C.npy || fail "$n ranks: the product from files is another one"
  grep -q "on $n rank.*tiles of 32x32, k in runs of 64" stdout && grep -q 'elements equal the reference' stdout ||
    fail "$n ranks: $(cat stdout)"
done
multiply 4 At.npy B.npy --op-a t --alpha 2 --beta -1 --c C0.npy -o C.npy --tile 48 --kernel naive --accelerators 0,0 || fail "ops: $(cat stderr)"
cmp -s whole_t.npy C.npy || fail "ops: the product from files is another one"
# A weight of q8_0, 100 x 352, whose blocks have the tool's bytes and scales of 1.
le() { for ((i = 0, x = $2; i < $1; ++i, x >>= 8)); do printf "\\$(printf %03o $((x & 255)))"; done; }
{
  printf GGUF && le 4 3 && le 8 1 && le 8 0 && le 8 1 && printf w && le 4 2 && le 8 352 && le 8 100 && le 4 8 && le 8 0 && head -c 31 /dev/zero
  for ((block = 0; block < 1100; ++block)); do
    printf '\0\074' && tail -c +$((100000 + 32 * block)) "$glgemm" | head -c 32
  done
} >W.gguf
int8 X.npy 352 70
"$glgemm" multiply W.gguf X.npy --type f32 -o whole.npy --check full >stdout 2>stderr || fail "decoded, on one device: $(cat stderr)"
"$glgemm" transpose X.npy -o Xt.npy || fail 'transpose'
"$glgemm" multiply Xt.npy W.gguf --op-b t --type f32 -o whole_t.npy --check full >stdout 2>stderr || fail "decoded, on one device: $(cat stderr)"
as_type() { /usr/bin/env python3 -c "
import struct, sys
data = open(sys.argv[2], 'rb').read(); n = int.from_bytes(data[8:10], 'little')
letter = sys.argv[1]; code = f'<f{struct.calcsize(letter)}'.encode()
head, body = data[:10 + n].replace(b'|i1', code), data[10 + n:]
open(sys.argv[3], 'wb').write(head + b''.join(struct.pack('<' + letter, x - 256 if x > 127 else x) for x in body))" "$@"; } # f or e
as_type f X.npy Xf.npy && as_type f Xt.npy Xtf.npy && as_type e X.npy Xh.npy
multiply 4 W.gguf Xf.npy -o C.npy --tile 32 --run 64 || fail "blocks as A: $(cat stderr)"
cmp -s whole.npy C.npy && grep -q ' in q8_0/f32 with sums in f32$' stdout || fail "blocks as A: $(cat stdout stderr)"
multiply 2 Xtf.npy W.gguf --op-b t -o C.npy --tile 64 || fail "blocks as B: $(cat stderr)"
cmp -s whole_t.npy C.npy && grep -q ' in f32/q8_0 with sums in f32$' stdout || fail "blocks as B: $(cat stdout stderr)"
# Two types, and C of 16 bits, are multiplied as they lie; what is converted is said.
multiply 2 W.gguf Xh.npy -o C.npy --tile 64 --c-type f16 --alpha 0.0078125 --run 128 || fail "blocks and f16: $(cat stderr)"
grep -q ' in q8_0/f16 with sums in f32$' stdout && ! grep -q converted stderr || fail "blocks and f16: $(cat stdout stderr)"
"$glgemm" multiply W.gguf Xh.npy -o whole16.npy --c-type f16 --alpha 0.0078125 >stdout 2>stderr && cmp -s whole16.npy C.npy || fail "blocks and f16 differ: $(cat stderr)"
as_type e A.npy Ah.npy && as_type f B.npy Bf.npy
"$glgemm" multiply Ah.npy Bf.npy -o whole16.npy --c-type f16 --alpha 0.0078125 --check full >stdout 2>stderr || fail "two types, on one device: $(cat stderr)"
multiply 4 Ah.npy Bf.npy -o C.npy --tile 32 --run 32 --c-type f16 --alpha 0.0078125 || fail "two types: $(cat stderr)"
cmp -s whole16.npy C.npy && grep -q ' in f16/f32 with sums in f32$' stdout && ! grep -q converted stderr || fail "two types: $(cat stdout stderr)"
multiply 2 A.npy Bf.npy -o C.npy --tile 64 --type f32 || fail "converted: $(cat stderr)"
[ "$(grep -c "'A.npy' is converted from int8 to float32" stderr)" -eq 1 ] && ! grep -q "Bf.npy" stderr || fail "converted: $(cat stderr)"
npy Large.npy '<f4' '(1, 2)' '\0\0\0\0\0\044\164\111'
multiply 2 Large.npy Large.npy --op-b t --type f16 --check none -o C.npy || fail "beyond f16: $(cat stderr)"
[ "$(grep -c "some elements of 'Large.npy' are beyond the range of f16 and become infinite" stderr)" -ge 1 ] || fail "beyond f16: $(cat stderr)"
"$glgemm" multiply A.npy B.npy -o whole64.npy --type f64 --kernel naive >stdout 2>stderr || fail "f64 on one device: $(cat stderr)"
multiply 2 A.npy B.npy -o C.npy --type f64 --kernel naive --check none || fail "f64: $(cat stderr)"
cmp -s whole64.npy C.npy || fail "f64: the product from files is another one"

# Side by side, each in a folder of its own: mpirun waits for a second where ranks end with an error. Each has a TMPDIR of its own, too:
# an mpirun that ends removes the folder there that another one is about to use.
bad() { # bad NAME TEXT RANKS OPTIONS...: status 2, one line on stderr with the text, no output
  local name=$1 text=$2 folder
  shift 2
  folder=$(mktemp -d bad.XXXX)
  (
    cd "$folder" && ln -s ../*.npy ../W.gguf . && rm -f C.npy
    export TMPDIR=$PWD
    multiply "$@"
    status=$?
    [ $status -eq 2 ] || fail "$name: status $status instead of 2"
    [ "$(grep -vc '^$' stderr)" -eq 1 ] && grep -qF -- "$text" stderr || fail "$name: '$text' is not in: $(cat stderr)"
    [ ! -e C.npy ] && [ "$(left)" -eq 0 ] || fail "$name: something is left: $(ls -A)"
    exit $failures
  ) >"$folder.log" &
  refusals+=("$folder.log" $!)
}
refusals=()
bad 'no file' "cannot read 'missing.npy'" 4 missing.npy B.npy -o C.npy
bad shapes 'the inner sizes 110 and 150 differ' 2 A.npy A.npy -o C.npy
bad "a terminal's commands" 'no usable device is "\x1b[31mred"' 2 A.npy B.npy -o C.npy --accelerators $'\e[31mred'
bad 'no folder' 'there is no folder' 2 A.npy B.npy -o missing/C.npy
bad 'too little memory' 'bytes, and it may have 20000: more ranks take less each (on rank 0 of 2' 2 A.npy B.npy -o C.npy --memory-limit 20000
bad 'no room for a run' 'a smaller run_k' 2 A.npy B.npy -o C.npy --tile 32 --memory-limit 64000
bad 'a tile of parts of blocks' 'lies in blocks of 32 codes' 2 W.gguf Xf.npy -o C.npy --tile 48
bad batch '--batch needs the whole matrices in memory' 2 A.npy B.npy -o C.npy --batch 2
bad resume '--resume is for one process' 2 A.npy B.npy -o C.npy --resume
for ((i = 0; i < ${#refusals[@]}; i += 2)); do
  wait "${refusals[i + 1]}" || failures=$((failures + 1))
  cat "${refusals[i]}"
done
[ "$(left)" -eq 0 ] || fail "something is left: $(ls -A)"

# A rank without a device: that rank and its host are named, all end.
broken=(env __EGL_VENDOR_LIBRARY_FILENAMES=/nothing.json "$glgemm" multiply --distributed A.npy B.npy -o C.npy)
for order in last first; do
  rm -f C.npy
  one=("$glgemm" multiply --distributed A.npy B.npy -o C.npy)
  if [ $order = last ]; then both=(-np 1 "${one[@]}" : -np 1 "${broken[@]}"); else both=(-np 1 "${broken[@]}" : -np 1 "${one[@]}"); fi
  timeout 60 mpirun -q --oversubscribe "${both[@]}" >stdout 2>stderr
  status=$?
  [ $status -eq 2 ] || fail "no device on the $order rank: status $status instead of 2"
  grep -q "no device gives a usable context.*on rank $([ $order = last ] && echo 1 || echo 0) of 2, host $(hostname)" stderr ||
    fail "no device on the $order rank: $(cat stderr)"
  [ ! -e C.npy ] && [ "$(left)" -eq 0 ] || fail "no device on the $order rank: something is left: $(ls -A)"
done

# A rank that is killed: mpirun ends, and what was being written goes away.
int8 L.npy 200 200
for victim in 0 1; do
  # So many tasks that they take a minute. It is killed while they run, when each rank knows which file is to go away.
  timeout 60 mpirun -q --oversubscribe -np 2 "$glgemm" multiply --distributed L.npy L.npy -o C.npy --kernel naive --tile 1 --run 1 >stdout 2>stderr &
  mpirun=$!
  for ((i = 0; i < 200; ++i)); do
    compgen -G ".glgemm-*.tmp" >found && grep -q "% done" stderr && break
    sleep 0.1
  done
  [ -s found ] && grep -q '% done' stderr || fail "rank $victim killed: it had not begun: $(cat stderr)"
  for process in $(pgrep -P "$(pgrep -P $mpirun | head -n 1)"); do
    tr '\0' '\n' <"/proc/$process/environ" | grep -qx "OMPI_COMM_WORLD_RANK=$victim" && kill -KILL "$process"
  done
  wait $mpirun
  status=$?
  case $status in
    0 | 124) fail "rank $victim killed: status $status" ;;
  esac
  for ((i = 0; i < 50; ++i)); do
    [ "$(left)" -eq 0 ] && break
    sleep 0.1
  done
  [ ! -e C.npy ] && [ "$(left)" -eq 0 ] || fail "rank $victim killed: something is left: $(ls -A)"
done

[ $failures -eq 0 ] && echo "all right"
exit $((failures > 0))
