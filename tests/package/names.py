#!/usr/bin/env python3
"""Whether docs/names.md is right and has all: its tables of names in C++, C, Python and the tool.

  names.py COMPILER INCLUDE...            COMPILER is one of C
  names.py --planted COMPILER INCLUDE...  plants faults of each kind, and fails where one is not found

Reads the lists in interface/ (or in the folder GLGEMM_INTERFACE), which interface.py makes, and the headers. A row of a table has
names of one thing: `Engine::gemm` or, of several overloads, `Engine::gemm(Gemm)` by the first parameters' types; `glgemm_view.ld`,
`GLGEMM_F32`; `Engine.gemm`, `gemm(bias)` for a parameter; `multiply` for a verb, `--kernel`, `.kernel_ms` for a key of JSON.
A fault is

  a name that is not in the list of its language;
  a name that is in no row, see names_needed();
  a name of C++ that C or Python lacks, and no word why;
  a struct of C++ beside one of C, or an enumeration beside constants, whose members are named otherwise than the page's
  introduction says, where no row has the member.

Ends with 1 and a sentence for each fault.
"""
import os
import pathlib
import re
import subprocess
import sys

here = pathlib.Path(__file__).resolve().parent
languages = "C++", "C", "Python", "the tool"
# What the tool's options say of files, output, what is measured and how long, and not of a product: they need no row.
about_runs = """all as candidates check-table class columns compiled convolutions-of cpu-seconds csv enqueue error-image exhaustive
  first force header help image json missing no-device opencl-device output paper patience peer repeats roofline runs scaling seed
  shape shapes shapes-of size source steps tables time-limit warmup""".split()


# ---- What there is

def type_words(parameters):
    """The types of parameters without const, references and std::, 'span<Gemm>' of 'std::span<const Gemm> products'."""
    parts, depth = [""], 0
    for letter in parameters:
        depth += (letter in "<({") - (letter in ">)}")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return ["".join(re.sub(r"\bconst\b|std::|[&*]", " ", part.split("=")[0]).split()[:-1]) for part in parts]


def overload(name):
    """'multiply' and ['Engine', 'HostGemm'] of 'multiply(Engine, HostGemm)'; no types of 'multiply'."""
    bare, _, parameters = name.rstrip(")").partition("(")
    return bare, type_words(",".join(f"{each} x" for each in parameters.split(","))) if parameters else []


class Cpp:
    def __init__(self, lines, headers):
        self.types, self.enums, self.functions, self.members, self.names = set(), {}, {}, {}, set()
        for line in lines:
            found = re.match(r"(\w+) glgemm::([\w:~]+)(?:\((.*)\))? ?(.*)", line)
            if not found or "::operator" in line or "static_assert" in line or found[2].startswith(("operator", "detail", "T::")):
                continue
            kind, name, parameters, rest = found.groups()
            owner, _, own = name.rpartition("::")
            self.names.add(name)
            if kind in ("class", "struct", "enum"):
                self.types.add(name)
            elif kind == "enumerator":
                self.enums.setdefault(owner, []).append(own)
            elif kind == "function":
                self.functions.setdefault(name, []).append(type_words(parameters))
            if kind == "member" or (kind == "function" and parameters == "" and rest.startswith("const")):
                self.members.setdefault(owner, {}).setdefault(own, rest)  # what a class tells of itself is a member, too
        self.words = set(re.findall(r"\w+", " ".join(lines)))
        # Functions that only read a field: those without parameters whose body is "return field_;".
        self.readers, owner = set(), ""
        for line in headers.splitlines():
            if begins := re.match(r"(?:class|struct) (?:GLGEMM_\w+ )?(\w+)[^;]*$", line):
                owner = begins[1]
            if reads := re.search(r"\b(\w+)\(\) (?:const )?(?:noexcept )?\{ return \w+_; \}", line):
                self.readers.add(f"{owner}::{reads[1]}")

    def has(self, name):
        bare, wanted = overload(name)
        return bare in self.names and (not wanted or any(types[:len(wanted)] == wanted for types in self.functions.get(bare, [])))


class C:
    def __init__(self, lines, preprocessed):
        self.functions, self.types, self.members = set(), set(), {}
        for line in lines:
            kind, name = re.match(r"(\w+) ([\w:]+)", line).groups()
            if kind == "function":
                self.functions.add(name)
            elif kind == "member":
                self.members.setdefault(name.split("::")[0], []).append(name.split("::")[1])
            elif kind != "constant":
                self.types.add(name)
        self.groups = [re.findall(r"\b(GLGEMM_\w+) *=", group) for group in re.findall(r"\benum\s*\{([^}]*)\}", preprocessed)]
        self.groups = [group for group in self.groups if group]
        self.constants = set(re.findall(r"#define (GLGEMM_\w+)", preprocessed)).union(*self.groups)

    def has(self, name):
        struct, _, member = name.partition(".")
        return member in self.members.get(struct, []) if member else name in self.functions | self.types | self.constants


class Python:
    def __init__(self, lines):
        self.signatures = {re.match(r"[\w.]+", line)[0]: line for line in lines}

    def parameters(self, name):
        signature = self.signatures.get(name, "").partition("(")[2]
        return re.findall(r"(?:^|, )\*?(\w+): ", signature)

    def has(self, name):
        function, _, parameter = name.partition("(")
        return function in self.signatures and (not parameter or parameter.rstrip(")") in self.parameters(function))


class Tool:
    def __init__(self, lines, json_lines):
        self.options = set(re.findall(r"(--[a-z][\w-]*)", "\n".join(lines)))
        self.verbs = {line.split()[0] for line in lines}
        self.keys = {"." + line.rpartition(".")[2] for line in json_lines}

    def has(self, name):
        return name in self.options | self.verbs | self.keys


# ---- The tables

def rows_of(page, faults):
    """(names in C++, C, Python and the tool, words) of each row."""
    rows = []
    for line in page.splitlines():
        if not line.startswith("| ") or line.startswith("| C++"):
            continue
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) != 5 or any(not re.fullmatch(r"—|`[^`]+`(, `[^`]+`)*", cell) for cell in cells[:4]):
            faults.append(f"a row is no five cells of names and words: {line}")
            continue
        rows.append(([re.findall(r"`([^`]+)`", cell) for cell in cells[:4]], cells[4]))
    return rows


def names_needed(cpp, c, python, tool, rows, named):
    """Faults of names that are in no row.

    C++: types, and functions but for constructors, destructors, operators and those that only read a field. C: functions, types,
    constants that are no enumeration's; a function _init or _destroy goes with what it is of. Python: all, but for members that
    have the name of a member of the struct in their class's row; and parameters that are no word of C++. The tool: options that
    are about products. `Activation::relu` stands for all activations.
    """
    in_cpp, in_c, in_python, in_tool = named
    activations = set(cpp.enums["ActivationKind"]) if "Activation::relu" in in_cpp else set()
    for name in sorted(cpp.types | set(cpp.functions)):
        owner, _, own = name.rpartition("::")
        if own in (owner, "~" + owner) or name in cpp.readers | in_cpp or (owner == "Activation" and own in activations):
            continue
        named_ones = [overload(one)[1] for one in in_cpp if one.startswith(name + "(")]
        if not named_ones:
            yield f"C++ has {name}, and no row does"
        for types in cpp.functions.get(name, []) if named_ones else []:
            if not any(types[:len(one)] == one for one in named_ones):
                yield f"C++ has {name}({', '.join(types)}), and rows have other overloads alone"
    for name in sorted(c.functions | c.types):
        base = re.sub("_(init|destroy)$", "", name)
        is_activation = name.removeprefix("glgemm_activation_") in activations and "glgemm_activation_relu" in in_c
        if name not in in_c and not (base != name and base in in_c) and not is_activation:
            yield f"C has {name}, and no row does"
    of_enums = {one for (names, names_in_c, *_), _ in rows if set(names) & set(cpp.enums) for one in names_in_c}
    for group in c.groups:
        for name in [] if of_enums & set(group) else group:
            if name not in in_c:
                yield f"C has {name}, and no row does"
    alike = {f"{one}.{member}" for (names, _, names_in_python, _), _ in rows for one in names_in_python
             for struct in names for member in cpp.members.get(struct, {})}
    parameters = {one.partition("(")[2][:-1] for one in in_python}
    for name in python.signatures:
        if name not in in_python and name not in alike and not any(one.startswith(name + "(") for one in in_python):
            yield f"Python has {name}, and no row does"
        for one in python.parameters(name):
            if one not in cpp.words | parameters | {"self"} and f"*{one}:" not in python.signatures[name] and one[0] != "_":
                yield f"Python has the parameter {name}({one}): C++ has no such word, and no row has it"
    for name in sorted(tool.options - in_tool - {"--" + one for one in about_runs}):
        yield f"the tool has {name}, and no row does"


def members_agree(cpp, c, names_in_cpp, names_in_c, named):
    """Faults of a row's structs, whose members C++ and C name otherwise, and of its enumerations."""
    in_cpp, in_c = named[:2]
    structs = [name for name in names_in_cpp if name in cpp.members]
    of_c = [name for name in names_in_c if name in c.members]
    if structs and of_c:
        members = {member + "_ns" * ("std::chrono" in kind): (struct, member, kind)
                   for struct in structs for member, kind in cpp.members[struct].items() if member not in ("experimental", "reserved")}
        counts = {name + "_count" for member, (_, _, kind) in members.items() if re.match(r"std::(span|vector)", kind)
                  for name in (member, member.removesuffix("s"))}
        there = {member: struct for struct in of_c for member in c.members[struct]}
        for member, (struct, own, _) in members.items():
            if member not in there and f"{struct}::{own}" not in in_cpp:
                yield f"C++ has {struct}::{own}, and {of_c[0]} in C has no {member}; no row says so"
        for member, struct in there.items():
            if member not in members and member not in counts | {"struct_size", "user"} and f"{struct}.{member}" not in in_c:
                yield f"C has {struct}.{member}, and {structs[0]} in C++ has no such member; no row says so"
    for enum in [name for name in names_in_cpp if name in cpp.enums]:
        for constant in [name for name in names_in_c if name in c.constants]:
            group = next((group for group in c.groups if constant in group), [constant])
            own = max((one for one in cpp.enums[enum] if constant.endswith("_" + one.upper())), key=len, default="")
            prefix = constant.removesuffix(own.upper())
            wanted = {prefix + one.upper(): one for one in cpp.enums[enum]}
            for one in wanted.keys() - set(group):
                if f"{enum}::{wanted[one]}" not in in_cpp:
                    yield f"C++ has {enum}::{wanted[one]}, and C has no {one}; no row says so"
            for one in set(group) - wanted.keys() - in_c:
                yield f"C has {one}, and C++ has no {enum}::{one.removeprefix(prefix).lower()}; no row says so"


def faults_of(page, lists):
    cpp, c = Cpp(lists["c++"], lists["headers"]), C(lists["c"], lists["preprocessed"])
    python, tool = Python(lists["python"]), Tool(lists["tool"], lists["json"])
    faults = []
    rows = rows_of(page, faults)
    named = [{name for names, _ in rows for name in names[i]} for i in range(4)]
    for language, known, names in zip(languages, (cpp, c, python, tool), named):
        faults += [f"a row names {name}, and {language} has no such name" for name in sorted(names) if not known.has(name)]
    faults += names_needed(cpp, c, python, tool, rows, named)
    for names, words in rows:
        lacking = [language for language, there in zip(languages[1:3], names[1:3]) if not there]
        if names[0] and lacking and not words:
            verb = "lack" if len(lacking) > 1 else "lacks"
            faults.append(f"{' and '.join(lacking)} {verb} {names[0][0]}, and its row does not say why")
        faults += members_agree(cpp, c, names[0], names[1], named)
    return faults


# ---- Planted faults

def planted(page, lists):
    """(a page, lists, the sentence that is to be among the faults) of each."""
    def with_line(which, line, without=None):
        return page, lists | {which: [each for each in lists[which] if each != without] + [line]}

    def with_row(row):
        return f"{page}\n{row}\n", lists

    for i, language in enumerate(languages):
        cells = ["`gone`" if cell == i else "—" for cell in range(4)]
        yield *with_row(f"| {' | '.join(cells)} | |"), f"a row names gone, and {language} has no such name"
    yield *with_row("| `Engine::gemm(Mlp)` | — | — | — | x |"), "a row names Engine::gemm(Mlp), and C++ has no such name"
    yield *with_row("| — | `glgemm_view.gone` | — | — | x |"), "a row names glgemm_view.gone, and C has no such name"
    yield *with_row("| — | — | `gemm(gone)` | — | x |"), "a row names gemm(gone), and Python has no such name"
    yield *with_row("| gone | — | — | — | x |"), "a row is no five cells of names and words: | gone | — | — | — | x |"
    for line in "function glgemm::came() int", "struct glgemm::came", "function glgemm::Engine::came() const int":
        yield *with_line("c++", line), f"C++ has {line.split(' ')[1].split('(')[0].removeprefix('glgemm::')}, and no row does"
    yield (*with_line("c++", "function glgemm::Engine::start(const Chain & chain) Job"),
           "C++ has Engine::start(Chain), and rows have other overloads alone")
    yield *with_line("c", "function glgemm_came(void) int"), "C has glgemm_came, and no row does"
    yield *with_line("c", "struct glgemm_came"), "C has glgemm_came, and no row does"
    preprocessed = lists["preprocessed"]
    yield page, lists | {"preprocessed": preprocessed + "enum { GLGEMM_CAME = 1 };"}, "C has GLGEMM_CAME, and no row does"
    yield *with_line("python", "Engine.came() -> None"), "Python has Engine.came, and no row does"
    yield (*with_line("python", "transposed_product(novelty: int)"),
           "Python has the parameter transposed_product(novelty): C++ has no such word, and no row has it")
    yield *with_line("tool", "multiply --came N"), "the tool has --came, and no row does"
    yield *with_row("| `Engine::gemm` | — | — | — | |"), "C and Python lack Engine::gemm, and its row does not say why"
    yield (*with_line("c", "member glgemm_batch::pitch_a int64_t", "member glgemm_batch::stride_a int64_t"),
           "C++ has Batch::stride_a, and glgemm_batch in C has no stride_a; no row says so")
    yield (*with_line("c", "member glgemm_batch::pitch_a int64_t"),
           "C has glgemm_batch.pitch_a, and Batch in C++ has no such member; no row says so")
    yield (*with_line("c++", "enumerator glgemm::Op::mirror"), "C++ has Op::mirror, and C has no GLGEMM_OP_MIRROR; no row says so")
    more = preprocessed.replace("GLGEMM_OP_NONE = 0", "GLGEMM_OP_NONE = 0, GLGEMM_OP_MIRROR = 9")
    yield page, lists | {"preprocessed": more}, "C has GLGEMM_OP_MIRROR, and C++ has no Op::mirror; no row says so"


def main():
    words = sys.argv[1:]
    is_planted = words[:1] == ["--planted"]
    compiler, *include = words[is_planted:]
    folder = pathlib.Path(os.environ.get("GLGEMM_INTERFACE", here / "interface"))
    lists = {name: (folder / f"{name}.txt").read_text().splitlines() for name in ("c++", "c", "python", "tool", "json")}
    source = "#include <glgemm/glgemm.h>\n#include <glgemm/glgemm_headless.h>\n"
    preprocess = [compiler, "-E", "-dD", "-x", "c", *(f"-I{each}" for each in include), "-"]
    lists["preprocessed"] = subprocess.run(preprocess, input=source, stdout=subprocess.PIPE, text=True, check=True).stdout
    lists["headers"] = "\n".join(path.read_text() for path in sorted(pathlib.Path(include[0], "glgemm").glob("*.hpp")))
    page = (here.parents[1] / "docs" / "names.md").read_text()
    if is_planted:
        missed = [sentence for page, lists, sentence in planted(page, lists) if sentence not in faults_of(page, lists)]
        sys.exit("\n".join(f"not found: {sentence}" for sentence in missed) if missed else 0)
    faults = faults_of(page, lists)
    sys.exit("\n".join(f"docs/names.md: {fault}" for fault in faults) if faults else 0)


main()
