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


def sections(text):
    """What a --help tells: (title, lines) of each part whose title ends with a colon, and ("", lines) of what stands alone."""
    title, lines = "", []
    for line in text.splitlines():
        if re.match(r"\S.*:$", line):
            yield title, lines
            title, lines = line[:-1], []
        elif line.strip() and not line.startswith(" ") and any(entry.startswith("  ") for entry in lines):
            yield title, lines
            title, lines = "", [line]
        else:
            lines.append(line)
    yield title, lines


def entries(lines):
    """(name, meaning) of lines that begin with two spaces; lines that begin with more go on."""
    found = []
    for line in lines:
        if re.match(r"  \S", line):
            parts = re.split(r"\s{2,}", line.strip(), maxsplit=1)
            if len(parts) == 1:  # a long one has one space, or the end of the line, before what it means
                parts = re.match(r"(-\S*(?: (?:-\S+|[A-Z]{2,}\S*|[a-z]+\|\S+|\[\S+|\.\.\.|\w+:(?: --\S+)+))*|\S+) ?(.*)", parts[0]).groups()
            found.append([parts[0], parts[1:]])
            found[-1][1] = [part for part in found[-1][1] if part]
        elif line.strip() and found:
            found[-1][1].append(line.strip())
    return [(name, " ".join(meaning)) for name, meaning in found]


text = subprocess.run([program, *verb, "--help"], capture_output=True, text=True, check=True).stdout
usage = re.search(r"^Usage: (.*)$", text, flags=re.M).group(1)
title, _, body = pathlib.Path(page).read_text().partition("\n")
brief = body.strip().splitlines()[0].rstrip(".")
body = body.strip().partition("\n")[2]

options = []
for title, lines in sections(text):
    # The page has examples of its own, and verbs have their own pages.
    if not title or title in ("Examples", "Environment", "Verbs", "Subcommands"):
        continue
    if not any(line.strip() for line in lines):
        continue
    options.append(f".SS {escape(title)}")
    options += [f".TP\n\\fB{escape(option)}\\fR\n{escape(meaning)}" for option, meaning in entries(lines)]
    if not entries(lines):
        options.append(".nf\n" + "\n".join(escape(line) for line in lines).strip() + "\n.fi")

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
