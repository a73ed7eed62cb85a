#!/usr/bin/env python3
"""Checks that includes of src/ point downwards only: check_includes.py [SRC]

A room is a folder of src/. It may include headers of the rooms below it in `rooms`, and its own, which are named with the room:
"gl/buffer.hpp". distributed, headless and verify are libraries of their own: nothing but the C interface may include them, and they may
include base alone. python and blas lie over the public headers: they may include base alone as well. Prints each include that breaks this,
and circles between rooms; the status is then 1.
"""
import os
import re
import sys

rooms = ["python", "blas", "distributed", "c", "devices", "stream", "headless", "verify", "engine", "gl", "plan", "kernels", "base"]  # from top to bottom
apart = {"distributed", "headless", "verify"}  # libraries of their own
over_public = {"python", "blas"}  # optional components


def why_not(room, target):
    if target not in rooms:
        return f"'{target}' is not a room; rooms are {', '.join(rooms)}"
    if rooms.index(target) < rooms.index(room):
        return f"{target} lies above {room}"
    if target != room and target in apart and room != "c":
        return f"{target} is a library of its own"
    if room in over_public and target not in (room, "base"):
        return f"{room} lies over the public headers"
    if room in apart and target not in (room, "base"):
        return f"{room} is a library of its own"
    return ""


def check(src):
    wrong = []
    files = 0
    for folder, _, names in os.walk(src):
        for name in sorted(names):
            if not name.endswith((".cpp", ".hpp")):
                continue
            path = os.path.join(folder, name)
            room = os.path.relpath(path, src).split(os.sep)[0]
            files += 1
            if room not in rooms:
                wrong.append(f"{path}: lies in no room")
                continue
            with open(path, encoding="utf-8") as text:
                for number, line in enumerate(text, 1):
                    found = re.match(r'\s*#\s*include\s*"([^"]+)"', line)
                    if not found:
                        continue
                    target = found[1].split("/")[0] if "/" in found[1] else "(no room)"
                    reason = why_not(room, target)
                    if reason:
                        wrong.append(f'{path}:{number}: "{found[1]}": {reason}')
    return files, wrong


def main():
    src = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(__file__), "..", "..", "src")
    files, wrong = check(src)
    for line in wrong:
        print(line)
    if files == 0:
        print(f"there is no source file in '{src}'")
    print(f"{files} files, {len(wrong)} includes that point upwards or to no room")
    return 1 if wrong or files == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
