#!/bin/bash
# tools/report from outside: both files of a quick run; steps that fail are named and the rest goes on; bad input.
# Usage: cli.sh GLGEMM   (GLGEMM is the built tool in BUILD/bin; it needs a device with OpenGL 4.3)
. "$(dirname "$0")/../support/cli.sh"
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

# Stand-ins: tests that fail, that are not there (tests/tune/cli.sh), that run none, and that pass; and a cuBLAS.
mkdir -p bin checked/bin checked/tests/multiply
cat >checked/bin/glgemm_tests <<'END'
#!/bin/bash
echo '[doctest] test cases: 0 | 0 passed | 0 failed | 184 skipped'
END
cat >checked/bin/glgemm_gl_tests <<'END'
#!/bin/bash
[ "$# $* ${GLGEMM_TUNING-unset}${GLGEMM_PROGRAM_CACHE-unset}" = '1 --duration ' ] || exit 3
cat >>"$GLGEMM_TEST_FIGURES" <<'FIGURES'
{"name": "GL calls of a repeated product in a scope over a dispatch by hand", "of": "tiled", "value": 1.25, "note": "10 over 8"}
{"name": "4 x 4 products, batched, over one call each", "of": "", "value": 61.5, "note": "30 us over 0.5 us for each"}
{"name": "programs made in a second process, over the first", "of": "", "value": 0.2, "note": "100 ms, then 20 ms"}
FIGURES
cat <<'LOG'
TEST CASE:  ratio: many
TEST CASE:  wrong | one
  deep
/src/a.cpp:8: ERROR: CHECK( 1 == 2 ) is NOT correct!
/src/a.cpp:9: ERROR: CHECK( 2 == 3 ) is NOT correct!
TEST CASE:  another
/src/a.cpp:10: FATAL ERROR: test case CRASHED: SIGSEGV - Segmentation violation signal
[doctest] test cases:   7 |   5 passed | 2 failed | 1 skipped
LOG
exit 1
END
echo '[ -n "$1" ] && echo "all passed"' >checked/tests/multiply/cli.sh
echo 'echo "FAILED: what it is about: status 3"; echo "all passed"' >checked/tests/multiply/cli_streamed.sh
cat >bin/cublas <<'END'
#!/bin/bash
printf '{"library": "a stand-in", "arithmetic": "numbers", "tensor_cores": false, "results": ['
if [ "${2-}" = f64 ]; then
  echo 'no such product' >&2
  exit 4
fi
[ $# -eq 0 ] || printf '{"m": 64, "n": 64, "k": 64, "op_a": "n", "op_b": "n", "ms": 0.5}'
printf ']}\n'
END
chmod +x bin/* checked/bin/*
printf 'm,n,k,trans_a,trans_b\n35,20,48,N,T\n\n5,7,3,N,N\n' >shapes.csv

"$report" --build "$build" --quick --output out --shapes shapes.csv --peer none --checks checked --cublas bin/cublas \
  >stdout 2>stderr </dev/null
status=$?
[ $status -eq 1 ] || fail "a report with steps that fail: status $status: $(cat stdout stderr)"
has stdout 'checks: failed: bin/glgemm_tests: no test case ran; ' \
  "; bin/glgemm_gl_tests: 2 of 7 test cases failed: 'wrong | one', 'another', exit status 1; " \
  "; tests/multiply/cli.sh: passed; tests/multiply/cli_streamed.sh: failed: 'what it is about: status 3'; " \
  "tests/multiply/cli_formats.sh: it is not there; tests/multiply/cli_verify.sh: it is not there; tests/product/cli_convolution.sh: it is not there; tests/files/cli_models.sh: it is not there; tests/tune/cli.sh: it is not there, " \
  'wrote out/report.json and out/report.md' 'bound: '
for script in "$tests"/*/cli*.sh; do
  script=tests${script#"$tests"}
  case $script in tests/arguments/* | tests/inspect/* | tests/plot/* | tests/reports/* | tests/support/*) ;; *) has stdout "$script: " ;; esac
done
has out/checks.txt '==== bin/glgemm_gl_tests' 'is NOT correct!'
grep -qF /src/ out/checks.txt && fail "a folder of the build is in the tests' log"
has out/report.md '# glgemm on ' '| driver | OpenGL ' '## Steps' '## Goals' '## Devices' '| shared_bytes |' '## What shaders reach here' \
  '| arithmetic in f32 |' '## Square products' '| 64 | ' '## Given shapes' '| 35 x 20 x 48, nt | auto |' '## Beside cuBLAS' 'a stand-in' \
  '## Tuned here' '**Some steps failed' '| GL calls of a repeated product in a scope over a dispatch by hand, tiled | 1.25 | at most 1.5 | at most 1 | met |' \
  '| 4 x 4 products, batched, over one call each | 61.5 | 50 | 200 | met |' '| programs made in a second process, over the first | 0.2 |' \
  '`glgemm bench --size 64 --kernel auto,tiled,naive' '| other types and sizes | left out: ' '| 32 x 32 x 32 f16 |' \
  '| 4 x 4 x 4, batch of 100 |' '## What a call costs' ', in a scope | ' '## The first product of a process' '## Streamed from the host' \
  '| streamed over the slower of its transfers and the product alone, 256x256x256 f32 | '
# The sets of shapes and of the stand-in's answers do not agree: that step fails alone.
has out/report.md '| cuBLAS, squares | ok |' '| cuBLAS, f64 | left out: no such product |' '| cuBLAS, shapes.csv | failed: it timed 1 of 2 products'
grep -qF "$work" out/report.md out/report.json && fail "a folder of this machine is in the report: $(grep -hF "$work" out/report.md out/report.json)"
ls out >files
[ "$(cat files)" = "$(printf 'checks.txt\nreport.json\nreport.md\ntuning.json')" ] || fail "other files are there: $(cat files)"
# Valid JSON with its sections, if Python is here to say so.
if command -v python3 >/dev/null; then
  python3 - out/report.json <<'END' || fail 'the JSON'
import json, sys
report = json.load(open(sys.argv[1]))
assert report["format"] == "glgemm report 2" and report["quick"] is True
assert report["device"]["renderer"] and report["devices"][0]["probes"]["extensions"] >= 0
assert [x["state"] for x in report["steps"] if x["name"] == "checks"] == ["failed"]
assert {x["section"] for x in report["bench"]} == {"roofline", "table", "shapes", "types", "enqueue", "first", "streamed"}
assert all(y["check"]["passed"] for x in report["bench"] for y in x["found"]["results"] if "check" in y)
assert report["cublas"]["sets"][0]["results"][0]["cublas_ms"] == 0.5
assert report["tuning"]["entries"] and len(report["tests_say"]) == 3 and report["goals"]
END
fi

has out/report.md '- **How fast**: ' ' GFLOP/s in f32, for ' '- **Against what**: ' 'a serial loop on the CPU' '- **What failed**: checks; cuBLAS, shapes.csv'

# Within some minutes: the time is kept, what does not fit is left out, and that is no failure.
mkdir -p late/bin
cat >late/bin/glgemm_gl_tests <<'END'
#!/bin/bash
case $* in
'-ltc -r=xml') printf '<TestCase name="%s" filename="/src/%s.cpp" line="1"/>\n' a good b good c wrong d broken ;;
'--duration -sf=/src/good.cpp') echo '[doctest] test cases: 2 | 2 passed | 0 failed | 0 skipped' ;;
'--duration -sf=/src/wrong.cpp') printf 'TEST CASE:  c\n/src/wrong.cpp:8: ERROR: x\n[doctest] test cases: 1 | 0 passed | 1 failed | 0 skipped\n'; exit 1 ;;
*) exit 3 ;;
esac
END
chmod +x late/bin/*
"$report" --build "$build" --quick --output late/out --minutes 5 --size 32 --no-tune --peer none --checks late >stdout 2>stderr </dev/null
[ $? -eq 1 ] || fail "tests side by side: status $?: $(cat stdout stderr)"
has stdout 'bin/glgemm_gl_tests: 1 files passed; ' "wrong.cpp: 1 of 1 test cases failed: 'c', exit status 1" \
  'broken.cpp: it ended without a result, exit status 3'
"$report" --build "$build" --quick --output short --minutes 0.05 --peer none --cublas bin/cublas >stdout 2>stderr </dev/null
status=$?
[ $status -eq 0 ] || fail "--minutes: status $status: $(cat stdout stderr)"
has stdout 'devices: ' 'left out: the time was up'
has short/report.md '--minutes 0.05' '- **What failed**: no step'
# Ended at any moment: what was found until then is there, as valid JSON.
if command -v python3 >/dev/null; then
  for steps in 0 1 2; do
    rm -rf killed
    "$glgemm" report --quick --minutes 5 --no-tune --output killed --peer none >stdout 2>stderr </dev/null &
    killed=$!
    for _ in $(seq 600); do
      [ -e killed/report.json ] && [ "$(grep -c '"state"' killed/report.json)" -ge $steps ] && break
      sleep 0.05
    done
    kill -9 $killed
    wait $killed 2>/dev/null
    python3 - $steps killed/report.json <<'END' || fail "killed after $steps steps: $(cat killed/report.json)"
import json, sys
report = json.load(open(sys.argv[2]))
assert len(report["steps"]) >= int(sys.argv[1]) and (int(sys.argv[1]) < 1 or report["devices"])
assert int(sys.argv[1]) < 2 or report["bench"][0]["found"]["results"]
END
    grep -q '^- \*\*How fast\*\*: ' killed/report.md || fail "killed after $steps steps: $(cat killed/report.md)"
  done
fi

tool=("$report") says='\(tools/report\|glgemm report\): '
bad 'unknown option' '--fast' --build "$build" --fast
bad 'no such build' "there is no 'bin/glgemm' in 'nowhere'" --build nowhere
bad 'no build' '--build needs a folder' --build
bad 'no output' '--output needs a value: FOLDER' --build "$build" --output
bad 'no such shapes' "cannot read 'missing.csv'" --build "$build" --quick --shapes missing.csv
bad 'a size of none' "--size: '0' is not a positive integer" --build "$build" --quick --size 0
bad 'no such peer' "'mkl' is not a peer" --build "$build" --quick --peer mkl
bad 'no such device' 'no such device' --build "$build" --quick --device 'no such device'
bad 'a file as folder' 'shapes.csv' --build "$build" --quick --output shapes.csv
[ -e page ] && fail 'a page was begun'
[ "$(head -c 5 shapes.csv)" = m,n,k ] || fail 'a file was overwritten'

finish
