#!/usr/bin/env python3
"""Compiles shaders to SPIR-V and asserts that every operation on floats that makes C is decorated NoContraction: that is what keeps
a driver from fusing or reordering it, and what `precise` in GLSL stands for.

For drivers that take that lightly programs have a sealed form: there no sum takes in a product that has not passed through its bits.

usage: no_contraction.py GLGEMM GLSLANG_VALIDATOR
"""
import sys
import tempfile

import programs
import spirv

# Opcodes of SPIR-V that round, and that drivers could fuse.
ARITHMETIC = {129: "OpFAdd", 131: "OpFSub", 133: "OpFMul", 136: "OpFDiv", 142: "OpVectorTimesScalar", 148: "OpDot"}
PRODUCTS = {133, 142, 148}
SUMS = {129, 131}
DECORATE, NO_CONTRACTION = 71, 42
EXTENDED_INSTRUCTION, FMA = 12, 50
# What hands numbers on as they are, by the place of the first of them: conversions, negations, vectors and their elements, choices.
HANDS_ON = {115: 2, 127: 2, 79: 2, 80: 2, 81: 2, 82: 2, 83: 2, 169: 3, 245: 2}
FUNCTION, PARAMETER, CALL, LOAD, STORE, ACCESS_CHAIN, RETURN_VALUE = 54, 55, 57, 61, 62, 65, 254


def sources(glgemm):
    """The sources of all programs that promise a result, by their names with what was changed."""
    found = {}

    def add(kernel, type_, precision="reproducible", **device):
        ready, refused = programs.programs(glgemm, kernel, type_, "--precision", precision, **device)
        if not ready and not refused.endswith(" has no reproducible products"):
            sys.exit(f"no program of {kernel} in {type_} could be read: {refused}")
        for name, text in ready.items():
            if programs.is_precise(text):
                found[name] = text
                if precision == "reproducible":  # extended sums are ended as standard ones are
                    found[f"{name}, all ends"] = programs.with_macros(text, EPILOGUE=1, ITEMS=1, HALVES_BY_INTEGERS=1)
        return ready

    taking = [kernel for kernel in programs.kernels(glgemm) if add(kernel, "f32")]
    for kernel in taking:
        for type_ in programs.tables(glgemm)["types"]:
            if type_["kind"] == "integer":
                continue
            ready = add(kernel, type_["name"])
            if type_["c"] == "either":  # the reduction rounds to such a C
                found.update((f"{name}, C in {type_['name']}", programs.with_macros(text, TYPE_C=type_["number"], EPILOGUE=1))
                             for name, text in ready.items() if programs.is_precise(text))
        for device in ("nvidia-ampere", "nvidia-hopper"):  # sums of two floats, and doubles
            add(kernel, "f32", "extended", device=device)
    return found


def operations(words):
    """The name and the result of each operation on floats, and the set of results that are decorated."""
    found, decorated = [], set()
    for opcode, operands in spirv.instructions(words):
        if opcode == DECORATE and operands[1] == NO_CONTRACTION:
            decorated.add(operands[0])
        elif opcode in ARITHMETIC:
            found.append((ARITHMETIC[opcode], operands[1]))
        elif opcode == EXTENDED_INSTRUCTION and operands[3] == FMA:
            found.append(("fma()", operands[1]))
    return found, decorated


def sums_of_products(words):
    """The sums that take in a product as it is: by way of variables, parameters and results of functions too."""
    code, products, before = list(spirv.instructions(words)), set(), -1
    parameters, whole, function = {}, {}, 0  # of each function; what a pointer leads into
    for opcode, operands in code:
        if opcode == FUNCTION:
            function = operands[1]
        elif opcode == PARAMETER:
            parameters.setdefault(function, []).append(operands[1])
        elif opcode == ACCESS_CHAIN:
            whole[operands[1]] = whole.get(operands[2], operands[2])
    while len(products) != before:  # until nothing is found that is one
        before = len(products)
        for opcode, operands in code:
            if opcode == FUNCTION:
                function = operands[1]
            elif opcode in PRODUCTS or opcode in HANDS_ON and products & set(operands[HANDS_ON[opcode]:]):
                products.add(operands[1])
            elif opcode == LOAD and whole.get(operands[2], operands[2]) in products:
                products.add(operands[1])
            elif opcode == STORE and operands[1] in products:
                products.add(whole.get(operands[0], operands[0]))
            elif opcode == RETURN_VALUE and operands[0] in products:
                products.add(function)
            elif opcode == CALL:
                if operands[2] in products:
                    products.add(operands[1])
                for given, parameter in zip(operands[3:], parameters.get(operands[2], [])):
                    given = whole.get(given, given)
                    if given in products or parameter in products:
                        products |= {given, parameter}
    return [operands[1] for opcode, operands in code if opcode in SUMS and products & set(operands[2:])]


def main():
    glgemm, validator = sys.argv[1:]
    wrong = count = 0
    texts = programs.in_part(sources(glgemm))
    standard = next(iter(programs.programs(glgemm, programs.kernels(glgemm)[-1], "f32")[0].values()))
    sealed = {f"{name}, sealed": programs.with_macros(text, SEALED=1) for name, text in texts.items()}
    with tempfile.TemporaryDirectory() as folder:
        for name, path in programs.write(folder, {**texts, **sealed, "standard": standard}).items():
            words = spirv.module(validator, path)
            if name in sealed:
                if sums := sums_of_products(words):
                    wrong += 1
                    print(f"{name}: {len(sums)} sums take in a product as it is: {', '.join(f'%{sum}' for sum in sums)}")
                continue
            found, decorated = operations(words)
            free = [f"{operation} %{result}" for operation, result in found if result not in decorated or operation == "fma()"]
            if name == "standard":  # a standard program is free to: this script sees it
                if not free or not sums_of_products(words):
                    sys.exit("no_contraction.py finds no operation that may be contracted in a standard program")
                continue
            count += len(found)
            if free or not found:
                wrong += 1
                print(f"{name}: of {len(found)} operations on floats these may be contracted: {', '.join(free)}")
    print(f"{count} operations on floats in {len(texts)} programs, {wrong} programs, as they are or sealed, with some that may be contracted")
    sys.exit(1 if wrong else 0)


main()
