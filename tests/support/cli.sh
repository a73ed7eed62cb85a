# What the scripts */cli*.sh have in common: the tool as $glgemm, an empty folder to work in as $work, and how failures are counted.
# Each begins with:  . "$(dirname "$0")/../support/cli.sh"
usage=$(dirname "${BASH_SOURCE[0]}")/../../tools/usage.sh
[ ! -e "$usage" ] || . "$usage" # a bundle is without it
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

# npy_header TYPE SHAPE [FORTRAN] writes what an .npy file begins with; npy FILE TYPE SHAPE DATA [FORTRAN] all of one, where DATA has
# printf's escapes.
npy_header() {
  local header="{'descr': '$1', 'fortran_order': ${3:-False}, 'shape': $2, }"
  printf '\223NUMPY\001\000'
  printf "\\$(printf %03o $((${#header} % 256)))\\$(printf %03o $((${#header} / 256)))"
  printf '%s' "$header"
}
npy() {
  {
    npy_header "$2" "$3" ${5:-}
    printf "$4"
  } >"$1"
}
# What an .npy file says of itself, and its elements as od shows them in the format $2.
descr() { head -c 128 "$1" | tr -d '\0' | grep -a -o "'descr': '[^']*'" | cut -d"'" -f4; }
shape() { head -c 128 "$1" | tr -d '\0' | grep -a -o "([0-9, ]*)"; }
elements() { od -An -v -t"$2" -w65536 -j$((10 + $(od -An -tu2 -j8 -N2 "$1"))) "$1" | tr -s ' ' | sed 's/^ //; s/ $//'; }

# bad NAME EXPECTED-PART ARGUMENTS...: "${tool[@]}" with these arguments ends with status 2, and with one line on stderr, which begins with
# the tool's name and has that part, besides notes. Nothing is on stdout, and no file was made or changed but for
# compiled programs. exact=-x: the part is all of the line; says: what begins it, in place of the tool's name.
tool=("$glgemm")
bad() {
  local name=$1 part=$2 before after status begins=${tool[*]}
  shift 2
  before=$(find . -type f ! -name std\* ! -path './programs/*' -exec cksum {} + 2>/dev/null | sort)
  "${tool[@]}" "$@" >stdout 2>stderr </dev/null
  status=$?
  after=$(find . -type f ! -name std\* ! -path './programs/*' -exec cksum {} + 2>/dev/null | sort)
  [ $status -eq 2 ] || fail "$name: status $status instead of 2: $(cat stdout stderr)"
  [ "$(grep -vc ' note: ' stderr)" -eq 1 ] && grep "^${says:-${begins##*/}}" stderr | grep -qF ${exact-} -- "${exact:+${says-}}$part" ||
    fail "$name: not one line with '$part': $(cat stderr)"
  [ ! -s stdout ] || fail "$name: something on the standard output: $(cat stdout)"
  [ "$before" = "$after" ] || fail "$name: files have changed: $(diff <(echo "$before") <(echo "$after"))"
}

# verdict NAME STATUS EXPECTED-PART ARGUMENTS...: of `glgemm verify`, the status, and the part in what is printed.
verdict() {
  local name=$1 want=$2 part=$3 status
  shift 3
  "$glgemm" verify "$@" >stdout 2>stderr </dev/null
  status=$?
  [ $status -eq "$want" ] || fail "$name: status $status instead of $want: $(cat stdout stderr)"
  grep -qF -- "$part" stdout || fail "$name: '$part' is not in: $(cat stdout stderr)"
  grep -v 'note: ' stderr >messages && fail "$name: a message: $(cat messages)"
  return 0
}

# Ends the script by its result.
finish() {
  [ $failures -gt 0 ] || echo 'all passed'
  exit $((failures > 0))
}
