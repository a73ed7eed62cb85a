#!/bin/bash
# Each script that people start tells its help, and ends with 2 where it has no such option; it builds and installs nothing for either.  Usage: help.sh [ROOT]
. "$(dirname "$0")/../../tools/usage.sh"
cd "${1:-$(dirname "$0")/../..}" || exit 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for program in cmake ninja make ctest apt-get sudo dpkg-buildpackage xvfb-run; do
  printf '#!/bin/sh\necho "$0 $*" >>%s/started\nexit 1\n' "$work" >"$work/$program"
done
chmod +x "$work"/*
failed=0 count=0
fail() { failed=1 && echo "FAILED: $*"; }
# try STATUS SCRIPT OPTION: ends with the status, and has started none of these programs.
try() {
  local status=0
  PATH=$work:$PATH timeout 60 "$2" "$3" >"$work/out" 2>"$work/err" </dev/null || status=$?
  [ $status = "$1" ] || fail "$2 $3: status $status: $(cat "$work/out" "$work/err")"
  [ ! -e "$work/started" ] || fail "$2 $3 has started $(cat "$work/started")"
  rm -f "$work/started"
}
for script in $(find tools tests .ci -type f -perm -u+x ! -path '*/debian/*' | sort); do
  count=$((count + 1))
  try 0 "$script" --help
  [ "$(wc -w <"$work/out")" -gt 8 ] || fail "$script --help says: $(cat "$work/out")"
  grep -q "${script##*/} .*\(OPTION\|COMMAND\)\.\.\." "$work/out" && continue # options may be another program's
  try 2 "$script" --no-such-option
  [ -s "$work/err" ] || fail "$script --no-such-option says nothing"
done
[ $count -gt 30 ] || fail "only $count scripts were found"
exit $failed
