#!/usr/bin/env python3
"""What is promised, as lists of names in interface/: of C++, C, the tool's options, the keys of its JSON, and Python.

  interface.py c++ COMPILER INCLUDE...   names with types and parameters in the headers that promise something; c likewise
  interface.py tool GLGEMM               verbs and options
  interface.py json GLGEMM               keys, of small runs on this device
  interface.py python                    of the module glgemm that this Python finds

Compares with the list, and ends with 1 where it differs: from 1.0 on what is gone or changed breaks users, and needs a new major
version (docs/versions.md). GLGEMM_WRITE_INTERFACE=1 writes the list. GLGEMM_INTERFACE names another folder of lists.
"""
import inspect
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

here = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(here.parent / "support"))
from check_rooms import unpromised


def run(*command, **how):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, **how)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}: status {done.returncode}: {done.stderr[-2000:]}")
    return done.stdout


def own_lines(text, folder):
    """What the preprocessor has made of the headers in a folder, without what they include."""
    kept, is_own = [], False
    for line in text.splitlines():
        if marker := re.match(r'# \d+ "([^"]+)"', line):
            is_own = pathlib.Path(marker[1]).parent == folder
        elif is_own:
            kept.append(line)
    return "\n".join(kept)


def declared(language, compiler, *include):
    folder = pathlib.Path(include[0]) / "glgemm"
    ending = ".hpp" if language == "c++" else ".h"
    # Tables are rows of macros: what they make is in the headers that include them. distributed.hpp is in no list: it needs MPI's headers.
    headers = sorted(path.name for path in folder.glob("*" + ending)
                     if path.name not in unpromised and not path.name.endswith("_table.h") and path.name != "distributed.hpp")
    source = "".join(f"#include <glgemm/{name}>\n" for name in headers)
    standard = ["-std=c++20"] if language == "c++" else ["-std=c99"]
    with tempfile.TemporaryDirectory() as work:
        work = pathlib.Path(work)
        text = run(compiler, "-E", "-x", language, *standard, "-DGLGEMM_STATIC", *(f"-I{each}" for each in include), "-", input=source)
        path = work / ("all" + ending)
        # Without initial values: ctags takes a std::function with one, and "x = y << 20;", for no members.
        path.write_text(re.sub(r"(\w)(?:\{\}| = [^;{}()]*\{[^;{}()]*\}[^;{}()]*);", r"\1;", own_lines(text, folder)))
        name, kinds = ("C++", "cegmnpstufv") if language == "c++" else ("C", "egmpstufv")
        tags = run("ctags", "-f", "-", "--output-format=json", "--sort=no", f"--language-force={name}", f"--kinds-{name}={kinds}",
                   "--fields=+Sazst", path)
    names = set()
    for line in tags.splitlines():
        tag = json.loads(line)
        scope = tag.get("scope", "")
        if tag.get("access") in ("private", "protected") or tag["kind"] == "namespace" or "__anon" in tag["name"]:
            continue
        if "__anon" in scope:
            if tag["kind"] == "enumerator":  # a constant of C
                names.add(f"constant {tag['name']}")
            continue
        if language == "c" and not tag["name"].lower().startswith("glgemm") and not scope:
            continue
        type_name = tag.get("typeref", "").removeprefix("typename:")
        kind = {"prototype": "function"}.get(tag["kind"], tag["kind"])
        name = f"{scope}::{tag['name']}" if scope else tag["name"]
        names.add(" ".join(f"{kind} {name}{tag.get('signature', '')} {type_name}".split()))
    return names


def options(tool):
    names = set()
    for verb in re.findall(r"^  ([a-z]+)  ", run(tool, "--help").split("Verbs:")[1].split("\n\n")[0], re.M):
        names.add(verb)
        for line in run(tool, verb, "--help").splitlines():
            if option := re.match(r"  ((?:-\w, )?--[a-z].*?)(?:  |$)", line):
                names.add(f"{verb} {option[1]}")
    return names


def keys_of(value, path, names):
    if isinstance(value, dict):
        for key, each in value.items():
            names.add(f"{path}.{key}")
            keys_of(each, f"{path}.{key}", names)
    elif isinstance(value, list):
        for each in value:
            keys_of(each, path + "[]", names)


def json_keys(tool):
    names = set()
    devices = json.loads(run(tool, "devices", "--json"))["devices"]
    if not all(device["software"] for device in devices if device["usable"]):
        print("left out: the keys are those of a driver that computes on the CPU")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as work:
        for name, size in (("A", (3, 2)), ("B", (2, 4)), ("C", (3, 4))):
            rows = "\n".join(",".join("0" for _ in range(size[1])) for _ in range(size[0]))
            pathlib.Path(work, f"{name}.csv").write_text(rows + "\n")
        for words in (["devices"], ["verify", "A.csv", "B.csv", "C.csv"], ["inspect", "--size", "64"],
                      ["inspect", "--convolution", "1x8x8x4,4x3x3"], ["inspect", "--mlp", "3,16,4"],
                      ["inspect", "--size", "512", "--memory-limit", "1M"], ["bench", "--size", "32", "--repeats", "1"],
                      ["bench", "--mlp", "3,16,4", "--samples", "64", "--repeats", "1"],
                      ["bench", "--convolution", "1x8x8x4,4x3x3", "--repeats", "1"]):
            of = " ".join(words[:2]) if len(words) > 1 and words[1].startswith("--") else words[0]
            keys_of(json.loads(run(tool, *words, "--json", cwd=work)), of, names)
    return names


def python_names():
    import glgemm

    names = set()
    for name in glgemm.__all__:
        value = getattr(glgemm, name)
        members = [("", value)]
        if inspect.isclass(value):
            members += [("." + key, getattr(value, key)) for key in vars(value) if not key.startswith("_")]
        for suffix, member in members:
            try:
                signature = str(inspect.signature(member))
            except (TypeError, ValueError):  # of the compiled part: its first line has the signature
                first = (inspect.getdoc(member) or "").split("\n")[0]
                signature = first[first.index("("):] if callable(member) and "(" in first else ""
            names.add(f"{name}{suffix}{signature}")
    return names


what, arguments = sys.argv[1], sys.argv[2:]
found = {"c++": lambda: declared("c++", *arguments), "c": lambda: declared("c", *arguments), "tool": lambda: options(*arguments),
         "json": lambda: json_keys(*arguments), "python": python_names}[what]()
path = pathlib.Path(os.environ.get("GLGEMM_INTERFACE", here / "interface"), f"{what}.txt")
if os.environ.get("GLGEMM_WRITE_INTERFACE"):
    path.write_text("\n".join(sorted(found)) + "\n")
known = set(path.read_text().splitlines()) if path.exists() else set()
for name in sorted(known - found):
    print(f"{what}: gone: {name}")
for name in sorted(found - known):
    print(f"{what}: new: {name}")
if known != found:
    sys.exit(f"{path} says otherwise. What is gone or changed is a break; GLGEMM_WRITE_INTERFACE=1 writes the list.")
print(f"{what}: {len(found)} names")
