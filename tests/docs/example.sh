#!/usr/bin/env bash
# Runs an example of docs/examples: example.sh GLGEMM EXAMPLE. Skipped, or under CI failed, where there is no device.
. "$(dirname "$0")/../../tools/usage.sh"
"$2" && exit 0
"$1" devices >/dev/null 2>&1 && exit 1
echo "SKIPPED: no OpenGL device is here to run on"
[ -n "${CI:-}" ] && exit 1
exit 77
