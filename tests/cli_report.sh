#!/bin/bash
# tools/report from outside: both files of a quick run; steps that fail are named and the rest goes on; bad input.
# Usage: cli_report.sh GLGEMM   (GLGEMM is the built tool in BUILD/bin; it needs a device with OpenGL 4.3)
. "$(dirname "$0")/cli.sh"
report=$(realpath "$tests/../tools/report")
build=$(dirname "$(dirname "$glgemm")")
export GLGEMM_TUNING= GLGEMM_PROGRAM_CACHE=$work/programs
# has FILE TEXT...
has() {
  local file=$1 text
  shift
  for text in "$@"; do
    grep -qF -- "$text" "$file" || fail "$file does not say '$text': $(cat "$file")"
  done
}

need_device

# Stand-ins: tests of which one fails, and a cuBLAS.
mkdir bin
cat >bin/ctest <<'END'
#!/bin/bash
cat <<'LOG'
1: MESSAGE: ratio: GL calls of a repeated product in a scope over a dispatch by hand, tiled: 1.25 (10 over 8)
1: MESSAGE: ratio: 2000 products of 4 x 4, one call each over batched: 61.5 (30 us over 0.5 us for each)
1: MESSAGE: programs made: 100 ms, then 20 ms, ratio 0.2
50% tests passed, 1 tests failed out of 2
The following tests FAILED:
	  2 - some test (Failed)
LOG
exit 8
END
cat >bin/cublas <<'END'
#!/bin/bash
printf '{"library": "a stand-in", "results": ['
[ $# -eq 0 ] || printf '{"m": 64, "n": 64, "k": 64, "op_a": "n", "op_b": "n", "ms": 0.5}'
printf ']}\n'
END
chmod +x bin/*
printf 'm,n,k,trans_a,trans_b\n35,20,48,N,T\n\n5,7,3,N,N\n' >shapes.csv

PATH=$work/bin:$PATH "$report" --build "$build" --quick --output out --shapes shapes.csv --peer none --checks "$build" \
  --cublas bin/cublas >stdout 2>stderr </dev/null
status=$?
[ $status -eq 1 ] || fail "a report with steps that fail: status $status: $(cat stdout stderr)"
has stdout 'checks: failed: 50% tests passed, 1 tests failed out of 2' 'wrote out/report.json and out/report.md'
has out/report.md '# glgemm on ' '| driver | OpenGL ' '## Steps' '## Goals' '## Devices' '| shared_bytes |' '## What shaders reach here' \
  '| arithmetic in f32 |' '## Square products' '| 64 | ' '## Given shapes' '| 35 x 20 x 48, nt | auto |' '## Beside cuBLAS' 'a stand-in' \
  '## Tuned here' '**Some steps failed' '| GL calls of a repeated product in a scope over a dispatch by hand, tiled | 1.25 | at most 1.5 | at most 1 | met |' \
  '| 4 x 4 products, batched, over one call each | 61.5 | 50 | 200 | met |' '| programs made in a second process, over the first | 0.2 |' \
  '`glgemm bench --sizes 64 --kernel auto,tiled,naive'
# The sets of shapes and of the stand-in's answers do not agree: that step fails alone.
has out/report.md '| cuBLAS, squares | ok |' '| cuBLAS, shapes.csv | failed: it timed 1 of 2 products'
grep -qF "$work" out/report.md out/report.json && fail "a folder of this machine is in the report: $(grep -hF "$work" out/report.md out/report.json)"
ls out >files
[ "$(cat files)" = "$(printf 'report.json\nreport.md\ntuning.json')" ] || fail "other files are there: $(cat files)"
# Valid JSON with its sections, if Python is here to say so.
if command -v python3 >/dev/null; then
  python3 - out/report.json <<'END' || fail 'the JSON'
import json, sys
report = json.load(open(sys.argv[1]))
assert report["format"] == "glgemm report 1" and report["quick"] is True
assert report["device"]["renderer"] and report["devices"][0]["probes"]["extensions"] >= 0
assert [x["state"] for x in report["steps"] if x["name"] == "checks"] == ["failed"]
assert {x["section"] for x in report["bench"]} == {"roofline", "table", "shapes"}
assert all(y["check"]["passed"] for x in report["bench"] for y in x["found"]["results"])
assert report["cublas"]["sets"][0]["results"][0]["cublas_ms"] == 0.5
assert report["tuning"]["entries"] and len(report["tests_say"]) == 3 and report["goals"]
END
fi

# bad NAME STATUS EXPECTED-PART ARGUMENTS...
bad() {
  local name=$1 part=$2 status
  shift 2
  "$report" "$@" >stdout 2>stderr </dev/null
  status=$?
  [ $status -eq 2 ] || fail "$name: status $status instead of 2: $(cat stderr)"
  grep -qF -- "$part" stderr || fail "$name: $(cat stderr)"
  [ -s stdout ] && fail "$name: something on the standard output: $(cat stdout)"
}
bad 'unknown option' '--fast' --build "$build" --fast
bad 'no such build' "there is no 'bin/glgemm' in 'nowhere'" --build nowhere
bad 'no build' '--build needs a folder' --build
bad 'no such shapes' "cannot read 'missing.csv'" --build "$build" --quick --shapes missing.csv
bad 'a size of none' "--sizes: '0' is not a positive integer" --build "$build" --quick --sizes 0
bad 'no such peer' "'mkl' is not a peer" --build "$build" --quick --peer mkl
bad 'no such device' 'no such device' --build "$build" --quick --device 'no such device'
bad 'a file as folder' 'shapes.csv' --build "$build" --quick --output shapes.csv
[ "$(head -c 5 shapes.csv)" = m,n,k ] || fail 'a file was overwritten'

[ $failures -eq 0 ] && echo 'all passed'
[ $failures -eq 0 ]
