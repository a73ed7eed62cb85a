#!/bin/bash
# tools/bundle: a bundle of this build, unpacked elsewhere, has all its parts, and its report runs what lies beside it; bad input.
# Usage: bundle.sh GLGEMM   (GLGEMM is the built tool in BUILD/bin)
. "$(dirname "$0")/../support/cli.sh"
bundle=$(realpath "$tests/../tools/bundle")
build=$(dirname "$(dirname "$glgemm")")
export GLGEMM_TUNING= GLGEMM_PROGRAM_CACHE=

"$bundle" --build "$build" --output packed.tar >stdout 2>stderr || fail "tools/bundle: status $?: $(cat stderr)"
[ "$(cat stdout)" = 'wrote packed.tar' ] || fail "it says: $(cat stdout)"
mkdir elsewhere
tar -C elsewhere -xf packed.tar || fail 'it cannot be unpacked'
[ "$(ls -A elsewhere)" = "glgemm-$("$glgemm" --version | cut -d' ' -f2)-linux-$(uname -m)" ] || fail "at its top lie: $(ls -A elsewhere)"
[ "$(ls -A)" = "$(printf 'elsewhere\npacked.tar\nstderr\nstdout')" ] || fail "other files are left: $(ls -A)"
cd elsewhere/glgemm-*/ || exit 1
for file in LICENSE README.md report report_cublas.py bin/glgemm_full tests/data/shapes-deepbench-inference-server.csv; do
  [ -s "$file" ] || fail "the bundle has no $file"
done
[ ! -e /usr/share/doc/libcli11-dev/copyright ] || [ -s licences/libcli11-dev ] || fail "the bundle has no licence of what it holds"
bin/glgemm_tests -tc='inspect shows a plan*' >stdout 2>&1 || fail "the tests: $(cat stdout)"
mv bin/glgemm .
bin/glgemm_tests -tc='inspect shows a plan*' >stdout 2>&1 && fail "the tests have not run the bundle's tool: $(cat stdout)"
mv glgemm bin

# Stand-ins that pass, for all that the checks run.
for file in bin/glgemm_tests bin/glgemm_gl_tests tests/*/cli*.sh; do
  printf '#!/bin/bash\necho "[doctest] test cases: 3 | 3 passed | 0 failed | 0 skipped"' >"$file"
done
GLGEMM_DEVICE='no such device' ./report --quick --no-tune --size 8 --peer none --checks . >stdout 2>stderr </dev/null
status=$?
[ $status -eq 1 ] || fail "a report without a device: status $status: $(cat stdout stderr)"
grep -qE "^squares, N = 8: failed: .*no such device" stdout || fail "it does not miss the device: $(cat stdout)"
count=$((2 + $(ls tests/*/cli*.sh | grep -vc support))) # the OpenGL tests name no files, so that they are run as one
grep -qF "checks: ok: $count of $count files of tests passed" stdout ||
  fail "the checks: $(cat stdout)"
[ -s results/report.json ] || fail 'there is no report'

mkdir "$work/bad" && cd "$work/bad" || exit 1
tool=("$bundle") says='tools/bundle: ' exact=-x
bad 'unknown option' "'--fast' is not an option (--help explains)" --fast
bad 'an architecture without one' '--arch needs an architecture' --arch
bad 'another architecture' "--arch: 'riscv64' is not arm64" --arch riscv64
[ "$(uname -m)" = aarch64 ] || bad 'programs for this machine' \
  "the programs in '$build' are not for aarch64" --arch arm64 --build "$build"
bad 'no folder' '--build needs a folder' --build
bad 'no file' '--output needs a file' --build "$build" --output
bad 'another kind of file' "--output: 'a.zip' ends neither with .tar.gz nor with .tar.xz or .tar" --build "$build" --output a.zip
bad 'a folder that is not there' "--output: there is no folder 'missing'" --build "$build" --output missing/a.tar
mkdir folder.tar
bad 'a folder' "--output: 'folder.tar' is a folder" --build "$build" --output folder.tar
bad 'an empty build' "there is no 'bin/glgemm' in '$work/elsewhere'" --build "$work/elsewhere"

finish
