"""What Python adds to a product: each figure is a ratio of two measurements that take turns in one run.

    PYTHONPATH=build/python python3 tests/python/figures.py TOOL

  call     matmul(x, y, out=z) of 64 x 64 arrays on the device over Engine::gemm of the same arrays
  @        x @ y, which makes a new array, over Engine::gemm of the same arrays
  host     `glgemm multiply`'s total for N = 2048, from host to host, over that of matmul(a, b)
"""

import argparse
import pathlib
import re
import subprocess
import tempfile
import time

import numpy as np

import glgemm


def run(*arguments):
    return subprocess.run([tool, *arguments], check=True, capture_output=True, text=True).stdout


def call_ratios(turns=60, calls=20):
    with glgemm.Engine() as engine:
        x, y, z = (engine.asarray(np.ones((64, 64), np.float32)) for _ in range(3))

        def seconds(call):
            start = time.perf_counter()
            for _ in range(calls):
                call()
            return time.perf_counter() - start

        least = [1e9] * 3
        for _ in range(turns):
            for i, measure in enumerate(
                (
                    lambda: engine._service._seconds_of_calls(x, y, z, calls),
                    lambda: seconds(lambda: glgemm.matmul(x, y, out=z)),
                    lambda: seconds(lambda: x @ y),
                )
            ):
                least[i] = min(least[i], measure())
                engine.finish()
        cpp, *python = (1e6 * each / calls for each in least)
    for name, each in zip(("call", "@"), python):
        print(f"{name:5} {each:8.1f} us, C++ {cpp:8.1f} us: {each / cpp:.2f}  (least of {turns} turns)", flush=True)


def host_ratio():
    generator = np.random.default_rng(0)
    a, b = (generator.uniform(-1, 1, (2048, 2048)).astype(np.float32) for _ in range(2))
    with tempfile.TemporaryDirectory() as folder:
        paths = [str(pathlib.Path(folder) / name) for name in ("a.npy", "b.npy", "c.npy")]
        np.save(paths[0], a)
        np.save(paths[1], b)
        python, tool = [], []
        for _ in range(6):
            start = time.perf_counter()
            glgemm.matmul(a, b)
            python.append(1e3 * (time.perf_counter() - start))
            pathlib.Path(paths[2]).unlink(missing_ok=True)
            text = run("multiply", paths[0], paths[1], "-o", paths[2], "--check", "none",)
            took, unit = re.search(r"with transfers ([\d.]+) (m?s)", text).groups()
            tool.append(float(took) * (1 if unit == "ms" else 1e3))
    print(f"host  {min(python[1:]):8.1f} ms, tool {min(tool[1:]):8.1f} ms: {min(tool[1:]) / min(python[1:]):.2f}")


parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("tool")
tool = parser.parse_args().tool
call_ratios()
host_ratio()
