"""Streamed products: from files, in the background, on several devices."""

import concurrent.futures
import errno
import gc
import os
import subprocess
import sys
import threading
import weakref

import numpy as np
import pytest
from conftest import check_errors, integers, run_python

import glgemm


def test_from_files_to_a_file(tmp_path):
    a, b = integers((400, 300)), integers((300, 500), seed=1)
    np.save(tmp_path / "a.npy", a)
    np.save(tmp_path / "b.npy", b)
    x, y = np.load(tmp_path / "a.npy", mmap_mode="r"), np.load(tmp_path / "b.npy", mmap_mode="r")
    shares = []
    future = glgemm.stream(x, y, out=tmp_path / "c.npy", device_memory_limit_bytes=300_000, progress=shares.append)
    c = future.result()
    assert isinstance(c, np.memmap) and future.progress == 1 and future.done()
    assert np.array_equal(c, a @ b) and np.array_equal(np.load(tmp_path / "c.npy"), a @ b)
    assert len(shares) > 3 and shares == sorted(shares) and shares[-1] == 1


def test_a_file_is_replaced_once_the_product_is_done(tmp_path):
    """An operand may be mapped from it; what fails leaves it."""
    a = integers((300, 300))
    path = tmp_path / "a.npy"
    np.save(path, a)
    path.chmod(0o640)
    x = np.load(path, mmap_mode="r")

    def fails(share):
        raise ArithmeticError("no")

    for progress, error in ((fails, ArithmeticError), (lambda share: future.cancel(), concurrent.futures.CancelledError)):
        with pytest.raises(error):
            future = glgemm.stream(x, x, out=path, device_memory_limit_bytes=300_000, progress=progress)
            future.result()
        assert np.array_equal(np.load(path), a) and list(tmp_path.iterdir()) == [path]
    with pytest.raises(ValueError):
        glgemm.stream(x, x, out=path, device_memory_limit_bytes=10).result()
    (tmp_path / "link.npy").symlink_to("a.npy")
    c = glgemm.stream(x, x, out=str(tmp_path / "link.npy"), device_memory_limit_bytes=300_000).result()
    assert np.array_equal(x, a) and np.array_equal(c, a @ a) and np.array_equal(np.load(path), a @ a)
    assert c.filename == str(path) and path.stat().st_mode & 0o777 == 0o640
    c[0] = 7
    c.flush()
    assert (np.load(path)[0] == 7).all()
    assert sorted(one.name for one in tmp_path.iterdir()) == ["a.npy", "link.npy"]
    with pytest.raises(ValueError, match="which is not a file"):
        glgemm.stream(x, x, out=tmp_path)


@pytest.mark.parametrize("dtype", ["float32", "int8", "float16", "complex64"])
def test_strides(dtype):
    """To the bit what is made without them."""
    wide, how = integers((90, 200), dtype), {"device_memory_limit_bytes": 200_000, "precision": "reproducible"}
    for a, b in (
        (wide[:, ::2], wide[:, 1::2].T),
        (wide[::-1, 3:50], wide[::2, :47].T),
        (np.asfortranarray(wide), wide.T),
        (np.broadcast_to(wide[:, :1], (90, 30)), wide[:30, ::-3]),
    ):
        out = np.empty((90, 400), glgemm._core.types_of_c[dtype, dtype][-1])[::-1, ::400 // b.shape[1]][:, : b.shape[1]]
        c = glgemm.stream(a, b, out=out, **how).result()
        assert np.array_equal(c, glgemm.stream(a.copy(), b.copy(), **how).result())
        assert np.array_equal(c, np.matmul(a.astype(np.complex128), b))


def test_all_terms():
    a, b, c, d = integers((70, 60)), integers((80, 60)), integers((70, 80)), integers((70, 80))
    bias, rows = integers((80,)), integers((70, 1))
    into = np.asfortranarray(c)
    how = dict(alpha=2, beta=-1, residual=np.asfortranarray(d), activation="relu", op_b="T", device_memory_limit_bytes=100_000)
    assert glgemm.stream(a, b, out=into, bias=bias, **how).result() is into
    assert np.array_equal(into, np.maximum(2 * a @ b.T - c + d + bias, 0))
    into[...] = c
    glgemm.stream(a, b, out=into, bias=rows, **how).result()
    assert np.array_equal(into, np.maximum(2 * a @ b.T - c + d + rows, 0))


def test_products_that_do_not_fit_are_streamed(monkeypatch):
    """What matmul and gemm do with matrices larger than the device, on small ones; C and D may lie in different orders."""
    monkeypatch.setattr(glgemm.Engine, "_fits", lambda self, size: False)
    a, b = integers((3, 40, 30)), integers((30, 20))
    assert np.array_equal(glgemm.matmul(a, b), a @ b)
    assert np.array_equal(glgemm.matmul(a[0, 0], b), a[0, 0] @ b)
    square = integers((30, 30))
    expected = square @ square
    glgemm.matmul(square, square, out=square)
    assert np.array_equal(square, expected)
    c = integers((3, 40, 20))
    assert np.array_equal(glgemm.gemm(1, a, b, 2, c.copy(), bias=np.arange(20, dtype=np.float32)), a @ b + 2 * c + np.arange(20))
    assert "streamed" in glgemm.explain(a, b)
    c, d = integers((40, 40), seed=1), integers((40, 40), seed=2)
    for rows, columns in ((slice(None), slice(None)), (slice(1), slice(None)), (slice(None), slice(1))):
        for x in (c.copy(), np.asfortranarray(c)):
            for y in (d, d.T, np.asfortranarray(d), d[::-1, ::2].T.repeat(2, 0)):
                got = glgemm.gemm(1, c[rows], c[:, columns], 0, x[rows, columns], residual=y[rows, columns])
                assert np.array_equal(got, c[rows] @ c[:, columns] + y[rows, columns])


def test_free_memory_is_asked_for_anew():
    class Service:
        free = 1 << 30

        def memory(self):
            return self.free

    engine = object.__new__(glgemm.Engine)
    engine._service = Service()
    assert engine._fits(1 << 28)
    engine._service.free = 1 << 27
    assert not engine._fits(1 << 28)
    engine._service.free = 1 << 29
    assert engine._fits(1 << 28) and engine._fits(100)


def test_terms_that_overlap_c(monkeypatch):
    a, b, before = integers((600, 600)), integers((600, 600), seed=1), integers((600, 600), seed=2)
    c = before.copy()
    for name, terms in (("D", {"residual": c[::-1]}), ("the bias", {"bias": c[0]}), ("the bias", {"bias": c[:, 3:4]})):
        with pytest.raises(ValueError, match=f"stream: out overlaps {name}"):
            glgemm.stream(a, b, out=c, **terms)
    assert np.array_equal(glgemm.stream(a, b, out=c, residual=c, device_memory_limit_bytes=1_000_000).result(), a @ b + before)
    wide = np.concatenate((before, before), axis=1)  # C and D lie side by side
    assert np.array_equal(glgemm.stream(a, b, out=wide[:, :600], residual=wide[:, 600:]).result(), a @ b + before)
    # gemm takes them, whether it streams or not.
    monkeypatch.setattr(glgemm.Engine, "_fits", lambda self, size: False)
    x, y, before = integers((2, 30, 20)), integers((20, 40), seed=1), integers((2, 30, 40), seed=2)
    c = before.copy()
    got = glgemm.gemm(1, x, y, 1, c, residual=c[::-1], bias=c[0, :1])
    assert np.array_equal(got, x @ y + before + before[::-1] + before[0, :1])


def run_on_a_small_disk(code, folder):
    """As run_python(), in a folder on a disk of 1 MB; None where this system lets nobody mount one."""
    mount = ["unshare", "--map-root-user", "--mount", "sh", "-c", 'mount -t tmpfs -o size=1m none "$0" && cd "$0" && exec "$@"', str(folder)]
    try:
        subprocess.run([*mount, "true"], check=True, capture_output=True, timeout=60)
    except (OSError, subprocess.CalledProcessError):
        return None
    return run_python(code, *mount)


def test_a_full_disk(tmp_path, monkeypatch):
    """No file is made, and nothing is written to a place that is not there, which would end Python."""
    code = """
a = np.ones((600, 600), np.float32)
try:
    glgemm.stream(a, a, out="c.npy", progress=False).result()
except OSError as error:
    print(error, os.listdir())
"""
    words = "stream: out is 'c.npy', and its disk has no room for its 1440128 bytes"
    on_disk = run_on_a_small_disk(code, tmp_path)
    assert on_disk in (None, (0, f"[Errno 28] {words} []\n", ""))

    def full(file, offset, size):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    monkeypatch.chdir(tmp_path)
    a = np.ones((600, 600), np.float32)
    with pytest.raises(OSError, match=words):
        glgemm.stream(a, a, out="c.npy", progress=False)
    assert not list(tmp_path.iterdir())


def test_cancel():
    a = np.ones((1500, 1500), np.float32)
    started = threading.Event()
    future = glgemm.stream(a, a, device_memory_limit_bytes=8_000_000, progress=lambda share: started.set())
    assert started.wait(60)
    future.cancel()
    with pytest.raises(concurrent.futures.CancelledError):
        future.result()
    assert future.cancelled() and future.done() and 0 < future.progress < 1
    assert not future.cancel()
    assert np.array_equal(glgemm.matmul(a[:3], a[:, :3]), np.full((3, 3), 1500))


def test_a_child_that_is_forked_during_a_product():
    """It gets an Error, and ends: what is computed in its parent it cannot wait for."""
    code = """
a = np.ones((300, 300), np.float32)
accelerators = glgemm.Accelerators("0")
goes_on, started = threading.Event(), [threading.Event(), threading.Event()]
futures = [
    glgemm.stream(a, a, engine=engine, progress=lambda share, event=event: (event.set(), goes_on.wait()))
    for engine, event in zip((glgemm.default_engine(), accelerators), started)
]
for event in started:
    event.wait()
child = os.fork()
if child == 0:
    signal.alarm(20)
    print(*errors_of("fork", lambda: futures[0].result(), lambda: futures[1].exception(), lambda: futures[0].cancel(), lambda: accelerators.info(),
                lambda: accelerators.stream(a, a).result()))
    accelerators.close()
    sys.exit(7)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
goes_on.set()
print(*(future.result()[0, 0] for future in futures))
"""
    status, out, errors = run_python(code)
    assert (status, out.split(), errors) == (0, ["True"] * 5 + ["7", "300.0", "300.0"], "")


def test_what_the_progress_raises_ends_the_product():
    def progress(share):
        raise ArithmeticError(f"at {share}")

    a = integers((300, 300))
    with pytest.raises(ArithmeticError, match="at 0"):
        glgemm.stream(a, a, device_memory_limit_bytes=300_000, progress=progress).result()
    assert np.array_equal(glgemm.matmul(a, a), a @ a)


def test_bar(monkeypatch, capsys):
    pytest.importorskip("tqdm")
    a = integers((200, 200))
    glgemm.stream(a, a, progress=True).result()
    assert "100%" in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "tqdm", None)  # as if it were not installed
    assert np.array_equal(glgemm.stream(a, a, progress=True).result(), a @ a)


def test_progress_cannot_use_its_accelerators():
    a = np.ones((300, 300), np.float32)
    told = []
    with glgemm.Accelerators("0") as accelerators:

        def progress(share):
            for use in (accelerators.info, accelerators.close):
                with pytest.raises(glgemm.Error, match="the accelerators are at work: progress cannot use them"):
                    use()
            told.append(share)

        assert accelerators.stream(a, a, progress=progress).result(60)[0, 0] == 300
        assert len(accelerators.info()) == 1
    assert told[-1] == 1


def test_progress_cannot_wait_for_its_product():
    """Nor for what comes after it on the same devices: each of these would wait for itself."""
    code = """
import concurrent.futures, faulthandler
faulthandler.dump_traceback_later(60, exit=True)
a = np.ones((300, 300), np.float32)
def check(engine, log=None):
    said, future, ready = [], [], threading.Event()
    def call(*given):
        if threading.current_thread() is threading.main_thread() or said: return
        ready.wait(30)
        other = engine.stream(a[:2, :2], a[:2, :2], progress=False)
        for wait in (future[0].result, future[0].exception, lambda: future[0].result(timeout=60), other.result,
                     lambda: concurrent.futures.wait(future), lambda: list(concurrent.futures.as_completed(future))):
            try:
                wait()
                said.append("no error")
            except glgemm.Error as error:
                said.append("at work" in str(error))
        try: future[0].result(timeout=0)
        except concurrent.futures.TimeoutError: said.append(True)
        other.cancel()
    if log is not None: log.append(call)
    future.append(engine.stream(a, a, progress=False if log is not None else call))
    ready.set()
    assert future[0].result()[0, 0] == 300 and future[0].exception() is None and concurrent.futures.wait(future).done == set(future)
    assert said and set(said) == {True}, said
check(glgemm.default_engine())
with glgemm.Accelerators("0,0") as devices: check(devices)
log = []
check(glgemm.Engine(log=lambda line: [call() for call in log], program_cache=""), log)
done = []
future = glgemm.stream(a, a, progress=False)
future.add_done_callback(lambda one: done.append(one.result()[0, 0]))
future.result()
while not done: time.sleep(0.01)
print("end")
"""
    assert run_python(code) == (0, "end\n", "")


def test_a_future_goes_with_its_last_reference():
    """And with it C: no collection of cycles is waited for."""
    a = integers((30, 30))
    gc.collect()
    gc.disable()
    try:
        future = glgemm.stream(a, a, progress=lambda share: None)
        left = [weakref.ref(future), weakref.ref(future.result())]
        del future
        for thread in threading.enumerate():
            if thread.name == "glgemm stream":
                thread.join()
        assert [one() for one in left] == [None, None]
    finally:
        gc.enable()


def test_accelerators():
    a, b = integers((500, 300)), integers((300, 400), seed=1)
    with glgemm.Accelerators("0,0") as accelerators:
        assert [one["failure"] for one in accelerators.info()] == ["", ""]
        futures = [accelerators.stream(a, b[:, i:], device_memory_limit_bytes=400_000) for i in range(4)]  # one after the other
        for i, future in enumerate(futures):
            assert np.array_equal(future.result(), a @ b[:, i:])

        def progress(share):
            raise ArithmeticError("no")

        with pytest.raises(ArithmeticError):
            accelerators.stream(a, b, device_memory_limit_bytes=400_000, progress=progress).result()
        assert any(one["rate"] > 0 for one in accelerators.info())
    with pytest.raises(ValueError, match="closed"):
        accelerators.info()
    with pytest.raises(ValueError):
        glgemm.Accelerators("none such")


def test_bad_input(tmp_path):
    a = integers((20, 30))
    frozen = np.empty((20, 20), np.float32)
    frozen.flags.writeable = False
    check_errors(
        (lambda: glgemm.stream(a, a), ValueError, "inner sizes 30 and 20 differ"),
        (lambda: glgemm.stream(a[None], a.T), ValueError, "no batch"),
        (lambda: glgemm.stream(a, a.T, out=frozen), ValueError, "read-only"),
        (lambda: glgemm.stream(a, a.T, out=a[:, :20]), ValueError, "overlaps"),
        (lambda: glgemm.stream(a, a.T, out=np.empty((20, 20))), TypeError, "C is float64"),
        (lambda: glgemm.stream(a, a.T, beta=1), ValueError, "there is no C"),
        (lambda: glgemm.stream(a, a.T, out=tmp_path / "none.npy", bias=a), ValueError, "the bias is"),
        (lambda: glgemm.stream(a, a.T, out=tmp_path / "none.npy", precision="exact"), ValueError, "unknown precision"),
        (lambda: glgemm.stream(a, a.T, memory_limit_bytes="1G"), TypeError, "stream: memory_limit_bytes is '1G' and must be a number of bytes"),
        (lambda: glgemm.stream("a.npy", a), TypeError, "an operand is 'a.npy': a file is opened by numpy.load"),
        (lambda: glgemm.stream(a, a.T, out=tmp_path / "no such" / "c.npy"), OSError, ""),
        (lambda: glgemm.stream(a, a.T, device_memory_limit_bytes=10).result(), ValueError, "10"),
        (lambda: glgemm.stream(a, a.T, memory_limit_bytes=10).result(), ValueError, "10"),
    )
    assert not (tmp_path / "none.npy").exists()
