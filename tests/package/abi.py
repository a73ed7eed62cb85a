#!/usr/bin/env python3
"""Compares the names that the shared libraries export with those that the packages promise.

  abi.py FOLDER [--write]      FOLDER has libglgemm.so and the others; --write writes the lists anew. That is for a Release build:
                               without optimisation inline functions of templates are exported too

The lists are the symbols files of tools/packaging/debian. A name that is gone breaks programs that were linked with an older library:
they no longer start. Within a minor version that may not be, see docs/versions.md. Ends with 1 for such names. A new name breaks
nothing and is told alone; it is written down before a release, so that packages of programs that use it ask for a library that has it.
What names don't show, such as members of a struct that move, tests/package/abi_since.sh shows.
"""
import pathlib
import re
import subprocess
import sys

root = pathlib.Path(__file__).resolve().parents[2]
folder, write = pathlib.Path(sys.argv[1]), "--write" in sys.argv
version = re.search(r"project\(glgemm VERSION (\S+)", (root / "CMakeLists.txt").read_text())[1]
soversion = version.rpartition(".")[0]


def run(*command, text=None):
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout


different = False
for library in ("glgemm", "glgemm_headless", "glgemm_verify", "glgemm_weights", "glgemm_distributed"):
    file = folder / f"lib{library}.so"
    if not file.exists() and library == "glgemm_distributed":
        print("libglgemm_distributed.so is not there, and is left out")
        continue
    soname = re.search(r"SONAME\s+(\S+)", run("objdump", "-p", str(file)))[1]
    package = f"lib{library}{soversion}".replace("_", "-")
    path = root / "tools/packaging/debian" / f"{package}.symbols"
    exported = {line.split()[-1] for line in run("nm", "-D", "--defined-only", str(file)).splitlines()}
    promised = {}
    if path.exists():
        promised = dict(re.findall(r"^ (\S+)@Base (\S+)$", path.read_text(), re.M))
    if write:
        developer = "libglgemm-distributed-dev" if library.endswith("distributed") else "libglgemm-dev"
        lines = [f"{soname} {package} #MINVER#", f"* Build-Depends-Package: {developer}"]
        lines += [f" {name}@Base {promised.get(name, version)}" for name in sorted(exported)]
        path.write_text("\n".join(lines) + "\n")
        continue
    if soname != f"lib{library}.so.{soversion}":
        different = True
        print(f"FAILED: the soname of {file.name} is {soname} and not lib{library}.so.{soversion}")
    for begin, end, names in (
        ("FAILED", "is gone: programs that use it no longer start", set(promised) - exported),
        ("new", "is not in the list yet", exported - set(promised)),
    ):
        different = different or begin == "FAILED" and bool(names)
        for name in run("c++filt", text="\n".join(sorted(names))).splitlines() if names else ():
            print(f"{begin}: {file.name}: {name} {end}")
if different:
    print(f"'tests/package/abi.py {folder} --write' writes the lists anew; docs/versions.md says what a version may change")
sys.exit(different)
