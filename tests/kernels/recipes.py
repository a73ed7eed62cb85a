#!/usr/bin/env python3
"""Follows docs/adding-a-kernel.md, docs/adding-a-type.md and "The next format" of docs/weights.md on a copy of the tree: adds a kernel, a copy
of `tiled` under the name `row`, the type `f8e3m4`, and a made-up format `v4_0`, in the files that the pages name and in no other. Builds the
tool and the tests, and runs both. Takes minutes; by hand.

    recipes.py [FOLDER [WHAT...]]    the copy and its build lie in FOLDER and stay there; without it in a temporary folder. WHAT is kernel,
                                     type or format; all three without it
"""
import argparse
import pathlib
import random
import re
import struct
import subprocess
import sys
import tempfile

root = pathlib.Path(__file__).resolve().parents[2]


def run(*command, cwd):
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: status {done.returncode}\n{done.stdout[-6000:]}{done.stderr[-3000:]}")
    return done.stdout + done.stderr


def replace(path, old, new):
    """Puts `new` in the one place at which `old` stands."""
    text = path.read_text(encoding="utf-8")
    if text.count(old) != 1:
        sys.exit(f"{path}: '{old}' stands there {text.count(old)} times")
    path.write_text(text.replace(old, new), encoding="utf-8")


def insert(path, after, text):
    """Puts the text behind the one place at which `after` stands."""
    replace(path, after, after + text)


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
    shader = tree / "shaders/types.glsl"
    insert(shader, "#define F8E5M2 10\n", f"#define F8E3M4 {number}\n")
    # Shifted into a half, the exponent is 12 too small; infinity and NaN have the largest one.
    insert(shader, "  if (type == F8E5M2) return from_half(bits << 8);  // the upper bits of a half\n", """  if (type == F8E3M4) {
    PRECISE float short_one = EXACT(from_half((bits & 0x80u) << 8 | (bits & 0x7fu) << 6) * 4096.0);
    if ((bits & 0x70u) != 0x70u) return short_one;
    return uintBitsToFloat((bits & 0x80u) << 24 | 0x7f800000u | (bits & 0xfu) << 19);
  }
""")
    insert(tree / "README.md", "| f8e4m3, f8e5m2", ", f8e3m4")


NUMBERS = (-120, -91, -70, -50, -36, -24, -13, -4, 3, 11, 22, 34, 49, 66, 90, 127)  # what the codes of v4_0 stand for


def add_format(tree):
    numbers = ", ".join(map(str, NUMBERS))
    table = tree / "include/glgemm/quantization_table.h"
    last = next(line for line in reversed(table.read_text(encoding="utf-8").splitlines()) if line.startswith("  ROW("))
    number = int(last.split(",")[2]) + 1
    insert(table, last, f" \\\n  ROW(v4_0, V4_0, {number}, 32, 18, 1000, f16, 0, 1)")
    shader = tree / "shaders/quantization.glsl"
    insert(shader, "  uint q = nibble_at(block + codes_byte + (i & 15), i > 15);\n", f"""  const int numbers[16] = int[16]({numbers});
  if (FORMAT == V4_0) RETURN(float, half_at(scales_at(block)) * float(numbers[q]));
""")
    host = tree / "src/base/quantization.cpp"
    insert(host, "template <Format format>\nfloat decode(Bytes b, int k) = delete;\n", f"""
template <>
float decode<Format::v4_0>(Bytes b, int k) {{
  constexpr int numbers[] = {{{numbers}}};
  return product(f16(b), numbers[nibble(b + 2, k)]);
}}
""")
    insert(tree / "docs/weights.md", "| `mxfp4` | E2M1 | 17 for 32 | 2^e q | in the block, a power of two |\n",
           "| `v4_0` | 4 bits | 18 for 32 | d v[q], v of 16 numbers | in the block, f16 |\n")
    draw = random.Random(1)
    blocks, values = b"", b""
    for _ in range(64):
        scale = struct.pack("<e", draw.uniform(1e-4, 2))
        nibbles = draw.randbytes(16)
        codes = [byte & 15 for byte in nibbles] + [byte >> 4 for byte in nibbles]
        blocks += scale + nibbles
        values += struct.pack("<32f", *(struct.unpack("<e", scale)[0] * NUMBERS[code] for code in codes))
    (tree / "tests/data/quantised/v4_0.blocks").write_bytes(blocks)
    (tree / "tests/data/quantised/v4_0.f32").write_bytes(values)


def changed(tree):
    return sorted(line[3:] for line in run("git", "status", "--porcelain", "--untracked-files=all", cwd=tree).splitlines())


def without_losses(tree, *arguments):
    """Runs bench, which must leave no kernel out by the self-check."""
    text = run("build/bin/glgemm", "bench", *arguments, cwd=tree)
    if "self-check" in text or "wrong" in text.lower() or "ok" not in text:
        sys.exit(f"bench {' '.join(arguments)}:\n{text}")


def check_kernel(tree):
    without_losses(tree, "--size", "100", "--kernel", "row")


def check_type(tree):
    for type_ in ("f32", "f8e3m4", "u8"):
        without_losses(tree, "--shape", "60,70,3", "--type", type_, "--kernel", "all")


def check_format(tree):
    run("build/bin/glgemm", "inspect", "--type", "v4_0/f32", "--shape", "64,1,64", cwd=tree)
    for types, shape, op_b in (("v4_0/f32", "64,1,64", "n"), ("v4_0/f32", "70,30,160", "n"), ("v4_0/f32", "64,4,2048", "t"),
                               ("f32/v4_0", "3,70,64", "t")):
        without_losses(tree, "--shape", shape, "--type", types, "--op-b", op_b, "--kernel", "all")
    run("ninja", "-C", "build", "glgemm_gl_tests", cwd=tree)
    run("../bin/glgemm_gl_tests", "-tc=*quantised*,*ggml's products*", cwd=tree / "build/tests")


# What is added, how, in how many files, and what is run then.
RECIPES = {"kernel": (add_kernel, 3, check_kernel), "type": (add_type, 4, check_type), "format": (add_format, 6, check_format)}


def main(folder, names):
    tree = pathlib.Path(folder) / "tree"
    run("git", "clone", "--quiet", root, tree, cwd=root)
    for name in names:
        add, files, _ = RECIPES[name]
        before = changed(tree)
        add(tree)
        touched = [path for path in changed(tree) if path not in before]
        print(f"the {name}: {', '.join(touched)}", flush=True)
        if len(touched) != files:
            sys.exit(f"{len(touched)} files instead of {files}")
    run("cmake", "--preset", "release", "-G", "Ninja", cwd=tree)
    run("ninja", "-C", "build", "glgemm_tool", "glgemm_tests", "glgemm_program_sources", cwd=tree)
    run("../bin/glgemm_tests", cwd=tree / "build/tests")
    run("ctest", "--preset", "release", "-R", r"^(shader|house)\.", cwd=tree)
    run(sys.executable, "tests/docs/check.py", tree / "build/bin/glgemm", cwd=tree)
    for name in names:
        RECIPES[name][2](tree)
    print("all of it works, and nothing else was touched")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?")
    parser.add_argument("what", nargs="*")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        main(arguments.folder or temporary, arguments.what or list(RECIPES))
