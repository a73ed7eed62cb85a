#!/bin/bash
# tools/report from outside: a quick run with the tool; with a stand-in for the tool what it runs, what it makes of what it finds, time that is
# up, and signals; bad input.
# Usage: cli.sh GLGEMM   (GLGEMM is the built tool; it needs a device with OpenGL 4.3)
. "$(dirname "$0")/../support/cli.sh"
tree=$(realpath "$tests/..")
export GLGEMM_TUNING= GLGEMM_PROGRAM_CACHE=$work/programs GLGEMM=$glgemm WORK=$work
# has FILE TEXT...
has() {
  local file=$1 text
  shift
  for text in "$@"; do
    grep -qF -- "$text" "$file" || fail "$file does not say '$text': $(cat "$file")"
  done
}
# holds FILE CONDITION: of the JSON x
holds() { python3 -c 'import json, sys; x = json.load(open(sys.argv[1])); assert eval(sys.argv[2]), sys.argv[2]' "$@" 2>err || fail "$1: $(tail -n 1 err)"; }

need_device

# As in a bundle: the script beside bin/, where the tool is, but for the measurement of what shaders reach, which takes long on a CPU.
mkdir -p bundle/bin bundle/tests/data checked/bin checked/tests/multiply
cp "$tree/tools/report" bundle
report=$work/bundle/report
# What finds no cuBLAS.
printf '#!/bin/sh\necho "there is none" >&2\nexit 3\n' >bundle/report_cublas.py
cat >bundle/bin/glgemm <<'END_OF_TOOL'
#!/bin/bash
"$GLGEMM" "${@/#--roofline/--check=auto}" || exit
case $* in *--roofline*) sed -i '0,/"results"/s//"roofline": {"gflops": 1e9}, &/' "${*: -1}" ;; esac
END_OF_TOOL
# Tests that fail, that run none, that this device cannot run, and that pass; and a cuBLAS.
cat >checked/bin/glgemm_tests <<'END_OF_TESTS'
#!/bin/bash
echo '[doctest] test cases: 0 | 0 passed | 0 failed | 184 skipped'
END_OF_TESTS
cat >checked/bin/glgemm_gl_tests <<'END_OF_TESTS'
#!/bin/bash
case $* in
'-ltc -r=xml') printf '<TestCase name="%s" filename="/src/%s.cpp" line="1"/>\n' a good b good c wrong d broken e skipped ;;
'--duration -sf=/src/good.cpp')
  [ "${GLGEMM_TUNING-unset}${GLGEMM_PROGRAM_CACHE-unset}" = '' ] || exit 3
  echo '[doctest] test cases:  2 |  2 passed | 0 failed | 0 skipped'
  ;;
'--duration -sf=/src/wrong.cpp') printf '/src/wrong.cpp:8: ERROR: x\n[doctest] test cases: 7 | 5 passed | 2 failed | 1 skipped\n[doctest] Status: FAILURE!\n' && exit 1 ;;
'--duration -sf=/src/skipped.cpp') exit 77 ;;
*) kill -ABRT $$ ;;
esac
END_OF_TESTS
echo '[ -x "$1" ] && echo "all passed"' >checked/tests/multiply/cli.sh
echo 'echo "FAILED: what it is about: status 3"; exit 1' >checked/tests/multiply/cli_streamed.sh
ln -s "$GLGEMM" checked/bin/glgemm
cat >cublas <<'END_OF_CUBLAS'
#!/bin/bash
[ "$2" != types ] || { echo 'there is none' >&2; exit 3; }
[ "$3" = --json ] && grep -q '"section": "squares"' "$1" || exit 1
echo '{"results": [{"section": "squares", "m": 16, "n": 16, "k": 16, "op_a": "n", "op_b": "t", "ratio": 0.625}]}' >"$4"
END_OF_CUBLAS
chmod +x bundle/bin/* bundle/*.py checked/bin/* cublas
printf 'm,n,k,trans_a,trans_b\n35,20,48,N,T\n\n5,7,3,N,N\n' >shapes.csv
"$report" --quick --output out --size 16 --shapes shapes.csv --peer none --checks checked --cublas "$work/cublas" >stdout 2>stderr </dev/null
status=$?
[ $status -eq 1 ] || fail "a report with tests that fail: status $status: $(cat stdout stderr)"
for step in devices roofline 'squares, N = 16' 'type f16' batches 'shapes of shapes.csv' tune enqueue 'first product' 'streamed, N = 128' 'cuBLAS, squares'; do
  grep -q "^$step: ok, " stdout || fail "$step: $(cat stdout)"
done
has stdout 'cuBLAS, types: left out: exit status 3: there is none' 'wrote out/report.json and out/report.md' \
  'checks: failed: 2 of 7 files of tests passed; glgemm_tests --duration: [doctest] test cases: 0 | 0 passed' \
  '; glgemm_gl_tests --duration -sf=broken.cpp: ended by signal 6: it said nothing; glgemm_gl_tests --duration -sf=wrong.cpp: [doctest] test cases: 7 | 5 passed | 2 failed' \
  '; bash cli_streamed.sh glgemm: FAILED: what it is about: status 3'
has out/checks.txt '==== glgemm_gl_tests --duration -sf=wrong.cpp: exit status 1' 'wrong.cpp:8: ERROR: x'
has out/report.md '# glgemm on ' '- **How fast**: ' ' GFLOP/s in f32, for ' '- **Beside what**: 0.62 times cuBLAS for 16 x 16 x 16, nt; ' \
  ' times a serial loop on the CPU' '- **What failed**: checks (failed)' "- Made by \`report --quick --output out" '## squares, N = 16' \
  '$ glgemm bench --size 16 --kernel auto,tiled,naive ' '35x20x48-nt' 'shared memory' 'GFLOP/s with naive'
grep -rF "$work" out && fail "a folder of this machine is in the report"
grep -q 'wrote .*found' out/report.md && fail "a file that nobody sees is in the report"
[ "$(ls -A out)" = "$(printf 'checks.txt\nreport.json\nreport.md\ntuning.json')" ] || fail "other files are there: $(ls -A out)"
holds out/report.json 'x["format"] == "glgemm report 3" and x["device"]["renderer"] and x["devices"][0]["probes"]["extensions"] >= 0'
holds out/report.json '{y["section"] for y in x["bench"]} == {"roofline", "squares", "shapes", "types", "enqueue", "first", "streamed"}'
holds out/report.json 'all(z["check"]["passed"] for y in x["bench"] for z in y["found"]["results"] if isinstance(z.get("check"), dict))'
holds out/report.json '[y["state"] for y in x["steps"] if y["name"] == "checks"] == ["failed"] and x["tune"]["results"]'

# A tool that notes its arguments, finds what a GPU might, and hangs where it is to tune, with a child of its own.
cat >bundle/bin/glgemm <<'END_OF_TOOL'
#!/bin/bash
echo "${GLGEMM_DEVICE:-} $*" >>"$WORK/ran"
case "$*" in
--version) echo 'glgemm 1.2.3' && exit ;;
*'--size 128 '*) rate=100 ;;
*'--size 512 '*) rate=750 ;;
*'--size 1024 '*--peer*) echo 'glgemm bench: it is too large' >&2 && exit 2 ;;
tune*)
  cp "$WORK/out/report.json" "$WORK/meanwhile.json"
  sleep 300 &
  echo $! >"$WORK/child"
  wait
  ;;
*) rate=1 ;;
esac
[ "${*: -2:1}" = --json ] || exit 1
cat >"${*: -1}" <<FOUND
{"devices": [], "device": {"vendor": "a maker", "renderer": "a GPU", "version": "4.6", "software": false}, "roofline": {"gflops": 1000},
"results": [{"requested": "auto", "m": 8, "n": 8, "k": $rate, "op_a": "n", "op_b": "n", "type": "f32", "batch": 1, "kernel_ms": 2,
"gflops": $rate, "baseline": {"gflops": 2.5}}],
"ratios": [{"of": "auto", "over": "a library", "value": 1.25, "product": {"m": 8, "n": 8, "k": 8, "op_a": "n", "op_b": "n"}}]}
FOUND
case $* in *'--size 4,16'*) exit 1 ;; esac # a result is wrong
END_OF_TOOL
cat >bundle/bin/glgemm-peer-library </dev/null
cp shapes.csv bundle/tests/data/shapes-a.csv
rm -rf out ran
"$report" --minutes 2 --tune-minutes 0.02 --device 'a GPU' --output out --no-checks --size 128,512,2048 >stdout 2>stderr </dev/null
status=$?
[ $status -eq 1 ] || fail "--minutes: status $status: $(cat stdout stderr)"
sed "s/ --json .*//; s|$work/||g" ran >commands
diff - commands >differs <<'END_OF_COMMANDS' || fail "other commands: $(cat differs)"
a GPU --version
a GPU inspect --size 1
a GPU inspect --size 128 --no-device
a GPU inspect --size 512 --no-device
a GPU inspect --size 2048 --no-device
a GPU bench --size 8 --kernel naive --repeats 1 --peer library
a GPU devices
a GPU bench --size 1024 --kernel auto --roofline --cpu-seconds 1
a GPU bench --size 128 --kernel auto --cpu-seconds 0.1
a GPU bench --size 512 --kernel auto --cpu-seconds 0.1
a GPU bench --size 2048 --kernel auto --cpu-seconds 0.1
a GPU bench --size 4096 --type f64 --check probe --kernel auto --cpu-seconds 0.1
a GPU bench --size 4096 --type f16 --check probe --kernel auto --cpu-seconds 0.1
a GPU bench --size 4096 --type bf16 --check probe --kernel auto --cpu-seconds 0.1
a GPU bench --size 4096 --type i8 --check probe --kernel auto --cpu-seconds 0.1
a GPU bench --size 4,16,32,64 --batch 10000 --check probe --kernel auto --cpu-seconds 0.1
a GPU bench --shape 4096,1,4096 --shape 4096,2,4096 --shape 4096,4,4096 --shape 16384,1,16384 --shape 16384,2,16384 --shape 16384,4,16384 --shape 512,4,500000 --kernel auto,naive --roofline --cpu-seconds 0.1
a GPU tune --missing --candidates 30 --output out/tuning.json
a GPU bench --size 512 --kernel auto --cpu-seconds 0.1 --peer library
a GPU bench --size 1024 --kernel auto --cpu-seconds 0.1 --peer library
a GPU bench --size 2048 --kernel auto --cpu-seconds 0.1 --peer library
a GPU bench --kernel auto --cpu-seconds 0.1 --peer library --shapes bundle/tests/data/shapes-a.csv
a GPU bench --enqueue --size 64,4096
a GPU bench --first --size 512
a GPU bench --size 8192 --device-memory-limit 100663296 --kernel auto
a GPU bench --size 16384 --device-memory-limit 402653184 --kernel auto
END_OF_COMMANDS
has stdout 'batches: failed: a result is wrong' 'peers, N = 1024: failed: exit status 2: glgemm bench: it is too large' 'tune: late: the time was up'
has out/report.md '- **How fast**: 750.00 GFLOP/s in f32, for 8 x 8 x 750' '1.25 times a library for 8 x 8 x 8' '300.00 times a serial loop on the CPU' \
  '- **What failed**: batches (failed); tune (late); peers, N = 1024 (failed)' "\$ GLGEMM_DEVICE='a GPU' glgemm bench --size 1024"
holds meanwhile.json '[y["state"] for y in x["steps"]][-1] == "ok" and len(x["bench"]) == 10'
gone() { # what the tool had started, some time after it was ended
  for _ in $(seq 100); do
    kill -0 "$(cat child)" 2>/dev/null || return 0
    sleep 0.05
  done
  return 1
}
gone || fail "what the tool had started is still there"

# A signal: what is done is kept, what runs is ended, and no more begins.
rm -f out/* ran child
env --default-signal=INT,TERM "$report" --quick --output out --peer none >stdout 2>stderr </dev/null &
running=$!
for _ in $(seq 400); do
  [ -s child ] && break
  sleep 0.05
done
kill -INT $running
wait $running
status=$?
[ $status -eq 130 ] || fail "SIGINT: status $status: $(cat stdout stderr)"
[ "$(cat stderr)" = "report: interrupted; what was found until then is in 'out'" ] || fail "SIGINT: it says $(cat stderr)"
gone || fail "SIGINT: what the tool had started is still there"
holds out/report.json '[y["why"] for y in x["steps"] if y["name"] == "tune"] == ["interrupted"] and len(x["bench"]) == 5'
[ "$(tail -n 1 ran | cut -d' ' -f2)" = tune ] || fail "SIGINT: then it runs $(tail -n 1 ran)"

# No time: nothing but what is asked of the arguments is run.
rm -rf out ran
"$report" --minutes 0.01 --output out --peer none >stdout 2>stderr </dev/null
[ $? -eq 0 ] && has stdout 'devices: late: the time was up' 'checks: late: 0 of ' || fail "no time: $(cat stdout stderr)"
has out/report.md '- **How fast**: nothing was measured' '- **Beside what**: nothing' '- **What failed**: devices (late); '
grep -q bench ran && fail "no time: it runs $(cat ran)"

rm -rf out
ln -sf "$glgemm" bundle/bin/glgemm
tool=("$report") says='report: ' exact=-x
bad 'unknown option' 'unrecognized arguments: --fast' --fast
bad 'no such build' "cannot run 'nowhere/bin/glgemm': No such file or directory" --build nowhere
bad 'no folder' 'argument -o/--output: expected one argument' --output
bad 'no time' '--minutes: 0.0 is not from 0.01 to 100000' --minutes 0
bad 'no number' '--tune-minutes: nan is not from 0.01 to 100000' --tune-minutes nan
bad 'no such shapes' "argument --shapes: cannot read 'missing.csv': No such file or directory" --shapes missing.csv
bad 'no shapes' "argument --shapes: 'stdout' has not the header m,n,k,trans_a,trans_b and then such products alone" --shapes stdout
bad 'two that exclude each other' 'argument --no-checks: not allowed with argument --checks' --checks . --no-checks
bad 'no folder of tests' "--checks: 'missing' is not a folder" --checks missing
bad 'a file as folder' "cannot write 'shapes.csv/report.json': File exists" --quick --output shapes.csv
bad 'a size of none' "--size: '0' is not a positive integer" --size 8,0
bad 'no such peer' "--peer: 'mkl' is not a peer; there are openblas, onednn, clblast" --peer mkl
exact=
bad 'no such device' 'no usable device is "such"' --device such
[ ! -e out ] && [ "$(head -c 5 shapes.csv)" = m,n,k ] || fail 'something was written'
env -i PATH="$work/none" /bin/sh "$report" >stdout 2>stderr
[ $? -eq 2 ] && [ "$(cat stderr)" = 'report: there is no python3, which runs this script (package python3)' ] || fail "no python3: $(cat stderr)"

finish
