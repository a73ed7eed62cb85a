"""python -m glgemm ARGUMENTS: runs the tool `glgemm`, the one that is installed with this package or the first in PATH."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import glgemm


def find_tool() -> str | None:
    package = Path(__file__).resolve().parent
    # An editable package has two folders: one has the tool, the other one has this file.
    for folder in (*map(Path, glgemm.__path__), *package.parents):
        path = folder / "bin" / "glgemm"
        if path.is_file() and os.access(path, os.X_OK):
            return str(path)
    return shutil.which("glgemm")


def main() -> int:
    tool = find_tool()
    if tool is None:
        print("glgemm: the tool is not installed with this package (GLGEMM_PYTHON_TOOL=1 pip install .) and not in PATH", file=sys.stderr)
        return 2
    os.execv(tool, ["glgemm", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
