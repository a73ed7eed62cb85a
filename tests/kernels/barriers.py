#!/usr/bin/env python3
"""Barriers in shaders: between a store to shared memory and a load of it, or a load and the next store, all invocations meet.

A driver that computes on a CPU runs a workgroup's invocations a vector at a time and in step, so that a missing barrier may change no
result there. So the source is read instead: each shader is preprocessed, and its main() is walked as if each loop that has a barrier
ran twice; a loop without one is walked once, since the invocations of one statement keep apart by their indices. Then it is walked again
with each barrier left out in turn, which must be found: a barrier that nothing needs would be one too many.

    barriers.py GLGEMM GLSLANG_VALIDATOR [KERNEL...]    without names: all kernels that have shared memory
"""
import collections
import re
import subprocess
import sys
import tempfile

import programs


# What the walk does not see through. With one lane along k an invocation of gemv loads what it has stored itself; with two buffers blocked
# stores into the one while others load from the other.
NOT_SEEN = ("lanes_k=1,", "double_buffer=1,")
INSTEAD = {"gemv": "lanes_k=8"}  # where a kernel's defaults are among them


def preprocessed(validator, path):
    text = subprocess.run([validator, "-E", path], check=True, capture_output=True, text=True).stdout
    return re.sub(r"^\s*#.*$", "", text, flags=re.M)


def block_end(text, begin):
    """The place behind the brace or parenthesis that closes the one at `begin`."""
    depth = 0
    for i in range(begin, len(text)):
        depth += text[i] in "({"
        depth -= text[i] in ")}"
        if depth == 0:
            return i + 1
    raise ValueError("a block without an end")


def statements(text):
    """The statements of a block, in order, as they run: (text, None), and ("loop", statements of its body)."""
    found, i = [], 0
    while i < len(text):
        loop = re.compile(r"\s*(?:for|while)\s*(?=\()").match(text, i)
        if loop:
            i = block_end(text, loop.end())
            body = re.compile(r"\s*\{").match(text, i)
            end = block_end(text, body.end() - 1) if body else statement_end(text, i)
            found.append(("loop", statements(text[body.end():end - 1] if body else text[i:end])))
            i = end
            continue
        branch = re.compile(r"\s*(?:else\s+)?if\s*(?=\()").match(text, i)
        if branch:  # its condition, and then what it guards as if it always ran
            end = block_end(text, branch.end())
            found.append((text[branch.end():end], None))
            i = end
            continue
        opened = re.compile(r"\s*(?:else\b)?\s*\{").match(text, i)
        if opened:
            end = block_end(text, opened.end() - 1)
            found += statements(text[opened.end():end - 1])
            i = end
            continue
        end = statement_end(text, i)
        if text[i:end].strip(" \n;"):
            found.append((re.sub(r"^else\b\s*", "", text[i:end].strip()), None))
        i = end
    return found


def statement_end(text, begin):
    """Behind the next semicolon; of `for ... statement`, of the statement."""
    depth = 0
    for i in range(begin, len(text)):
        depth += text[i] in "({["
        depth -= text[i] in ")}]"
        if text[i] == ";" and depth == 0:
            return i + 1
    return len(text)


def number(body, count):
    """The same statements, each barrier with its number in the source; and how many there are."""
    result = []
    for text, inside in body:
        if inside is not None:
            inside, count = number(inside, count)
            result.append((text, inside))
        elif re.fullmatch(r"barrier\(\);", text):
            result.append((f"barrier {count}", None))
            count += 1
        else:
            result.append((text, None))
    return result, count


def wrong(body, shared, without=None):
    """What the walk finds, with the barrier of that number left out."""
    stored, loaded, visible = set(), set(), False
    for text in numbered_flat(body):
        if text == "memoryBarrierShared();":
            visible = True
            continue
        if text.startswith("barrier "):
            if text != f"barrier {without}":
                if stored and not visible:
                    return f"{', '.join(sorted(stored))}: a barrier without memoryBarrierShared() before it"
                stored, loaded = set(), set()
            visible = False
            continue
        visible = False
        target = re.match(r"(\w+)\s*\[.*?\](?:\s*\[.*?\])?\s*([-+*]?=)(?!=)", text, flags=re.S)
        stores = {target.group(1)} & shared if target else set()
        source = text[target.end():] if target and target.group(2) == "=" else text
        loads = {name for name in shared if re.search(rf"\b{name}\s*\[", source)}
        if loads & stored:
            return f"{', '.join(sorted(loads & stored))}: loaded without a barrier behind the store: {text}"
        if stores & loaded:
            return f"{', '.join(sorted(stores & loaded))}: stored without a barrier behind the load: {text}"
        stored |= stores
        loaded |= loads
    return None


def numbered_flat(body):
    for text, inside in body:
        if inside is None:
            yield text
        else:
            meets = any(t.startswith("barrier ") for t in numbered_flat(inside))
            for _ in range(2 if meets else 1):
                yield from numbered_flat(inside)


def kernel_name(program):
    return program.partition(":")[0]


def sources(glgemm, names):
    """The sources of programs in f32, each parameter with its least and its greatest legal value, by the programs' names."""
    found = {}
    for kernel in programs.kernels(glgemm, lambda parameter: (parameter["legal"][0], parameter["legal"][-1], *programs.values_of_panels(parameter))):
        name, values = kernel_name(kernel), kernel.partition(":")[2]
        if name in (names or [name]):
            found.update(programs.programs(glgemm, f"{name}:{INSTEAD[name]},{values}".rstrip(",") if name in INSTEAD else kernel, "f32")[0])
    if missing := {name for name in map(kernel_name, programs.kernels(glgemm)) if name in (names or [name])} - set(map(kernel_name, found)):
        sys.exit(f"no program of {', '.join(missing)} could be read")
    return {name: source for name, source in found.items() if not any(each in name for each in NOT_SEEN)}


def main():
    glgemm, validator, *names = sys.argv[1:]
    needed = collections.defaultdict(set)  # the barriers that a program needs, by the kernel's name and how many it has
    faults = []
    with tempfile.TemporaryDirectory() as folder:
        for name, path in programs.write(folder, sources(glgemm, names)).items():
            text = preprocessed(validator, path)
            shared = set(re.findall(r"\bshared\s+\w+\s+(\w+)\s*\[", text))
            if not shared:
                continue
            begin = text.index("{", re.search(r"\bvoid\s+main\s*\(\s*\)", text).start())
            body, barriers = number(statements(text[begin + 1:block_end(text, begin) - 1]), 0)
            found = wrong(body, shared)
            if found:
                faults.append(f"{name}: {found}")
            needed[kernel_name(name), barriers] |= {i for i in range(barriers) if wrong(body, shared, i)}
    for (kernel, barriers), these in needed.items():
        if len(these) < barriers:
            unneeded = set(range(1, barriers + 1)) - {i + 1 for i in these}
            faults.append(f"{kernel}: nothing needs barrier {unneeded} of {barriers}, or this test sees less than it should")
        print(f"{kernel}: {barriers} barriers")
    sys.exit("\n".join(faults) if faults else 0)


main()
