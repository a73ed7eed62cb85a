#!/bin/bash
# glgemm inspect from outside: pictures, two kernels side by side, programs validated; bad input. What it prints otherwise the other
# scripts and tests/plan see. Usage: cli.sh GLGEMM   (only the last part needs a device)
. "$(dirname "$0")/../support/cli.sh"
export GLGEMM_TUNING= GLGEMM_PROGRAM_CACHE=

# svg FILE TEXT...: it is whole, holds the texts, and no number that is none.
svg() {
  local file=$1 text
  shift
  [ -s "$file" ] && [ "$(tail -n 1 "$file")" = '</svg>' ] || fail "$file is not whole"
  for text in "$@" 'The roofline' 'A workgroup'; do grep -qF -- "$text" "$file" || fail "$file does not say '$text'"; done
  grep -qE '"-?(nan|inf)|(nan|inf)"' "$file" && fail "$file has what is no number"
}

echo '{"roofline": {"gflops": 100, "storage_gb_per_s": 10, "image_gb_per_s": 20}}' >roof.json
"$glgemm" inspect --size 700 --no-device --image plan.svg --roofline roof.json >/dev/null || fail "a picture: status $?"
svg plan.svg 'C = A B, 700 x 700 x 700' '1.87 MiB' 'within reach: 100 GFLOP/s, 20 GB/s' 'prefers-color-scheme: dark'
"$glgemm" inspect --shape 512,4,500000 --no-device --image deep.svg >/dev/null || fail "a long k: status $?"
svg deep.svg 'parts, summed apart' 'No roof is known here' 'Not to scale'
"$glgemm" inspect --size 8192 --memory-limit 256M --no-device --image stream.svg >/dev/null || fail "streamed: status $?"
svg stream.svg ' windows of at most ' 'all on the device'
"$glgemm" inspect --shape 30,40,50 --batch 20 --no-device --image batch.svg >/dev/null || fail "a batch: status $?"
svg batch.svg 'A batch of 20'
"$glgemm" inspect --shape 30,40,50 --batch 20 --no-device --kernel small:tile_m=4,tile_n=4,workgroup=64 --image small.svg >/dev/null ||
  fail "small: status $?"
svg small.svg 'An item of C: blocks' '64 blocks, of as many items as that takes' "A workgroup's blocks: one of them" '4 x 4 elements of C by one of 64'
"$glgemm" inspect --size 100 --type i32 --no-device --image i32.svg --roofline roof.json >/dev/null || fail "integers: status $?"
svg i32.svg 'The roof is measured in f32, and not drawn for i32.'
grep -q 'within reach' i32.svg && fail 'integers have the roof of floats'

"$glgemm" inspect --size 300 --no-device --diff tiled blocked --image both.svg --source >diff || fail "--diff: status $?"
grep -q '^kernel *tiled *| blocked$' diff && grep -q '^  tile_m  *-  *| ' diff && grep -q '^A .*TILE' diff && grep -q '^B .*TM' diff ||
  fail "--diff: $(cat diff)"
svg both.svg 'tiled:tile=32' 'blocked:'
[ "$(grep -c '>The roofline<' both.svg)" = 2 ] || fail 'two kernels have not two columns'
"$glgemm" inspect --size 300 --no-device --diff tiled tiled >diff && ! grep -q ' | ' diff || fail "a kernel differs from itself: $(cat diff)"
"$glgemm" inspect --size 64 --no-device --diff naive auto --json >json && grep -q '^  "b": {' json || fail "--diff --json: $(head -c 300 json)"

# The tables, for scripts.
"$glgemm" inspect --tables >tables || fail "--tables: status $?"
python3 - tables <<'END' || fail "--tables: $(head -c 300 tables)"
import json, sys
tables = json.load(open(sys.argv[1], encoding="utf-8"))
types = {each["name"]: each for each in tables["types"]}
kernels = {each["name"]: {its["name"]: its for its in each["parameters"]} for each in tables["kernels"]}
assert [each["number"] for each in tables["types"]] == list(range(len(types)))
assert (types["f16"]["bytes"], types["f16"]["kind"], types["f16"]["sum"], types["f16"]["c"], types["f16"]["numpy"]) == (2, "floating", "f32", "either", "float16")
assert all(each["sum"] in types for each in types.values())
assert list(kernels)[-1] == "naive" and kernels["tiled"]["tile"]["default"] == 32 and kernels["tiled"]["tile"]["legal"] == [2, 4, 8, 16, 32]
END

if command -v glslangValidator >/dev/null; then
  "$glgemm" inspect --size 256 --shape 8,8,8 --no-device --validate >stdout 2>stderr && fail 'a size and a shape together'
  "$glgemm" inspect --shape 256,256,256 --shape 9,1,2000 --no-device --validate >stdout 2>stderr || fail "--validate: status $?: $(cat stdout stderr)"
  grep -qE '^[0-9]+ programs; glslangValidator takes all$' stdout || fail "--validate: $(cat stdout)"
  # One that refuses: the programs are named, and the status is 1.
  mkdir bin
  printf '#!/bin/bash\n[ "$1" = --version ] && exit 0\necho "ERROR: 0:7: planted"\nexit 2\n' >bin/glslangValidator
  chmod +x bin/glslangValidator
  PATH=$work/bin:$PATH "$glgemm" inspect --size 64 --no-device --kernel naive --validate >stdout
  [ $? -eq 1 ] && grep -q '^REFUSED by glslangValidator: naive:.*: ERROR: 0:7: planted$' stdout || fail "a refused program: $(cat stdout)"
fi

tool=("$glgemm" inspect)
bad 'an ending' "'bad.png' does not end in .svg" --size 8 --no-device --image bad.png
bad 'no folder' 'bad/plan.svg' --size 8 --no-device --image bad/plan.svg
bad 'no roof' "'plan.svg' has no roofline" --size 8 --no-device --image bad.svg --roofline plan.svg
bad 'a missing roof' "'missing.json'" --size 8 --no-device --image bad.svg --roofline missing.json
bad 'a roof for nothing' '--roofline and --accelerators are for --image' --size 8 --no-device --roofline roof.json
bad 'one kernel' '--diff' --size 8 --no-device --diff tiled
bad 'no kernel' 'unknown kernel "til"' --size 8 --no-device --diff til naive
bad 'two choices' '--kernel' --size 8 --no-device --diff tiled naive --kernel naive
PATH=/nowhere "$glgemm" inspect --size 8 --no-device --validate >stdout 2>stderr
[ $? -eq 2 ] && grep -qF 'glslangValidator is not here (package glslang-tools)' stderr || fail "no validator: $(cat stderr)"

need_device
"$glgemm" inspect --size 200 --memory-limit 1M --accelerators 0,0 --roofline roof.json --image shares.svg >/dev/null || fail "--accelerators: status $?"
svg shares.svg 'accelerator 1: ' 'accelerator 2: ' '% of C, moved'
"$glgemm" inspect --size 64 --kernel tiled:tile=8 --validate >stdout || fail "--validate on the device: $(cat stdout)"
bad 'no accelerator' 'no such device' --size 8 --accelerators 'no such device' --image bad.svg --roofline roof.json

finish
