# A prefix of Wine's and a display (Xvfb) of the script's own. What runs something begins with:  . "$(dirname "$0")/prefix.sh"
# Sets work, a folder that goes in the end. \\glgemm\share is a share: a folder of the prefix.
# Ends with 77 where Wine, Xvfb or mingw-w64 is missing.
for program in x86_64-w64-mingw32-g++-posix wine xvfb-run; do
  command -v $program >/dev/null && continue
  echo "LEFT OUT: there is no $program (g++-mingw-w64-x86-64-posix, wine, wine64, xvfb and xauth)"
  exit 77
done
if [ -z "${DISPLAY:-}" ] || [ -z "${GLGEMM_WINE_DISPLAY:-}" ]; then
  GLGEMM_WINE_DISPLAY=1 exec xvfb-run -a "$0" "$@"
fi
work=$(mktemp -d)
export WINEPREFIX=$work/wine WINEARCH=win64 WINEDEBUG=-all WINEDLLOVERRIDES=mscoree,mshtml,winedbg.exe=
export GLGEMM_PROGRAM_CACHE= GLGEMM_TUNING=
trap 'wineserver -k 2>/dev/null; rm -rf "$work"' EXIT
wine wineboot >/dev/null 2>&1
mkdir -p "$WINEPREFIX/dosdevices/unc/glgemm/share"
export GLGEMM_TEST_SHARE='\\glgemm\share'
