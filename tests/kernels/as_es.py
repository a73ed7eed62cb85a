#!/usr/bin/env python3
"""Asserts that the programs of every kernel and every type are programs in OpenGL ES too, and that tools' shaders are.

usage: as_es.py GLGEMM GLSLANG_VALIDATOR TOOL_SHADER.comp...
"""
import argparse
import subprocess
import sys
import tempfile

import programs

# What the tool puts before its own shaders.
OF_TOOLS = "#extension GL_EXT_texture_buffer : enable\nprecision highp float;\nprecision highp int;\n"
AT_ONCE = 40  # starting the validator takes longer than one program


def sources(glgemm):
    """The sources by the programs' names. No OpenGL ES has doubles."""
    types = programs.type_names(glgemm, lambda type_: type_["sum"] not in ("f64", "c128"))
    found = {}
    for options in ([], ["--split-k", "2"], ["--precision", "reproducible"], ["--precision", "extended"]):
        kernels = programs.kernels(glgemm)
        for kernel in kernels:
            # With options the plainest kernel, which is the last, has all types, and the others have one.
            for type_ in types if not options or kernel == kernels[-1] else types[:1]:
                ready, refused = programs.programs(glgemm, kernel, type_, *options)
                if not ready and not options:
                    sys.exit(f"no program of {kernel} in {type_} could be read: {refused}")
                found.update(ready)
    return found


def refusals(validator, folder, version, texts):
    """What the validator says of the sources that it refuses, of which the first line is replaced by the version's."""
    files = list(programs.write(folder, {name: f"#version {version} es\n" + text.partition("\n")[2] for name, text in texts.items()}).values())
    for some in (files[i:i + AT_ONCE] for i in range(0, len(files), AT_ONCE)):
        done = subprocess.run([validator, "-S", "comp", *some], capture_output=True, text=True)
        if done.returncode != 0:
            yield f"in OpenGL ES {version}:\n{done.stdout}{done.stderr}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, count in (("glgemm", None), ("validator", None), ("shaders", "*")):
        parser.add_argument(name, nargs=count)
    arguments = parser.parse_args()
    glgemm, validator, shaders = arguments.glgemm, arguments.validator, arguments.shaders
    found = programs.in_part(sources(glgemm))
    of_tools = {shader: open(shader).read().replace("\n", "\n" + OF_TOOLS, 1) for shader in shaders}
    # In OpenGL ES 3.1, which lacks `precise`, programs have all that can happen at the end of an element; in 3.2 they are as printed.
    in_310 = {name: programs.with_macros(text, EPILOGUE=1, ITEMS=1, HALVES_BY_INTEGERS=1) for name, text in found.items() if not programs.is_precise(text)}
    with tempfile.TemporaryDirectory() as folder:
        wrong = [*refusals(validator, folder, 310, {**in_310, **of_tools}), *refusals(validator, folder, 320, {**found, **of_tools})]
    print("\n".join([*wrong, f"{len(in_310)} programs in OpenGL ES 3.1, {len(found)} in 3.2, and {len(of_tools)} shaders of tools"]))
    sys.exit(1 if wrong else 0)


main()
