#!/usr/bin/env python3
"""Checks that what one compiler, one system or OpenGL alone has stays in the rooms for it: check_portable.py [ROOT]

In include/, src/ and tools/, headers of POSIX and of Windows, and words of GCC's, are found, each outside an #if that asks for the
compiler or the system; but not in the rooms that are for them. In src/, but for src/gl/, names of OpenGL are found: gl::Api is
incomplete there, so that the compiler refuses calls through it, and this finds what would get around that. (EGL is another interface.)
Prints each; the status is then 1.
"""
import os
import re
import sys

headers = re.compile(
    r"#\s*include\s*<((?:sys|netinet|arpa)/[^>]+|(?:unistd|fcntl|dirent|dlfcn|poll|pthread|pwd|sched|signal|spawn|termios|windows|io|process|"
    r"shellapi|cpuid|intrin|EGL/[a-z]+)\.h)>"
)
words = re.compile(
    r"(?<![\w:.])(__attribute__|__builtin_\w+|__int128|__typeof__|__asm__|__declspec|ssize_t|setenv|unsetenv|gmtime_r|localtime_r|strerror_r|"
    r"isatty|getpid|fork|waitpid|mkstemp|mkdtemp)\b"
)
asks = re.compile(r"__(GNUC__|GLIBC__|clang__|linux__|unix__|APPLE__|x86_64__)|_WIN32|_MSC_VER|__has_include")
opengl = re.compile(
    r"(\bglad\b|\bgl/api\.hpp|\bGL/gl[a-z]*\.h|\bGL(?:u?byte|u?short|u?int|u?int64|float|double|char|boolean|bitfield|enum|sizei|sizeiptr|"
    r"intptr|sync)\b|\bGL_[A-Z0-9_]+|\bgl[A-Z]\w*(?= *\())"
)
# Rooms for one system, and components that are built on Linux alone.
rooms = (
    "src/base/system_posix.cpp", "src/base/system_windows.cpp", "src/base/fork_posix.cpp", "src/base/portable.cpp",
    "src/headless/egl.cpp", "src/headless/wgl.cpp",
    "src/blas/", "src/distributed/", "src/python/", "tools/system/posix/", "tools/system/windows/", "tools/peers/clblast.cpp",
)


def without_comments(line):
    return re.sub(r'"(?:[^"\\]|\\.)*"', '""', line).split("//")[0]


def check_opengl(path):
    """Lines that name OpenGL."""
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            if found := opengl.search(line.split("//")[0]):
                yield number, found[1]


def check(path):
    """Lines with what is not portable, outside an #if that asks."""
    conditions = []  # for each open #if, whether it asks
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            code = without_comments(line)
            directive = re.match(r"\s*#\s*(if|ifdef|ifndef|elif|endif)\b(.*)", code)
            if directive:
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
                yield number, f"<{found[1]}>" if found.re is headers else found[1]


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(__file__), "..", "..")
    files, places = 0, 0
    for top in ("include", "src", "tools"):
        for folder, _, names in os.walk(os.path.join(root, top)):
            for name in sorted(names):
                path = os.path.join(folder, name)
                relative = os.path.relpath(path, root).replace(os.sep, "/")
                if not name.endswith((".cpp", ".hpp", ".h")):
                    continue
                files += 1
                of_opengl = [*check_opengl(path)] if relative.startswith("src/") and not relative.startswith("src/gl/") else []
                of_systems = [] if relative.startswith(rooms) else [*check(path)]
                for number, what in of_opengl + of_systems:
                    print(f"{path}:{number}: {what}: not everywhere; see the rooms in docs/contributing.md")
                    places += 1
    print(f"{files} files, {places} places that are not portable")
    return 1 if places or files == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
