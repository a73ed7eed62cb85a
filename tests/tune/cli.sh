#!/bin/bash
# glgemm tune from outside: candidates that hang, crash or are wrong cost themselves alone; what is found before an interruption is kept; bad
# input.
# Usage: cli.sh GLGEMM   (GLGEMM is the built tool; it needs a device with OpenGL 4.3)
. "$(dirname "$0")/../support/cli.sh"
export GLGEMM_TUNING= GLGEMM_PROGRAM_CACHE=

need_device

# Five candidates, compiled in no time. Those that are tried first are wrong, so that they are the fastest so far and checked. The time
# limit is long enough for a worker on a busy machine: only the one that hangs is to reach it.
small="tune --shape 20,12,28 --kernel naive,tiled"
wrong=tiled:tile=8 wrong_too=naive:workgroup_x=8,workgroup_y=8 crash=tiled:tile=16 hang=tiled:tile=32

GLGEMM_TUNE_INJECT="hang=$hang;crash=$crash;wrong=$wrong;wrong=$wrong_too" \
  "$glgemm" $small --output table.json --json report.json --time-limit 8 >stdout 2>stderr </dev/null
status=$?
[ $status -eq 0 ] || fail "with bad candidates: status $status: $(cat stderr)"
for line in "hang  $hang, given 20x12x28 f32: no answer within 8 s" "crash  $crash, given 20x12x28 f32: ended by signal 11" \
  "wrong  $wrong, given 20x12x28 f32: 19x11x27: " "wrong  $wrong_too, given 20x12x28 f32: 19x11x27: "; do
  grep -qF -- "$line" stdout || fail "the report does not say '$line': $(cat stdout)"
done
grep -q '"control"' report.json && fail "a CPU's clock is controlled: $(cat report.json)"
grep -qF '"kernel":"naive:workgroup_x=32,workgroup_y=1"' table.json || fail "the best kernel is not the one that is left: $(cat table.json)"
grep -qF '"class":"given","m":20,"n":12,"k":28,"batch":1,"type":"f32","c_type":"f32","op":"NN"' table.json ||
  fail "the table: $(cat table.json)"
[ "$(grep -c '"fate"' report.json)" -eq 4 ] || fail "the JSON does not have four fates: $(cat report.json)"
"$glgemm" tune --check-table table.json >stdout 2>stderr || fail "the table is not valid: $(cat stdout stderr)"
grep -qF '1 valid entry' stdout || fail "--check-table says: $(cat stdout)"

# Without the defects, --missing measures nothing again; and another shape joins the table.
"$glgemm" $small --output table.json --missing >stdout 2>stderr || fail "--missing: status $?: $(cat stderr)"
grep -qF "1 problem is in 'table.json' already" stdout || fail "--missing says: $(cat stdout)"
grep -q 'GFLOP' stdout && fail "--missing has measured: $(cat stdout)"
"$glgemm" tune --shape 9,5,7 --type i8 --op-a t --kernel naive --output table.json >stdout 2>stderr ||
  fail "a second shape: status $?: $(cat stderr)"
"$glgemm" tune --check-table table.json >stdout
grep -qF '2 valid entries' stdout || fail "after a second shape: $(cat stdout)"
grep -qF '"type":"i8","c_type":"i32","op":"TN"' table.json && grep -qE '"date":"20[0-9]{2}-[01][0-9]-[0-3][0-9]"' table.json ||
  fail "the second shape: $(cat table.json)"

# A pair of types, and a format: the planner takes the table's entry.
other=naive:workgroup_x=32,workgroup_y=1
"$glgemm" tune --shape 20,3,50 --type f16/f32,q4_0/f32,nbits:bits=4,group=16,zeros=1 --kernel $other --output types.json --json report.json >stdout 2>stderr ||
  fail "types: status $?: $(cat stderr)"
"$glgemm" tune --shape 20,3,50 --type q4_0/f32 --kernel $other --output types.json --missing >stdout 2>stderr
grep -qF "1 problem is in 'types.json' already" stdout || fail "types, --missing: $(cat stdout stderr)"
"$glgemm" tune --check-table types.json | grep -qF '3 valid entries' || fail "types, the table: $(cat types.json)"
for type in f16/f32 q4_0/f32 nbits:bits=4,group=16,zeros=1/f32; do
  grep -qF "\"type\":\"${type%/*}\",\"c_type\":\"f32\"" types.json && grep -qF "\"type\": \"$type\"" report.json || fail "types, $type: $(cat types.json report.json)"
  "$glgemm" inspect --shape 20,3,50 --type $type >untuned 2>stderr && GLGEMM_TUNING=types.json "$glgemm" inspect --shape 20,3,50 --type $type >stdout 2>stderr ||
    fail "types, inspect $type: $(cat stderr)"
  grep -qF "kernel        $other" untuned && fail "types, $type without the table: $(cat untuned)"
  grep -qxF "kernel        $other" stdout && grep -q 'the tuning table: the fastest that was found for 20 x 3 x 50' stdout || fail "types, $type is not planned by the table: $(cat stdout)"
done
GLGEMM_TUNE_INJECT="wrong=$wrong_too" "$glgemm" tune --shape 20,3,50 --type q4_0/f32 --kernel naive --output wrong.json >stdout 2>stderr </dev/null
grep -qF "wrong  $wrong_too, given 20x3x50 q4_0/f32: 19x3x49: " stdout || fail "types, a wrong kernel: $(cat stdout)"
rm -f types.json wrong.json

# A vendor's library is a candidate where it is allowed. The stand-in for it is built with the tests.
vendor=$(cd "$(dirname "$glgemm")/.." && pwd)/tests/vendor
[ ! -e "$vendor/libcuda.so.1" ] ||
  { LD_LIBRARY_PATH=$vendor "$glgemm" tune --vendor "$vendor" --shape 32,32,32 --kernel cublas --output vendor.json >stdout 2>stderr &&
    grep -qF '"kernel":"cublas"' vendor.json; } || fail "--vendor: $(cat stdout stderr)"
"$glgemm" tune --shape 32,32,32 --kernel cublas --output vendor.json >stdout 2>stderr && fail "cublas without --vendor: $(cat stdout stderr)"
rm -f vendor.json

# A clock that moves while a candidate is measured: it is measured again, and the JSON has the control's rates.
GLGEMM_TUNE_INJECT="clock=$crash" "$glgemm" $small --output clock.json --json report.json >stdout 2>stderr </dev/null ||
  fail "a clock that moves: status $?: $(cat stderr)"
grep -q '"again": [1-9]' report.json && grep -q '"least_gflops": [0-9]' report.json || fail "a clock that moves: $(cat report.json)"
rm -f clock.json

# Interrupted while a candidate of the second product hangs: the first one is in the table, nothing half-written, nobody left behind; and
# --missing does the rest. The kernel that hangs is for vectors alone.
vector_hang=$("$glgemm" inspect --shape 64,1,64 | sed -n 's/^kernel  *//p')
two="tune --shape 64,64,64 --shape 64,1,64 --kernel naive,$vector_hang --output two.json"
GLGEMM_TUNE_INJECT="hang=$vector_hang" "$glgemm" $two --time-limit 100 >stdout 2>stderr </dev/null &
tuner=$!
for _ in $(seq 400); do
  [ -s two.json ] && break
  sleep 0.05
done
sleep 1
workers=$(cat "/proc/$tuner/task/$tuner/children" 2>/dev/null)
kill -TERM $tuner
wait $tuner 2>/dev/null
status=$?
[ $status -eq 143 ] || fail "interrupted: status $status: $(cat stdout stderr)"
[ "$(cat stderr)" = "glgemm tune: interrupted; 1 of 2 products are in 'two.json'; the same command with --missing goes on" ] ||
  fail "interrupted, it says: $(cat stderr)"
"$glgemm" tune --check-table two.json | grep -qF '1 valid entry' || fail "interrupted: the table: $(cat two.json)"
for worker in $workers; do
  for _ in $(seq 40); do kill -0 "$worker" 2>/dev/null && sleep 0.05; done
  kill -0 "$worker" 2>/dev/null && fail 'interrupted: the worker is still there'
done
"$glgemm" $two --missing >stdout 2>stderr || fail "going on: status $?: $(cat stderr)"
grep -qF "1 problem is in 'two.json' already" stdout && [ "$(grep -c 'GFLOP' stdout)" -eq 1 ] || fail "going on, it says: $(cat stdout)"
"$glgemm" tune --check-table two.json | grep -qF '2 valid entries' || fail "going on: the table: $(cat two.json)"
[ "$(find . -name '.glgemm*' | wc -l)" -eq 0 ] || fail "temporary files are left: $(find . -name '.glgemm*')"

# What the driver reports to spill is skipped, and counted.
rm table.json
GLGEMM_TUNE_INJECT="spill=$hang;spill=$crash;hang=$hang;crash=$crash" "$glgemm" $small --output table.json --json report.json \
  >stdout 2>stderr </dev/null || fail "with spills: status $?: $(cat stderr)"
grep -q '^Skipped 2 kernels that the driver reports to spill, such as tiled:tile=[0-9]*: spills 3$' stdout ||
  fail "with spills, it says: $(cat stdout)"
grep -q 'Struck off' stdout && fail "spills are struck off: $(cat stdout)"
[ "$(grep -c '"fate": "spills"' report.json)" -eq 2 ] || fail "the JSON does not have two that spill: $(cat report.json)"
grep -q '"statistics": {' report.json || fail "the JSON has no statistics of the best: $(cat report.json)"

tool=("$glgemm" tune)
bad 'a size of none' "--size: '0' is not a positive integer" --size 0 --output t
bad 'two sizes' "'1,2' is not three sizes" --shape 1,2 --output t
bad 'unknown class' "'round' is none of square, tall" --class round --output t
bad 'unknown type' 'unknown type "f8"' --size 8 --type f8 --output t
bad 'types without sums' 'A is f32 and B is i32: their products have no common type of sums' --size 8 --type f32/i32 --output t
bad 'codes across k' 'B is q4_0, and its codes do not lie along k' --class gemv --type f32/q4_0 --output t
bad 'unknown op' "'X' is none of n, t and c" --size 8 --op-a n --op-b n,X --output t
bad 'unknown kernel' 'fastest' --size 8 --kernel fastest --output t
bad 'time limit' '--time-limit' --size 8 --time-limit 0 --output t
bad 'classes and sizes' 'excludes' --size 8 --class square --output t
bad 'batch alone' '--batch goes with --shape, --size or --shapes' --batch 3 --output t
bad 'too large' 'of memory' --size 2000000 --output t
bad 'missing shapes' "cannot read 'missing.csv'" --shapes missing.csv --output t
bad 'missing folder' "there is no folder 'missing'" --size 8 --output missing/t
bad 'a folder' 'it is a folder' --size 8 --output .
bad 'no place' '--output does' --size 8
bad 'no table to check' "cannot read 'missing.json'" --check-table missing.json
echo 'my thesis' >thesis
bad 'not a table' 'it is not overwritten' --size 8 --output thesis
[ "$(cat thesis)" = 'my thesis' ] || fail 'a file that is no table has changed'
bad 'device' 'no such device' --size 8 --device 'no such device' --output t
[ -e t ] && fail 'bad input leaves a table'
sed 's/"m":20/"m":-20/' table.json >broken.json
"$glgemm" tune --check-table broken.json >stdout 2>stderr
[ $? -eq 1 ] && grep -qF 'entry 1 is left out: its "m" is no integer' stdout || fail "--check-table of a broken table: $(cat stdout)"
"$glgemm" tune-worker >stdout 2>stderr </dev/null 3<&-
[ $? -eq 2 ] && grep -qF "nobody else" stderr || fail "tune-worker by hand: $(cat stderr)"
# A disk that takes nothing.
full=$(ulimit -f 0; "$glgemm" $small --output full.json 2>&1 >/dev/null </dev/null; echo "status $?")
case $full in
*"cannot write 'full.json"*"status 2") ;;
*) fail "a write that fails: $full" ;;
esac

finish
