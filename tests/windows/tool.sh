#!/bin/bash
# The tool for Windows from outside, under Wine: products, names that are not ASCII, long paths, files that others hold open, and a
# tuner whose candidates hang and crash; Ctrl-C.
# Usage: tool.sh GLGEMM.EXE   (with a display, mingw-w64, and WINEPREFIX as it shall be)
. "$(dirname "$0")/../support/cli.sh"
export LC_ALL=C.UTF-8
exe=$glgemm
holder=
trap 'kill $holder 2>/dev/null; rm -rf "$work"' EXIT
glgemm() { wine "$exe" "$@"; }
# glgemm_with FOLDER ARGUMENTS...: with this LOCALAPPDATA, or none, and with the tool's own places. Wine sets the variable for what
# it starts, so cmd sets it anew.
glgemm_with() { wine cmd /c "set LOCALAPPDATA=$1&& set GLGEMM_TUNING=&& set GLGEMM_PROGRAM_CACHE=&& Z:${exe//\//\\} ${*:2}"; }
bytes() { elements "$1" x1 | tr -d ' '; }

# {{1, 2}, {3, 4}} squared is {{7, 10}, {15, 22}}.
npy A.npy '<f4' '(2, 2)' '\0\0\200\077\0\0\0\100\0\0\100\100\0\0\200\100'
square=0000e04000002041000070410000b041
glgemm multiply A.npy A.npy -o C.npy --check full >stdout 2>stderr || fail "multiply: status $?: $(cat stderr)"
[ "$(bytes C.npy)" = $square ] || fail "multiply: $(bytes C.npy)"
grep -q $'\r' stdout && fail 'lines end with CR'
glgemm multiply A.npy A.npy -o - <A.npy >piped.npy 2>stderr || fail "to a pipe: status $?: $(cat stderr)"
[ "$(bytes piped.npy)" = $square ] || fail "to a pipe: $(bytes piped.npy)"
glgemm multiply - A.npy -o C.npy <A.npy >stdout 2>stderr && [ "$(bytes C.npy)" = $square ] || fail "from a pipe: $(cat stderr)"
glgemm multiply A.npy A.npy -o C.npy --memory-limit 1M >stdout 2>stderr && [ "$(bytes C.npy)" = $square ] || fail "streamed: $(cat stderr)"
glgemm multiply A.npy A.npy -o C.npy >stdout 2>stderr && [ "$(bytes C.npy)" = $square ] || fail "replacing: $(cat stderr)"

# Names that are not ASCII, in arguments, in messages, and in a variable; and a path of over 260 characters.
cp A.npy 'Матрица ü 行列.npy'
glgemm multiply 'Матрица ü 行列.npy' A.npy -o 'Ergebnis ß 積.npy' >stdout 2>stderr || fail "names: status $?: $(cat stderr)"
[ -e 'Ergebnis ß 積.npy' ] && [ "$(bytes 'Ergebnis ß 積.npy')" = $square ] || fail "names: there is $(ls)"
grep -q 'Ergebnis ß 積.npy' stdout || fail "names: it says $(cat stdout)"
glgemm multiply 'fehlt ü.npy' A.npy -o C.npy >stdout 2>stderr
[ $? -eq 2 ] && grep -qF "cannot read 'fehlt ü.npy': No such file or directory" stderr || fail "a missing name: $(cat stderr)"
mkdir 'Programme ü'
GLGEMM_PROGRAM_CACHE='Programme ü' glgemm inspect --shape 2,2,2 >stdout 2>stderr || fail "a cache's name: $(cat stderr)"
mkdir 'Bilder ß'
glgemm multiply A.npy A.npy -o C.npy --image 'Bilder ß/C.png' >stdout 2>stderr && [ -s 'Bilder ß/C.png' ] ||
  fail "a folder of images: $(cat stderr)"
long=$(printf 'folder-%093d/%0100d/%0100d' 0 0 0)
mkdir -p "$long"
cp A.npy "$long/A.npy"
glgemm multiply "$long/A.npy" A.npy -o "$long/C.npy" >stdout 2>stderr || fail "a long path: status $?: $(cat stderr)"
[ -e "$long/C.npy" ] && [ "$(bytes "$long/C.npy")" = $square ] || fail 'a long path: there is no product'

# A share: \\glgemm\share is a folder of the prefix. A path that is taken for one of the current drive's would be there.
share='\\glgemm\share'
mkdir -p "$WINEPREFIX/dosdevices/unc/glgemm/share" "$WINEPREFIX/drive_c/glgemm/share/cache"
(cd "$WINEPREFIX/drive_c" && cp "$work/A.npy" . && on_share=$WINEPREFIX/dosdevices/unc/glgemm/share
  glgemm multiply A.npy A.npy -o "$share\\C.npy" >stdout 2>stderr && [ "$(bytes "$on_share/C.npy")" = $square ] ||
    fail "to a share: $(cat stderr)"
  glgemm multiply A.npy "\\\\?\\C:\\A.npy" -o "\\\\?\\UNC\\glgemm\\share\\D.npy" --memory-limit 1M >stdout 2>stderr &&
    [ "$(bytes "$on_share/D.npy")" = $square ] || fail "streamed to a share: $(cat stderr)"
  glgemm multiply "$share\\C.npy" "$share\\D.npy" -o "$share\\E.csv" --image "$share\\E.png" >stdout 2>stderr &&
    [ -s "$on_share/E.csv" ] && [ -s "$on_share/E.png" ] || fail "from a share: $(cat stderr)"
  glgemm_with "$share\\cache" tune --shape 2,3,4 --kernel naive >stdout 2>stderr &&
    [ -s "$on_share/cache/glgemm/tuning.json" ] || fail "a table on a share: $(cat stderr)"
  glgemm_with "$share\\cache" bench --size 8 --repeats 1 >stdout 2>stderr &&
    ls "$on_share/cache/glgemm/programs" | grep -q '\.program$' || fail "a program cache on a share: $(cat stderr)"
  [ -z "$(ls glgemm/share/cache)" ] && [ "$(ls glgemm/share)" = cache ] ||
    fail "on the drive is what belongs on a share: $(ls -R glgemm)"
  exit $failures) || failures=$((failures + 1))

# Devices, a drive's current folder, ends of names that do not count, and lists as Excel writes them.
glgemm multiply A.npy A.npy -o NUL >stdout 2>stderr || fail "NUL: $(cat stderr)"
glgemm multiply A.npy A.npy -o Z:Z.npy >stdout 2>stderr && [ "$(bytes Z.npy)" = $square ] ||
  fail "a drive's current folder: $(cat stderr)"
glgemm multiply A.npy A.npy -o 'Q.csv ' >stdout 2>stderr && [ "$(tr -d '\r' <Q.csv | head -n 1)" = 7,10 ] ||
  fail "a blank at the end: $(cat stderr; head -c 100 Q.csv)"
glgemm multiply A.npy A.npy -o Q.txt. >stdout 2>stderr
[ $? -eq 2 ] && [ ! -e Q.txt ] || fail "a point at the end: $(cat stderr)"
printf '\357\273\277m,n,k,trans_a,trans_b\r\n2,3,4,N,N\r\n' >shapes.csv
glgemm bench --shapes shapes.csv --repeats 1 >stdout 2>stderr || fail "a mark of UTF-8: $(cat stderr)"
glgemm_with '' tune --shape 2,3,4 --kernel naive >stdout 2>stderr
[ $? -eq 2 ] && grep -q LOCALAPPDATA stderr || fail "no place for a table: $(cat stderr)"

# A file that another program holds open is not replaced, and not harmed.
cp A.npy held.npy
x86_64-w64-mingw32-gcc-posix "$tests/windows/hold.c" -o hold.exe || exit 2
mkfifo hold
wine hold.exe held.npy <hold >holds &
holder=$!
exec 3>hold
for ((i = 0; i < 300; ++i)); do
  [ ! -s holds ] || break
  sleep 0.1
done
grep -q held holds || fail "no program can hold a file: $(cat holds)"
glgemm multiply A.npy A.npy -o held.npy >stdout 2>stderr
[ $? -eq 2 ] && grep -qF "cannot write 'held.npy': another program has it open" stderr || fail "writing a held file: $(cat stderr)"
glgemm multiply held.npy A.npy -o C.npy >stdout 2>stderr
[ $? -eq 2 ] && grep -qF "cannot read 'held.npy': another program has it open" stderr || fail "reading a held file: $(cat stderr)"
cmp -s A.npy held.npy || fail 'a held file has changed'
exec 3>&-
wait $holder
holder=
glgemm multiply A.npy A.npy -o held.npy >stdout 2>stderr && [ "$(bytes held.npy)" = $square ] || fail "it is free again: $(cat stderr)"
[ "$(find . -name '.glgemm*' | wc -l)" -eq 0 ] || fail "temporary files are left: $(find . -name '.glgemm*')"

# Ctrl-C: the temporary file of an output goes; what is done of a streamed product stays, and is gone on with.
x86_64-w64-mingw32-gcc-posix "$tests/windows/interrupt.c" -o interrupt.exe || exit 2
npy large.npy '<f4' '(600, 600)' ''
head -c $((600 * 600 * 4)) /dev/zero >>large.npy
interrupt() { # interrupt FILE ARGUMENTS...
  timeout 120 wine interrupt.exe "$1" "$exe" multiply large.npy large.npy -o C.npy --type f64 --kernel naive "${@:2}" >stdout 2>stderr
  grep -q 'status 0xc000013a' stdout || fail "Ctrl-C $*: $(cat stdout stderr)"
  [ ! -e C.npy ] || fail "Ctrl-C $*: there is a product"
}
rm -f C.npy
interrupt '.glgemm*'
[ "$(find . -name '*glgemm-*' | wc -l)" -eq 0 ] || fail "Ctrl-C: temporary files are left: $(find . -name '*glgemm-*')"
interrupt +C.npy.glgemm-journal --memory-limit 400K
grep -q 'interrupted; what is done is kept' stderr || fail "Ctrl-C: it says $(cat stderr)"
[ -s C.npy.glgemm-part ] || fail "Ctrl-C: nothing is kept"
glgemm multiply large.npy large.npy -o C.npy --type f64 --kernel naive --memory-limit 400K --resume >stdout 2>stderr || fail "--resume: $(cat stderr)"
[ "$(find . -name '*glgemm-*' | wc -l)" -eq 0 ] || fail "--resume: temporary files are left: $(find . -name '*glgemm-*')"

# bench, inspect, devices; and bad input.
glgemm bench --size 33 --repeats 1 >stdout 2>stderr || fail "bench: status $?: $(cat stderr)"
glgemm inspect --shape 64,64,64 --json >stdout 2>stderr || fail "inspect: status $?: $(cat stderr)"
glgemm devices >stdout 2>stderr && grep -q wgl stdout || fail "devices: $(cat stdout stderr)"
glgemm multiply A.npy A.npy -o C.npy --type nothing >stdout 2>stderr
[ $? -eq 2 ] && [ "$(wc -l <stderr)" -eq 1 ] || fail "bad input: $(cat stderr)"

# Candidates that hang, crash or are wrong are left out, and the others are tuned.
small="tune --shape 20,12,28 --kernel naive,tiled"
wrong=tiled:tile=8 wrong_too=naive:workgroup_x=8,workgroup_y=8 crash=tiled:tile=16 hang=tiled:tile=32 # the first ones are wrong
GLGEMM_TUNE_INJECT="hang=$hang;crash=$crash;wrong=$wrong;wrong=$wrong_too" glgemm $small --output table.json --time-limit 10 >stdout 2>stderr ||
  fail "tune: status $?: $(cat stderr)"
for line in "hang  $hang, given 20x12x28 f32: no answer within 10 s" \
  "crash  $crash, given 20x12x28 f32: ended by exception 0xc0000005 (access violation)" "wrong  $wrong, given 20x12x28 f32: 19x11x27: "; do
  grep -qF -- "$line" stdout || fail "tune does not say '$line': $(cat stdout)"
done
glgemm tune --check-table table.json >stdout 2>stderr && grep -qF '1 valid entry' stdout || fail "the table: $(cat stdout stderr)"
[ -e table.json.journal ] && fail 'the journal is left'

finish
