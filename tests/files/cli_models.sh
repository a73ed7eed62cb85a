#!/bin/bash
# Models' files from outside: inspect lists what they hold, multiply, verify and transpose take a tensor as a matrix, bench its shapes.
# Usage: cli_models.sh GLGEMM   (the last part needs a device with OpenGL 4.3)
. "$(dirname "$0")/../support/cli.sh"
export GLGEMM_TUNING= GLGEMM_PROGRAM_CACHE=

le() { # le BYTES NUMBER: little-endian
  local i value=$2
  for ((i = 0; i < $1; ++i, value >>= 8)); do printf "\\$(printf %03o $((value & 255)))"; done
}
text() { le 8 ${#1} && printf %s "$1"; }
# tensor NAME TYPE OFFSET SIZE...: the contiguous size first.
tensor() {
  text "$1" && le 4 $(($# - 3))
  local size
  for size in "${@:4}"; do le 8 "$size"; done
  le 4 "$2" && le 8 "$3"
}
pad() { head -c $(($1 - $(stat -c %s "$2"))) /dev/zero >>"$2"; }
{
  printf GGUF && le 4 3 && le 8 5 && le 8 1 && text general.name && le 4 8 && text tiny
  tensor w.f16 1 0 3 2 && tensor w.bf16 30 32 3 2 && tensor w.q8 8 64 32 2 && tensor bias 0 160 2 && tensor odd 99 192 256 1
} >m.gguf
pad $((($(stat -c %s m.gguf) + 31) / 32 * 32)) m.gguf
data=$(stat -c %s m.gguf)
printf '\0\074\0\100\0\102\0\104\0\105\0\106' >>m.gguf && pad $((data + 32)) m.gguf     # 1 to 6 in f16
printf '\200\077\0\100\100\100\200\100\240\100\300\100' >>m.gguf && pad $((data + 64)) m.gguf # and in bf16
{ printf '\0\070' && for i in {1..32}; do printf '\2'; done && printf '\0\100' && for i in {1..32}; do printf '\377'; done; } >>m.gguf && pad $((data + 160)) m.gguf
printf '\0\0\200\077\0\0\0\100' >>m.gguf && pad $((data + 224)) m.gguf
json='{"e4":{"dtype":"F8_E4M3","shape":[2,3],"data_offsets":[1,7]},"i":{"dtype":"I8","shape":[1],"data_offsets":[0,1]}}'
{ text "$json" && printf '\11\070\100\104\110\112\114'; } >m.safetensors # misaligned, after 9: 1 to 6 in f8e4m3
npy x.npy '<f4' '(3, 1)' '\0\0\200\077\0\0\200\077\0\0\200\077'
npy y.npy '<f4' '(2, 1)' '\0\0\300\100\0\0\160\101' # 6, 15
npy z.npy '<f4' '(2, 1)' '\0\0\300\100\0\0\200\101' # 6, 16

# ---- inspect
"$glgemm" inspect m.gguf >stdout 2>stderr || fail "inspect: status $?: $(cat stderr)"
for line in 'm.gguf: 5 tensors, 100 bytes' 'F16               2x3                12  w.f16' 'Q8_0              2x32               68  w.q8' \
  'F32               2                   8  bias' 'unknown type 99*  1x256               0  odd' '* 1 of a type that glgemm does not have'; do
  grep -qxF -- "$line" stdout || fail "inspect has no '$line': $(cat stdout)"
done
"$glgemm" inspect m.gguf --json >stdout 2>stderr || fail "inspect --json: status $?: $(cat stderr)"
python3 - stdout $data <<'END' || fail "inspect --json: $(cat stdout)"
import json, sys
model, data = json.load(open(sys.argv[1], encoding="utf-8")), int(sys.argv[2])
rows = [[each[key] for key in ("name", "shape", "type", "glgemm", "offset", "bytes")] for each in model["tensors"]]
assert model["file"] == "m.gguf" and rows == [
    ["w.f16", [2, 3], "F16", "f16", data, 12], ["w.bf16", [2, 3], "BF16", "bf16", data + 32, 12],
    ["w.q8", [2, 32], "Q8_0", "q8_0", data + 64, 68], ["bias", [2], "F32", "f32", data + 160, 8],
    ["odd", [1, 256], "unknown type 99", None, data + 192, 0]], rows
END
"$glgemm" inspect m.safetensors | grep -q '^F8_E4M3  2x3 * 6  e4$' || fail "inspect m.safetensors: $("$glgemm" inspect m.safetensors 2>&1)"
"$glgemm" inspect m.gguf --as nvidia-ampere --columns 5 >stdout 2>stderr || fail "inspect --as: status $?: $(cat stderr)"
# 2 x 32 in blocks of 34 bytes, 32 x 5 and 2 x 5 in float32
grep -q '^Q8_0  *2x32  *68  *748  [a-z].*  w\.q8$' stdout && grep -q '^F32  *2  *8  *-  -  *bias$' stdout &&
  grep -q '^device: .*nvidia-ampere' stdout || fail "inspect --as: $(cat stdout)"
"$glgemm" inspect m.gguf --no-device --json >stdout 2>stderr || fail "inspect --no-device: status $?: $(cat stderr)"
python3 - stdout <<'END' || fail "inspect --no-device: $(cat stdout)"
import json, sys
model = json.load(open(sys.argv[1], encoding="utf-8"))
products = {each["name"]: each["product"] for each in model["tensors"]}
assert products["bias"] is None and products["odd"] is None and model["device"], products
rows = {name: [each[key] for key in ("m", "n", "k", "type", "bytes")] for name, each in products.items() if each}
assert rows == {"w.f16": [2, 1, 3, "f16/f32", 32], "w.bf16": [2, 1, 3, "bf16/f32", 32], "w.q8": [2, 1, 32, "q8_0/f32", 204]}, rows
assert all(each["kernel"] and each["expected_seconds"] > 0 for each in products.values() if each), products
END
bad 'inspect, columns without a model' '--columns requires MODEL' inspect --size 8 --columns 3
"$glgemm" inspect --shape 64,1,256 --type q4_k/f32 --no-device --json >stdout 2>stderr && grep -q '^  "type": "q4_k/f32",$' stdout || fail "inspect --type q4_k/f32: $(head -c 300 stdout stderr)"
"$glgemm" inspect --shape 64,1,256 --type q4_k --no-device --image plan.svg >stdout 2>stderr && grep -q '^  A  *64 x 256, 9,216 bytes$' stdout &&
  grep -q 'in q4_k/f32' plan.svg || fail "inspect --type q4_k: $(head -c 300 stdout stderr)"
"$glgemm" inspect --size 64 --type f16/f32 --no-device >stdout 2>stderr && grep -q '^product .* in f16/f32, ' stdout && grep -q '^  A  *64 x 64, 8,192 bytes$' stdout ||
  fail "inspect --type f16/f32: $(head -c 300 stdout stderr)"
bad 'inspect, types that do not go together' 'f32' inspect --size 64 --type f32/f64 --no-device
"$glgemm" inspect --size 1024 --type q8_0/f32 --no-device --memory-limit 1M >stdout 2>stderr && grep -q '^streamed  *[0-9]* pieces of C' stdout ||
  fail "inspect, blocks and a limit: $(head -c 300 stdout stderr)"
bad 'inspect, no such format' 'q9_0' inspect --size 64 --type q9_0/f32 --no-device
bad 'inspect, a model and a size' 'MODEL excludes --size' inspect m.gguf --size 8
bad 'inspect, no such file' "cannot read 'none.gguf': " inspect none.gguf
bad 'inspect, another file' "'x.npy' cannot be read as a model: it is a NumPy array" inspect x.npy
grep -q 'should end' stderr && fail "inspect, another file: $(cat stderr)"
bad 'inspect, JSON over the model' 'is the file of the input' inspect m.gguf --json m.gguf
{ printf GGUF && le 4 3 && le 8 1 && le 8 0 && tensor $'\e[31m\nred' 24 0 -1; } >red.gguf
bad 'inspect, a name that a terminal would obey' "the tensor '\\x1b[31m\\nred' has a size of 18446744073709551615" inspect red.gguf

# ---- a model of whose files some are missing, and one of which none is there
python3 - <<'END'
import json, struct
header = json.dumps({"a": {"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 16]}}).encode()
open("p-00001-of-00003.safetensors", "wb").write(struct.pack("<Q", len(header)) + header + bytes(16))
json.dump({"weight_map": {"a": "p-00001-of-00003.safetensors", "b": "p-00002-of-00003.safetensors"}}, open("p.SAFETENSORS.INDEX.JSON", "w"))
json.dump({"weight_map": {"b": "none-1.safetensors", "c": "none-2.safetensors"}}, open("none.safetensors.index.json", "w"))
END
missing="'p-00002-of-00003.safetensors', 'p-00003-of-00003.safetensors' are missing"
"$glgemm" inspect p-00001-of-00003.safetensors >stdout 2>stderr && grep -qxF "of its files $missing" stdout || fail "inspect, files are missing: $(cat stdout stderr)"
"$glgemm" inspect p.SAFETENSORS.INDEX.JSON --json >stdout 2>stderr && python3 -c 'import json; assert json.load(open("stdout"))["missing_files"] == ["p-00002-of-00003.safetensors"]' ||
  fail "inspect --json, a file is missing: $(cat stdout stderr)"
"$glgemm" bench --shapes-of p-00001-of-00003.safetensors --repeats 1 --kernel naive >stdout 2>stderr
grep -qxF "glgemm bench: note: 'p-00001-of-00003.safetensors': of its files $missing" stderr || fail "bench, files are missing: $(cat stdout stderr)"
for verb in inspect 'bench --shapes-of'; do
  bad "$verb, no file is there" "'none.safetensors.index.json' cannot be read: of its files 'none-1.safetensors', 'none-2.safetensors' are missing" $verb none.safetensors.index.json
done
bad 'no tensor is named, and files are missing' "'p-00001-of-00003.safetensors' has 1 tensor where $missing, of which one must be named, as in 'p-00001-of-00003.safetensors:a'" \
  transpose p-00001-of-00003.safetensors -o t.npy
bad 'a tensor of a file that is missing' "has no tensor 'b': it has 'a'; of its files, these are missing: 'p-00002-of-00003.safetensors'" transpose p.SAFETENSORS.INDEX.JSON:b -o t.npy

# ---- verify, on the CPU
for path in m.gguf:w.f16 m.gguf:w.bf16 m.safetensors:e4; do
  "$glgemm" verify "$path" x.npy y.npy >stdout 2>stderr || fail "verify $path: status $?: $(cat stdout stderr)"
  "$glgemm" verify "$path" x.npy z.npy >stdout 2>stderr
  [ $? -eq 1 ] || fail "verify $path with a wrong C: $(cat stdout stderr)"
done
"$glgemm" transpose m.gguf:w.q8 -o t.npy >stdout 2>stderr || fail "transpose of q8_0: $(cat stderr)"
numbers=$(printf '1 -2 %.0s' {1..32}) # 2 * 0.5 and -1 * 2
[ "$(descr t.npy) $(shape t.npy) $(elements t.npy f4)" = "<f4 (32, 2) ${numbers% }" ] || fail "transpose of q8_0: $(shape t.npy) $(elements t.npy f4)"
npy q.npy '<f4' '(2, 2)' '\0\0\0\102\0\0\200\302\0\0\200\302\0\0\0\103' # 32, -64, -64, 128
cp t.npy w.npy # the transpose of w.q8, as numbers
"$glgemm" verify m.gguf:w.q8 m.gguf:w.q8 q.npy --op-b t >stdout 2>stderr || fail "verify of q8_0: $(cat stdout stderr)"
grep -qF "note: 'm.gguf:w.q8' is converted from q8_0 to float32 in C order" stderr || fail "verify of q8_0 has no note: $(cat stderr)"
bad 'an unknown type' "'m.gguf:odd' holds unknown type 99, a type that glgemm does not have" verify m.gguf:odd x.npy y.npy
bad 'no such tensor' "'m.gguf' has no tensor 'v': it has 'w.f16', 'w.bf16', 'w.q8', 'bias', 'odd'" verify m.gguf:v x.npy y.npy
bad 'no tensor is named' "'m.gguf' has 5 tensors, of which one must be named, as in 'm.gguf:w.f16'; 'glgemm inspect' lists them" verify m.gguf x.npy y.npy

# ---- transpose; models are only read
npy h.npy '<f2' '(2, 3)' '\0\074\0\100\0\102\0\104\0\105\0\106'
"$glgemm" transpose h.npy -o t.npy >stdout 2>stderr && "$glgemm" transpose m.gguf:w.f16 -o u.npy >stdout 2>stderr && cmp t.npy u.npy || fail "transpose: $(cat stderr)"
bad 'transpose of bf16' "NumPy has no bfloat16, so 'C.npy' cannot be written" transpose m.gguf:w.bf16 -o C.npy
bad 'a model as output' "cannot write 'C.gguf': models are only read" transpose w.npy -o C.gguf
bad 'a tensor as output' "cannot write 'm.gguf:new': models are only read" multiply w.npy x.npy -o m.gguf:new
bad 'a model as output, streamed' "cannot write 'C.safetensors': models are only read" multiply w.npy x.npy -o C.safetensors --memory-limit 1M
bad 'a picture over the model' "is the file of the input 'm.gguf:w.f16'" multiply m.gguf:w.f16 x.npy -o C.npy --image m.gguf

# ---- bench
bad 'bench, no matrix of the type' "--shapes-of: 'm.gguf' has no matrix of the type i8; 'm.gguf': 1 matrix is left out: BF16, --type bf16 measures them; " \
  bench --shapes-of m.gguf --type i8
bad 'bench, no matrix of either type' "--shapes-of: 'm.gguf' has no matrix of the type i8 or u8; 'm.gguf': " \
  bench --shapes-of m.gguf --type i8,u8
bad 'bench, a shape and a model' '--shape excludes --shapes-of' bench --shapes-of m.gguf --shape 1,2,3
bad 'bench, columns without a model' '--columns requires --shapes-of' bench --columns 3

need_device
for path in m.gguf:w.f16 m.gguf:w.bf16 m.safetensors:e4; do
  for limit in '' '--memory-limit 1M'; do
    rm -f C.npy
    "$glgemm" multiply "$path" x.npy -o C.npy $limit >stdout 2>stderr || fail "multiply $path $limit: status $?: $(cat stderr)"
    [ "$(descr C.npy) $(shape C.npy) $(elements C.npy f4)" = '<f4 (2, 1) 6 15' ] || fail "multiply $path $limit: $(elements C.npy f4)"
  done
done
# product NAME TYPES NOTES ARGUMENTS...: C of w.q8 and its transpose, in these types, with so many notes.
product() {
  local name=$1 types=$2 notes=$3
  shift 3
  rm -f C.npy
  "$glgemm" multiply "$@" -o C.npy >stdout 2>stderr || fail "$name: status $?: $(cat stdout stderr)"
  [ "$(descr C.npy) $(shape C.npy) $(elements C.npy f4)" = '<f4 (2, 2) 32 -64 -64 128' ] || fail "$name: $(elements C.npy f4)"
  grep -q " in $types$" stdout && grep -q ' of 4 elements ' stdout || fail "$name: no 'in $types' in: $(cat stdout)"
  [ "$(grep -c ' is converted from q8_0 to float32 in C order$' stderr)" = "$notes" ] || fail "$name: $(cat stderr)"
}
product 'blocks as A' 'q8_0/f32 with sums in f32' 0 m.gguf:w.q8 w.npy
product 'blocks as B' 'f32/q8_0 with sums in f32' 0 w.npy m.gguf:w.q8 --op-a t --op-b t
product 'blocks twice' 'q8_0/f32 with sums in f32' 1 m.gguf:w.q8 m.gguf:w.q8 --op-b t
product 'blocks, all elements checked' 'q8_0/f32 with sums in f32' 0 m.gguf:w.q8 w.npy --check full
product 'blocks, decoded on request' f32 1 m.gguf:w.q8 w.npy --type f32
product 'blocks, streamed' 'q8_0/f32 with sums in f32' 0 m.gguf:w.q8 w.npy --memory-limit 1M
"$glgemm" multiply m.gguf:w.q8 w.npy -o C.npy --op-a t --op-b t >stdout 2>stderr || fail "codes across k: $(cat stderr)"
grep -qF "note: 'm.gguf:w.q8' is converted from q8_0 to float32 in C order" stderr || fail "codes across k: no note: $(cat stderr)"
"$glgemm" verify m.gguf:w.q8 w.npy C.npy --op-a t --op-b t >stdout 2>stderr || fail "codes across k: $(cat stdout)"
"$glgemm" multiply m.gguf:w.f16 m.gguf:w.bf16 --op-b t -o C.npy >stdout 2>stderr || fail "f16 by bf16: status $?: $(cat stderr)"
[ "$(elements C.npy f4)" = '14 32 32 77' ] && [ ! -s stderr ] && grep -q ' in f16/bf16 with sums in f32$' stdout || fail "f16 by bf16: $(elements C.npy f4): $(cat stdout stderr)"
"$glgemm" multiply m.gguf:w.bf16 m.gguf:w.bf16 --op-b t -o C.npy >stdout 2>stderr || fail "bf16: status $?: $(cat stderr)"
[ "$(elements C.npy f4)" = '14 32 32 77' ] && grep -q ' in bf16 with sums in f32$' stdout || fail "bf16: $(elements C.npy f4): $(cat stdout)"
"$glgemm" bench --shape 65,2,40 --type u8/i8 --kernel gemv --check full --repeats 1 >stdout 2>stderr || fail "panels of i8 beside u8: $(cat stderr)"
"$glgemm" bench --shapes-of m.gguf --kernel auto --repeats 1 --json bench.json >stdout 2>stderr || fail "bench, own types: status $?: $(cat stdout stderr)"
python3 - bench.json <<'END' || fail "bench, own types: $(cat bench.json)"
import json, sys
results = json.load(open(sys.argv[1], encoding="utf-8"))["results"]
rows = [[each[key] for key in ("m", "n", "k", "type")] + [each["check"]["passed"]] for each in results]
assert rows == [[2, 1, 3, "f16/f32", True], [2, 1, 3, "bf16/f32", True], [2, 1, 32, "q8_0/f32", True]], rows
END
"$glgemm" bench --shape 40,1,64 --type f32,nbits:bits=4,group=32,f16/f32 --kernel gemv --repeats 1 --json bench.json >stdout 2>stderr || fail "bench, three types: status $?: $(cat stdout stderr)"
python3 - bench.json stdout <<'END' || fail "bench, three types: $(cat bench.json stdout)"
import json, sys
bench = json.load(open(sys.argv[1], encoding="utf-8"))
times = {each["type"]: each["kernel_ms"] for each in bench["results"]}
assert len(times) == 3, times
ratios = {each["of"]: each["value"] for each in bench["ratios"]}
assert set(ratios) == set(times) - {"f32"}, ratios
assert all(abs(ratios[of] - times["f32"] / times[of]) < 1e-6 * ratios[of] for of in ratios), (ratios, times)
assert "f16/f32 over f32, gemv 40x1x64: " in open(sys.argv[2], encoding="utf-8").read()
END
for type in q4_0/f32 q4_k/f32 q6_k mxfp4/f32 iq4_nl/f32 nvfp4/f32 f16/f32 u8/i8 f32/f8e4m3 nbits:bits=4,group=32 nbits:bits=8,group=16,zeros=1,scales=bf16 per_row:codes=u8/f32 \
  per_tensor:codes=f8e4m3,scales=f16; do
  "$glgemm" bench --shape 33,3,512 --type $type --kernel auto,naive --check full --repeats 1 >stdout 2>stderr || fail "bench --type $type: status $?: $(cat stdout stderr)"
done
for type in q4_0 nbits:bits=4,group=32,zeros=1 per_row; do # rows that end within a block
  "$glgemm" bench --shape 9,3,50 --batch 3 --type $type --kernel auto --check full --repeats 1 >stdout 2>stderr || fail "bench --batch 3 --type $type: status $?: $(cat stdout stderr)"
done
for type in nbits:bits=4,group=16,zeros=1 per_row:codes=f8e4m3; do
  "$glgemm" bench --convolution 1x5x5x12,4x3x3,padding=1 --type f32/$type --check full --repeats 1 >stdout 2>stderr || fail "bench --convolution --type f32/$type: status $?: $(cat stdout stderr)"
done
# From host to host each factor goes as it is stored: A of f32 alone would have 70 * 512 * 4 bytes.
for type in q4_0/f32 nbits:bits=4,group=32,zeros=1 per_row:codes=u8/f32 f16/f32 u8/i8; do
  for how in '--device-memory-limit 64K' '--scaling --accelerators 0'; do
    "$glgemm" bench --shape 70,3,512 --type $type $how --kernel auto --check full --repeats 1 --json bench.json >stdout 2>stderr ||
      fail "bench --type $type $how: status $?: $(cat stdout stderr)"
    python3 - $type <<'END' || fail "bench --type $type $how: $(cat bench.json)"
import json, sys
for result in json.load(open("bench.json", encoding="utf-8"))["results"]:
    assert result["type"] == sys.argv[1] + ("" if "/" in sys.argv[1] else "/f32") and 70 * 512 / 2 < result["bytes_moved"] < 70 * 512 * 3, result
END
  done
done
"$glgemm" bench --shapes-of m.gguf --columns 5 --type f16 --kernel naive --repeats 1 --json bench.json >stdout 2>stderr || fail "bench: status $?: $(cat stderr)"
grep -q '2x5x3' stdout || fail "bench: $(cat stdout)"
for note in "'m.gguf': 1 matrix is left out: BF16, --type bf16 measures them" "'m.gguf': 1 matrix is left out: Q8_0, --type q8_0 measures them" \
  "'m.gguf': 1 matrix is left out: unknown type 99, a type that glgemm does not have"; do
  grep -qF -- "glgemm bench: note: $note" stderr || fail "bench has no note '$note': $(cat stderr)"
done
finish
