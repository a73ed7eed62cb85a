"""Jobs: products that are enqueued piece by piece."""

import concurrent.futures
import gc
import threading
import weakref

import numpy as np
import pytest
from conftest import check_errors, integers, interrupted, run_python
from hypothesis import given
from hypothesis import strategies as st
from test_matmul import elements

import glgemm

LITTLE = 1e-7  # seconds, in which no device does more than a slice


def finished(job):
    """The result of a job that was advanced by little, and the shares that were enqueued meanwhile."""
    shares = [job.progress]
    while not job.advance(LITTLE):
        shares.append(job.progress)
    assert job.done() and job.progress == 1 and shares == sorted(shares) and all(0 <= share <= 1 for share in shares)
    return job.result(), shares


@given(data=st.data())
def test_jobs_are_gemm(data):
    """To the bit: on plain and quantised operands, views, tables and batches, with all that gemm() has."""
    engine, draw = glgemm.default_engine(), data.draw
    m, n, k = (draw(st.sampled_from([0, 1, 5, 40, 64])) for _ in range(3))
    dtype = draw(st.sampled_from(["float32", "float16", "int8", "complex64"]))
    formats = [None, None, "q8_0", "q4_1", "nbits:bits=4,group=32,scales=f16"] if k == 64 else [None]
    format = draw(st.sampled_from(formats))
    batch = draw(st.sampled_from([(), (3,)]))
    if format:
        dtype = "float32"
        a = engine.quantized(glgemm.quantize(elements(draw, (m, k), "float32"), format))
    else:
        a = engine.asarray(elements(draw, (*batch, m, k), dtype))
        if draw(st.booleans()) and m:
            a = a[..., ::-1, :]
    b = engine.asarray(elements(draw, (*batch, n, k), dtype)).mT
    if draw(st.booleans()) and n and not batch:
        b = b[:, [i * 7 % n for i in range(n)]]
    shape = (*batch, m, n)
    kind = glgemm.gemm(1, a, b).dtype
    options = {"precision": draw(st.sampled_from(["standard", "reproducible"]))}
    if draw(st.booleans()):
        options["bias"] = engine.asarray(elements(draw, draw(st.sampled_from([(n,), (m, 1)])), kind))
    if draw(st.booleans()):
        options["residual"] = engine.asarray(elements(draw, shape, kind))
    if draw(st.booleans()) and kind.kind == "f":
        options["activation"] = draw(st.sampled_from(["relu", ("clamp", -1, 1)]))
    if draw(st.booleans()):
        before = elements(draw, shape, kind)
        into, at_once = engine.asarray(before), engine.asarray(before)
        result, _ = finished(engine.start(2, a, b, -1, into, **options))
        expected = engine.gemm(2, a, b, -1, at_once, **options)
        assert result.buffer == into.buffer
    else:
        result, _ = finished(engine.start(1, a, b, **options))
        expected = engine.gemm(1, a, b, **options)
    assert result.dtype == expected.dtype and np.array_equal(result.numpy(), expected.numpy(), equal_nan=kind.kind in "fc")


def test_little_by_little(engine):
    a, b = integers((500, 300)), integers((300, 400), seed=1)
    w = glgemm.quantize(a, "q8_0")
    for x, numbers in ((a, a), (w, w.numpy())):
        job = engine.start(1, engine.asarray(x), b)  # NumPy's go to the device
        assert not job.done() and job.progress == 0
        result, shares = finished(job)
        assert len(shares) >= 3 and 0 < shares[1] < 1
        assert isinstance(result, glgemm.Array) and np.array_equal(result.numpy(), engine.gemm(1, engine.asarray(x), b).numpy())
        assert job.advance(1) is True and job.result().buffer == result.buffer
    first, second = (engine.start(1, engine.asarray(x), b) for x in (a, 2 * a))  # each has room of its own
    while not (first.advance(LITTLE) and second.advance(LITTLE)):
        glgemm.matmul(a[:5], b)
    assert np.array_equal(first.result().numpy() * 2, second.result().numpy())
    assert np.array_equal(engine.start(1, a, b).result().numpy(), a @ b)  # without advance()


def test_nothing_to_do(engine):
    for a, b in (((0, 3), (3, 2)), ((2, 3), (3, 0)), ((2, 0), (0, 2))):
        job = engine.start(1, np.ones(a), np.ones(b))
        assert np.array_equal(job.result(), np.ones(a) @ np.ones(b)) and job.done() and job.progress == 1 and job.advance(1)


def test_a_job_keeps_what_it_uses(engine):
    a, b = integers((64, 96)), integers((96, 80), seed=1)
    x, y, owner = engine.asarray(a), engine.asarray(b), type("Buffer", (), {})()
    held = engine.asarray(np.arange(80, dtype=np.float32))
    owner.glo = held.buffer
    bias = engine.wrap(owner, (80,))
    job = engine.start(1, x, y, bias=bias)
    left = weakref.ref(owner)
    x.free()
    bias.free()
    del owner, x, y, bias
    gc.collect()
    others = [engine.asarray(np.full((64, 96), 9, np.float32)) for _ in range(5)]
    assert left() is not None
    result, _ = finished(job)
    assert left() is None  # when all is enqueued
    assert np.array_equal(result.numpy(), a @ b + np.arange(80)) and len(others) == 5
    waiting = engine.start(1, a, b)
    waiting.advance(LITTLE)
    del waiting
    cancelled = engine.start(1, engine.wrap(held.buffer, (8, 10)), np.ones((10, 2), np.float32))
    cancelled.cancel()
    assert np.array_equal(engine.matmul(a, b), a @ b)


def test_reports(engine):
    a = engine.asarray(np.ones((500, 500), np.float32))
    job, empty = engine.start(1, a, a), engine.start(1, a[:0], a)

    def numbers(report):
        assert isinstance(report, glgemm.JobReport)
        return report.advances, report.slices, report.dispatches, report.device_time

    assert numbers(empty.report()) == numbers(job.report()) == (0, 0, 0, 0) and empty.report().rate == 0
    job.advance(seconds=LITTLE)
    begun = job.report()
    assert begun.advances == 1 and begun.dispatches >= begun.slices >= 1 and begun.device_time >= 0
    while not job.advance(0.01):
        pass
    assert engine.fence().wait()
    job.advance(1)  # hears of the rest
    done = job.report()
    assert done.slices > begun.slices and done.rate >= 0 and 0 < done.device_time < 60
    assert job.advance(1) and numbers(job.report()) == numbers(done)
    assert repr(done).startswith(f"<glgemm.JobReport of {done.slices} slices, ")
    other = engine.start(1, a, a)
    other.result()
    assert 0 < other.report().device_time < 60
    other.cancel()
    assert other.report().slices >= 1


def test_cancel(engine):
    a = integers((300, 300))
    job = engine.start(1, a, a)
    job.advance(LITTLE)
    share = job.progress
    job.cancel()
    assert job.advance(1) is False and not job.done() and job.progress == share < 1
    with pytest.raises(concurrent.futures.CancelledError, match="Job.result: the job was cancelled"):
        job.result()
    job = engine.start(1, a, a)
    c = job.result()
    job.cancel()
    assert job.done() and np.array_equal(job.result().numpy(), a @ a) and np.array_equal(c.numpy(), a @ a)


def test_closing_ends_jobs():
    a = integers((300, 300))
    engine = glgemm.Engine()
    d, owner = engine.asarray(a), type("Buffer", (), {})()
    owner.glo = d.buffer
    wrapped, left = engine.wrap(owner, (300, 300)), weakref.ref(owner)
    begun, other, done = (engine.start(1, wrapped, d) for _ in range(3))
    begun.advance(LITTLE)
    done.result()
    del owner, wrapped
    gc.collect()
    assert left() is not None
    engine.close()
    assert left() is None
    for job in (begun, other, done):
        check_errors(
            (lambda job=job: job.advance(1), ValueError, "Job.advance: the engine is closed"),
            (lambda job=job: job.result(), ValueError, "Job.result: the engine is closed"),
        )
        job.cancel()
    assert (begun.done(), other.done(), done.done()) == (False, False, True) and 0 < begun.progress < 1
    with pytest.raises(ValueError, match="the engine is closed"):
        engine.start(1, a, a)
    engine = glgemm.Engine()
    job = engine.start(1, a, a)
    del engine
    gc.collect()
    assert np.array_equal(job.result().numpy(), a @ a)  # a job keeps its engine


def test_threads():
    """Several advance one job, and one closes the engine."""
    a = integers((400, 200))
    for closes in (False, True):
        engine = glgemm.Engine()
        job, failures = engine.start(1, a, a, op_b="T"), []

        def work(job=job, failures=failures):
            try:
                while not job.advance(LITTLE):
                    assert 0 <= job.progress <= 1
            except ValueError as error:
                failures.append(str(error))

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        if closes:
            engine.close()
        for thread in threads:
            thread.join()
        if closes:
            assert all("is closed" in failure for failure in failures)
            continue
        assert not failures and np.array_equal(job.result().numpy(), a @ a.T)
        engine.close()


def test_an_interrupt_leaves_the_job(engine):
    a = np.ones((3000, 3000), np.float32)
    glgemm.matmul(a[:200], a)
    job = engine.start(1, a, a)
    with interrupted():
        job.result()
    assert not job.done() and 0 < job.progress < 1
    assert np.array_equal(engine.matmul(a[:2, :2], a[:2, :2]), [[2, 2], [2, 2]])
    job.cancel()


def test_forks_logs_and_the_end():
    code = """
a = np.ones((200, 200), np.float32)
engine = glgemm.Engine()
job, other = engine.start(1, a, a), engine.start(1, a, a)
job.advance(1e-7)
child = os.fork()
if child == 0:
    print(*errors_of("fork", lambda: job.advance(1), lambda: job.result(), lambda: engine.start(1, a, a)))
    job.cancel()
    del job
    sys.exit(7)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), job.result().numpy().sum())
"""
    status, out, errors = run_python(code)
    assert (status, out.split(), errors) == (0, ["True"] * 3 + ["7", "8000000.0"], "")
    code = """
failures, job = [], None
def use(line):
    if job is None: return
    failures.extend(errors_of("the engine is at work", lambda: job.advance(1), job.result, lambda: engine.start(1, a, a)))
a = np.ones((20, 20), np.float32)
engine = glgemm.Engine(log=use, program_cache="")
job = engine.start(1, a, a)
other = engine.start(1, a.astype(np.int32), a.astype(np.int32))  # compiles, and says so
assert failures and all(each is True for each in failures), failures
assert job.result().numpy()[0, 0] == 20
job = engine.start(1, a, a)
print("end")
"""
    assert run_python(code) == (0, "end\n", "")


def test_bad_input(engine):
    a, host = engine.asarray(np.ones((2, 3), np.float32)), np.ones((2, 2), np.float32)
    job = engine.start(1, a, a, op_b="T")
    with glgemm.Engine() as other:
        foreign = other.asarray(host)
        check_errors((lambda: engine.start(1, a, a.T, 0, foreign), ValueError, "start: the arrays belong to different engines"))
    square, items = engine.asarray(host), np.ones((2, 2, 3), np.float32)
    batch = engine.asarray(np.ones((2, 2, 8), np.float32))[:, :, ::4]
    quantised = engine.quantized(glgemm.quantize(np.ones((2, 32), np.float32), "q8_0"))
    check_errors(
        (lambda: job.advance(0), ValueError, "Job.advance: the budget is 0 and must be a number of seconds above 0"),
        (lambda: job.advance(-1), ValueError, "the budget is -1 and"),
        (lambda: job.advance(float("nan")), ValueError, "the budget is nan"),
        (lambda: job.advance(1e300), ValueError, r"the budget is 1e\+300"),
        (lambda: job.advance(61), ValueError, "the budget is 61 and must be a number of seconds above 0 and at most 60"),
        (lambda: job.advance("4 ms"), TypeError, "Job.advance: the budget is '4 ms' and must be a number of seconds"),
        (lambda: engine.start(1, a, a), ValueError, "start: op.A. is 2x3 and op.B. is 2x3: the inner sizes 3 and 2 differ"),
        (lambda: engine.start(1, a, a.T, 1), ValueError, "start: beta is 1 and there is no C"),
        (lambda: engine.start(1, a, a.T, 0, host), TypeError, "start: C is a ndarray"),
        (lambda: engine.start(1, a, a.T, bias=np.ones(9, np.float32)), ValueError, "start: the bias is"),
        (lambda: engine.start(1, a, a.T, activation="all"), ValueError, "start: the activation is 'all'"),
        (lambda: engine.start(1, a, a.T, kernel="none such"), ValueError, "none such"),
        (lambda: engine.start(1, quantised, quantised, op_b="T"), ValueError, "quantised"),
        (lambda: engine.start(1, items, a.T, 0, batch), ValueError, "start: the product cannot be written where C lies"),
        (lambda: engine.start(1, square, square, 0, square), ValueError, "C overlaps A"),
    )
    assert np.array_equal(job.result().numpy(), [[3, 3], [3, 3]])
    with pytest.raises(TypeError):
        glgemm.Job()
