#!/bin/bash
# glgemm inspect from outside: pictures, tables; bad input. What it prints otherwise the other
# scripts and tests/plan see. Usage: cli.sh GLGEMM 
. "$(dirname "$0")/../support/cli.sh"
export GLGEMM_TUNING= GLGEMM_PROGRAM_CACHE=

# svg FILE TEXT...: it is whole, holds the texts, and no number that is none.
svg() {
  local file=$1 text
  shift
  [ -s "$file" ] && [ "$(tail -n 1 "$file")" = '</svg>' ] || fail "$file is not whole"
  for text in "$@" 'A workgroup'; do grep -qF -- "$text" "$file" || fail "$file does not say '$text'"; done
  grep -qE '"-?(nan|inf)|(nan|inf)"' "$file" && fail "$file has what is no number"
}

"$glgemm" inspect --size 700 --no-device --image plan.svg >/dev/null || fail "a picture: status $?"
svg plan.svg 'C = A B, 700 x 700 x 700' '1.96 MB' 'fill="#ffffff" width="100%"' 'fill="#009e73" fill-opacity="0.28" x='
"$glgemm" inspect --shape 512,4,500000 --no-device --image deep.svg >/dev/null || fail "a long k: status $?"
svg deep.svg 'parts, summed apart' 'Not to scale'
"$glgemm" inspect --size 8192 --memory-limit 256M --no-device --image stream.svg >/dev/null || fail "streamed: status $?"
svg stream.svg ' windows of at most ' 'all on the device'
"$glgemm" inspect --shape 30,40,50 --batch 20 --no-device --image batch.svg >/dev/null || fail "a batch: status $?"
svg batch.svg 'A batch of 20'
"$glgemm" inspect --shape 30,40,50 --batch 20 --no-device --kernel small:tile_m=4,tile_n=4,workgroup=64 --image small.svg >/dev/null ||
  fail "small: status $?"
svg small.svg 'An item of C: blocks' '64 blocks, of as many items as that takes' "A workgroup's blocks: one of them" '4 x 4 elements of C by one of 64'

"$glgemm" inspect --size 8 --no-device --image UPPER.SVG >/dev/null && [ -s UPPER.SVG ] || fail "a picture with an ending in capitals"

# What a product's dispatches are for, in words and in the picture alike.
for kernel in register:panels=1 tiled; do
  "$glgemm" inspect --size 700 --no-device --kernel $kernel --image dispatches.svg >stdout || fail "$kernel: status $?"
  want='in all +1 dispatch;'
  [ $kernel = tiled ] || want='in all +3 dispatches with packing;'
  grep -qE "$want" stdout && grep -qE "${want//[+;]/}" dispatches.svg || fail "the dispatches of $kernel: $(grep 'in all' stdout dispatches.svg)"
done

# With the standard output closed, what is printed is lost, as on a full disk, and gets into no other file.
for json in one all; do
  if [ $json = one ]; then
    "$glgemm" inspect --size 64 --no-device --json one.json >&- 2>stderr
  else
    "$glgemm" inspect --size 64 --no-device --json all.json <&- >&- 2>&-
  fi
  [ $? -eq 2 ] && python3 -m json.tool $json.json >/dev/null || fail "a closed standard output: $(head -c 100 $json.json)"
done
grep -qF 'cannot write to the standard output' stderr || fail "a closed standard output is not told: $(cat stderr)"

# The tables, for scripts.
"$glgemm" inspect --tables >tables || fail "--tables: status $?"
python3 - tables <<'END' || fail "--tables: $(head -c 300 tables)"
import json, sys
tables = json.load(open(sys.argv[1], encoding="utf-8"))
types = {each["name"]: each for each in tables["types"]}
kernels = {each["name"]: {parameter["name"]: parameter for parameter in each["parameters"]} for each in tables["kernels"]}
assert [each["number"] for each in tables["types"]] == list(range(len(types)))
assert (types["f16"]["bytes"], types["f16"]["kind"], types["f16"]["sum"], types["f16"]["c"], types["f16"]["numpy"]) == (2, "floating", "f32", "either", "float16")
assert all(each["sum"] in types for each in types.values())
assert list(kernels)[-1] == "naive" and kernels["tiled"]["tile"]["default"] == 32 and kernels["tiled"]["tile"]["legal"] == [2, 4, 8, 16, 32]
END

tool=("$glgemm" inspect)
bad 'an ending' "'bad.png' does not end in .svg" --size 8 --no-device --image bad.png
bad 'no folder' 'bad/plan.svg' --size 8 --no-device --image bad/plan.svg
bad 'a size and a shape' '--shape' --size 8 --shape 8,8,8 --no-device

finish
