#!/bin/bash
# Convolutions of the tool from outside: bench measures and checks them, inspect shows their plans, verify checks files'; and for
# each bad input one clear sentence and status 2. Usage: cli_convolution.sh GLGEMM   (bench needs a device with OpenGL 4.3)
. "$(dirname "$0")/../support/cli.sh"
export GLGEMM_TUNING= GLGEMM_PROGRAM_CACHE=$work/programs

# ---- verify. An image of 1 to 9 in bytes, and filters that add up what they meet.
npy X.npy '|i1' '(1, 3, 3, 1)' '\1\2\3\4\5\6\7\10\11'
npy W.npy '|i1' '(1, 2, 2, 1)' '\1\1\1\1'
ints() { # FILE SHAPE NUMBER...: int32
  local file=$1 shape=$2 data= number
  shift 2
  for number; do data+="\\$(printf %03o $((number % 256)))\\$(printf %03o $((number / 256)))\\0\\0"; done
  npy "$file" '<i4' "$shape" "$data"
}
ints Y.npy '(1, 2, 2, 1)' 12 16 24 28
ints wrong.npy '(1, 2, 2, 1)' 12 16 25 28
ints same.npy '(1, 3, 3, 1)' 12 16 9 24 28 15 15 17 9
ints strided.npy '(1, 2, 2, 1)' 12 9 15 9
ints small.npy '(1, 1, 2, 2)' 12 16 24 28
ints transposed.npy '(1, 4, 4, 1)' 1 3 5 3 5 12 16 9 11 24 28 15 7 15 17 9
npy X_nchw.npy '|i1' '(1, 1, 3, 3)' '\1\2\3\4\5\6\7\10\11'
npy W_hwio.npy '|i1' '(2, 2, 1, 1)' '\1\1\1\1'
verdict 'right' 0 'right: exact: 4 of 4 elements equal the reference' X.npy W.npy Y.npy --convolution ''
grep -q '^Y.npy = X.npy \* W.npy: 1x3x3x1,1x2x2 in i8$' stdout || fail "the convolution is not named: $(cat stdout)"
verdict 'wrong' 1 'channel 0 of pixel 0x1x0 of image 0 is 25, expected 24 exactly' X.npy W.npy wrong.npy --convolution padding=0
verdict 'same' 0 'right: ' X.npy W.npy same.npy --convolution padding=same_upper
verdict 'not the same' 1 'wrong: ' X.npy W.npy same.npy --convolution padding=same_lower
verdict 'strides' 0 'right: ' X.npy W.npy strided.npy --convolution stride=2,padding=0:1 --check full
verdict 'NCHW' 0 'right: ' X_nchw.npy W_hwio.npy small.npy --convolution layout=nchw,filter_layout=hwio
verdict 'transposed' 0 'right: ' X.npy W.npy transposed.npy --convolution transposed --check probe
npy fortran.npy '|i1' '(1, 3, 3, 1)' '\1\2\3\4\5\6\7\10\11' True
ints of_fortran.npy '(1, 2, 2, 1)' 12 24 16 28
verdict 'Fortran order' 0 'right: ' fortran.npy W.npy of_fortran.npy --convolution ''
"$glgemm" verify X.npy W.npy wrong.npy --convolution '' --json >stdout 2>stderr
[ $? -eq 1 ] && grep -q '"right": false' stdout && grep -q '"convolution": "1x3x3x1,1x2x2",' stdout && grep -q '"k": 4,' stdout ||
  fail "JSON: $(cat stdout stderr)"

# Filters of a model.
{ npy_header '<f4' '(1, 8, 8, 1)' && head -c 256 /dev/zero; } >zeros.npy
{ npy_header '<f4' '(1, 8, 8, 16)' && head -c 4096 /dev/zero; } >none.npy
verdict 'a model' 0 '1024 of 1024 elements equal the reference' zeros.npy "$tests/data/digits.safetensors:conv1.weight" none.npy --convolution padding=1

tool=("$glgemm" verify)
npy flat.npy '|i1' '(3, 3)' '\1\2\3\4\5\6\7\10\11'
npy line.npy '|i1' '(1, 2, 1)' '\1\1'
npy deep.npy '|i1' '(1, 2, 1, 2)' '\1\1\1\1'
npy long.npy '<i8' '(1, 2, 2, 1)' '\1\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0'
bad 'a matrix' 'an array of 2 dimensions: images and filters have three to five' flat.npy W.npy Y.npy --convolution ''
bad 'other dimensions' "'X.npy' is 1x3x3x1, and 'line.npy' is 1x2x1: they differ in the number of dimensions" X.npy line.npy Y.npy --convolution ''
bad 'other channels' "'deep.npy' is 1x2x1x2, which is filters of 2 channels, and 'X.npy' is 1x3x3x1, which has 1" X.npy deep.npy Y.npy --convolution ''
bad 'another output' 'make as many of 2x2, and the output is 1 of 3x3' X.npy W.npy same.npy --convolution ''
bad 'another type' "'long.npy' holds int64, and this convolution is i32" X.npy W.npy long.npy --convolution ''
bad 'an unknown parameter' "--convolution: 'pad=1' is none of stride=, dilation=" X.npy W.npy Y.npy --convolution pad=1
bad 'too many groups' "groups: 9000000000000000000 is more than the channels of 'X.npy', 1" X.npy W.npy Y.npy --convolution transposed,groups=9000000000000000000
bad 'too large a filter' '--convolution: filters of 2x2 with dilations of 3x3 leave images of 3x3' X.npy W.npy Y.npy --convolution dilation=3
bad 'scalars' '--alpha excludes --convolution' X.npy W.npy Y.npy --convolution '' --alpha 2
bad 'bits' '--precision reproducible: the bits of convolutions are not compared' X.npy W.npy Y.npy --convolution '' --precision reproducible

# ---- inspect
has() { grep -qF -- "$2" "$1" || fail "'$2' is not in $1: $(cat "$1")"; }
plan() { "$glgemm" inspect --no-device --convolution "$@" >stdout 2>stderr || fail "inspect $*: status $?: $(cat stderr)"; }
plan 1x56x56x64,64x3x3,padding=1
for text in '0.2312 GFLOP' '1 image of 56 x 56, 64 channels, nhwc, 802,816 bytes' '58 x 58 elements of each image of a piece, its border included, from (-1, -1) on' \
  '3,136 x 64 x 576 (m x n x k)' 'input       indexed' 'filters     plain'; do has stdout "$text"; done
plan 1x56x56x64,64x1x1 --json
has stdout '"input": "plain"'
has stdout '"bytes": 0'
plan 2x9x4,6x3,stride=2,transposed
has stdout 'phase 2'
plan 1x5x6x7x32,6x3x3x3,padding=1 --type f32/q8_0
plan 1x9x9x8,8x3x3,padding=1,groups=8
has stdout 'depthwise, by a kernel of its own'
tool=("$glgemm" inspect)
bad 'no filters' "--convolution: '1x5x5x3' is not an input and filters, as in 1x56x56x64,64x3x3,padding=1" --convolution 1x5x5x3
bad 'a shape too' '--shape excludes --convolution' --convolution 1x5x5x3,4x3x3 --shape 1,2,3
bad 'quantised input' '--type: the input of a convolution is not quantised' --convolution 1x5x5x32,4x3x3 --type q8_0 --no-device
bad 'two convolutions' '--convolution is given 2 times; only --compiled takes several' --convolution 1x5x5x3,4x3x3 --convolution 1x5x5x3,4x1x1
bad 'a picture' '--image excludes --convolution' --convolution 1x5x5x3,4x3x3 --image plan.svg --no-device

# ---- bench
tool=("$glgemm" bench)
bad 'two kernels' '--convolution is for one kernel, or auto, in one precision' --convolution 1x5x5x3,4x3x3 --kernel naive,tiled
bad 'a size too' '--size excludes --convolution' --convolution 1x5x5x3,4x3x3 --size 12
bad 'a limit alone' '--time-limit is for --convolution and --convolutions-of' --size 12 --time-limit 3
bad 'no file' "cannot read 'none.csv'" --convolutions-of none.csv
need_device
"$glgemm" inspect --convolution 1x8x8x4,6x3x3,padding=1 --convolution 1x8x8x4,4x3x3,groups=4 --kernel naive --compiled --json >stdout 2>stderr ||
  fail "--compiled: status $?: $(cat stderr)"
has stdout '"1x8x8x4,6x3x3,padding=1"'
has stdout '"1x8x8x4,4x3x3,groups=4"'
"$glgemm" bench --convolution 1x8x8x4,6x3x3,padding=1 --convolution 2x9x3,4x3,stride=2,transposed --repeats 2 --json bench.json >stdout 2>stderr ||
  fail "bench: status $?: $(cat stdout stderr)"
has stdout '1x8x8x4,6x3x3,padding=1 '
has stdout 'convolution over plain product, geometric mean of 2: '
[ "$(grep -c ' ok, bound$' stdout)" = 2 ] || fail "bench: not checked: $(cat stdout)"
has bench.json '"copy_bytes": 1600'
"$glgemm" bench --convolution 1x4x4x32,6x3x3,filter_layout=oihw --type f32/q8_0 --repeats 1 >stdout 2>stderr && grep -q ' ok, ' stdout ||
  fail "quantised filters: $(cat stdout stderr)"
# A file's convolution that takes too long is left out with a reason.
{
  echo mb,groups,ic,ih,iw,oc,oh,ow,kh,kw,sh,sw,dilation_h,dilation_w,ph,pw
  echo 2,1,3,5,5,16,5,5,3,3,1,1,1,1,1,1
  echo 1,4,4,7,7,8,4,4,3,3,2,2,1,1,1,1
} >two.csv
"$glgemm" bench --convolutions-of two.csv --type u8/i8 --repeats 1 >stdout 2>stderr || fail "a file: status $?: $(cat stdout stderr)"
[ "$(grep -c ' ok, ' stdout)" = 2 ] && grep -q 'geometric mean of 2' stdout || fail "a file: $(cat stdout)"
sed 's/^2,1,3,5,5,16,5,5/1,1,64,99,99,64,99,99/' two.csv >slow.csv
"$glgemm" bench --convolutions-of slow.csv --repeats 1 --time-limit 0.001 --json slow.json >stdout 2>stderr || fail "a slow file: status $?: $(cat stdout stderr)"
has stdout 'left out: its first run takes longer than 1 ms'
has stdout 'convolutions are left out'
has slow.json '"why": "its first run takes longer than '

finish
