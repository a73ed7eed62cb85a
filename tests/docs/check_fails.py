#!/usr/bin/env python3
"""Whether check.py finds what it is there to find: spoils a copy of the pages in one way at a time.

  check_fails.py GLGEMM
"""
import argparse
import pathlib
import shutil
import subprocess
import sys
import tempfile

root = pathlib.Path(__file__).resolve().parents[2]
parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("tool")
tool = parser.parse_args().tool
spoilt = {
    "a changed line of code": ("README.md", "engine.multiply(A, B)", "engine.multiply(B, A)", "is in no file that is compiled"),
    "an unknown option": ("docs/index.md", None, "\n`glgemm bench --no-such-option`\n", "has no option '--no-such-option'"),
    "an unknown option of a verb's page": ("docs/commands/glgemm-bench.md", None, "\n`--no-such-option`\n", "there is no option"),
    "an unknown verb": ("docs/index.md", None, "\n    glgemm nosuchverb\n", "is not a verb"),
    "options that exclude each other": ("docs/index.md", None, "\n`glgemm inspect --size 8 --no-device --device 0`\n", "excludes"),
    "a link to nowhere": ("docs/index.md", None, "\n[x](nowhere.md)\n", "leads nowhere"),
    "a heading that is not there": ("docs/index.md", None, "\n[x](guide.md#nowhere)\n", "has no heading"),
    "a member that is not there": ("docs/adding-a-kernel.md", "| `block_of` |", "| `tile` |", "a family has no member tile"),
    "a member left out": ("docs/adding-a-kernel.md", "| `block_of` |", "| |", "the table of members lacks block_of"),
    "a format left out": ("docs/weights.md", "| `mxfp4` |", "| `fp4` |", "the table of formats lacks mxfp4"),
    "another size of a block": ("docs/weights.md", "| 17 for 32 |", "| 18 for 32 |", "the table of formats lacks mxfp4, 17 bytes"),
    "a call left out": ("docs/opengl-calls.md", "`glGetBooleanv`", "", "lacks glGetBooleanv"),
    "a README too long": ("README.md", None, "word " * 1200, "words, at most"),
}
failed = 0
for name, (page, old, new, message) in {"nothing": ("README.md", "", "", None), **spoilt}.items():
    with tempfile.TemporaryDirectory() as folder:
        copy = pathlib.Path(folder)
        for entry in root.iterdir():  # links lead to the rest of the tree
            if entry.name not in ("README.md", "docs"):
                (copy / entry.name).symlink_to(entry)
        shutil.copy(root / "README.md", copy)
        shutil.copytree(root / "docs", copy / "docs")
        text = (copy / page).read_text()
        changed = text + new if old is None else text.replace(old, new, 1)
        (copy / page).write_text(changed)
        result = subprocess.run([sys.executable, root / "tests/docs/check.py", tool, "--root", folder], capture_output=True, text=True)
        right = result.returncode == 0 if message is None else result.returncode == 1 and message in result.stdout
        if not right or (message is not None and changed == text):
            print(f"{name}: check.py ended with {result.returncode}: {result.stdout}{result.stderr}")
            failed = 1
sys.exit(failed)
