#!/usr/bin/env python3
"""Asserts what compilers need. zink's makes no pipeline of a program with an array of booleans. The rest is NVIDIA's. No #if has `?:`, in a macro's text neither: its preprocessor refuses that. And no program chooses a component of a vector by an index that is no constant, in registers, in shared memory or in a buffer:
NVIDIA's compiler makes a branch for each component of that, and refuses it of doubles (docs/drivers.md). It looks at the programs' SPIR-V,
and first whether it finds what is planted.

usage: components.py PROGRAM_SOURCES GLSLANG_VALIDATOR FILE...    FILE: another shader, or a file of C++ that has some
"""
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import programs
import spirv

NAME, MEMBER_NAME, TYPE_VECTOR, TYPE_MATRIX, TYPE_ARRAY, TYPE_RUNTIME_ARRAY, TYPE_STRUCT, TYPE_POINTER = 5, 6, 23, 24, 28, 29, 30, 32
CONSTANTS = {41, 42, 43, 44, 46}
FUNCTION_PARAMETER, VARIABLE, ACCESS_CHAIN, IN_BOUNDS_ACCESS_CHAIN = 55, 59, 65, 66
DYNAMIC = {77: "OpVectorExtractDynamic", 78: "OpVectorInsertDynamic"}

# What is found, in a statement of the shader below; nothing is allowed.
PLANTED = {
    "x[0] = v[1][i];": "an access chain into v",
    "s[3][i] = 2.0LF;": "an access chain into s",
    "vec4 r = v[2]; r[i] = 1.0; v[3] = r;": "an access chain into r",
    "mat3 m = mat3(x[1]); x[2] = m[1][i];": "an access chain into m",
    "x[2] = (v[2] + 1.0)[i];": "OpVectorExtractDynamic",
    "mat3 m = mat3(x[1]); x[i] = v[i].y + t[i][i] + m[i][1];": "",
}
SHADER = """#version 430 core
layout(local_size_x = 1) in;
layout(std430, binding = 0) buffer Floats { int count; float x[]; };
layout(std430, binding = 1) buffer Vectors { vec4 v[]; };
shared dvec2 s[8];
shared float t[8][4];
layout(location = 0) uniform int i;
"""
# glslangValidator makes no such instruction of GLSL.
INSERTS = [0] * 5 + [6 << 16 | 78, 1, 2, 3, 4, 5]

# It has no SPIR-V for what comes from GL_ARB_shader_ballot. Which invocation's number it is does not matter here.
SUBSTITUTES = {"gl_SubGroupInvocationARB": "gl_LocalInvocationIndex", "gl_SubGroupSizeARB": "64u", "readInvocationARB": "of_invocation"}
OF_INVOCATION = "#define of_invocation(value, lane) (value)\n"


def chosen_at_run_time(words):
    """What the module has of such choices."""
    element_of, vectors, members, pointers, constants, names, found = {}, set(), {}, {}, {}, {}, []
    for opcode, operands in spirv.instructions(words):
        if opcode in (ACCESS_CHAIN, IN_BOUNDS_ACCESS_CHAIN):
            at = element_of[pointers[operands[2]]]
            for depth, index in enumerate(operands[3:]):
                if at in members:  # a struct's
                    name = names.get((at, constants[index]), "a member")
                    at = members[at][constants[index]]
                    continue
                if depth == 0:
                    name = names.get(operands[2], "a value")
                if at in vectors and index not in constants:
                    found.append(f"an access chain into {name}")
                at = element_of[at]
            pointers[operands[1]] = operands[0]
        elif opcode in DYNAMIC:
            found.append(DYNAMIC[opcode])
        elif opcode in (FUNCTION_PARAMETER, VARIABLE):
            pointers[operands[1]] = operands[0]
        elif opcode in CONSTANTS:
            constants[operands[1]] = operands[2] if len(operands) > 2 else 0
        elif opcode in (TYPE_VECTOR, TYPE_MATRIX, TYPE_ARRAY, TYPE_RUNTIME_ARRAY):
            element_of[operands[0]] = operands[1]
            if opcode == TYPE_VECTOR:
                vectors.add(operands[0])
        elif opcode == TYPE_STRUCT:
            members[operands[0]] = operands[1:]
        elif opcode == TYPE_POINTER:
            element_of[operands[0]] = operands[2]
        elif opcode in (NAME, MEMBER_NAME):
            text = operands[1 if opcode == NAME else 2:].tobytes().split(b"\0")[0].decode()
            names[operands[0] if opcode == NAME else (operands[0], operands[1])] = text
    return found


def conditional_conditions(source):
    """The #ifs that have `?:` once their macros are replaced."""
    macros, found = {}, []
    for line in source.replace("\\\n", " ").split("\n"):
        words = re.match(r"\s*#\s*(define|undef|if|elif)\s+(.*)", line.split("//")[0])
        if not words:
            continue
        kind, rest = words.groups()
        if kind in ("define", "undef"):
            name = re.match(r"\w+", rest)[0]
            macros.pop(name, None)
            if kind == "define":
                macros[name] = rest[len(name):]
            continue
        text, seen = rest, set()
        while names := {name for name in re.findall(r"[A-Za-z_]\w*", text) if name in macros} - seen:
            seen |= names
            text += " ".join(macros[name] for name in names)
        if "?" in text:
            found.append(f"`?:` in #{kind} {rest.strip()}")
    return found


def arrays_of_booleans(source):
    return re.findall(r"\bbool\s*(?:\w+\s*)?\[[^\]]*\]", re.sub(r"//.*", "", source))


def found_in(validator, path, source=""):
    return chosen_at_run_time(spirv.module(validator, path)) + conditional_conditions(source) + arrays_of_booleans(source)


def check_planted(validator, folder):
    for statement, expected in PLANTED.items():
        path = pathlib.Path(folder, "planted.comp")
        path.write_text(f"{SHADER}void main() {{ {statement} }}\n")
        if found_in(validator, path) != ([expected] if expected else []):
            sys.exit(f"components.py finds {found_in(validator, path)} and not {expected or 'nothing'} in {statement}")
    if conditional_conditions("#define B (A > 1 ? 4 : 8)\n#define C 2\n#if C * 2\n#elif B * C > 3\n#endif\n") != ["`?:` in #elif B * C > 3"]:
        sys.exit("components.py does not find `?:` in a condition")
    if arrays_of_booleans("bool x; bool y[2], z; // bool u[3]\nbool[4] v;") != ["bool y[2]", "bool[4]"]:
        sys.exit("components.py does not find arrays of booleans")
    if chosen_at_run_time(INSERTS) != ["OpVectorInsertDynamic"]:
        sys.exit("components.py does not find OpVectorInsertDynamic")


def main():
    sources, validator, *files = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        check_planted(validator, folder)
        listed = subprocess.run([sources, folder], check=True, capture_output=True, text=True).stdout.splitlines()
        names = {pathlib.Path(folder, file): name for file, name in programs.in_part({line: line.split(" ", 1) for line in listed}).values()}
        for file in files:
            text = pathlib.Path(file).read_text()
            for shader in re.findall(r'R"\((#version .*?)\)"', text, re.S) if file.endswith(".cpp") else [text]:
                path = pathlib.Path(folder, f"other{len(names)}.comp")
                path.write_text(shader)
                names[path] = file

        def check(path):
            text = path.read_text()
            if "ARB" in text:
                for name, instead in SUBSTITUTES.items():
                    text = text.replace(name, instead)
                path.write_text(text.replace("\n", "\n" + OF_INVOCATION, 1))
            return found_in(validator, path, text)

        wrong = {path: found for path, found in zip(names, pool.map(check, names)) if found}
    for path, found in wrong.items():
        print(f"{names[path]}: {len(found)} times: {', '.join(sorted(set(found)))}")
    print(f"{len(names)} programs, {len(wrong)} of which choose components of vectors at run time, have `?:` in a condition, or an array of booleans")
    sys.exit(1 if wrong else 0)


main()
