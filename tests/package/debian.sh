#!/bin/bash
# The long tier: the packages on a bare system. They are built, installed by apt-get into a Debian 12 or Ubuntu 24.04 that has nothing but
# its essential packages, tried by the packages' own tests (tools/packaging/debian/tests), and removed, which leaves that system as it
# was. They are built from this clone's last commit in another bare system. Needs root and debootstrap.
# Usage: [SUITE=noble] [MIRROR=URL] debian.sh WORK [DEBS]
#   WORK: a folder for all of this; DEBS: a folder of packages that are built already; SUITE: bookworm (the default) or noble
. "$(dirname "$0")/../../tools/usage.sh"
set -euo pipefail
root=$(realpath "$(dirname "$0")/../..")
[ $# -ge 1 ] || bad 'in which folder? (--help explains)'
mkdir -p "$1"
work=$(realpath "$1") debs=${2:-} suite=${SUITE:-bookworm}
for program in debootstrap git; do
  command -v $program >/dev/null || { echo "debian.sh: there is no $program" >&2; exit 2; }
done

# The archive is the one that this system's apt takes packages of Debian from, or Ubuntu's beside it.
archive=${MIRROR:-$(apt-get indextargets --format '$(RELEASE) $(COMPONENT) $(IDENTIFIER) $(REPO_URI)' |
  awk '$2 == "main" && $3 == "Packages" && $1 !~ /-/ { print $4; exit }')}
case $suite in
  bookworm) components=main script=sid ;;
  noble) components=main,universe script=gutsy archive=${MIRROR:-${archive%/debian*}/ubuntu} ;; # gutsy: Debian 12 does not know noble
  *) echo "debian.sh: SUITE is '$suite' and must be bookworm or noble" >&2 && exit 2 ;;
esac
mounted=()
finish() { for folder in "${mounted[@]}"; do umount "$folder"; done; }
trap finish EXIT
bare_system() { # bare_system FOLDER
  [ -e "$1/bin/sh" ] ||
    debootstrap --variant=minbase --components=$components "$suite" "$1" "$archive" /usr/share/debootstrap/scripts/$script
  local folder
  for folder in proc dev; do
    mount --bind /$folder "$1/$folder"
    mounted+=("$1/$folder")
  done
  in_system "$1" apt-get -q update
}
in_system() { # in_system FOLDER COMMAND...
  local folder=$1
  shift
  chroot "$folder" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 "$@"
}

build=$work/$suite.build
bare_system "$build"
in_system "$build" apt-get -q -y install --no-install-recommends dpkg-dev lintian
if [ -z "$debs" ]; then
  rm -rf "$build/glgemm" "$build/debs"
  git clone -q "$root" "$build/glgemm"
  in_system "$build" /glgemm/tools/package-deb /debs
elif [ ! "$debs" -ef "$build/debs" ]; then
  rm -rf "$build/debs"
  cp -r "$debs" "$build/debs"
fi
debs=$build/debs
in_system "$build" sh -c 'lintian --fail-on error,warning --display-level ">=warning" /debs/*.changes'

system=$work/$suite
bare_system "$system"
inside() { in_system "$system" "$@"; }
state() { # packages; alternatives; files, but for caches, logs, copies of lists of groups, and what packages keep of themselves
  inside dpkg-query -W
  inside find /etc/alternatives /var/lib/dpkg/alternatives -printf '%p %l\n' | sort
  inside find /usr /etc /opt ! -name '*.pyc' ! -name __pycache__ ! -path '/etc/ld.so.cache' ! -path '/etc/*shadow-' -print | sort
}

# What the tests need beside ours. OpenBLAS is there before: apt-get would keep what NumPy, too, can use.
inside apt-get -q -y install --no-install-recommends g++ pkg-config python3-numpy libopenblas0 libegl-mesa0 libgl1-mesa-dri
state >"$work/before"
rm -rf "$system/glgemm"
mkdir "$system/glgemm"
cp "$debs"/*.deb "$system/glgemm"
cp -r "$root/tools/packaging/debian/tests" "$system/glgemm"
inside sh -c 'apt-get -q -y install --no-install-recommends /glgemm/*.deb'
failed=0
for test in library tool python blas; do
  echo "== $test"
  inside "/glgemm/tests/$test" || { failed=1 && echo "FAILED: $test"; }
done
# Without these options apt-get keeps what it installed where another package merely suggests it.
inside sh -c 'apt-get -q -y -o APT::AutoRemove::RecommendsImportant=false -o APT::AutoRemove::SuggestsImportant=false \
  purge --auto-remove $(cd /glgemm && ls *.deb | cut -d_ -f1)'
state >"$work/after"
diff "$work/before" "$work/after" || { failed=1 && echo "FAILED: removal has left that system other than it was (< before, > after)"; }
[ $failed = 0 ] && echo "all passed"
exit $failed
