"""What is promised has the names of the list in package/interface/."""

import pathlib
import subprocess
import sys

import pytest


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="the list is as Python 3.11 writes signatures")
def test_names():
    script = pathlib.Path(__file__).resolve().parent.parent / "package" / "interface.py"
    done = subprocess.run([sys.executable, script, "python"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
