#!/bin/bash
# A glgemm that was built without distributed products refuses them with what it needs. Usage: left_out.sh GLGEMM
. "$(dirname "$0")/../support/cli.sh"
"$glgemm" multiply A.npy B.npy -o C.npy --distributed >stdout 2>stderr
status=$?
[ $status -eq 2 ] && [ "$(wc -l <stderr)" -eq 1 ] && grep -q 'built without it.*libstarpu-dev' stderr || fail "status $status: $(cat stderr)"
[ $failures -gt 0 ] && exit 1
echo "LEFT OUT: distributed products, since MPI or StarPU is not here; the tool says so"
[ -n "${CI:-}" ] && exit 1
exit 77
