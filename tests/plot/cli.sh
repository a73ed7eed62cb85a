#!/bin/bash
# tools/plot from outside: which plots it makes of which findings, light and dark; bad input. Usage: cli.sh GLGEMM   (no device)
. "$(dirname "$0")/../support/cli.sh"
plot=$(realpath "$tests/../tools/plot")
# bad NAME EXPECTED-PART ARGUMENTS...
bad() {
  local name=$1 part=$2 status
  shift 2
  "$plot" --output bad "$@" >stdout 2>stderr </dev/null
  status=$?
  [ $status -eq 2 ] || fail "$name: status $status instead of 2: $(cat stderr)"
  grep -qF -- "$part" stderr && [ "$(wc -l <stderr)" -eq 1 ] || fail "$name: $(cat stderr)"
  [ -e bad ] && fail "$name: something was written"
}
product() { # product REQUESTED N GFLOPS
  echo "{\"m\": $2, \"n\": $2, \"k\": $2, \"type\": \"f32\", \"requested\": \"$1\", \"kernel\": \"$1\", \"gflops\": $3, \"baseline\": {\"gflops\": 1.5},
    \"check\": {\"worst_ratio\": 0.0$2, \"median_ratio\": 0.00$2, \"passed\": true}}"
}
echo "{\"device\": {\"renderer\": \"one\", \"version\": \"4.5\"}, \"roofline\": {\"gflops\": 90, \"storage_gb_per_s\": 7, \"image_gb_per_s\": 9},
  \"results\": [$(product auto 64 40), $(product auto 128 60), $(product tiled 64 4), $(product tiled 128 5)]}" >bench.json
sed 's/"one"/"two"/' bench.json >other.json
echo '{"results": [{"m": 9, "n": 9, "k": 9, "accelerators": 1, "speed_up": 1}, {"m": 9, "n": 9, "k": 9, "accelerators": 2, "speed_up": 1.8, "threads_speed_up": 1.9}]}' >scaling.json
sed 's/accelerators/ranks/g' scaling.json >ranks.json
echo '{"struck_off": [], "results": [{"m": 9, "n": 9, "k": 9, "type": "f16", "space": 40, "measured": 20, "fates": {"won": 2, "lost": 18},
  "gflops": 8, "planner": {"gflops": 6}}]}' >tune.json
echo "{\"format\": \"glgemm report 3\", \"bench\": [{\"section\": \"table\", \"found\": $(cat bench.json)}], \"tune\": $(cat tune.json)}" >report.json
echo '{"a": 1}' >nothing.json
echo '[1]' >list.json
echo '{"a": ' >cut.json
sed 's/"gflops": 60/"gflops": "much"/' bench.json >text.json
sed 's/"check": {[^}]*}/"check": 7/' bench.json >lacks.json
sed 's/"f32"/"f31"/' bench.json >type.json
bad 'no file' "cannot read 'missing.json'" missing.json
bad 'no JSON' "'cut.json' is no JSON: line 2, column 1" cut.json
bad 'no object' "'list.json' holds no object but list" list.json
bad 'nothing in it' "'nothing.json' has nothing to draw: 0 results" nothing.json
bad 'no number' "result 2 has no number as 'gflops' but 'much'" text.json
bad 'no check' "result 1 has no object as 'check' but 7" lacks.json
bad 'no type' "'type.json': result 1 has elements of type 'f31'; there are f32, f64, " type.json
bad 'one of two' "'nothing.json'" bench.json nothing.json

# The tools in Python have the tool's types.
"$glgemm" inspect --tables >tables.json || fail "inspect --tables: status $?"
python3 - "$tests/../tools" <<'END' || fail "type_table.py reads other types than 'inspect --tables' prints"
import json, sys
sys.path.insert(0, sys.argv[1])
import type_table
said = {x["name"]: (x["bytes"], x["kind"], x["sum"], x["c"], x["npy"], x["numpy"], x["number"]) for x in json.load(open("tables.json"))["types"]}
assert {x.name: (x.bytes, x.kind, x.sum, x.c, x.npy, x.numpy, int(x.number)) for x in type_table.read().values()} == said, said
END

mkdir without
echo 'raise ImportError' >without/matplotlib.py
PYTHONPATH=$work/without bad 'no Matplotlib' 'Matplotlib is missing (package python3-matplotlib)' bench.json
if ! /usr/bin/python3 -c 'import matplotlib' 2>/dev/null; then
  [ $failures -gt 0 ] && exit 1
  echo 'LEFT OUT: the plots themselves, since Matplotlib (python3-matplotlib) is not here'
  [ "${CI:-}" = true ] && exit 1
  exit 77
fi
export MPLCONFIGDIR=$work
"$plot" --output all bench.json other.json scaling.json ranks.json tune.json >stdout 2>stderr || fail "all plots: $(cat stderr)"
[ -s stderr ] && fail "something is complained of: $(cat stderr)"
[ "$(cd all && echo *)" = 'errors.svg gflops.svg roofline.svg scaling.svg search.svg speed-up.svg' ] || fail "the plots are $(ls all)"
grep -q 'median of 4 results \[1\], at most 0.0064' all/errors.svg || fail 'the medians are not drawn'
grep -q '^\[2\] two, 4.5$' stdout || fail "the devices are not told: $(cat stdout)"
other='"m": 64, "n": 64, "k": 64, "requested": "other", "gflops": 3, "check": {"worst_ratio": 0.1, "median_ratio": 0.01}'
echo "{\"results\": [], \"peers\": {\"results\": [{$other, \"type\": \"f32\"}, {$other, \"type\": \"f16/f32\"}]}}" >peers.json
"$plot" --output peers bench.json peers.json >stdout 2>stderr || fail "with peers: $(cat stderr)"
grep -q '<!-- other -->' peers/gflops.svg && grep -q '<!-- other -->' peers/gflops-f16-f32.svg || fail 'another library is not drawn'
sed 's/"worst_ratio": [0-9.]*/"worst_ratio": 1.7976931348623157e308/' bench.json >wrong.json
"$plot" --output wrong wrong.json scaling.json >stdout 2>stderr && grep -q 'at most infinite' wrong/errors.svg && [ -s wrong/scaling.svg ] ||
  fail "of a result that is NaN: $(cat stderr)"
"$plot" --dark --format png --output dark report.json >stdout 2>stderr || fail "of a report: $(cat stderr)"
[ "$(cd dark && echo *)" = 'errors.png gflops.png roofline.png search.png speed-up.png' ] || fail "the plots of a report are $(ls dark)"
touch file
"$plot" --output file bench.json >stdout 2>stderr
[ $? -eq 2 ] && grep -q "'file' is no folder" stderr || fail "a file as folder: $(cat stderr)"

finish
