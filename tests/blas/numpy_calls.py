"""Products, solutions and an SVD by NumPy, whose BLAS the caller has put another before. Usage: numpy_calls.py

Ends with 1 and a line for what is wrong, with 77 where this NumPy has a BLAS of its own in its package, which nothing can stand before.
"""
import glob
import os
import subprocess
import sys

try:
    import numpy as np
except ImportError:
    print("SKIPPED: NumPy (python3-numpy)")
    sys.exit(77)

modules = glob.glob(os.path.join(os.path.dirname(np.__file__), "core", "_multiarray_umath*.so"))
clean = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
if not modules or "libblas.so.3" not in subprocess.run(["ldd", modules[0]], env=clean, capture_output=True, text=True).stdout:
    print("SKIPPED: NumPy on the system's BLAS (python3-numpy)")
    sys.exit(77)

failures = 0


def check(what, error, bound):
    global failures
    if not error <= bound:
        failures += 1
        print(f"FAILED: {what}: {error} is more than {bound}")


generator = np.random.default_rng(1)
for dtype in (np.float32, np.float64, np.complex64, np.complex128):
    name, unit = np.dtype(dtype).name, np.finfo(dtype).eps

    def random(*shape):
        matrix = generator.standard_normal(shape)
        if np.dtype(dtype).kind == "c":
            matrix = matrix + 1j * generator.standard_normal(shape)
        return matrix.astype(dtype)

    wide = np.complex128 if np.dtype(dtype).kind == "c" else np.float64
    a, b = random(150, 130), random(130, 170)
    for left, right in ((a, b), (a.T.copy().T, b), (a, b.T.copy().T), (b.T, a.T), (a[::1, ::2], b[::2])):
        # einsum computes without BLAS.
        expected = np.einsum("ij,jk->ik", left.astype(wide), right.astype(wide))
        magnitude = np.einsum("ij,jk->ik", abs(left), abs(right))
        check(f"{name} product", float(np.max(abs(left @ right - expected) / magnitude)), 130 * unit if wide is np.float64 else 260 * unit)
    square = random(200, 200)
    right = random(200, 40)
    solution = np.linalg.solve(square, right)
    residual = np.max(abs(np.einsum("ij,jk->ik", square, solution) - right))
    check(f"{name} solution", float(residual / (np.max(np.sum(abs(square), 1)) * np.max(abs(solution)))), 100 * unit)
    u, s, v = np.linalg.svd(square)
    check(f"{name} SVD", float(np.max(abs((u * s) @ v - square)) / s[0]), 100 * unit)
    check(f"{name} SVD, its U", float(np.max(abs(np.einsum("ji,jk->ik", u.conj(), u) - np.eye(200)))), 100 * unit)
print(f"numpy {np.__version__}: {failures} failures")
sys.exit(1 if failures else 0)
