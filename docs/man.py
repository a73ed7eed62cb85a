#!/usr/bin/env python3
"""Writes a man page: a page of docs/commands, with the options that the program itself tells.

  man.py PAGE.md OUTPUT.1 VERSION PROGRAM [VERB]

Of Markdown it knows what those pages use: headings, paragraphs, lists, tables, blocks of code, `code`, **strong** and
links.
"""
import pathlib
import re
import subprocess
import sys

page, output, version, program, *verb = sys.argv[1:]
name = pathlib.Path(page).stem


def escape(text):
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq")
    return "\\&" + text if text.startswith(".") else text


def inline(text):
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    parts = re.split(r"(`[^`]+`|\*\*[^*]+\*\*)", text)
    return "".join(f"\\fB{escape(part.strip('`*'))}\\fR" if part[:1] in "`*" and len(part) > 1 else escape(part) for part in parts)


def paragraphs(markdown):
    """Blocks: (kind, lines)."""
    lines = markdown.splitlines()
    at = 0
    while at < len(lines):
        line = lines[at]
        start = at
        if not line.strip():
            at += 1
        elif line.startswith("```"):
            at += 1
            while not lines[at].startswith("```"):
                at += 1
            at += 1
            yield "code", lines[start + 1 : at - 1]
        elif line.startswith("    "):
            while at < len(lines) and (lines[at].startswith("    ") or not lines[at].strip()):
                at += 1
            yield "code", [entry[4:] for entry in lines[start:at]]
        elif line.startswith("#"):
            at += 1
            yield "heading", [line.lstrip("# ")]
        elif line.startswith("|"):
            while at < len(lines) and lines[at].startswith("|"):
                at += 1
            yield "table", [[cell.strip() for cell in row.strip().strip("|").split("|")] for row in lines[start:at]]
        else:
            at += 1
            while at < len(lines) and lines[at].strip() and not re.match(r"[#|]|```|[-*] ", lines[at]):
                at += 1
            yield ("item" if re.match(r"[-*] ", line) else "text"), lines[start:at]


def to_roff(markdown):
    for kind, lines in paragraphs(markdown):
        if kind == "code":
            yield ".PP\n.nf\n.RS 4\n" + "\n".join(escape(line) for line in lines).rstrip() + "\n.RE\n.fi"
        elif kind == "heading":
            yield f".SH {inline(lines[0]).upper()}"
        elif kind == "table":  # the first column names, the others tell
            header, _, *rows = lines
            for row in rows:
                yield f".TP\n{inline(row[0])}\n" + inline(". ".join(cell for cell in row[1:] if cell))
        elif kind == "item":
            yield ".IP \\(bu 2\n" + inline(" ".join(line.strip() for line in lines)[2:])
        else:
            yield ".PP\n" + inline(" ".join(line.strip() for line in lines))


text = subprocess.run([program, *verb, "--help"], capture_output=True, text=True, check=True).stdout
usage = re.search(r"^Usage: (.*)$", text, flags=re.M).group(1)
title, _, body = pathlib.Path(page).read_text().partition("\n")
brief = body.strip().splitlines()[0].rstrip(".")
body = body.strip().partition("\n")[2]

options = []
for section, block in re.findall(r"^([A-Z]\w*):\n((?:  .*\n)+)", text, flags=re.M):
    if section == "Subcommands":
        continue
    # A line that begins an option has two spaces before it; what explains it stands in the same line after two more, or below.
    for entry in re.split(r"\n(?=  \S)", block.rstrip()):
        first, *more = entry.splitlines()
        parts = re.split(r"\s{2,}", first.strip(), maxsplit=1)
        if len(parts) == 1:  # a long one has one space before what explains it
            parts = re.match(r"(\S+(?: (?:[A-Z]{2,}\S*|\[\S+|\.\.\.|\w+:(?: --\S+)+))*) ?(.*)", parts[0]).groups()
        explained = " ".join([*parts[1:], *(line.strip() for line in more)])
        options.append(f".TP\n\\fB{escape(parts[0])}\\fR\n{escape(explained)}")

roff = [
    f'.TH "{name.upper()}" 1 "" "glgemm {version}" "User Commands"',
    f".SH NAME\n{escape(name)} \\- {inline(brief[0].lower() + brief[1:])}",
    f".SH SYNOPSIS\n\\fB{escape(usage)}\\fR",
    ".SH DESCRIPTION",
    *to_roff(body),
    ".SH OPTIONS",
    *options,
]
if name != "glgemm":
    roff.append(".SH SEE ALSO\n\\fBglgemm\\fR(1)")
pathlib.Path(output).parent.mkdir(parents=True, exist_ok=True)
pathlib.Path(output).write_text("\n".join(roff) + "\n")
