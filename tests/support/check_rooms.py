#!/usr/bin/env python3
"""Checks that everything lies in its room: check_rooms.py [ROOT]

- Includes of src/ point downwards only. A room is a folder of src/. It may include headers of the rooms below it in `rooms`, and its own,
  which are named with the room: "gl/buffer.hpp". distributed, headless, verify and weights are libraries of their own: nothing but the C interface
  may include them, and they may include base alone as well. python and blas lie over the public headers: they may include base alone.
- The headers in include/ that promise nothing (`unpromised`) are included by no other.
- In src/python/, headers of pybind11 are included by pybind.hpp alone, so that no file lacks a caster that another one has.
- In include/, src/ and tools/, headers of POSIX and of Windows, and words of GCC's, are found, each outside an #if that asks for the
  compiler or the system; but not in the rooms that are for them.
- In src/ and tools/, functions of std::filesystem are found that mingw-w64's C++ library has wrong for \\\\server\\share\\x; in tools/
  all those that ask the system, since it refuses paths of over 260 characters that tools/system makes acceptable.
- In src/, but for src/gl/, names of OpenGL are found: gl::Api is incomplete there, so that the compiler refuses calls through it, and this
  finds what would get around that. (EGL is another interface.)
- In src/gl/, functions of OpenGL are found that stand in none of the lists of src/gl/api.hpp, by which an engine asks whether a context has
  what it needs.

Prints each place that breaks this; the status is then 1.
"""
import os
import re
import sys

rooms = ["python", "blas", "distributed", "c", "devices", "stream", "headless", "verify", "weights", "engine", "vendor", "gl", "plan", "kernels", "base"]  # from top to bottom
apart = {"distributed", "headless", "verify", "weights"}  # libraries of their own
over_public = {"python", "blas"}  # optional components

unpromised = {"unpromised.hpp", "inspect.hpp", "experimental.hpp", "problem.hpp", "limits.hpp", "device_class.hpp", "tuning.hpp"}

headers = re.compile(
    r"#\s*include\s*<((?:sys|netinet|arpa)/[^>]+|(?:unistd|fcntl|dirent|dlfcn|poll|pthread|pwd|sched|signal|spawn|termios|windows|io|process|"
    r"shellapi|cpuid|intrin|EGL/[a-z]+)\.h)>"
)
words = re.compile(
    r"(?<![\w:.])(__attribute__|__builtin_\w+|__int128|__typeof__|__asm__|__declspec|ssize_t|setenv|unsetenv|gmtime_r|localtime_r|strerror_r|"
    r"isatty|getpid|fork|waitpid|mkstemp|mkdtemp)\b"
)
asks = re.compile(r"__(GNUC__|GLIBC__|clang__|linux__|unix__|APPLE__|x86_64__)|_WIN32|_MSC_VER|__has_include")
wrong_paths = re.compile(r"\b(?:fs|filesystem)::(absolute|canonical|weakly_canonical|space)\(|\.(is_absolute)\(")
asked_paths = re.compile(
    r"\b(?:fs|filesystem)::(exists|is_\w+|(?:symlink_)?status|remove(?:_all)?|rename|create_director\w+|permissions|file_size|"
    r"last_write_time|equivalent|(?:recursive_)?directory_iterator|read_symlink|\w+_path)\(|\b(ofstream)\b"
)
opengl = re.compile(
    r"(\bglad\b|\bgl/api\.hpp|\bGL/gl[a-z]*\.h|\bGL(?:u?byte|u?short|u?int|u?int64|float|double|char|boolean|bitfield|enum|sizei|sizeiptr|"
    r"intptr|sync)\b|\bGL_[A-Z0-9_]+|\bgl[A-Z]\w*(?= *\())"
)
# Rooms for one system, and components that are built on Linux alone.
for_systems = (
    "src/base/system_posix.cpp", "src/base/system_windows.cpp", "src/base/fork_posix.cpp", "src/base/portable.cpp",
    "src/headless/egl.cpp", "src/headless/wgl.cpp", "src/weights/mapping_posix.cpp", "src/weights/mapping_windows.cpp",
    "src/blas/", "src/distributed/", "src/python/", "tools/system/posix/", "tools/system/windows/", "tools/peers/clblast.cpp",
)
everywhere = "not everywhere; see the rooms in docs/contributing.md"


def why_not(room, target):
    if target not in rooms:
        return f"'{target}' is not a room; rooms are {', '.join(rooms)}"
    if rooms.index(target) < rooms.index(room):
        return f"{target} lies above {room}"
    if target != room and target in apart and room != "c":
        return f"{target} is a library of its own"
    if room in over_public | apart and target not in (room, "base"):
        return f"{room} lies over the public headers" if room in over_public else f"{room} is a library of its own"
    return ""


def includes(lines, room):
    """Includes that point upwards or to no room."""
    if room not in rooms:
        yield 1, room, "lies in no room"
    for number, line in lines:
        if room in rooms and (found := re.match(r'\s*#\s*include\s*"([^"]+)"', line)):
            if reason := why_not(room, found[1].split("/")[0] if "/" in found[1] else "(no room)"):
                yield number, f'"{found[1]}"', reason


def not_promised(lines):
    for number, line in lines:
        if (found := re.match(r"\s*#\s*include\s*<glgemm/([^>]+)>", line)) and found[1] in unpromised:
            yield number, f"<glgemm/{found[1]}>", "promises nothing; see docs/versions.md"


def of_pybind11(lines):
    for number, line in lines:
        if found := re.match(r"\s*#\s*include\s*(<pybind11/[^>]+>)", line):
            yield number, found[1], 'include "python/pybind.hpp", which has all casters'


def names_of_opengl(lines):
    for number, line in lines:
        if found := opengl.search(line.split("//")[0]):
            yield number, found[1], everywhere


def unlisted(lines, listed):
    for number, line in lines:
        for name in re.findall(r"\bapi_?(?:\.|->)([A-Z][a-z]\w*)", line.split("//")[0]):
            if name not in listed:
                yield number, "gl" + name, "stands in no list of src/gl/api.hpp"


def paths(lines, patterns):
    for number, line in lines:
        for pattern in patterns:
            if found := pattern.search(line.split("//")[0]):
                yield number, found[1] or found[2], "not for every path of Windows; see base/system.hpp and tools/system/files.hpp"


def not_portable(lines):
    """What is not portable, outside an #if that asks."""
    conditions = []  # for each open #if, whether it asks
    for number, line in lines:
        code = re.sub(r'"(?:[^"\\]|\\.)*"', '""', line).split("//")[0]
        if directive := re.match(r"\s*#\s*(if|ifdef|ifndef|elif|endif)\b(.*)", code):
            kind, rest = directive.groups()
            if kind == "endif":
                conditions.pop()
            elif kind == "elif":
                conditions[-1] = conditions[-1] or bool(asks.search(rest))
            else:
                conditions.append(bool(asks.search(rest)))
            continue
        found = headers.search(code) or words.search(code)
        if found and not any(conditions):
            yield number, f"<{found[1]}>" if found.re is headers else found[1], everywhere


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(__file__), "..", "..")
    files, places = 0, 0
    listed = set()
    if os.path.exists(api := os.path.join(root, "src", "gl", "api.hpp")):
        with open(api, encoding="utf-8") as file:
            listed = set(re.findall(r"\bX\((\w+)", file.read()))
    for top in ("include", "src", "tools"):
        for folder, _, names in sorted(os.walk(os.path.join(root, top))):
            for name in sorted(names):
                path = os.path.join(folder, name)
                relative = os.path.relpath(path, root).replace(os.sep, "/")
                if not name.endswith((".cpp", ".hpp", ".h")):
                    continue
                files += 1
                with open(path, encoding="utf-8") as file:
                    lines = [*enumerate(file, 1)]
                wrong = []
                if top == "include" and name not in unpromised:
                    wrong += not_promised(lines)
                if top == "src":
                    wrong += includes(lines, relative.split("/")[1])
                    wrong += unlisted(lines, listed) if relative.startswith("src/gl/") else names_of_opengl(lines)
                wrong += of_pybind11(lines) if relative != "src/python/pybind.hpp" else []
                if not relative.startswith(for_systems):
                    wrong += not_portable(lines)
                    if top != "include":
                        wrong += paths(lines, [wrong_paths, asked_paths] if top == "tools" else [wrong_paths])
                for number, what, reason in wrong:
                    print(f"{path}:{number}: {what}: {reason}")
                places += len(wrong)
    print(f"{files} files, {places} places that are not in their rooms")
    return 1 if places or files == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
