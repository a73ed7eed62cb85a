#!/usr/bin/env bash
# The long tier: builds for arm64 by Debian's cross compiler, and runs the tests without OpenGL under qemu.
#   tests/package/arm64.sh [OPTION...]    options of glgemm_tests; needs g++-aarch64-linux-gnu and qemu-user-static
. "$(dirname "$0")/../../tools/usage.sh"
set -euo pipefail
cd "$(dirname "$0")/../.."
./tools/setup g++-aarch64-linux-gnu qemu-user-static
cmake --preset arm64
cmake --build --preset arm64 --parallel "$(nproc)"
cd build-arm64/tests
export GLGEMM_TEST_EMULATOR='qemu-aarch64-static -L /usr/aarch64-linux-gnu'
exec $GLGEMM_TEST_EMULATOR ../bin/glgemm_tests "$@"
