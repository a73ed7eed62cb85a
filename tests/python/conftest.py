"""What the tests of the Python module share."""

import contextlib
import os
import signal
import subprocess
import sys
import threading

os.environ.setdefault("GLGEMM_PROGRAM_CACHE", "")
os.environ.setdefault("GLGEMM_TUNING", "")

import hypothesis
import numpy as np
import pytest

import glgemm

# GLGEMM_PYTHON_EXAMPLES: how many cases each property draws.
hypothesis.settings.register_profile(
    "glgemm",
    max_examples=int(os.environ.get("GLGEMM_PYTHON_EXAMPLES", "60")),
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=list(hypothesis.HealthCheck),
)
hypothesis.settings.load_profile("glgemm")


# The types of the library's table that NumPy itself has.
TABLE = [a for a, b in glgemm._core.types_of_c if a == b and hasattr(np, a)]


@pytest.fixture(scope="session")
def engine():
    return glgemm.default_engine()


PRELUDE = """
import numpy as np, glgemm, os, signal, sys, threading, time
def errors_of(part, *calls):
    found = []
    for call in calls:
        try:
            call()
            found.append("no error")
        except glgemm.Error as error:
            found.append(part in str(error))
    return found
"""


def run_python(code, *before, **environment):
    """The status of a new interpreter, which the command `before` starts, and what it printed."""
    done = subprocess.run(
        [*before, sys.executable, "-c", PRELUDE + code],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(glgemm.__file__)), **environment},
    )
    return done.returncode, done.stdout, done.stderr


def check_errors(*cases):
    """Each case is a call, the error that it raises, and a pattern in the error's words."""
    for call, error, words in cases:
        with pytest.raises(error, match=words):
            call()


@contextlib.contextmanager
def interrupted(seconds=0.2):
    """What is within ends by a KeyboardInterrupt after so long."""
    timer = threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        yield
    timer.join()


def on_threads(work, count=1):
    """Calls work(number) on so many threads at once."""
    threads = [threading.Thread(target=work, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def integers(shape, dtype=np.float32, seed=0):
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(dtype)


def unit_roundoff(dtype):
    """The unit roundoff of the sums of such elements."""
    dtype = np.dtype(dtype)
    single = dtype.itemsize < 8 or dtype == np.complex64
    return 2.0**-24 if single else 2.0**-53


def assert_product(c, a, b):
    """c is a @ b: exactly for integers, within the bound of any order of summation for floats."""
    expected = np.matmul(a, b)
    assert np.shape(c) == np.shape(expected)
    assert np.asarray(c).dtype == expected.dtype
    if expected.dtype.kind in "iub":
        assert np.array_equal(c, expected)
        return
    wide = np.complex128 if expected.dtype.kind == "c" else np.longdouble
    exact = np.matmul(a.astype(wide), b.astype(wide))
    size = np.matmul(abs(a).astype(np.longdouble), abs(b).astype(np.longdouble))
    u = unit_roundoff(expected.dtype)
    k = a.shape[-1] + (2 if expected.dtype.kind == "c" else 0)
    bound = (2 if expected.dtype.kind == "c" else 1) * k * u / (1 - k * u) * size + np.finfo(np.float32).tiny * max(1, k)
    if expected.dtype == np.float16:
        bound = bound + 2.0**-11 * abs(exact) + 2.0**-24
    assert np.all(abs(np.asarray(c).astype(wide) - exact) <= bound)
