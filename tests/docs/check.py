#!/usr/bin/env python3
"""Checks README.md and docs/: blocks of code, options of commands, links, lengths.

  check.py GLGEMM [GLGEMM-VIEW] [--root DIR]

  - each fenced block of cpp or c is a part of a file of docs/examples, tests/toolkits, src/ or include/, line by line, apart from its
    indentation;
  - each option of a 'glgemm VERB' or 'glgemm-view' command stands in that program's --help, and each bare option on a
    page of docs/commands in that of its verb;
  - the options of each 'glgemm inspect' command go together;
  - each link to a file, and to a heading of a page, leads somewhere;
  - README.md names each type of 'glgemm inspect --tables', docs/weights.md has a row for each format, with the bytes of blocks, and what
    docs/kernels.md says of the parameters of kernels is so;
  - docs/adding-a-kernel.md names the members of a family that are to be written, and none that is not there;
  - docs/opengl-calls.md names each call that tests/engine/gl_calls.cpp counts;
  - README.md keeps to 150 lines and 1,200 words;
  - files of other programs that name glgemm's version name that of CMakeLists.txt.

Ends with 1 and a line for each fault.
"""
import argparse
import json
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import textwrap

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("tool")
parser.add_argument("viewer", nargs="?")
parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parents[2])
arguments = parser.parse_args()
tool, viewer, root = arguments.tool, arguments.viewer, arguments.root
faults = []


def help_of(program, *verb):
    result = subprocess.run([program, *verb, "--help"], capture_output=True, text=True)
    return result.stdout if result.returncode == 0 else None


def options_in(text):
    return set(re.findall(r"(?<![\w-])--?[a-zA-Z][\w-]*", text))


helps = {}


def known_options(verb):
    """The options of a verb, '' for glgemm itself, or 'view' for the viewer; None if there is no such verb."""
    if verb not in helps:
        if verb == "view":
            text = help_of(viewer) if viewer else None
        else:
            text = help_of(tool, *([verb] if verb else []))
            if text and f"Usage: glgemm {verb}".strip() not in text:  # --help after a word that is no verb is glgemm's own
                text = None
        helps[verb] = options_in(text) if text is not None else None
    return helps[verb]


def options_of_page(page):
    """The options that a page of docs/commands may name: its verb's options; the page of all verbs may name any verb's."""
    verb = page.stem.removeprefix("glgemm").removeprefix("-")
    if verb:
        return known_options(verb)
    verbs = [other.stem.removeprefix("glgemm-") for other in page.parent.glob("glgemm-*.md")]
    return set().union(*(known_options(other) or () for other in ["", *verbs]))


def check_command(command, where):
    """`command` is one command line, without what comes after a pipe or a comment."""
    command = re.split(r"\s#\s|\||;|&&", command)[0]
    match = re.search(r"(?:^|[\s/])glgemm(-view)?((?:\s+\S+)*)$", command.strip())
    if not match:
        return
    words = match.group(2).split()
    if match.group(1):
        verb = "view"
        if viewer is None:
            return
    else:
        verb = words[0] if words and re.fullmatch(r"[a-z]+", words[0]) else ""
    options = known_options(verb)
    if options is None:
        faults.append(f"{where}: 'glgemm {verb}' is not a verb")
        return
    for word in words:
        word = word.strip("[](),.:`'").split("=")[0]
        if re.fullmatch(r"--?[a-zA-Z][\w-]*", word) and word not in options:
            faults.append(f"{where}: 'glgemm {verb}' has no option '{word}'")
    if verb == "inspect" and "--compiled" not in words:  # which needs a device
        check_together(match.group(2), where)


def check_together(words, where):
    """Whether the options of a `glgemm inspect` command go together: it runs without a device, in a folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        without = [] if "--no-device" in words or "--as" in words else ["--no-device"]
        told = subprocess.run([tool, *shlex.split(words), *without], cwd=folder, capture_output=True, text=True).stderr
    if "--help explains" in told:
        faults.append(f"{where}: 'glgemm{words}': {told.strip()}")


examples = {path: path.read_text().splitlines() for path in sorted((root / "docs/examples").glob("*.c*"))}
sources = {path: path.read_text().splitlines() for folder in ("src", "include", "tests/toolkits") for path in sorted((root / folder).rglob("*.[chi]pp"))}


def stands_in(part, lines):
    """Whether these lines stand there one after the other, apart from their common indentation."""
    for start in range(len(lines) - len(part) + 1):
        indent = lines[start][: len(lines[start]) - len(lines[start].lstrip())]
        if all(theirs.rstrip() == (indent + ours).rstrip() for ours, theirs in zip(part, lines[start:])):
            return True
    return False


def is_compiled(block):
    """Whether a file of the tree that is compiled holds the block; a line of dots leaves something out."""
    parts = [textwrap.dedent(part).strip("\n").splitlines() for part in re.split(r"^\s*\.\.\.$", block, flags=re.M) if part.strip()]
    return any(all(stands_in(part, lines) for part in parts) for lines in [*examples.values(), *sources.values()])


def anchor(heading):
    text = re.sub(r"[`*]", "", heading.strip().lower())
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


def headings(path):
    text = re.sub(r"```.*?```", "", path.read_text(), flags=re.S)
    return {anchor(line) for line in re.findall(r"^#+ (.*)$", text, flags=re.M)}


pages = [root / "README.md", *sorted((root / "docs").rglob("*.md"))]
for page in pages:
    where = page.relative_to(root)
    text = page.read_text()
    prose = re.sub(r"^```.*?^```", "", text, flags=re.S | re.M)
    for language, block in re.findall(r"^```(\w*)\n(.*?)^```", text, flags=re.S | re.M):
        if language in ("cpp", "c") and not is_compiled(block):
            first = next((line for line in block.splitlines() if line.strip()), "")
            faults.append(f"{where}: this block is in no file that is compiled: {first.strip()}")
        if language in ("sh", "console"):
            for line in block.replace("\\\n", " ").splitlines():
                check_command(line.removeprefix("$ "), where)
    for line in re.findall(r"^    (\S.*)$", prose, flags=re.M):
        check_command(line, where)
    for code in re.findall(r"`([^`]+)`", prose):
        check_command(" ".join(code.split()), where)
        if page.parent.name == "commands" and re.match(r"-", code):
            options = options_of_page(page)
            word = re.split(r"[ =]", code)[0]
            if options is not None and word not in options:
                faults.append(f"{where}: there is no option '{word}'")
    for target in re.findall(r"\]\(([^)\s]+)\)", prose):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, fragment = target.partition("#")
        to = (page.parent / path).resolve() if path else page
        if not to.exists():
            faults.append(f"{where}: the link to '{target}' leads nowhere")
        elif fragment and fragment not in headings(to):
            faults.append(f"{where}: '{path}' has no heading '#{fragment}'")

readme = (root / "README.md").read_text()
for what, count, most in (("lines", len(readme.splitlines()), 150), ("words", len(readme.split()), 1200)):
    if count > most:
        faults.append(f"README.md: {count} {what}, at most {most} are wanted")

project = root / "CMakeLists.txt"
version = re.search(r"project\(glgemm VERSION (\S+)", project.read_text())[1] if project.exists() else None
for name, pattern in (
    ("CITATION.cff", r"^version: (\S+)"),
    ("vcpkg.json", r'"version-string": "(.*)"'),
    ("tools/packaging/vcpkg/glgemm/vcpkg.json", r'"version": "(.*)"'),
    ("tools/packaging/debian/changelog", r"^glgemm \((\S+)\)"),
):
    if version and (root / name).exists() and re.findall(pattern, (root / name).read_text(), re.M)[:1] != [version]:
        faults.append(f"{name}: the version is not {version}, as in CMakeLists.txt")

# What pages say of types and kernels against the tables. A kernel may have no row.
tables = json.loads(subprocess.run([tool, "inspect", "--tables"], check=True, capture_output=True, text=True).stdout)
of_types = [re.sub(r"[^\w]+", " ", row).split() for row in re.findall(r"^\| (.*?) \|", readme[readme.index("| types of A and B |") :], flags=re.M)]
for each in tables["types"]:
    if not any(each["name"] in row for row in of_types):
        faults.append(f"README.md: the table of types lacks {each['name']}")
weights = (root / "docs/weights.md").read_text()
of_formats = re.findall(r"^\| (`.*?) \|.*?\|(.*?)\|", weights, flags=re.M)
for each in tables["formats"]:
    bytes_for = [bytes_ for names, bytes_ in of_formats if f"`{each['name']}`" in names]
    blocks = each["codes"] > 1
    if len(bytes_for) != 1 or blocks and not (re.search(rf"\b{each['bytes']}\b", bytes_for[0]) and bytes_for[0].endswith(f" for {each['codes']} ")):
        faults.append(f"docs/weights.md: the table of formats lacks {each['name']}" + (f", {each['bytes']} bytes for {each['codes']} codes" if blocks else ""))
kernels = {each["name"]: [parameter["name"] for parameter in each["parameters"]] for each in tables["kernels"]}
page = (root / "docs/kernels.md").read_text()
for name, text in re.findall(r"^\| `(\w+)` \| (.*) \|$", page, flags=re.M):
    if not (root / "shaders" / f"{name}.comp").exists():
        faults.append(f"docs/kernels.md: there is no kernel {name}")
for name, text in re.findall(r"^\| `(\w+)` \| (.*) \|$", page[page.index("| kernel | parameters |") :], flags=re.M):
    named = {word for word in re.findall(r"\w+", text) if word in kernels.get(name, []) or "_" in word}
    if named != set(kernels.get(name, [])):
        faults.append(f"docs/kernels.md: the parameters of {name} are {', '.join(kernels.get(name, []))}")

# What docs/adding-a-kernel.md says of a family: there is each member that it names, and none without a default is left out.
family = (root / "src/kernels/family.hpp").read_text()
page = (root / "docs/adding-a-kernel.md").read_text()
members = set(re.findall(r"`(\w+)`", " ".join(re.findall(r"^\|([^|]*)\|", page[page.index("| member | what it says | default | `outer` |") :], flags=re.M))))
written = set(re.findall(r"virtual [^;{]*?(\w+)\([^;{]*?\) const = 0;", family[family.index("class ProductFamily ") :]))
known = set(re.findall(r"virtual [^;{]*?(\w+)\(", family))
faults += [f"docs/adding-a-kernel.md: a family has no member {name}" for name in sorted(members - known)]
faults += [f"docs/adding-a-kernel.md: the table of members lacks {name}" for name in sorted(written - members)]

# The calls of a product that a test counts are on their page.
counted = set(re.findall(r'\{"(gl\w+)", \d', (root / "tests/engine/gl_calls.cpp").read_text()))
named = set(re.findall(r"\bgl[A-Z]\w*", (root / "docs/opengl-calls.md").read_text()))
faults += [f"docs/opengl-calls.md: lacks {name}, which gl_calls.cpp counts" for name in sorted(counted - named)]

print("\n".join(faults) if faults else f"{len(pages)} pages, {len(examples)} examples")
sys.exit(1 if faults else 0)
