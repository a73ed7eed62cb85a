#!/bin/bash
# glgemm multiply from files that are read, multiplied and written piece by piece: the same results as in memory; after kill -9 at
# any moment it goes on where it was; whatever goes wrong, nothing lies under the output's name.
# Usage: cli_streamed.sh GLGEMM   (GLGEMM is the built tool; it needs a device with OpenGL 4.3)
. "$(dirname "$0")/../support/cli.sh"
trap 'mountpoint -q "$work/small" && umount "$work/small"; rm -rf "$work"' EXIT
export GLGEMM_PROGRAM_CACHE=$work/programs

# int8 FILE SHAPE FIRST COUNT [FORTRAN] writes an .npy file of int8, whose elements are bytes of the tool itself.
int8() {
  {
    npy_header '|i1' "$2" ${5:-}
    tail -c +$(($3 + 100000)) "$glgemm" | head -c $4
  } >"$1"
}
left() { find . -name '*.glgemm-*' | wc -l; }

# The streamed product is the one in memory, to the bit.
same() {
  local name=$1 limit=$2
  shift 2
  "$glgemm" multiply "$@" -o whole.npy >stdout 2>stderr || fail "$name, in memory: $(cat stderr)"
  "$glgemm" multiply "$@" -o streamed.npy $limit >stdout 2>stderr || fail "$name: $(cat stderr)"
  cmp -s whole.npy streamed.npy || fail "$name: streamed, the product is another one"
  grep -q 'elements equal the reference\|all equal' stdout || fail "$name: not checked: $(cat stdout)"
  [ "$(left)" -eq 0 ] || fail "$name: $(find . -name '*.glgemm-*') is left"
}
tool=("$glgemm" multiply)

int8 A.npy '(130, 201)' 0 26130
int8 B.npy '(201, 117)' 30000 23517
int8 AF.npy '(130, 201)' 0 26130 True
int8 BT.npy '(117, 201)' 30000 23517
same 'int8' '--memory-limit 40K' A.npy B.npy
grep -q ' pieces of at most .* windows .* of the bound of .* in transfers, ' stdout || fail "the summary says $(cat stdout)"
same 'Fortran order and a transpose' '--device-memory-limit 48K --memory-limit 64K' AF.npy BT.npy --op-b t
cp whole.npy C0.npy
same 'converted, with beta' '--device-memory-limit 96K' A.npy BT.npy --op-b t --type f32 --alpha -2 --beta 3 --c C0.npy
same 'float16' '--memory-limit 64KiB' A.npy B.npy --type f16
same 'accelerators' '--accelerators all --memory-limit 128K --max-dispatch 1' A.npy B.npy
grep -q ' accelerators*: ' stdout || fail "accelerators: it says $(cat stdout)"
"$glgemm" multiply A.npy B.npy -o whole.npy >stdout 2>stderr
"$glgemm" multiply A.npy B.npy -o streamed.npy --resume >stdout 2>stderr || fail "nothing to go on with: $(cat stderr)"
grep -q 'no interrupted run to go on with; it starts from the beginning' stderr || fail "nothing to go on with: $(cat stderr)"
cmp -s whole.npy streamed.npy || fail 'nothing to go on with: the product is another one'

# Pieces so small and slow that there is time to interrupt them.
m='multiply A.npy B.npy --type f32 --kernel naive --memory-limit 14K'
"$glgemm" $m -o right.npy >stdout 2>stderr || fail "small pieces: $(cat stderr)"
pieces=$(grep -o '^[0-9]* pieces' stdout)
[ "${pieces% *}" -ge 12 ] || fail "too few pieces to interrupt: $pieces"
# paused LINES OPTIONS... runs it until the journal has that many lines, and stops it there: $process. All pieces can be computed before
# this script, on a busy machine, has seen that: then once more. Bash looks by itself, since starting a program can take longer than a piece.
mkfifo never
exec 3<>never
lines_of_journal() {
  local -a journal=()
  [ ! -e C.npy.glgemm-journal ] || mapfile -t journal <C.npy.glgemm-journal
  lines=${#journal[@]}
} 2>/dev/null
paused() {
  local wanted=$1 state lines
  shift
  for _ in {1..20}; do
    "$glgemm" $m -o C.npy "$@" >stdout 2>stderr 3>&- &
    process=$!
    while lines_of_journal && [ $lines -lt $wanted ] && kill -0 $process 2>/dev/null; do read -r -t 0.001 -u 3; done
    kill -STOP $process 2>/dev/null
    until read -r _ _ state _ 2>/dev/null </proc/$process/stat && [[ $state = [TZ] ]] || ! kill -0 $process 2>/dev/null; do
      read -r -t 0.001 -u 3
    done
    lines_of_journal
    [ "$state" = T ] && [ ! -e C.npy ] && [ $lines -ge $wanted ] && [ $lines -lt "${pieces% *}" ] && return
    kill -CONT $process 2>/dev/null
    wait $process && cmp -s C.npy right.npy || fail "a product that is not to be stopped: $(cat stderr)"
    rm -f C.npy
  done
  fail "the product is always complete before its journal has $wanted lines and is seen"
}
# interrupt SIGNAL LINES OPTIONS... ends it by the signal when the journal has that many lines.
interrupt() {
  local signal=$1 lines=$2 status
  paused "${@:2}"
  kill -$signal $process
  kill -CONT $process 2>/dev/null
  wait $process 2>/dev/null
  status=$?
  [ $status -eq $((128 + $(kill -l $signal))) ] || fail "$signal after $lines lines: status $status, $(cat stderr)"
  [ ! -e C.npy ] || fail "$signal after $lines lines: there is an output"
  [ -s C.npy.glgemm-part ] && [ -s C.npy.glgemm-journal ] || fail "$signal after $lines lines: nothing is kept"
}
resumed() {
  "$glgemm" $m -o C.npy --resume >stdout 2>stderr || fail "$1: $(cat stderr)"
  local kept computed
  kept=$(sed -n 's/.*note: \([0-9]*\) pieces*, .* are there from an interrupted run/\1/p' stderr)
  computed=$(sed -n 's/^\([0-9]*\) pieces* of at most.*/\1/p' stdout)
  [ "$kept" -ge 1 ] && [ $((kept + computed)) -eq ${pieces% *} ] || fail "$1: $kept pieces kept, $computed computed, of $pieces"
  cmp -s C.npy right.npy || fail "$1: the product is another one"
  [ "$(left)" -eq 0 ] || fail "$1: $(find . -name '*.glgemm-*') is left"
  rm -f C.npy
}
interrupt KILL 2
interrupt KILL 4 --resume
interrupt KILL 7 --resume
resumed 'after three times kill -9'
interrupt TERM 5
grep -q 'interrupted; what is done is kept .* --resume goes on with it' stderr || fail "SIGTERM: it says $(cat stderr)"
bad 'another alpha' 'alpha was [1.0,0.0] and is [2.0,0.0]' ${m#* } -o C.npy --resume --alpha 2
another=${m/14K/64K}
bad 'another limit' 'limits.memory was 14336 and is 65536' ${another#* } -o C.npy --resume
another=${m/A.npy/AF.npy}
bad 'another factor' 'A.path was ' ${another#* } -o C.npy --resume
bad 'other sizes' 'A.bytes was ' B.npy B.npy --op-b t --type f32 --kernel naive -o C.npy --resume
truncate -s -3 C.npy.glgemm-journal
resumed 'after a torn line'
# All pieces are there, and the name is not to be had.
paused 1
mkdir C.npy
kill -CONT $process
wait $process
[ $? -eq 2 ] && grep -q "cannot write 'C.npy': Is a directory; what is done is kept" stderr || fail "a folder as output: $(cat stderr)"
rmdir C.npy
resumed 'with nothing left to compute'
# A journal of an earlier version.
interrupt KILL 3
checksum() { # FNV-1a
  local sum=$((0xcbf29ce484222325)) i code
  for ((i = 0; i < ${#1}; ++i)); do
    printf -v code %d "'${1:i:1}"
    sum=$(((sum ^ code) * 0x100000001b3))
  done
  printf %016x $sum
}
cp C.npy.glgemm-journal journal
read -r _ header <journal
older=${header/'"format":2'/'"format":1'}
[ "$(checksum "$header")" = "$(head -c 16 journal)" ] && [ "$older" != "$header" ] || fail "the journal's header is $(head -n 1 journal)"
{
  echo "$(checksum "$older") $older"
  tail -n +2 journal
} >C.npy.glgemm-journal
bad 'an older journal' "C.npy.glgemm-journal' has the format 1 of another version of glgemm, and this one goes on with the format 2; without --resume it starts from the beginning" ${m#* } -o C.npy --resume
cp journal C.npy.glgemm-journal
# A new run takes the place of what another has left.
touch -r A.npy time
cp A.npy same.npy
touch A.npy
bad 'another time' 'A.modified_ns was ' ${m#* } -o C.npy --resume
touch -r time A.npy
bad 'changed, with the time put back' "is of another product: A.changed_ns was " ${m#* } -o C.npy --resume
touch -r time same.npy
mv same.npy A.npy
bad 'another file of that name, size and time' 'A.inode was ' ${m#* } -o C.npy --resume
head -c 200 B.npy | dd of=C.npy.glgemm-part conv=notrunc 2>/dev/null
"$glgemm" $m -o C.npy >stdout 2>stderr && cmp -s C.npy right.npy && [ "$(left)" -eq 0 ] || fail "a new run: $(cat stderr)"
rm -f C.npy
# An input that is changed.
paused 1
touch B.npy
kill -CONT $process
wait $process
status=$?
[ $status -eq 2 ] && grep -q "'B.npy' was changed while it was read: its time of modification was" stderr ||
  fail "a changed input: status $status, $(cat stderr)"
[ ! -e C.npy ] && [ "$(left)" -eq 0 ] || fail 'a changed input: there is an output'
# An element at the end that cannot be converted.
"$glgemm" multiply A.npy B.npy --type f32 -o F.npy >stdout 2>stderr
"$glgemm" multiply F.npy F.npy --op-b t --type i8 -o C.npy --memory-limit 64K >stdout 2>stderr
[ $? -eq 2 ] && [ ! -e C.npy ] && [ ! -s stdout ] && grep -v ' note: ' stderr | grep -q -- '--resume goes on with it$' || fail "no such value: $(cat stderr)"
rm -f C.npy.glgemm-*

# A full disk: seen before the work.
(
  ulimit -f 8
  bad 'a limit on files' "cannot write 'C.npy': " A.npy B.npy -o C.npy --memory-limit 64K
  exit $failures
) || failures=$((failures + 1))
if mkdir small && mount -t tmpfs -o size=32k none small 2>/dev/null; then
  bad 'full disk' 'its disk has' A.npy B.npy -o small/C.npy --memory-limit 64K
  umount small
fi
[ "$(left)" -eq 0 ] || fail "a full disk: $(find . -name '*.glgemm-*') is left"

bad 'too small a limit' 'is too small for any piece; the least is' A.npy B.npy -o C.npy --memory-limit 1K
bad 'a limit of nothing' "--memory-limit: '0' is not a number of bytes" A.npy B.npy -o C.npy --memory-limit 0
bad 'no number' "--device-memory-limit: '12Q' is not a number of bytes" A.npy B.npy -o C.npy --device-memory-limit 12Q
bad 'no time for a dispatch' '--max-dispatch' A.npy B.npy -o C.npy --max-dispatch 0
bad 'no such accelerator' 'no such device' A.npy B.npy -o C.npy --accelerators 'no such device'
bad 'a device and accelerators' 'excludes' A.npy B.npy -o C.npy --accelerators all --device 0
bad 'check full' '--check full needs the whole matrices in memory' A.npy B.npy -o C.npy --memory-limit 64K --check full
bad 'a picture' '--memory-limit streams the product: --image needs the whole matrices in memory' A.npy B.npy -o C.npy --memory-limit 64K --image C.png
bad 'a batch' '--batch needs the whole matrices in memory' A.npy B.npy -o C.npy --memory-limit 64K --batch 1
bad 'a device as output' 'it is no regular file' A.npy B.npy -o /dev/null --memory-limit 64K
bad 'a missing folder' "there is no folder 'missing'" A.npy B.npy -o missing/C.npy --memory-limit 64K
bad 'inner sizes' 'the inner sizes 201 and 130 differ' A.npy A.npy -o C.npy --memory-limit 64K
[ "$(left)" -eq 0 ] || fail "bad input: $(find . -name '*.glgemm-*') is left"

finish
