"""Engines: threads, forks, signals, leaks; gemm on NumPy arrays."""

import gc
import multiprocessing
import os
import re
import subprocess
import sys
import threading
import time
import weakref

import numpy as np
import pytest
from conftest import check_errors, interrupted, on_threads, run_python

import glgemm

A = np.arange(6, dtype=np.float32).reshape(2, 3)


def test_threads_share_an_engine(engine):
    failures = []

    def work(number):
        try:
            x = np.full((40, 40), number, np.float32)
            d = engine.asarray(x)
            for _ in range(10):
                assert (glgemm.matmul(x, x) == 40 * number**2).all()
                assert ((d @ d).numpy() == 40 * number**2).all()
        except BaseException as error:
            failures.append(error)

    on_threads(work, 8)
    assert not failures


def test_a_vendor_library_is_allowed_or_named():
    for vendor in (True, "/nonexistent/libcublas.so"):
        lines = []
        with glgemm.Engine(vendor=vendor, log=lines.append) as engine:
            assert (engine.matmul(A, A.T) == A @ A.T).all()  # by whatever there is
        assert any("cublas" in line for line in lines)
    lines = []
    with glgemm.Engine(log=lines.append) as engine:
        engine.matmul(A, A.T)
    assert not any("cublas" in line for line in lines)
    with pytest.raises(TypeError):
        glgemm.Engine(vendor=3)


def test_the_gil_is_released():
    """Another thread goes on while the device works."""
    a = np.ones((1200, 1200), np.float32)
    glgemm.matmul(a, a)
    steps, done = [0], threading.Event()

    def count():
        while not done.is_set():
            steps[0] += 1
            time.sleep(0.001)

    counter = threading.Thread(target=count)
    counter.start()
    before = steps[0]
    glgemm.matmul(a, a)
    passed = steps[0] - before
    done.set()
    counter.join()
    assert passed >= 3


def test_interrupt_ends_a_long_product():
    a = np.ones((3000, 3000), np.float32)
    glgemm.matmul(a[:200], a)
    for product in (
        lambda: glgemm.matmul(a, a),
        lambda: glgemm.stream(a, a, progress=False).result(),
        lambda: glgemm.stream(a, a, progress=lambda share: None).result(),
    ):
        with interrupted():
            product()
        assert np.array_equal(glgemm.matmul(A, A.T), A @ A.T)  # the engine goes on


def test_a_forked_child_gets_an_error():
    code = """
a = np.ones((2, 2), np.float32)
d = glgemm.default_engine().asarray(a)
future = glgemm.stream(a, a)
future.result()
accelerators = glgemm.Accelerators()
child = os.fork()
if child == 0:
    print(*errors_of("fork", lambda: glgemm.matmul(a, a), lambda: d @ d, lambda: d.numpy(), lambda: glgemm.Engine(), lambda: accelerators.info(),
                lambda: glgemm.Accelerators(), lambda: glgemm.stream(a, a).result()))
    del d
    glgemm.default_engine().close()
    sys.exit(7)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
print((d @ d).numpy().sum())
"""
    status, out, errors = run_python(code)
    assert (status, out.split(), errors) == (0, ["True"] * 7 + ["7", "8.0"], "")


def square_sum(n):
    return float(glgemm.matmul(np.ones((n, n), np.float32), np.ones((n, n), np.float32)).sum())


def test_spawned_processes():
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        assert pool.map(square_sum, [2, 3]) == [8, 27]


def test_the_end_of_python():
    for code in (
        "e = glgemm.Engine(); d = e.asarray(np.ones((2, 2))); print('end')",
        "glgemm.matmul(np.ones(2), np.ones(2)); print('end')",
        "import gc; gc.disable(); e = glgemm.Engine(); e.me = e; d = e.asarray(np.ones(2)); print('end')",
        "a = np.ones((2500, 2500), np.float32); f = glgemm.stream(a, a, progress=False); time.sleep(0.3); print('end')",
        "a = np.ones((900, 900), np.float32); threading.Thread(target=lambda: glgemm.matmul(a, a), daemon=True).start(); time.sleep(0.1); print('end')",
        "x = glgemm.Accelerators(); print('end')",
        *(f"threading.Thread(target=glgemm.{kind}, daemon=True).start(); time.sleep({wait}); print('end')"
          for kind in ("Engine", "Accelerators") for wait in (0.02, 0.05, 0.1)),
        "e = glgemm.Engine(log=print); e.matmul(np.ones(2), np.ones(2)); os.environ; print('end'); e.log = None",
    ):
        status, out, errors = run_python(code)
        assert (status, out.split()[-1], errors) == (0, "end", "")


def test_imported_on_another_thread():
    """Signals end products, and Python ends, on its main thread, whichever thread imports the module."""
    code = """
import importlib, signal, sys, threading
importing = threading.Thread(target=importlib.import_module, args=("glgemm",))
importing.start()
importing.join()
import os, glgemm, numpy as np
a = np.ones((3000, 3000), np.float32)
glgemm.matmul(a[:200], a)
threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    for _ in range(9): glgemm.matmul(a, a)
    print("not ended")
except KeyboardInterrupt:
    print("ended")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "ended\n", "")


def test_what_an_engine_calls_cannot_use_it():
    """It would wait for itself."""
    code = """
import faulthandler
faulthandler.dump_traceback_later(30, exit=True)
a, small = np.ones((600, 600), np.float32), np.ones((2, 2), np.float32)
engine, failures = None, []
def use(*given):
    if not isinstance(engine, glgemm.Engine) or failures: return
    failures.extend(errors_of("the engine is at work", lambda: engine.matmul(small, small), lambda: engine.asarray(small), d.numpy,
                              lambda: d @ d, engine.finish, engine.close))
with glgemm.Engine(log=use, program_cache="") as engine:
    d = engine.asarray(small)
    assert (engine.stream(a, a, progress=use).result() == 600).all()
    assert failures == [True] * 6, failures
    failures.clear()
    assert ((d @ d.T).numpy() == 2).all() and (engine.matmul(a[:3], a) == 600).all()  # the engine goes on
    def fails(share): engine.finish()
    try: engine.stream(a, a, progress=fails).result()
    except glgemm.Error as error: print(error)
    other = engine.stream(a, a, progress=lambda share: glgemm.matmul(small, small))  # on the default engine
    assert (other.result() == 600).all()
"""
    status, out, errors = run_python(code)
    assert (status, errors) == (0, "") and "finish: the engine is at work" in out


def test_a_signal_while_the_first_engine_is_made():
    """Its handler multiplies, too."""
    code = """
import faulthandler
faulthandler.dump_traceback_later(60, exit=True)
small, calls = np.ones((2, 2), np.float32), []
class Engine(glgemm.Engine):
    def __init__(self):
        if not calls: signal.raise_signal(signal.SIGUSR1)
        super().__init__()
def handle(*_):
    calls.append(0)
    calls[0] = glgemm.matmul(small, small)[0, 0]
signal.signal(signal.SIGUSR1, handle)
glgemm._engine.Engine = Engine
assert glgemm.matmul(small, small)[0, 0] == 2 and calls == [2]
print("end")
"""
    assert run_python(code) == (0, "end\n", "")


def test_closing_frees_arrays_that_own_each_other():
    """Letting go of one array's owner may destroy arrays that close() has not come to yet."""
    code = """
class Buffer:
    pass
engine = glgemm.Engine()
elements, kept = engine.asarray(np.ones((4, 4), np.float32)), []
for _ in range(200):
    buffer = Buffer()
    buffer.glo = elements.buffer
    buffer.view = engine.wrap(elements.buffer, (4, 4))
    kept.append(engine.wrap(buffer, (4, 4)))
del buffer
engine.close()
print("closed")
"""
    assert run_python(code) == (0, "closed\n", "")


@pytest.mark.parametrize("end", ["free", "close"])
def test_what_is_queued_keeps_what_it_uses(end):
    """An array is freed, or its engine closed, while a call that uses it waits for the one before."""
    small, large = np.arange(64, dtype=np.float32).reshape(8, 8), np.ones((300, 300), np.float32)
    engine, begins, is_at_work, goes_on = glgemm.Engine(), *(threading.Event() for _ in range(3))
    elements, owner, is_owned = engine.asarray(small), type("Buffer", (), {})(), []
    owner.glo = elements.buffer
    x = engine.wrap(owner, (8, 8))
    left = weakref.ref(owner)
    del owner
    before = engine.stream(large, large, progress=lambda share: (is_at_work.set(), goes_on.wait(60)))
    assert is_at_work.wait(60)

    def end_it():
        begins.wait(60)
        if end == "free":
            elements.free()
            x.free()
        is_owned.append(left() is not None)
        goes_on.set()
        if end == "close":
            engine.close()

    ending = threading.Thread(target=end_it)
    ending.start()
    interval = sys.getswitchinterval()
    sys.setswitchinterval(60)  # the other thread goes on once the call below waits in the queue
    begins.set()
    try:
        result = x @ x if end == "free" else x.numpy()
    finally:
        sys.setswitchinterval(interval)
        ending.join()
    assert np.array_equal(result.numpy() if end == "free" else result, small @ small if end == "free" else small)
    assert before.result()[0, 0] == 300
    engine.close()
    assert is_owned == [True] and left() is None


def test_no_device():
    status, out, _ = run_python(
        "try: glgemm.matmul(np.ones(2), np.ones(2))\nexcept (glgemm.Error, ValueError) as error: print(type(error).__name__, error)",
        GLGEMM_DEVICE="none such",
    )
    assert status == 0 and "none such" in out


def test_log_and_options():
    lines = []
    with glgemm.Engine(log=lines.append, program_cache="", tuning="", max_dispatch=0.05) as engine:
        assert np.array_equal(engine.matmul(A, A.T), A @ A.T)
        assert engine.device["renderer"]
        assert engine.device["storage_block_bytes"] >= 1 << 24
        assert engine.device_memory_bytes > 1 << 20
        assert {type(engine.device[flag]) for flag in ("software", "device_clock", "f64")} == {bool}
        assert engine.device["vendor_library"] == "not_asked"
    assert any(lines)
    with pytest.raises(ValueError, match="max_dispatch"):
        glgemm.Engine(max_dispatch=-1)

    code = """
def fails(line): raise RuntimeError('in the log')
with glgemm.Engine(log=fails, program_cache='') as e: print(e.matmul(np.ones(2), np.ones(2)))
"""
    status, out, errors = run_python(code)
    assert status == 0 and out.strip() == "2.0" and "in the log" in errors


def test_folders_and_files_are_paths(tmp_path):
    with glgemm.Engine(program_cache=tmp_path / "programs", tuning=tmp_path / "table.json") as engine:
        assert np.array_equal(engine.matmul(A, A.T), A @ A.T)
    assert any((tmp_path / "programs").rglob("*"))


def test_references():
    """What products take is let go of, whether they succeed or fail."""
    a, b, c = np.ones((4, 5), np.float32), np.ones((5, 6), np.float32), np.empty((4, 6), np.float32)
    d = glgemm.default_engine().asarray(a)
    counted = (a, b, c, d, a.dtype)

    def work():
        glgemm.matmul(a, b)
        glgemm.matmul(a, b, out=c)
        glgemm.gemm(1, a, b, 0, c, bias=np.ones(6, np.float32))
        glgemm.stream(a, b, out=c).result()
        (d @ b).numpy()
        d[1:] = 3
        d.T @ d
        glgemm.default_engine().start(1, d, b).result()
        glgemm.default_engine().start(1, d, b).cancel()
        glgemm.matmul(d, b, report=glgemm.Report())
        glgemm.default_engine().prepare(1, d, b, bias=np.ones(6, np.float32))
        glgemm.explain(d, b)
        with glgemm.default_engine().stopwatch() as watch:
            d.T @ d
        watch.elapsed()
        for bad in (lambda: glgemm.matmul(a, a), lambda: d @ d, lambda: glgemm.gemm(1j, a, b), lambda: d[9], lambda: d[:, ::2] @ b):
            with pytest.raises((ValueError, IndexError)):
                bad()

    def settle():  # a streamed product's thread lets go of its arrays after its result is there
        for thread in threading.enumerate():
            if thread.name == "glgemm stream":
                thread.join()
        gc.collect()

    work()
    settle()
    before = [sys.getrefcount(x) for x in counted]
    objects = len(gc.get_objects())
    for _ in range(20):
        work()
    settle()
    assert [sys.getrefcount(x) for x in counted] == before
    assert len(gc.get_objects()) < objects + 100


def resident_bytes():
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="reads /proc")
def test_memory_is_given_back(engine):
    a = np.ones((1000, 1000), np.float32)  # 4 MB

    def work():
        d = engine.asarray(a)
        (d[:100] @ d).numpy()
        engine.start(1, d[:100], d).advance(1e-7)
        glgemm.matmul(a[:50], a)

    for _ in range(5):
        work()
    before = resident_bytes()
    for _ in range(40):
        work()
    engine.finish()
    assert resident_bytes() < before + 40e6  # 160 MB of arrays were made


def test_engines_come_and_go():
    for _ in range(5):
        with glgemm.Engine() as engine:
            assert np.array_equal(engine.matmul(A, A.T), A @ A.T)
    engine = glgemm.Engine()
    d = engine.asarray(A)
    del engine
    gc.collect()
    assert np.array_equal(d.numpy(), A)  # an array keeps its engine


def test_gemm():
    generator = np.random.default_rng(2)
    a, b, c, d = (generator.integers(-3, 4, shape).astype(np.float32) for shape in ((5, 4), (4, 6), (5, 6), (5, 6)))
    bias, rows = np.arange(6, dtype=np.float32), np.arange(5, dtype=np.float32)[:, None]
    for on in (np.array, glgemm.default_engine().asarray):  # on the host, and on the device
        into = on(c)
        result = glgemm.gemm(2, on(a), on(b), -1, into, bias=on(bias), residual=on(d), activation="relu")
        assert np.array_equal(result, np.maximum(2 * a @ b - c + d + bias, 0)) and np.array_equal(into, result)
        made = glgemm.gemm(1, on(a.T), on(b.T), op_a="T", op_b="T", bias=on(rows), activation=("clamp", -2, 3))
        assert np.array_equal(made, np.clip(a @ b + rows, -2, 3))
        assert np.array_equal(glgemm.gemm(1, on(a), on(b), activation=("leaky_relu", 0.5)), np.where(a @ b < 0, a @ b / 2, a @ b))
    with pytest.raises(ValueError) as refused:
        glgemm.gemm(1, a, b, activation="all")
    known = re.findall(r"\('\w+', [^)]*\)|'\w+'", str(refused.value))[1:]
    assert len(known) >= 9 and all(name in glgemm.gemm.__doc__ for name in known)
    for into in (c.copy(), c[:, ::2], np.asfortranarray(c)[1:], c[:, 2:5], c[::-1, :3]):
        x, y = a[-len(into) :], b[:, : into.shape[1]]
        expected = x @ y + into
        assert glgemm.gemm(1, x, y, 1, into) is into and np.array_equal(into, expected)
    z = (generator.integers(-3, 4, (3, 4)) + 1j * generator.integers(-3, 4, (3, 4))).astype(np.complex64)
    assert np.array_equal(glgemm.gemm(2j, z, z, op_a="C"), 2j * z.conj().T @ z)
    assert np.array_equal(glgemm.gemm(1, z, z, op_b="C"), z @ z.conj().T)
    batch = generator.integers(-3, 4, (3, 5, 4)).astype(np.float32)
    assert np.array_equal(glgemm.gemm(1, batch, b, residual=np.stack([d] * 3)), batch @ b + d)
    assert np.array_equal(glgemm.gemm(1, np.ones((0, 3)), np.ones((3, 2))), np.ones((0, 2)))


def test_gemm_bad_input():
    a, c = np.ones((2, 3), np.float32), np.ones((2, 2), np.float32)
    frozen = c.copy()
    frozen.flags.writeable = False
    check_errors(
        (lambda: glgemm.gemm(1, a, a), ValueError, "inner sizes 3 and 2 differ"),
        (lambda: glgemm.gemm(1, a[0], a), ValueError, "two dimensions"),
        (lambda: glgemm.gemm(1, a, a.T, 1), ValueError, "there is no C"),
        (lambda: glgemm.gemm(1, a, a.T, 0, frozen), ValueError, "read-only"),
        (lambda: glgemm.gemm(1, a, a.T, 0, c[:1]), ValueError, r"\(1, 2\)"),
        (lambda: glgemm.gemm(1, a, a.T, 0, c.astype(np.float64)), TypeError, "C is float64"),
        (lambda: glgemm.gemm(1, a, a.T.astype(np.float64)), TypeError, "one type"),
        (lambda: glgemm.gemm(1, a.astype(int), a.T.astype(int)), TypeError, "int64"),
        (lambda: glgemm.gemm(1, a, a.T, bias=np.ones(3, np.float32)), ValueError, "bias is"),
        (lambda: glgemm.gemm(1, a, a.T, bias=np.ones(2)), TypeError, "bias is float64"),
        (lambda: glgemm.gemm(1, a, a.T, activation=("clamp", 2, 1)), ValueError, "2"),
        (lambda: glgemm.gemm(1, a, a.T, activation="leaky_relu"), ValueError, r"one of 'relu', \('leaky_relu', slope\), 'gelu_erf'"),
        (lambda: glgemm.gemm(1j, a, a.T), ValueError, "alpha"),
        (lambda: glgemm.gemm("x", a, a.T), TypeError, "gemm: alpha is 'x' and must be a number"),
        (lambda: glgemm.matmul(a, a.T, precision=3), TypeError, "matmul: the precision is 3 and must be one of"),
        (lambda: glgemm.matmul(a, a.T, kernel=3), TypeError, "matmul: the kernel is 3 and must be a name"),
        (lambda: glgemm.default_engine().wrap("x", (2, 2)), TypeError, "wrap: the buffer is 'x'"),
        (lambda: glgemm.default_engine().wrap(-1, (2, 2)), ValueError, "wrap: -1 is not the name of a buffer"),
        (lambda: glgemm.default_engine().wrap(1, "x"), TypeError, "the shape is 'x'"),
    )


def test_fences():
    a = np.ones((300, 300), np.float32)
    with glgemm.Engine() as engine:
        x = engine.asarray(a)
        y, fence = x @ x, engine.fence()
        assert fence.wait() is True and fence.poll() is True and fence.wait(0) is True and fence.wait(timeout=float("inf"))
        assert (y.numpy() == 300).all()
        large = engine.asarray(np.ones((1500, 1500), np.float32))
        job = engine.start(1, large, large)
        job.advance(0.01)
        fence = engine.fence()
        while not fence.poll():
            pass
        assert fence.wait(0.001)
        check_errors(
            (lambda: fence.wait(-1), ValueError, "Fence.wait: the timeout is -1 and must be a number of seconds, 0 or more"),
            (lambda: fence.wait(float("nan")), ValueError, "the timeout is nan"),
            (lambda: fence.wait("1"), TypeError, "the timeout is '1' and must be a number of seconds, or None"),
            (glgemm.Fence, TypeError, ""),
        )
    for call in (fence.poll, fence.wait, engine.fence):
        with pytest.raises(ValueError, match="the engine is closed"):
            call()


def test_abandon():
    """Nothing is called of OpenGL; what the engine had can only be dropped."""
    engine = glgemm.Engine()
    x = engine.asarray(np.ones((4, 4), np.float32))
    job, fence, watch = engine.start(1, x, x), engine.fence(), engine.stopwatch()
    with engine, engine.scope():
        engine.abandon()
        assert engine.closed
    engine.abandon()
    engine.close()
    for call in (lambda: x @ x, lambda: job.advance(1), fence.poll, watch.start, engine.finish):
        with pytest.raises(ValueError):
            call()
