#!/bin/bash
# glgemm multiply and transpose from outside: right results, and for each bad input one clear sentence, status 2 and no file left.
# Usage: cli.sh GLGEMM   (GLGEMM is the built tool; it needs a device with OpenGL 4.3)
. "$(dirname "$0")/../support/cli.sh"
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT

one='\000\000\200\077' two='\000\000\000\100' three='\000\000\100\100' four='\000\000\200\100' five='\000\000\240\100'
six='\000\000\300\100' seven='\000\000\340\100' eight='\000\000\000\101' nine='\000\000\020\101' ten='\000\000\040\101'
eleven='\000\000\060\101' twelve='\000\000\100\101'

# good NAME EXPECTED-SHAPE EXPECTED-ELEMENTS ARGUMENTS...: status 0, and the result is in C.npy.
bytes() { elements "$1" x1 | tr -d ' '; }
good() {
  rm -f C.npy
  "$glgemm" "${@:4}" -o C.npy >stdout 2>stderr || fail "$1: status $?: $(cat stderr)"
  [ "$(shape C.npy) $(bytes C.npy)" = "$2 $3" ] || fail "$1: got $(shape C.npy) $(bytes C.npy)"
}

npy A.npy '<f4' '(3, 2)' "$one$four$two$five$three$six"
npy B.npy '<f4' '(2, 3)' "$seven$eight$nine$ten$eleven$twelve"
# {{1,4},{2,5},{3,6}} x {{7,8,9},{10,11,12}} = {{47,52,57},{64,71,78},{81,90,99}}
product=00003c4200005042000064420000804200008e4200009c420000a2420000b4420000c642
good 'the worked example' '(3, 3)' $product multiply A.npy B.npy
grep -qE ', with transfers [0-9.]+ m?s; before, programs were compiled or loaded, and checked, in [0-9.]+ m?s$' stdout ||
  fail "the times: $(cat stdout)"
# The compiler's time is not among the transfers'.
GLGEMM_PROGRAM_CACHE= MESA_SHADER_CACHE_DISABLE=true good 'compiling' '(3, 3)' $product multiply A.npy B.npy --kernel tiled
sed -nE 's/.*with transfers ([0-9.]+) (m?s); .* in ([0-9.]+) (m?s)$/\1 \2 \3 \4/p' stdout | awk '{ exit !($1 * ($2 == "s" ? 1e3 : 1) < $3 * ($4 == "s" ? 1e3 : 1)) }' ||
  fail "transfers take longer than compiling: $(cat stdout)"
# Ctrl-C.
rm -f C.npy
sleep 20 | env --default-signal=INT "$glgemm" multiply - B.npy -o C.npy >stdout 2>stderr &
process=$!
for _ in $(seq 200); do
  grep -qs '^SigCgt:.*[2367abef]$' /proc/$process/status && break # it hears SIGINT
  sleep 0.05
done
kill -INT $process
wait $process
[ $? -eq 130 ] && [ "$(cat stderr)" = 'glgemm multiply: interrupted' ] && [ ! -e C.npy ] || fail "Ctrl-C: $(cat stdout stderr)"
for kernel in naive tiled tiled:tile=2; do good "kernel $kernel" '(3, 3)' $product multiply A.npy B.npy --kernel $kernel; done
for check in none probe full; do good "check $check" '(3, 3)' $product multiply A.npy B.npy --check $check; done
npy F.npy '<f4' '(3, 2)' "$one$two$three$four$five$six" True
good 'the same bits everywhere' '(3, 3)' $product multiply A.npy B.npy --precision reproducible
good 'sums of twice the digits' '(3, 3)' $product multiply A.npy B.npy --precision extended --check full
good 'Fortran order' '(3, 3)' $product multiply F.npy B.npy
grep -q 'note: .*Fortran order' stderr || fail "Fortran order: no note: $(cat stderr)"
npy A8.npy '<f8' '(3, 2)' '\0\0\0\0\0\0\360\077\0\0\0\0\0\0\020\100\0\0\0\0\0\0\0\100\0\0\0\0\0\0\024\100\0\0\0\0\0\0\010\100\0\0\0\0\0\0\030\100'
good 'float64 as float32' '(3, 3)' $product multiply A8.npy B.npy --type f32
grep -q 'note: .*float64' stderr || fail "float64: no note: $(cat stderr)"
npy A2.npy '<f2' '(3, 2)' '\0\074\0\104\0\100\0\105\0\102\0\106'
npy B2.npy '<f2' '(2, 3)' '\0\107\0\110\200\110\0\111\200\111\0\112'
good 'float16' '(3, 3)' $product multiply A2.npy B2.npy --check full
good 'float16 to float16' '(3, 3)' e0518052205300547054e0541055a0553056 multiply A2.npy B2.npy --c-type f16 --check full
for type in f16 bf16 f8e4m3; do good "storage $type" '(3, 3)' $product multiply A.npy B.npy --type $type; done
integers=2f000000340000003900000040000000470000004e000000510000005a00000063000000
for type in i8 i32 u32; do good "type $type" '(3, 3)' $integers multiply A.npy B.npy --type $type --check full; done
npy I1.npy '|i1' '(3, 2)' '\001\004\002\005\003\006'
npy J1.npy '|i1' '(2, 3)' '\007\010\011\012\013\014'
good 'int8' '(3, 3)' $integers multiply I1.npy J1.npy
good 'transpose of int8' '(2, 3)' 010203040506 transpose I1.npy
npy half.npy '<f4' '(1, 2)' '\0\0\0\077\0\0\200\077'
npy complex.npy '<c8' '(1, 1)' "$one$two"
# (1 + 2i) (1 - 2i) = 5, times 1i plus 2 (1 + 2i)
good 'complex' '(1, 1)' 0000a04000000000 multiply complex.npy complex.npy --op-b c --check full
good 'complex scalars' '(1, 1)' 0000004000001041 multiply complex.npy complex.npy --op-b C --alpha 1i --beta 2 --c complex.npy --check full
good 'ops' '(2, 2)' 00004842000088420000f44200002743 multiply A.npy B.npy --op-a t --op-b t --alpha 1
npy S.npy '<f4' '(2, 2)' "$one$two$three$four"
good 'scalars' '(2, 2)' 0000c64200000643000071430000a543 multiply A.npy B.npy --op-a T --op-b T --alpha 2 --beta -1 --c S.npy
npy S3.npy '<f4' '(2, 1, 2)' "$one$two$three$four"
# (1, 2) B and (3, 4) B
good 'batch' '(2, 1, 3)' 0000d8410000f04100000442000074420000884200009642 multiply S3.npy B.npy --batch 2 --check full
rm -f S.npy
good 'transpose' '(2, 3)' 0000803f0000004000004040000080400000a0400000c040 transpose A.npy
npy none_by_2.npy '<f4' '(0, 2)' ''
npy two_by_0.npy '<f4' '(2, 0)' ''
good 'no rows' '(0, 3)' '' multiply none_by_2.npy B.npy
good 'no columns' '(3, 0)' '' multiply A.npy two_by_0.npy
good 'inner size 0' '(2, 2)' 00000000000000000000000000000000 multiply two_by_0.npy none_by_2.npy
good 'transpose without elements' '(0, 2)' '' transpose two_by_0.npy
# An output replaces a file, but an input with --force alone.
cp B.npy C.npy
"$glgemm" multiply A.npy B.npy -o C.npy >stdout 2>stderr && [ "$(bytes C.npy)" = $product ] || fail "replacing a file: $(cat stderr)"
cp A.npy S.npy
"$glgemm" multiply S.npy B.npy -o S.npy --force >stdout 2>stderr && [ "$(bytes S.npy)" = $product ] ||
  fail "replacing an input: $(cat stderr)"
cp A.npy S.npy
"$glgemm" transpose S.npy -o S.npy --force >stdout 2>stderr && [ "$(shape S.npy)" = '(2, 3)' ] || fail "transposing a file: $(cat stderr)"
"$glgemm" multiply A.npy B.npy -o C.npy --image C.png --error-image E.png >stdout 2>stderr || fail "images: $(cat stderr)"
for image in C.png E.png; do
  [ "$(head -c 8 $image | od -An -tx1 | tr -d ' \n')" = 89504e470d0a1a0a ] || fail "$image is no PNG"
done
[ "$(find . -name '.glgemm*' | wc -l)" -eq 0 ] || fail "temporary files are left: $(find . -name '.glgemm*')"
rm -f C.npy C.png E.png S.npy

m='multiply A.npy B.npy -o C.npy'
bad 'missing file' "cannot read 'missing.npy': No such file" multiply missing.npy B.npy -o C.npy
bad 'missing second file' "cannot read 'missing.npy': No such file" multiply A.npy missing.npy -o C.npy
bad 'a folder' 'it is a folder' multiply . B.npy -o C.npy
: >empty.npy
bad 'empty file' 'it is empty' multiply empty.npy B.npy -o C.npy
head -c 40 A.npy >cut_header.npy
# What else may be wrong with such files is tests/files/npy.cpp's.
bad 'header cut off' 'truncated' multiply cut_header.npy B.npy -o C.npy
echo 'hello, this is text' >text.npy
bad 'not .npy' 'something else than an .npy array' multiply text.npy B.npy -o C.npy
npy int64.npy '<i8' '(3, 1)' "$one$four$two$five$three$six"
bad 'unknown type' 'unknown type "f8"' $m --type f8
bad 'no integers' 'which is no value of the type i8' multiply half.npy B.npy -o C.npy --type i8
bad 'complex to real' 'complex64, which cannot be converted to the real type f32' multiply complex.npy B.npy -o C.npy --type f32
bad 'unknown op' "--op-a: 'q' is none of n, t and c" $m --op-a q
bad 'inner sizes after op' "op('A.npy') is 2x3 and 'B.npy' is 2x3: the inner sizes 3 and 2 differ" $m --op-a t
bad 'alpha' "--alpha: 'two' is not a number" $m --alpha two
bad 'complex alpha' "--alpha: '2i' is no value of the type f32" $m --alpha 2i
bad 'beta without C' 'no --c says which 3x3 matrix' $m --beta 2
bad 'C of another size' "'A.npy' is 3x2, and the product is 3x3" $m --beta 2 --c A.npy
bad 'C type' 'cannot be written as i8' $m --c-type i8
bad 'batch of none' "--batch: '0' is not a positive integer" $m --batch 0
bad 'batch of another size' "'S3.npy' has 2 matrices, and --batch says 3" multiply S3.npy B.npy -o C.npy --batch 3
npy one_d.npy '<f4' '(6,)' "$one$four$two$five$three$six"
bad '1-d' "'one_d.npy' is 1x6 and 'B.npy' is 2x3: the inner sizes 6 and 2 differ" multiply one_d.npy B.npy -o C.npy
bad '1-d to transpose' '1-dimensional array, not a matrix: it must have two' transpose one_d.npy -o C.npy
npy three_d.npy '<f4' '(1, 3, 2)' "$one$four$two$five$three$six"
bad '3-d' '3-dimensional' multiply three_d.npy B.npy -o C.npy
npy tall.npy '<f4' '(4611686018427387904, 0)' ''
npy flat.npy '<f4' '(0, 4611686018427387904)' ''
bad 'product too large' 'its disk has' multiply tall.npy flat.npy -o C.npy
bad 'inner sizes' 'the inner sizes 2 and 3 differ' multiply A.npy A.npy -o C.npy
bad 'unknown kernel' 'fastest' $m --kernel fastest
bad 'unknown precision' 'unknown precision "exact"' $m --precision exact
bad 'malformed kernel' 'tile' $m --kernel tiled:tile=seven
bad 'unknown device' 'no such device' $m --device 'no such device'
bad 'unknown check' 'perhaps' $m --check perhaps
ln -s A.npy link.npy
ln B.npy hard.npy
force='give another name, or --force to replace it'
bad 'output is A' "-o: 'A.npy' is the file of the input 'A.npy': $force" multiply A.npy B.npy -o A.npy
bad 'output is B, spelt otherwise' "-o: './B.npy' is the file of the input 'B.npy': $force" multiply A.npy B.npy -o ./B.npy
bad 'output is C0' "the input 'F.npy': $force" multiply A.npy B.npy --c F.npy --beta 1 -o F.npy
bad 'output is a link to A' "-o: 'link.npy' is the file of the input 'A.npy': $force" multiply A.npy B.npy -o link.npy
bad 'output is a hard link to B' "'hard.npy' is the file of the input 'B.npy': $force" multiply A.npy B.npy -o hard.npy
bad 'image is A' "--image: 'A.npy' is the file of the input 'A.npy': $force" $m --image A.npy
bad 'error image is B' "--error-image: 'B.npy' is the file of the input 'B.npy': $force" $m --error-image B.npy
bad 'two images in one file' 'two of -o, --image and --error-image name the same file' $m --image E.png --error-image E.png
bad 'an image of a streamed product' '--error-image needs the whole matrices' $m --error-image E.png --memory-limit 1M
bad 'streamed output is A' "-o: 'A.npy' is the file of the input 'A.npy': $force" multiply A.npy B.npy -o A.npy --memory-limit 1M
bad 'transpose of itself' "-o: 'A.npy' is the file of the input 'A.npy': $force" transpose A.npy -o A.npy
bad 'missing output folder' "there is no folder 'missing'" multiply A.npy B.npy -o missing/C.npy
bad 'missing image folder' "there is no folder 'missing'" $m --image missing/C.png
bad 'missing error-image folder' "there is no folder 'missing'" $m --error-image missing/E.png
bad 'output is a folder' 'it is a folder' multiply A.npy B.npy -o .
bad 'one file for two outputs' 'the same file' $m --image ./C.npy
bad 'a picture of nothing' 'no elements to draw' multiply none_by_2.npy B.npy -o C.npy --image C.png
[ -c /dev/full ] && bad 'full disk' 'the disk is full' multiply A.npy B.npy -o /dev/full
[ -c /dev/full ] && bad 'full disk for the image' 'the disk is full' $m --image /dev/full
npy large.npy '<f4' '(30, 30)' ''
head -c 3600 /dev/zero >>large.npy
(
  ulimit -f 2
  bad 'a limit on files' "cannot write 'T.npy': File too large" transpose large.npy -o T.npy
  GLGEMM_PROGRAM_CACHE=$work/limited good 'a limit on the program cache' '(3, 3)' $product multiply A.npy B.npy
  [ -d limited ] && [ -z "$(ls limited)" ] || fail "a limit on the program cache: there is $(ls limited)"
  exit $failures
) || failures=$((failures + 1))
if [ "$(id -u)" -ne 0 ]; then
  mkdir closed && chmod 500 closed
  bad 'closed folder' 'Permission denied' multiply A.npy B.npy -o closed/C.npy
  cp A.npy unreadable.npy && chmod 0 unreadable.npy
  bad 'unreadable' 'Permission denied' multiply unreadable.npy B.npy -o C.npy
  chmod 600 unreadable.npy
fi
bad 'no files' 'A' multiply
bad 'no output' 'output' multiply A.npy B.npy
bad 'too many files' 'extra.npy' multiply A.npy B.npy extra.npy -o C.npy
bad 'transpose of a missing file' 'No such file' transpose missing.npy -o T.npy
bad 'transpose of text' 'something else' transpose text.npy -o T.npy
bad 'transpose into a missing folder' "there is no folder 'missing'" transpose A.npy -o missing/T.npy

for arguments in --help --version 'multiply --help' 'transpose --help'; do
  "$glgemm" $arguments >stdout 2>stderr || fail "$arguments: status $?"
  [ -s stdout ] && [ ! -s stderr ] || fail "$arguments: says nothing, or on the wrong stream"
done
if [ -c /dev/full ]; then
  "$glgemm" transpose A.npy -o T.npy >/dev/full 2>stderr
  [ $? -eq 2 ] && grep -q 'standard output' stderr || fail "a full standard output is not told: $(cat stderr)"
fi

finish
