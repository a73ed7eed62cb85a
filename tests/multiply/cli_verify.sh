#!/bin/bash
# glgemm verify from outside: right products are told from wrong ones by the status, whatever their type; bad input is status 2.
# Usage: cli_verify.sh GLGEMM   (GLGEMM is the built tool; the products that it computes itself need a device with OpenGL 4.3)
. "$(dirname "$0")/../support/cli.sh"

tool=("$glgemm" verify)
csv() {
  printf "$2" >"$1.csv"
}

# {{1,2},{3,4}} squared, right, with one element wrong, and transposed.
csv A '1,2\n3,4\n'
csv right '7,10\n15,22\n'
csv wrong '7,10\n15,23\n'
csv turned '7,15\n10,22\n'
verdict 'right' 0 'right: exact: 4 of 4 elements equal the reference' A.csv A.csv right.csv
grep -q '^right.csv = A.csv \* A.csv: 2x2 = 2x2 \* 2x2 in f64$' stdout || fail "the product is not named: $(cat stdout)"
grep -q 'of the bound that holds for every order of summation, and .* of that for rounding errors that behave like random ones' stdout ||
  fail "the ratios: $(cat stdout)"
verdict 'wrong' 1 'wrong: exact: WRONG: element (1, 1) is 23, expected 22 exactly' A.csv A.csv wrong.csv
verdict 'wrong, by a probe' 1 'WRONG: element (1, 1) is 23, expected 22' A.csv A.csv wrong.csv --check probe
verdict 'transposed' 1 'wrong: ' A.csv A.csv turned.csv
verdict 'ops' 0 'right: ' A.csv A.csv turned.csv --op-a t --op-b t
csv scaled '13,18\n27,40\n'
verdict 'scalars' 0 'right: ' A.csv A.csv scaled.csv --alpha 2 --beta -1 --c A.csv
verdict 'scalars left out' 1 'wrong: ' A.csv A.csv scaled.csv
# Rounding: the product's nearest double, and the next one.
csv third '0.3333333333333333\n'
csv three '0.3\n'
csv nearest '0.09999999999999999\n'
csv next '0.1\n'
verdict 'rounded' 0 'right: bound: 1 of 1 elements compared, the worst error is ' three.csv third.csv nearest.csv
verdict 'the next double' 1 'wrong: bound: WRONG: element (0, 0) is 0.1, expected 0.1 within ' three.csv third.csv next.csv
csv ninth '0.0999999999999\n'
csv nan 'nan\n'
verdict 'not a number' 1 'wrong: ' three.csv third.csv nan.csv
verdict 'as floats' 0 'in f32' three.csv third.csv ninth.csv --type f32

# Text with a line of titles, and a C that was printed with few digits.
csv titled 'x,y\n1,2\n3,4\n'
csv titled_right '"x","y"\n7,10\n15,22\n'
verdict 'titles' 0 'right: exact: 4 of 4 elements equal the reference' titled.csv titled.csv titled_right.csv --header
csv years '1990,1991\n1,2\n3,4\n'
verdict 'titles that are numbers' 0 'right: ' titled.csv years.csv titled_right.csv --header
grep -qxF "glgemm verify: note: --header leaves out the first line of 'years.csv', which holds numbers: '1990,1991'" stderr || fail "no note on years: $(cat stderr)"
bad 'titles' "'titled.csv' line 1: 'x' is not a number; a line of titles begins with '#', or --header leaves it out" titled.csv A.csv right.csv
bad 'titles of no text' '--header: none of the inputs is a .csv file' x.npy y.npy z.npy --header
csv six '0.111111\n'
csv ten '0.1111111111\n'
csv seventh '0.111112\n'
verdict 'six digits' 1 'wrong: bound: WRONG' third.csv third.csv six.csv
grep -q 'note: .* --digits says that there are fewer' stderr || fail "no note on digits: $(cat stderr)"
verdict 'six digits, as said' 0 '; C was printed with 6 digits, and half a unit of the last one is in each bound' third.csv third.csv six.csv --digits 6
verdict 'ten digits, as said' 0 'with 10 digits' third.csv third.csv ten.csv --digits 10 --check probe
verdict 'six digits, and seven are said' 1 'wrong: bound: WRONG: element (0, 0) is 0.111111, expected 0.111111111 within ' third.csv third.csv six.csv --digits 7
verdict 'another sixth digit' 1 'wrong: bound: WRONG: element (0, 0) is 0.111112, ' third.csv third.csv seventh.csv --digits 6
[ ! -s stderr ] || fail "a note although digits are said: $(cat stderr)"
csv near '7.02,10\n15,22\n'
verdict 'few digits of whole numbers' 0 'right: exact: 4 of 4 elements are the reference to their last digit' A.csv A.csv right.csv --digits 2
verdict 'few digits of whole numbers, a wrong one' 1 'element (0, 0) is 7.02, expected 7 within 0.005' A.csv A.csv near.csv --digits 3
bad 'digits of no text' "--digits: 'x.npy' is not text, as .csv and .mtx files are" A.csv A.csv x.npy --digits 6
bad 'no digits' '--digits' A.csv A.csv right.csv --digits 0
bad 'digits of integers' '--digits: products of integers are compared exactly' A.csv A.csv right.csv --digits 6 --type i32
bad 'digits of bits' '--digits: the bits of --precision reproducible are compared exactly' A.csv A.csv right.csv --digits 6 --precision reproducible

# JSON, to the standard output and to a file; the text then goes to the standard error.
for where in '--json -' '--json' '--json=-'; do
  "$glgemm" verify A.csv A.csv wrong.csv $where >stdout 2>stderr
  [ $? -eq 1 ] && grep -q '"right": false,' stdout && grep -q '"row": 1,' stdout && grep -q '"got": 23.0,' stdout &&
    grep -q '"method": "exact",' stdout && [ "$(head -c 1 stdout)" = '{' ] && grep -q '^wrong: ' stderr || fail "$where: $(cat stdout stderr)"
done
verdict 'JSON to a file' 0 'right: ' A.csv A.csv right.csv --json right.json
grep -q '"right": true,' right.json && grep -q '"worst_ratio": 0.0,' right.json || fail "JSON: $(cat right.json)"
if command -v python3 >/dev/null; then
  python3 -c 'import json, sys; json.load(open("right.json"))' || fail 'the JSON is not JSON'
fi

"$glgemm" verify three.csv third.csv next.csv --json >stdout 2>stderr
for field in passed worst_ratio worst_ratio_sqrt median_ratio row column got expected bound summary; do
  grep -q "^    \"$field\": " stdout || fail "no '$field' in the JSON: $(cat stdout)"
done
grep -q '"product"' stdout && fail "a product of no batch: $(cat stdout)"

npy v.npy '<f4' '(2,)' '\0\0\200\077\0\0\0\100'
npy S.npy '<f4' '(2, 1, 2)' '\0\0\200\077\0\0\0\100\0\0\100\100\0\0\200\100'
npy five.npy '<f4' '()' '\0\0\240\100'
npy batch.npy '<f4' '(2, 1, 1)' '\0\0\240\100\0\0\060\101'
npy other.npy '<f4' '(2, 1, 1)' '\0\0\240\100\0\0\100\101'
npy one_five.npy '<f4' '(1, 1)' '\0\0\240\100'
verdict 'vectors' 0 'right: ' v.npy v.npy one_five.npy
verdict 'a batch' 0 'right: 2 of 2 elements of 2 products compared' S.npy v.npy batch.npy --batch 2
verdict 'a wrong batch' 1 'product 1: ' S.npy v.npy other.npy --batch 2 --json batch.json
grep -q '"product": 1,' batch.json || fail "the product of a batch: $(cat batch.json)"
cat v.npy | "$glgemm" verify - v.npy one_five.npy >stdout 2>stderr || fail "a pipe: $(cat stdout stderr)"

# A hundred products of 0.1 and 0.1, with an error of 9 times the unit roundoff: right for sums in any order, and for nothing better.
csv tenths "$(printf '0.1,%.0s' {1..99})0.1\n"
csv close '1.0000006\n'
verdict 'standard' 0 'right: bound: ' tenths.csv tenths.csv close.csv --op-b t --type f32
verdict 'not extended' 1 'wrong: bound: WRONG: ' tenths.csv tenths.csv close.csv --op-b t --type f32 --precision extended
verdict 'not reproducible' 1 'but 1 elements have other bits than --precision reproducible gives, element (0, 0) the first' \
  tenths.csv tenths.csv close.csv --op-b t --type f32 --precision reproducible
csv best '1\n'
verdict 'extended' 0 'right: bound: ' tenths.csv tenths.csv best.csv --op-b t --type f32 --precision extended

# What the tool itself computes is right, and not what it has computed of something else.
if "$glgemm" multiply A.csv A.csv -o C.npy >stdout 2>stderr; then
  verdict 'our own' 0 'right: ' A.csv A.csv C.npy
  verdict 'not our own' 1 'wrong: ' A.csv right.csv C.npy
  "$glgemm" multiply S.npy v.npy --batch 2 --type f16 --c-type f16 -o half.npy >stdout 2>stderr || fail "f16: $(cat stderr)"
  "$glgemm" multiply tenths.csv tenths.csv --op-b t --type f32 --precision reproducible -o same.npy >stdout 2>stderr || fail "reproducible: $(cat stderr)"
  verdict 'reproducible' 0 '; its bits are those of --precision reproducible' tenths.csv tenths.csv same.npy --op-b t --type f32 --precision reproducible
  # Text has no type: it is of its factors', whatever they are.
  for type in '|b1 \1 \0' '|u1 \1 \0' '<i2 \2\0 \0\0' '<u8 \1\0\0\0\0\0\0\0 \3\0\0\0\0\0\0\0' '<i4 \2\0\0\0 \3\0\0\0' '<f2 \125\65 \125\65' \
    '<f4 \253\252\252\76 \253\252\252\76' '<c8 \253\252\252\76\0\0\200\77 \253\252\252\76\0\0\200\77' '<f8 \125\125\125\125\125\125\325\77 \125\125\125\125\125\125\325\77'; do
    read -r descr one two <<<"$type"
    npy t.npy "$descr" '(2, 2)' "$one$one$two$one"
    for ending in csv mtx; do
      [ "$descr $ending" = '<c8 csv' ] && continue
      for digits in '' '--digits 6'; do
        "$glgemm" multiply t.npy t.npy -o text.$ending $digits >stdout 2>stderr || fail "$descr as .$ending: $(cat stderr)"
        case $descr in *[biu]?) digits= ;; esac # which are exact
        other=99
        [ "$descr" = '|b1' ] && other=0 # where 99 is true as well
        verdict "$descr as .$ending $digits" 0 'right: ' t.npy t.npy text.$ending $digits
        sed "\$s/[0-9]\([^0-9]*\)\$/$other\1/" text.$ending >wrong.$ending
        verdict "$descr as .$ending $digits, a wrong one" 1 'wrong: ' t.npy t.npy wrong.$ending $digits
      done
    done
  done
elif [ -n "${CI:-}" ]; then
  fail "multiply: $(cat stderr)"
else
  echo "LEFT OUT: products of the tool itself, since there is no device: $(cat stderr)"
fi

bad 'no files' 'A is required'
bad 'two files' 'C is required' A.csv A.csv
bad 'four files' 'extra' A.csv A.csv right.csv extra
bad 'a missing file' "cannot read 'missing.npy': No such file or directory" A.csv A.csv missing.npy
bad 'two pipes' "'-' is given for two matrices, and the standard input can only be read once" - A.csv -
bad 'inner sizes' "'A.csv' is 2x2 and 'third.csv' is 1x1: the inner sizes 2 and 1 differ" A.csv third.csv right.csv
bad 'C of another size' "'third.csv' is 1x1, and the product is 2x2" A.csv A.csv third.csv
npy double.npy '<f8' '(1, 1)' '\0\0\0\0\0\0\0\0'
bad 'C of another type' "'double.npy' holds float64, and a product of 'v.npy' and 'v.npy' is float32: --type says in which type it was computed" v.npy v.npy double.npy
bad 'no type' 'unknown type "f8"' A.csv A.csv right.csv --type f8
bad 'no op' "--op-a: 'x' is none of n, t and c" A.csv A.csv right.csv --op-a x
bad 'no number' "--alpha: 'two' is not a number" A.csv A.csv right.csv --alpha two
bad 'beta without C0' '--beta is 2, and no --c says which 2x2 matrix' A.csv A.csv right.csv --beta 2
bad 'no batch' "--batch: '0' is not a positive integer" A.csv A.csv right.csv --batch 0
bad 'another batch' "'S.npy' has 2 matrices, and --batch says 3" S.npy v.npy batch.npy --batch 3
bad 'no check' 'maybe' A.csv A.csv right.csv --check maybe
bad 'no precision' 'unknown precision "exact"' A.csv A.csv right.csv --precision exact
bad 'extended doubles' '--precision extended is for floats of 32 bits and fewer, and this is f64' A.csv A.csv right.csv --precision extended
bad 'bits of a sample' '--precision reproducible compares the bits of all elements, and --check probe computes a sample' A.csv A.csv right.csv --precision reproducible --check probe
bad 'no folder for JSON' "there is no folder 'missing'" A.csv A.csv right.csv --json missing/out.json
bad 'JSON over an input' "--json: 'A.csv' is the file of the input 'A.csv': give another name" A.csv A.csv right.csv --json A.csv
bad 'unknown option' '--fast' A.csv A.csv right.csv --fast
"$glgemm" verify --help >stdout 2>stderr && [ -s stdout ] && [ ! -s stderr ] || fail "--help: $(cat stderr)"

finish
