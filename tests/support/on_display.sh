#!/bin/bash
# Runs a test that opens windows, on a display of its own (Xvfb), and leaves the test's status.
# Usage: on_display.sh [COMMAND...]   (no command: the build has no GLFW)
# Where GLFW or xvfb-run is missing: 77, a skip, or 1 if the variable CI is set.
. "$(dirname "$0")/../../tools/usage.sh"
if [ $# -eq 0 ]; then
  missing='GLFW (libglfw3-dev) was not there when the build was configured'
elif ! command -v xvfb-run >/dev/null; then
  missing='xvfb-run (xvfb, xauth) is not here'
else
  exec xvfb-run -a "$@"
fi
if [ -n "${CI:-}" ]; then
  echo "**** FAILED: no test with a window can run: $missing" >&2
  exit 1
fi
echo "**** SKIPPED: no test with a window can run: $missing" >&2
exit 77
