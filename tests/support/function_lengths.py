#!/usr/bin/env python3
"""Checks by Universal Ctags that no function is too long.

    function_lengths.py FOLDER=MAX...      fails, with a list, if a function in FOLDER has more than MAX lines
    function_lengths.py --list FOLDER...   prints all functions, the longest first

A function's lines are those from its name to its closing brace. A lambda counts as a part of the function in which it stands.
"""
import json
import subprocess
import sys

# Shaders are read as C++, and doctest's cases as functions.
COMMAND = ("ctags", "-f", "-", "--output-format=json", "--fields=NneF", "--languages=C++,C", "--langmap=C++:+.comp.glsl.h", "--kinds-C++=f",
           "--kinds-C=f", "-D", "TEST_CASE(x)=void test()", "-D", "TEST_CASE_FIXTURE(x,y)=void test()", "-D",
           "TEST_CASE_TEMPLATE(x,y,...)=void test()", "-R")


def functions(folder):
    done = subprocess.run([*COMMAND, folder], check=True, capture_output=True, text=True)
    found = [(tag["end"] - tag["line"] + 1, tag["path"], tag["line"], tag["name"]) for tag in map(json.loads, done.stdout.splitlines())]
    if not found:
        sys.exit(f"function_lengths.py: no function in {folder}")
    return sorted(found, reverse=True)


def main(arguments):
    if not arguments:
        sys.exit(__doc__)
    if arguments[0] == "--list":
        for folder in arguments[1:]:
            for lines, path, first, name in functions(folder):
                print(f"{lines:4} {path}:{first} {name}")
        return
    failed = False
    for argument in arguments:
        folder, _, most = argument.rpartition("=")
        found = functions(folder)
        print(f"{folder}: {len(found)} functions, the longest has {found[0][0]} lines, at most {most} are allowed")
        for lines, path, first, name in found:
            if lines > int(most):
                print(f"  {path}:{first}: {name} has {lines} lines")
                failed = True
    sys.exit(1 if failed else 0)


main(sys.argv[1:])
