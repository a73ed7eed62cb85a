#!/usr/bin/env python3
"""Compiles shaders to SPIR-V and asserts that every operation on floats that makes C is decorated NoContraction: that is what keeps
a driver from fusing or reordering it, and what `precise` in GLSL stands for.

usage: no_contraction.py GLSLANG_VALIDATOR SHADERS
"""
import itertools
import pathlib
import struct
import subprocess
import sys
import tempfile

# Opcodes of SPIR-V that round, and that drivers could fuse.
ARITHMETIC = {129: "OpFAdd", 131: "OpFSub", 133: "OpFMul", 136: "OpFDiv", 142: "OpVectorTimesScalar", 148: "OpDot"}
DECORATE, NO_CONTRACTION = 71, 42
EXTENDED_INSTRUCTION, FMA = 12, 50

# PARTS 1 multiplies; reduce.comp ends C.
KERNELS = {
    "naive": [{}],
    "tiled": [{}],
    "register": [{"PANELS": 0}, {"PANELS": 2}, {"PANELS": 1, "WORKGROUP_Y": 2}],
    "blocked": [{"PANELS": 0}, {"PANELS": 1}, {"WIDE": 1}],
}
F32, F64, F16, BF16, C64, C128, F8E4M3 = 0, 1, 2, 3, 7, 8, 9
SUM = {F32: F32, F64: F64, F16: F32, BF16: F32, C64: C64, C128: C128, F8E4M3: F32}


def programs():
    for kernel, variants in KERNELS.items():
        for variant, type_ in itertools.product(variants, SUM):
            if "WIDE" in variant and type_ in (C64, C128):
                continue
            # A vector of doubles holds less of a tile.
            small = {"TM": 4, "TN": 4, "WORKGROUP": 256} if kernel == "blocked" else {}
            macros = {**small, **variant, "TYPE": type_, "TYPE_C": SUM[type_], "PARTS": 1, "HALVES_BY_INTEGERS": 1}
            for precision in (1, 2, 3) if type_ == F32 else (1,):
                yield kernel, {**macros, "PRECISION": precision}
    for type_, items in itertools.product(SUM, (0, 1)):
        yield "reduce", {"TYPE": type_, "TYPE_C": SUM[type_], "PRECISION": 1, "EPILOGUE": 1, "ITEMS": items}
    for type_ in (F16, BF16):
        yield "reduce", {"TYPE": type_, "TYPE_C": type_, "PRECISION": 1, "EPILOGUE": 1}
    for precision in (2, 3):
        yield "reduce", {"PRECISION": precision}


def compile_shader(glslang, shaders, kernel, macros, folder):
    binary = folder / "shader.spv"
    command = [glslang, "-G", *(f"-D{name}={value}" for name, value in macros.items()), "-o", str(binary), str(shaders / f"{kernel}.comp")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}:\n{done.stdout}{done.stderr}")
    return binary.read_bytes()


def operations(binary):
    """The name and the result of each operation on floats, and the set of results that are decorated."""
    words = struct.unpack(f"<{len(binary) // 4}I", binary)
    found, decorated, at = [], set(), 5
    while at < len(words):
        opcode, length = words[at] & 0xFFFF, words[at] >> 16
        if opcode == DECORATE and words[at + 2] == NO_CONTRACTION:
            decorated.add(words[at + 1])
        elif opcode in ARITHMETIC:
            found.append((ARITHMETIC[opcode], words[at + 2]))
        elif opcode == EXTENDED_INSTRUCTION and words[at + 4] == FMA:
            found.append(("fma()", words[at + 2]))
        at += length
    return found, decorated


def main():
    glslang, shaders = sys.argv[1], pathlib.Path(sys.argv[2])
    wrong = count = 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for kernel, macros in programs():
            found, decorated = operations(compile_shader(glslang, shaders, kernel, macros, folder))
            free = [f"{operation} %{result}" for operation, result in found if result not in decorated or operation == "fma()"]
            count += len(found)
            if free or not found:
                wrong += 1
                print(f"{kernel} {macros}: of {len(found)} operations on floats these may be contracted: {', '.join(free)}")
        # The standard programs are free to: this script sees it.
        found, decorated = operations(compile_shader(glslang, shaders, "tiled", {}, folder))
        if all(result in decorated for _, result in found):
            sys.exit("no_contraction.py finds no operation that may be contracted in a standard program")
    print(f"{count} operations on floats, {wrong} programs with some that may be contracted")
    sys.exit(1 if wrong else 0)


main()
