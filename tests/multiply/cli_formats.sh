#!/bin/bash
# What glgemm multiply and transpose read and write beside .npy files of the types that devices have: pipes, text, archives, other
# integers, arrays of one dimension; and the types that two arrays promote to. Where NumPy is installed, it says what is right too.
# Usage: cli_formats.sh GLGEMM   (GLGEMM is the built tool; it needs a device with OpenGL 4.3 and doubles)
. "$(dirname "$0")/../support/cli.sh"

# is NAME DESCR SHAPE FORMAT ELEMENTS: what lies in C.npy.
is() {
  [ "$(descr C.npy) $(shape C.npy) $(elements C.npy "$4")" = "$2 $3 $5" ] ||
    fail "$1: got $(descr C.npy) $(shape C.npy) $(elements C.npy "$4") instead of $2 $3 $5: $(cat stderr)"
}
run() { "$glgemm" "$@" >stdout 2>stderr || fail "$*: status $?: $(cat stderr)"; }
# good NAME DESCR SHAPE FORMAT ELEMENTS ARGUMENTS...: status 0, and the product is in C.npy.
good() {
  rm -f C.npy
  run multiply "${@:6}" -o C.npy
  is "${@:1:5}"
}
note() { grep -qF -- "note: $1" stderr || fail "no note '$1' in: $(cat stderr)"; }
npy A_i4.npy '<i4' '(2, 2)' '\1\0\0\0\2\0\0\0\3\0\0\0\4\0\0\0' # {{1, 2}, {3, 4}}
npy A_i8.npy '<i8' '(2, 2)' '\1\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0\3\0\0\0\0\0\0\0\4\0\0\0\0\0\0\0'
npy A_u8.npy '>u8' '(2, 2)' '\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0\3\0\0\0\0\0\0\0\4'
npy A_f2.npy '<f2' '(2, 2)' '\0\074\0\100\0\102\0\104'
npy A_f4.npy '<f4' '(2, 2)' '\0\0\200\077\0\0\0\100\0\0\100\100\0\0\200\100'
npy A_f8.npy '<f8' '(2, 2)' '\0\0\0\0\0\0\360\077\0\0\0\0\0\0\0\100\0\0\0\0\0\0\010\100\0\0\0\0\0\0\020\100'
npy A_c8.npy '<c8' '(2, 2)' '\0\0\200\077\0\0\0\0\0\0\0\100\0\0\0\0\0\0\100\100\0\0\0\0\0\0\200\100\0\0\0\0'
npy A_b1.npy '|b1' '(2, 2)' '\1\0\1\1'
npy v4.npy '<f4' '(2,)' '\0\0\200\077\0\0\0\100'
npy w4.npy '<f4' '(3,)' '\0\0\200\077\0\0\0\100\0\0\100\100'
npy B23.npy '<f4' '(2, 3)' '\0\0\200\077\0\0\0\100\0\0\100\100\0\0\200\100\0\0\240\100\0\0\300\100'

# ---- Promotion: A A = {{7, 10}, {15, 22}}. tests/product/promotion.cpp has every pair, and NumPy says below what is right.
good 'f4 f8' '<f8' '(2, 2)' f8 '7 10 15 22' A_f4.npy A_f8.npy
note "'A_f4.npy' holds float32 and 'A_f8.npy' float64: they are multiplied in float64, as by NumPy (--type says another type)"
good 'f8 f4, as f4' '<f4' '(2, 2)' f4 '7 10 15 22' A_f8.npy A_f4.npy --type f32
good 'f2 f4' '<f4' '(2, 2)' f4 '7 10 15 22' A_f2.npy A_f4.npy --check full
grep -q ' in f16/f32 with sums in f32$' stdout && [ ! -s stderr ] || fail "f2 f4: $(cat stdout stderr)"
good 'f2 f4, as f4' '<f4' '(2, 2)' f4 '7 10 15 22' A_f2.npy A_f4.npy --type f32
note "'A_f2.npy' is converted from float16 to float32 in C order"
good 'f2 f4 to f2' '<f2' '(2, 2)' x2 '4700 4900 4b80 4d80' A_f2.npy A_f4.npy --c-type f16 --check full
bad 'f4 f4 to f2' '--c-type: a product in f32 cannot be written as f16' multiply A_f4.npy A_f4.npy -o C.npy --c-type f16
good 'f4 f8, streamed' '<f8' '(2, 2)' f8 '7 10 15 22' A_f4.npy A_f8.npy --memory-limit 1M
note "'A_f4.npy' holds float32 and 'A_f8.npy' float64: they are multiplied in float64"
good 'a vector, streamed' '<f4' '(3,)' f4 '9 12 15' v4.npy B23.npy --memory-limit 1M

# ---- Integers that no device has
good 'i8' '<i8' '(2, 2)' d8 '7 10 15 22' A_i8.npy A_i8.npy
note "'A_i8.npy' holds int64 and 'A_i8.npy' int64: they are multiplied in i32, which is exact for these numbers, and C is int64"
good 'u8, negative' '<i8' '(2, 2)' d8 '-7 -10 -15 -22' A_u8.npy A_u8.npy --alpha -1
good 'b1' '|b1' '(2, 2)' d1 '1 0 1 1' A_b1.npy A_b1.npy
good 'b1, counted' '<i4' '(2, 2)' d4 '1 0 2 1' A_b1.npy A_b1.npy --type i8
good 'i8 with beta' '<i8' '(2, 2)' d8 '13 18 27 40' A_i8.npy A_i8.npy --alpha 2 --beta -1 --c A_i4.npy
npy large.npy '<i8' '(1, 2)' '\0\0\0\0\1\0\0\0\1\0\0\0\0\0\0\0' # 2^32, 1
npy twice.npy '<i8' '(2, 1)' '\2\0\0\0\0\0\0\0\3\0\0\0\0\0\0\0'
good 'i8 beyond 32 bits' '<i8' '(1, 1)' d8 8589934595 large.npy twice.npy
note "'large.npy' holds int64 and 'twice.npy' int64: they are multiplied in f64, which is exact for these numbers, and C is int64"
npy long.npy '<i8' '(1, 1)' '\0\0\0\0\1\0\0\0' # 2^32
bad 'i8 beyond 53 bits' 'could have numbers up to 1.84e+19, and is exact only below 2^53: --type f64 rounds' multiply long.npy long.npy -o C.npy
npy big.npy '<u2' '(1, 1)' '\377\377'
bad 'u2 beyond 32 bits' 'in uint16 could have numbers up to 4.29e+09, and is exact only below 2^31: --type f64' multiply big.npy big.npy -o C.npy
bad 'i8 as i4' "'long.npy' holds the element 4.2949673e+09 in row 0, column 0, which is no value of the type i32" multiply long.npy long.npy -o C.npy --type i32
bad 'i8 times a fraction' "--alpha: '0.5' is no value of the type i32" multiply A_i8.npy A_i8.npy -o C.npy --alpha 0.5
bad 'i8, streamed' '--memory-limit streams the product: a product of int64 can only be made in parts with --type' multiply A_i8.npy A_i8.npy -o C.npy --memory-limit 1M

# ---- One dimension
good 'vector vector' '<f4' '()' f4 5 v4.npy v4.npy --op-a t --op-b t
good 'matrix^T vector' '<f4' '(3,)' f4 '9 12 15' B23.npy v4.npy --op-a t
good 'vector matrix with beta' '<f4' '(3,)' f4 '10 14 18' v4.npy B23.npy --beta 1 --c w4.npy
good 'matrix vector with beta' '<f4' '(2,)' f4 '15 34' B23.npy w4.npy --beta 1 --c v4.npy
npy S.npy '<f4' '(2, 1, 2)' '\0\0\200\077\0\0\0\100\0\0\100\100\0\0\200\100'
good 'batch and vector' '<f4' '(2, 1)' f4 '5 11' S.npy v4.npy --batch 2
bad 'vectors of other sizes' "'v4.npy' is 1x2 and 'w4.npy' is 3x1: the inner sizes 2 and 3 differ" multiply v4.npy w4.npy -o C.npy
bad 'beta with another vector' "'v4.npy' is 1x2, and the product is 1x3" multiply v4.npy B23.npy --beta 1 --c v4.npy -o C.npy

# ---- Pipes
run multiply A_f4.npy B23.npy -o right.npy
cat A_f4.npy | "$glgemm" multiply - B23.npy -o C.npy >stdout 2>stderr
cmp -s C.npy right.npy && grep -q '^C.npy = - \* B23.npy: ' stdout || fail "a pipe as A: $(cat stdout stderr)"
cat B23.npy | "$glgemm" multiply A_f4.npy - -o - 2>stderr | cat >C.npy
cmp -s C.npy right.npy || fail "a pipe as B and as C: $(cat stderr)"
grep -q '^- = A_f4.npy \* -: ' stderr && grep -q 'elements compared' stderr || fail "messages of a pipe: $(cat stderr)"
"$glgemm" multiply A_f4.npy B23.npy -o - >C.npy 2>stderr && cmp -s C.npy right.npy || fail "to a file by the shell: $(cat stderr)"
"$glgemm" multiply A_f4.npy B23.npy -o /dev/stdout 2>stderr | cat >C.npy && cmp -s C.npy right.npy || fail "by its name into a pipe: $(cat stderr)"
"$glgemm" multiply -o C.npy --force -- A_f4.npy B23.npy >stdout 2>stderr && cmp -s C.npy right.npy || fail "behind --: $(cat stderr)"
[ ! -e - ] || fail 'there is a file named -'
"$glgemm" transpose A_f4.npy -o - 2>stderr | "$glgemm" transpose - -o - 2>>stderr >C.npy
is 'transpose there and back' '<f4' '(2, 2)' f4 '1 2 3 4'
grep -q '^-: 2x2$' stderr || fail "transpose to a pipe says $(cat stderr)"
cp A_f4.npy ./-
run multiply ./- B23.npy -o C.npy
cmp -s C.npy right.npy || fail 'a file named -'
rm -f ./-
# An input that changes after it was opened, while the other end of a pipe is waited for.
if [ -e /proc/self/fd ]; then
  cp A_f4.npy changing.npy
  mkfifo in out
  for words in 'multiply changing.npy - -o C.npy' 'verify changing.npy B23.npy -' 'transpose changing.npy -o out'; do
    touch -d '2001-01-01' changing.npy
    rm -f C.npy
    "$glgemm" $words >stdout 2>stderr < <(cat in) &
    process=$!
    until ls -l /proc/$process/fd 2>/dev/null | grep -q changing.npy || ! kill -0 $process 2>/dev/null; do sleep 0.01; done
    touch changing.npy
    cat B23.npy >in
    case $words in *out) cat out >/dev/null ;; esac
    wait $process
    [ $? -eq 2 ] && [ ! -e C.npy ] && grep -q "'changing.npy' was changed while it was read: its time of modification" stderr ||
      fail "an input of ${words%% *} that changes: $(cat stdout stderr)"
  done
  rm -f in out
fi
bad 'two pipes' "'-' is given for two matrices, and the standard input can only be read once" multiply - - -o C.npy
bad 'nothing in the pipe' "'standard input' holds nothing: it is empty" multiply - B23.npy -o C.npy
bad 'a pipe, streamed' "--memory-limit streams the product: '-' is a pipe, and only .npy files can be read and written in parts" multiply A_f4.npy B23.npy -o - --memory-limit 1M
echo hello | "$glgemm" multiply - B23.npy -o C.npy >stdout 2>stderr
[ $? -eq 2 ] && grep -q "'standard input' holds something else than an .npy array" stderr || fail "text in a pipe: $(cat stderr)"
printf 'PK\003\004' | "$glgemm" transpose - -o C.npy >stdout 2>stderr
[ $? -eq 2 ] && grep -q 'the standard input holds a zip file: an .npz archive must be named, not piped' stderr || fail "an archive in a pipe: $(cat stderr)"
cp A_f4.npy S.npy
"$glgemm" transpose S.npy -o - >>S.npy 2>stderr
[ $? -eq 2 ] && cmp -s S.npy A_f4.npy && grep -q "'-' is the file of the input 'S.npy'" stderr || fail "appending to an input: $(cat stderr)"
[ -c /dev/full ] && {
  "$glgemm" multiply A_f4.npy B23.npy -o - >/dev/full 2>stderr
  [ $? -eq 2 ] && grep -q "cannot write 'standard output': the disk is full" stderr || fail "a full standard output: $(cat stderr)"
}
# On a terminal: no matrix in it, none out of it, and a bar while it multiplies.
if have_terminals 'terminals'; then
  script -qec "'$glgemm' multiply A_f4.npy B23.npy -o - 2>stderr" /dev/null </dev/null >stdout
  [ $? -eq 2 ] && grep -q "'-' is the standard output, which is a terminal: redirect it" stderr || fail "a terminal as output: $(cat stdout stderr)"
  script -qec "'$glgemm' transpose - -o C.npy 2>stderr" /dev/null >stdout </dev/null
  [ $? -eq 2 ] && grep -q "'-' is the standard input, which is a terminal: pipe a file" stderr || fail "a terminal as input: $(cat stdout stderr)"
  # The bar comes when a second has passed, and then with each piece: a product of three seconds shows some that are not full. How large
  # that is here is found by trying.
  shown=
  for n in 400 600 900 1350 2000; do
    {
      npy_header '|i1' "($n, $n)"
      head -c $((n * n)) /dev/zero
    } >zeros.npy
    script -qec "'$glgemm' multiply zeros.npy zeros.npy -o C.npy --kernel naive:workgroup_x=1,workgroup_y=1 --type f32" /dev/null </dev/null >stdout
    took=$(sed -nE 's/.*with transfers ([0-9.]+ (ms|s|min)).*/\1/p' stdout)
    case $took in
      '') fail "a product on a terminal: $(cat stdout)" ;;
      *' ms' | [12].*' s' | [12]' s') continue ;;
    esac
    grep -q '\[#*\.\.*\] *[0-9]* %' stdout || fail "a product of $took shows no bar: $(cat stdout)"
    shown=yes
    break
  done
  [ -n "$shown" ] || echo 'LEFT OUT: the bar of a product that takes three seconds, since none does here'
  rm -f zeros.npy
fi

# ---- Text: what it may be is tests/files/formats.cpp's
printf '1,2\n3,4\n' >A.csv
printf '%%%%MatrixMarket matrix coordinate integer symmetric\n2 2 2\n1 1 1\n2 1 -2\n' >S.mtx # {{1, -2}, {-2, 0}}
good 'CSV as f4' '<f4' '(2, 2)' f4 '7 10 15 22' A.csv A_f4.npy --type f32
good 'Matrix Market of integers' '<i8' '(2, 2)' d8 '5 -2 -2 4' S.mtx S.mtx
run multiply A.csv S.mtx -o C.csv
[ "$(cat C.csv)" = $'-3,-2\n-5,-6' ] || fail "CSV out: $(cat C.csv)"
run transpose A.csv -o C.mtx
[ "$(cat C.mtx)" = $'%%MatrixMarket matrix array real general\n2 2\n1\n2\n3\n4' ] || fail "transpose to Matrix Market: $(cat C.mtx)"
run multiply v4.npy B23.npy -o C.csv
[ "$(cat C.csv)" = 9,12,15 ] || fail "a vector as CSV: $(cat C.csv)"
printf 'x,y\n1,2\n3,4\n' >titled.csv
good 'CSV with titles' '<f8' '(2, 2)' f8 '8 12 18 26' titled.csv titled.csv --beta 1 --c titled.csv --header
run transpose titled.csv -o C.csv --header
[ "$(cat C.csv)" = $'1,3\n2,4' ] || fail "transpose of CSV with titles: $(cat C.csv)"
run transpose A.csv -o C.csv --header
[ "$(cat C.csv)" = $'3\n4' ] && note "--header leaves out the first line of 'A.csv', which holds numbers: '1,2'" || fail "transpose without a row: $(cat C.csv)"
printf '0.3333333333333333,2\n' >third.csv
run multiply third.csv S.mtx -o C.csv --digits 3
[ "$(cat C.csv)" = '-3.67,-0.667' ] || fail "three digits: $(cat C.csv)"
run verify third.csv S.mtx C.csv --digits 3
run transpose third.csv -o C.mtx --digits 2
[ "$(tail -n 2 C.mtx)" = $'0.33\n2' ] || fail "two digits: $(cat C.mtx)"
bad 'titles of no text' '--header: none of the inputs is a .csv file' multiply A_f4.npy S.mtx -o T.csv --header
bad 'titles of no text to transpose' '--header: none of the inputs is a .csv file' transpose A_f4.npy -o T.csv --header
bad 'digits of no text' "--digits: 'T.npy' is not text, as .csv and .mtx files are" multiply A.csv A.csv -o T.npy --digits 6
bad 'digits of no text to transpose' "--digits: '-' is not text" transpose A.csv -o - --digits 6
bad 'too many digits' '--digits' multiply A.csv A.csv -o T.csv --digits 18
rm -f C.csv C.mtx
printf '1,2\n3\n' >torn.csv
bad 'torn CSV' "'torn.csv' line 2: 1 number instead of 2 as in the first row" multiply torn.csv A.csv -o C.npy
bad 'CSV, streamed' "'A.csv' is not a .npy file, and only .npy files can be read and written in parts" multiply A.csv A.csv -o C.npy --memory-limit 1M
bad 'CSV out, streamed' "'C.csv' is not a .npy file, and only .npy files can be read and written in parts" multiply A_f4.npy A_f4.npy -o C.csv --memory-limit 1M
bad 'complex CSV' "cannot write 'C.csv': a .csv file has no complex numbers; .npy and .mtx files have" multiply A_c8.npy A_c8.npy -o C.csv
[ ! -e C.csv ] || fail 'complex CSV: there is an output'
bad 'CSV over itself' "-o: 'A.csv' is the file of the input 'A.csv'" multiply A.csv A_f4.npy -o A.csv

# ---- transpose keeps any type
# t NAME FILE DESCR SHAPE FORMAT ELEMENTS
t() {
  local name=$1 file=$2
  run transpose "$file" -o C.npy
  is "$name" "${@:3}"
}
t 'transpose of big-endian u8' A_u8.npy '<u8' '(2, 2)' u8 '1 3 2 4'
t 'transpose of b1' A_b1.npy '|b1' '(2, 2)' d1 '1 1 0 1'
t 'transpose of 2x3' B23.npy '<f4' '(3, 2)' f4 '1 4 2 5 3 6'

# ---- Archives
if "$glgemm" transpose A_f4.npy -o T.npz >stdout 2>stderr; then
  run transpose T.npz -o C.npy
  is 'archive there and back' '<f4' '(2, 2)' f4 '1 2 3 4'
  run multiply A_f4.npy B23.npy -o P.npz:product
  run multiply T.npz:arr_0 P.npz:product -o C.npy --op-a t
  is 'named arrays' '<f4' '(2, 3)' f4 '47 64 81 103 140 177'
  bad 'no such array' "'P.npz' has no array 'x': it has product" multiply P.npz:x B23.npy -o C.npy
  run transpose A_f4.npy -o P.npz:other
  run transpose P.npz:product -o C.npy
  run transpose P.npz:other -o C.npy
  is 'added to an archive' '<f4' '(2, 2)' f4 '1 2 3 4'
  bad 'over its own archive' "-o: 'P.npz:other' is the file of the input 'P.npz'" multiply A_f4.npy P.npz -o P.npz:other
  bad 'no archive' "cannot read 'missing.npz': No such file" multiply missing.npz B23.npy -o C.npy
  cp A.csv text.npz
  bad 'text as archive' "cannot read 'text.npz' as an .npz archive: Not a zip archive" multiply text.npz B23.npy -o C.npy
else
  echo 'LEFT OUT: .npz archives, since glgemm was built without libzip'
  bad 'archives without libzip' "cannot write 'T.npz': this glgemm was built without libzip" transpose A_f4.npy -o T.npz
  bad 'archives without libzip' "cannot read 'T.npz': this glgemm was built without libzip" transpose T.npz -o C.npy
fi

# ---- Against NumPy itself
python=
for candidate in python3 /usr/bin/python3; do
  [ -z "$python" ] && $candidate -c 'import numpy' 2>/dev/null && python=$candidate
done
if [ -n "$python" ]; then
  $python - "$glgemm" >stdout 2>stderr <<'END' || fail "against NumPy: $(cat stdout stderr)"
import itertools, subprocess, sys, os
import numpy as np

wrong = 0
shapes = [((3, 4), (4, 2)), ((4,), (4, 2)), ((3, 4), (4,)), ((4,), (4,))]
types = ['b1', 'i1', 'i2', 'i4', 'i8', 'u1', 'u2', 'u4', 'u8', 'f2', 'f4', 'f8', 'c8', 'c16']
for i, (x, y) in enumerate(itertools.product(types, types)):
    if (i * 7) % 13 > 1 and x != y: continue
    a_shape, b_shape = shapes[i % 4]
    a = (np.arange(np.prod(a_shape)) % 5).reshape(a_shape).astype(x)
    b = (np.arange(np.prod(b_shape)) % 3).reshape(b_shape).astype(y)
    if a.ndim == 2 and i % 3 == 0: a = np.asfortranarray(a)
    if i % 2 == 0: b = b.astype(b.dtype.newbyteorder('>'))
    np.save('x.npy', a), np.save('y.npy', b)
    result = subprocess.run([sys.argv[1], 'multiply', 'x.npy', 'y.npy', '-o', 'z.npy'], capture_output=True, text=True)
    want = np.matmul(a, b)
    got = np.load('z.npy') if result.returncode == 0 else None
    # C of narrow types is wider, so that sums do not wrap or lose digits.
    wider = {'float16': 'float32', 'int8': 'int32', 'uint8': 'uint32', 'int16': 'int32', 'uint16': 'int32'}
    dtype = wider.get(str(want.dtype), str(want.dtype))
    if got is None or str(got.dtype) != dtype or got.shape != want.shape or not (got == want).all():
        print(x, y, a_shape, b_shape, 'got', got, got is not None and got.dtype, 'instead of', want, want.dtype, result.stderr)
        wrong += 1
np.savez('many.npz', first=np.eye(2, dtype='f4'), second=np.full((2, 2), 3, dtype='i8'))
np.savez_compressed('one.npz', np.arange(4.0).reshape(2, 2))
run = lambda *words: subprocess.run([sys.argv[1], *words], capture_output=True, text=True)
archive = run('multiply', 'many.npz:second', 'one.npz', '-o', 'z.npz:z')
if 'without libzip' not in archive.stderr:
    if archive.returncode != 0 or not (np.load('z.npz')['z'] == 3 * np.ones((2, 2)) @ np.arange(4.0).reshape(2, 2)).all():
        print('archives:', archive.stderr)
        wrong += 1
    several = run('transpose', 'many.npz', '-o', 'z.npy')
    if several.returncode != 2 or "'many.npz' has 2 arrays, of which one must be named, as in 'many.npz:first': first, second" not in several.stderr:
        print('several arrays:', several.stderr)
        wrong += 1
rows = np.random.default_rng(1).standard_normal((5, 3))
np.savetxt('t.csv', rows, delimiter=',', header='a comment')
text = run('transpose', 't.csv', '-o', 'u.csv')
if text.returncode != 0 or not (np.loadtxt('u.csv', delimiter=',') == rows.T).all():
    print('text:', text.stderr)
    wrong += 1
sys.exit(wrong > 0)
END
else
  echo 'LEFT OUT: the comparison with NumPy, which is not here (python3-numpy)'
fi

finish
