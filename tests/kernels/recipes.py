#!/usr/bin/env python3
"""Follows docs/adding-a-kernel.md and docs/adding-a-type.md on a copy of the tree: adds a kernel, a copy of `tiled` under the name `row`, and
the type `f8e3m4`, in the files that the pages name and in no other. Builds the tool and the CPU tests, and runs both. Takes minutes; by hand.

    recipes.py [FOLDER]    the copy and its build lie in FOLDER and stay there; without it in a temporary folder
"""
import pathlib
import re
import subprocess
import sys
import tempfile

root = pathlib.Path(__file__).resolve().parents[2]


def run(*command, cwd):
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: status {done.returncode}\n{done.stdout[-6000:]}{done.stderr[-3000:]}")
    return done.stdout + done.stderr


def insert(path, after, text):
    """Puts the text behind the one place at which `after` stands."""
    old = path.read_text(encoding="utf-8")
    if old.count(after) != 1:
        sys.exit(f"{path}: '{after}' stands there {old.count(after)} times")
    path.write_text(old.replace(after, after + text), encoding="utf-8")


def add_kernel(tree):
    for file in ("shaders/{}.comp", "src/kernels/{}.cpp"):
        text = (tree / file.format("tiled")).read_text(encoding="utf-8")
        (tree / file.format("row")).write_text(text.replace("tiled", "row").replace("Tiled", "Row"), encoding="utf-8")
    insert(tree / "src/kernels/table.cpp", "  FAMILY(tiled)          \\\n", "  FAMILY(row)            \\\n")


def add_type(tree):
    table = (tree / "include/glgemm/type_table.h").read_text(encoding="utf-8")
    last = next(line for line in reversed(table.splitlines()) if line.startswith("  ROW("))
    number = int(last.split(",")[2]) + 1
    insert(tree / "include/glgemm/type_table.h", last, f' \\\n  ROW(f8e3m4, F8E3M4, {number}, 1, floating, f32, sum, float8_e3m4, "", "float8_e3m4")')
    floats = tree / "include/glgemm/small_floats.hpp"
    struct = re.search(r"struct float8_e5m2 : FloatFormat<5, 2> \{.*?\};\n", floats.read_text(encoding="utf-8"), flags=re.S)[0]
    insert(floats, struct, "/// 1 sign, 3 exponent and 4 fraction bits.\n" + struct.replace("float8_e5m2", "float8_e3m4").replace("<5, 2>", "<3, 4>"))
    shader = tree / "shaders/gemm.glsl"
    insert(shader, "#define F8E5M2 10\n", f"#define F8E3M4 {number}\n")
    insert(shader, "#define IS_8_BITS(type) (type == F8E4M3", " || type == F8E3M4")
    insert(shader, "#define SUMS_IN_F32(type) (type == F32", " || type == F8E3M4")
    # Shifted into a half, the exponent is 12 too small; infinity and NaN have the largest one.
    insert(shader, "  if (type == F8E5M2) return from_half(bits << 8);  // the upper bits of a half\n", """  if (type == F8E3M4) {
    PRECISE float short_one = from_half((bits & 0x80u) << 8 | (bits & 0x7fu) << 6) * 4096.0;
    if ((bits & 0x70u) != 0x70u) return short_one;
    return uintBitsToFloat((bits & 0x80u) << 24 | 0x7f800000u | (bits & 0xfu) << 19);
  }
""")
    insert(tree / "README.md", "| f8e4m3, f8e5m2", ", f8e3m4")


def changed(tree):
    return sorted(line[3:] for line in run("git", "status", "--porcelain", "--untracked-files=all", cwd=tree).splitlines())


def without_losses(tree, *arguments):
    """Runs bench, which must leave no kernel out by the self-check."""
    text = run("build/bin/glgemm", "bench", *arguments, cwd=tree)
    if "self-check" in text or "wrong" in text.lower() or "ok" not in text:
        sys.exit(f"bench {' '.join(arguments)}:\n{text}")


def main(folder):
    tree = pathlib.Path(folder) / "tree"
    run("git", "clone", "--quiet", root, tree, cwd=root)
    for what, add, files in (("kernel", add_kernel, 3), ("type", add_type, 4)):
        before = changed(tree)
        add(tree)
        touched = [path for path in changed(tree) if path not in before]
        print(f"the {what}: {', '.join(touched)}", flush=True)
        if len(touched) != files:
            sys.exit(f"{len(touched)} files instead of {files}")
    run("cmake", "--preset", "release", "-G", "Ninja", cwd=tree)
    run("ninja", "-C", "build", "glgemm_tool", "glgemm_tests", cwd=tree)
    run("../bin/glgemm_tests", cwd=tree / "build/tests")
    run("ctest", "--preset", "release", "-R", r"^(shader|house)\.", cwd=tree)
    run(sys.executable, "tests/docs/check.py", "build/bin/glgemm", cwd=tree)
    for type_ in ("f32", "f8e3m4", "u8"):
        without_losses(tree, "--shape", "60,70,3", "--type", type_, "--kernel", "all")
    without_losses(tree, "--size", "100", "--kernel", "row", "--type", "f8e3m4")
    print("both work, and nothing else was touched")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        main(sys.argv[1] if len(sys.argv) > 1 else temporary)
