# What the scripts */cli*.sh have in common: the tool as $glgemm, an empty folder to work in as $work, and how failures are counted.
# Each begins with:  . "$(dirname "$0")/../support/cli.sh"
set -u
export LC_ALL=C
if [ $# -ne 1 ] || [ ! -x "$1" ]; then
  echo "usage: $0 GLGEMM" >&2
  exit 2
fi
glgemm=$(realpath "$1")
tests=$(realpath "$(dirname "$0")/..")
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 2
export XDG_RUNTIME_DIR=$work  # without it some drivers write to stderr
failures=0

fail() {
  echo "FAILED: $*"
  failures=$((failures + 1))
}

# Ends the script as skipped, or under CI as failed, where there is no device.
need_device() {
  "$glgemm" devices >devices 2>&1 && return
  cat devices
  [ -n "${CI:-}" ] && exit 1
  exit 77
}

# Whether script(1) can run a command on a pseudo-terminal. It cannot where a system has none, as in a chroot without /dev/pts; what needs
# one is then left out, and that is said.
have_terminals() {
  command -v script >/dev/null && script -qec '[ -t 1 ] && echo works' /dev/null </dev/null 2>/dev/null | grep -q '^works' && return
  echo "LEFT OUT: $1, since script(1) is not here or has no pseudo-terminal"
  return 1
}

# npy_header TYPE SHAPE FORTRAN writes what an .npy file begins with.
npy_header() {
  local header="{'descr': '$1', 'fortran_order': $3, 'shape': $2, }"
  printf '\223NUMPY\001\000'
  printf "\\$(printf %03o $((${#header} % 256)))\\$(printf %03o $((${#header} / 256)))"
  printf '%s' "$header"
}
