#!/usr/bin/env python3
"""Barriers in shaders: between a store to shared memory and a load of it, or a load and the next store, all invocations meet.

A driver that computes on a CPU runs a workgroup's invocations a vector at a time and in step, so that a missing barrier may change no
result there. So the source is read instead: each shader is preprocessed, and its main() is walked as if each loop that has a barrier
ran twice; a loop without one is walked once, since the invocations of one statement keep apart by their indices. A function is walked where
it is called, before the statement that calls it. Then it is walked again
with each barrier left out in turn, which must be found: a barrier that nothing needs would be one too many.

    barriers.py GLGEMM GLSLANG_VALIDATOR [KERNEL...]    without names: all kernels that have shared memory
"""
import collections
import itertools
import re
import subprocess
import sys
import tempfile

import programs


# What the walk does not see through: with one lane along k an invocation of gemv loads what it has stored itself.
NOT_SEEN = ("lanes_k=1,",)
INSTEAD = {"gemv": "lanes_k=8,tile_n=4"}  # where a kernel's defaults are among them; of 4 columns it shares what it reads


BARRIER = re.compile(r"barrier(\d+)\(\);")
ENTERS, LEAVES = "(", ")"  # a function, among the statements as they run
TURNS = re.compile(r"(\w+) = 1 - \1;")  # of two halves of shared memory, which take turns, the other one from here on


def preprocessed(validator, path):
    """The source without directives, in which each barrier has its number in its name; and how many there are."""
    text = subprocess.run([validator, "-E", path], check=True, capture_output=True, text=True).stdout
    numbers = itertools.count()
    text = re.sub(r"\bbarrier\(\);", lambda _: f"barrier{next(numbers)}();", re.sub(r"^\s*#.*$", "", text, flags=re.M))
    return text, next(numbers)


def end_of(text, begin):
    """The place behind the brace or parenthesis that closes the one at `begin`; where there is none, behind the next semicolon."""
    depth = 0
    for i in range(begin, len(text)):
        depth += (text[i] in "({[") - (text[i] in ")}]")
        if depth == 0 and (text[begin] in "({" or text[i] == ";"):
            return i + 1
    return len(text)


def statements(text):
    """The statements of a block, in order, as they run: (text, None), and ("loop", statements of its body)."""
    found, i = [], 0
    while i < len(text):
        loop = re.compile(r"\s*(?:for|while)\s*(?=\()").match(text, i)
        if loop:
            i = end_of(text, loop.end())
            body = re.compile(r"\s*\{").match(text, i)
            end = end_of(text, body.end() - 1) if body else end_of(text, i)
            found.append(("loop", statements(text[body.end():end - 1] if body else text[i:end])))
            i = end
            continue
        branch = re.compile(r"\s*(?:else\s+)?if\s*(?=\()").match(text, i)
        if branch:  # its condition, and then what it guards as if it always ran
            end = end_of(text, branch.end())
            found.append((text[branch.end():end], None))
            i = end
            continue
        opened = re.compile(r"\s*(?:else\b)?\s*\{").match(text, i)
        if opened:
            end = end_of(text, opened.end() - 1)
            found += statements(text[opened.end():end - 1])
            i = end
            continue
        end = end_of(text, i)
        if text[i:end].strip(" \n;"):
            found.append((re.sub(r"^else\b\s*", "", text[i:end].strip()), None))
        i = end
    return found


def functions(text, shared):
    """The parameters and the statements of each function that touches shared memory or has a barrier, itself or by what it calls, by its
    name; of all overloads."""
    bodies = collections.defaultdict(list)
    for head in re.finditer(r"^[\w\[\] *]+\b(\w+)\s*\(([^;{}]*)\)\s*\{", text, flags=re.M):
        parameters = re.findall(r"(\w+)\s*(?:\[[^,]*\])?\s*(?:,|$)", head[2])
        bodies[head[1]].append((parameters, text[head.end():end_of(text, head.end() - 1) - 1]))
    found = {}
    touches = re.compile(r"\bbarrier\d+\(|" + "|".join(rf"\b{name}\s*\[" for name in shared))
    while more := {name: all_ for name, all_ in bodies.items() if name not in found and any(touches.search(body) for _, body in all_)}:
        found.update(more)
        touches = re.compile("|".join(rf"\b{name}\s*\(" for name in more))
    return {name: [(parameters, statements(body)) for parameters, body in all_] for name, all_ in found.items() if name != "main"}


def arguments(text, begin):
    """The arguments of a call whose parenthesis is at `begin`."""
    found, depth = [""], 0
    for c in text[begin + 1:end_of(text, begin) - 1]:
        depth += (c in "([") - (c in ")]")
        found[-1] += c
        if c == "," and depth == 0:
            found[-1:] = [found[-1][:-1], ""]
    return found


def wrong(body, shared, called, without=None):
    """What the walk finds, with the barrier of that number left out."""
    stored, loaded, visible = set(), set(), False
    which, halves = next((match[1] for text in walk(body, called) if (match := TURNS.fullmatch(text))), None), {}

    def both(name, index):
        """The halves of the array that an access may reach: the one that the index names, by itself or by way of variables, or both."""
        named = {halves[word] for word in re.findall(r"\w+", index) if word in halves}
        return {(name, half) for half in named or {0, 1}}

    outer = []  # the variables of the functions that have called this one
    for text in walk(body, called):
        if text == ENTERS:
            outer.append(dict(halves))
        elif text == LEAVES:
            halves.clear()
            halves.update(outer.pop())
        if TURNS.fullmatch(text):
            halves[which] = 1 - halves[which]
            continue
        for name, value in re.findall(r"\b(\w+)\s*\+?=\s*([^=,;][^,;]*)", text) if which else ():
            used = [halves[word] ^ bool(other) for other, word in re.findall(r"(1 - )?\b([a-z]\w*)", value) if word in halves]
            if used or name == which:
                halves[name] = used[0] if used else int(value)
            elif "+=" not in text:
                halves.pop(name, None)  # another variable of that name had a half
        if text == "memoryBarrierShared();":
            visible = True
            continue
        if barrier := BARRIER.fullmatch(text):
            if int(barrier[1]) != without:
                if stored and not visible:
                    return f"{', '.join(sorted({name for name, _ in stored}))}: a barrier without memoryBarrierShared() before it"
                stored, loaded = set(), set()
            visible = False
            continue
        visible = False
        target = re.match(r"(\w+)\s*\[(.*?)\](?:\s*\[.*?\])?\s*([-+*]?=)(?!=)", text, flags=re.S)
        stores = both(target[1], target[2]) if target and target[1] in shared else set()
        source = text[target.end():] if target and target[3] == "=" else text
        loads = {each for name in shared for index in re.findall(rf"\b{name}\s*\[(.*?)\]", source, flags=re.S) for each in both(name, index)}
        if loads & stored:
            return f"{', '.join(sorted({name for name, _ in loads & stored}))}: loaded without a barrier behind the store: {text}"
        if stores & loaded:
            return f"{', '.join(sorted({name for name, _ in stores & loaded}))}: stored without a barrier behind the load: {text}"
        stored |= stores
        loaded |= loads
    return None


def walk(body, called):
    """The statements as they run; a loop in which invocations meet runs twice."""
    for text, inside in body:
        if inside is None:
            for call in re.finditer(r"\b(\w+)\s*\(", text):
                for parameters, callee in called.get(call[1], []):
                    yield ENTERS
                    yield from (f"{name} = {value.strip()};" for name, value in zip(parameters, arguments(text, call.end() - 1)))
                    yield from walk(callee, called)
                    yield LEAVES
            yield text
        else:
            for _ in range(2 if any(map(BARRIER.fullmatch, walk(inside, called))) else 1):
                yield from walk(inside, called)


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
            text, barriers = preprocessed(validator, path)
            shared = set(re.findall(r"\bshared\s+\w+\s+(\w+)\s*\[", text))
            if not shared:
                continue
            begin = text.index("{", re.search(r"\bvoid\s+main\s*\(\s*\)", text).start())
            body = statements(text[begin + 1:end_of(text, begin) - 1])
            called = functions(text, shared)
            found = wrong(body, shared, called)
            if found:
                faults.append(f"{name}: {found}")
            needed[kernel_name(name), barriers] |= {i for i in range(barriers) if wrong(body, shared, called, i)}
    for (kernel, barriers), these in needed.items():
        if len(these) < barriers:
            unneeded = set(range(1, barriers + 1)) - {i + 1 for i in these}
            faults.append(f"{kernel}: nothing needs barrier {unneeded} of {barriers}, or this test sees less than it should")
        print(f"{kernel}: {barriers} barriers")
    sys.exit("\n".join(faults) if faults else 0)


main()
