"""In moderngl's context: buffers multiplied in place, the state put back."""

import gc
import threading
import time

import numpy as np
import pytest
from conftest import check_errors, integers, interrupted, on_threads

import glgemm

moderngl = pytest.importorskip("moderngl")


@pytest.fixture
def context():
    made = moderngl.create_standalone_context(require=430, backend="egl")
    yield made
    made.release()


def test_in_place(context):
    a, b = integers((30, 20)), integers((20, 40), seed=1)
    with glgemm.Engine.current() as engine:
        x, y, z = (context.buffer(m.tobytes()) for m in (a, b, np.zeros((30, 40), np.float32)))
        c = engine.wrap(z, (30, 40))
        assert glgemm.matmul(engine.wrap(x, (30, 20)), engine.wrap(y, (20, 40)), out=c) is not None
        engine.barrier("transfers")
        assert np.array_equal(np.frombuffer(z.read(), np.float32).reshape(30, 40), a @ b)
        assert np.array_equal(c.numpy(), a @ b)
        # Raw names; an offset; strides; sections.
        rows = engine.wrap(x.glo, (28, 20), offset=2 * 80)
        transposed = engine.wrap(x, (20, 30), strides=(4, 80))
        assert np.array_equal((rows @ transposed).numpy(), a[2:] @ a.T)
        c[3:5, :7] = 9
        assert np.array_equal(np.frombuffer(z.read(), np.float32).reshape(30, 40)[3:5, :7], np.full((2, 7), 9))
        # A buffer of the driver's, and an own one.
        own = engine.asarray(b)
        assert np.array_equal((c @ own.T).numpy(), c.numpy() @ b.T)
        assert own.buffer != 0 and c.buffer == z.glo


def test_the_state_is_as_before(context):
    a = integers((64, 64))
    storage = [context.buffer(reserve=256) for _ in range(4)]
    program = context.compute_shader("#version 430\nlayout(local_size_x=1) in; buffer B { float x[]; }; void main() { x[0] += 1; }")
    with glgemm.Engine.current() as engine:
        d = engine.asarray(a)
        for i, buffer in enumerate(storage):
            buffer.bind_to_storage_buffer(i)
        storage[0].clear()
        for _ in range(3):
            program.run(1)  # uses binding 0
            e = d @ d
        engine.barrier("transfers")
        assert np.frombuffer(storage[0].read(), np.float32)[0] == 3
        assert np.array_equal(e.numpy(), a @ a)
        assert context.error == "GL_NO_ERROR"
        with engine.scope():
            for _ in range(3):
                e = d @ d
        program.run(1)
        assert np.frombuffer(storage[0].read(), np.float32)[0] == 4


def test_barrier(context):
    with glgemm.Engine.current(debug_groups=False) as engine:
        engine.barrier()
        engine.barrier("vertices", "mapped", "transfers")
        assert context.error == "GL_NO_ERROR"
        with pytest.raises(ValueError, match='unknown use "verticles"; known uses: vertices, indices, uniforms'):
            engine.barrier("verticles")


def test_beside_an_engine_of_its_own(context):
    """An engine with a thread leaves the application's context alone."""
    a = integers((20, 20))
    assert np.array_equal(glgemm.matmul(a, a), a @ a)
    buffer = context.buffer(a.tobytes())
    assert np.array_equal(np.frombuffer(buffer.read(), np.float32).reshape(20, 20), a)
    with glgemm.Engine.current() as engine:
        assert np.array_equal(engine.matmul(a, a), a @ a)
        assert np.array_equal(glgemm.matmul(a, a), a @ a)
        assert np.array_equal(engine.gemm(1, a, a, bias=a[0]), a @ a + a[0])


def test_what_fails_leaves_the_context_alone(context):
    """What a product has made is destroyed in the engine's own context, not in the application's."""
    buffers = [context.buffer(integers((8, 8), seed=seed).tobytes()) for seed in range(60)]  # with the names that the engine's have, too
    with glgemm.Engine() as engine:
        x = engine.asarray(integers((8, 8)))
        large = engine.asarray(np.ones((3000, 3000), np.float32))
        for _ in range(3):
            with pytest.raises(ValueError, match="alpha"):
                engine.gemm(1j, x, x)
        with interrupted():
            large @ large
        engine.finish()
        for seed, buffer in enumerate(buffers):
            assert np.array_equal(np.frombuffer(buffer.read(), np.float32), integers((8, 8), seed=seed).ravel())
        assert context.error == "GL_NO_ERROR"
        assert np.array_equal((x @ x).numpy(), x.numpy() @ x.numpy())


def test_an_interrupted_scope_leaves_the_context_alone(context):
    buffer = context.buffer(reserve=256)
    buffer.clear()
    program = context.compute_shader("#version 430\nlayout(local_size_x=1) in; buffer B { float x[]; }; void main() { x[0] += 1; }")
    with glgemm.Engine() as engine:
        a = np.ones((3000, 3000), np.float32)
        work = threading.Thread(target=engine.matmul, args=(a, a))
        work.start()
        time.sleep(0.2)
        buffer.bind_to_storage_buffer(0)
        with interrupted(0.1), engine.scope():  # which waits for the product
            pass
        program.run(1)
        assert np.frombuffer(buffer.read(), np.float32)[0] == 1
        work.join()
        with engine.scope():
            assert engine.matmul(a[:2], a)[0, 0] == 3000


def test_jobs_on_buffers(context):
    """Two layers on quantised weights in the application's buffers, between its own draws and within a scope."""
    w1, w2 = glgemm.quantize(integers((96, 64)), "q4_0"), glgemm.quantize(integers((8, 96), seed=1), "nbits:bits=4,group=32,scales=f16")
    x, b1 = integers((64, 40), seed=2), integers((96, 1), seed=3)
    on = [context.buffer(part.tobytes()) for part in (w1.codes, w2.codes, w2.scales, x, b1)]
    into = [context.buffer(reserve=96 * 40 * 4), context.buffer(reserve=8 * 40 * 4)]
    own = context.buffer(np.zeros(4, np.float32).tobytes())
    own.bind_to_storage_buffer(0)
    program = context.compute_shader("#version 430\nlayout(local_size_x=1) in; buffer B { float x[]; }; void main() { x[0] += 1; }")
    frames = 0
    with glgemm.Engine.current() as engine:
        first, second = engine.quantized(on[0], "q4_0", (96, 64)), engine.quantized(on[1], w2.format, (8, 96), scales=on[2])
        hidden, y = engine.wrap(into[0], (96, 40)), engine.wrap(into[1], (8, 40))
        expected = engine.gemm(1, first, engine.wrap(on[3], (64, 40)), bias=engine.wrap(on[4], (96, 1)), activation="relu")
        job = engine.start(1, first, engine.wrap(on[3], (64, 40)), 0, hidden, bias=engine.wrap(on[4], (96, 1)), activation="relu")
        del first
        while not job.advance(1e-6):
            program.run(1)  # uses binding 0
            frames += 1
        assert np.array_equal(job.result().numpy(), expected.numpy())
        job = engine.start(1, second, hidden, 0, y)
        with engine.scope():
            job.advance(1e-6)
            job.result()
        program.run(1)
        engine.barrier("transfers")
        assert np.array_equal(np.frombuffer(into[1].read(), np.float32).reshape(8, 40), (second @ hidden).numpy())
        assert np.frombuffer(own.read(), np.float32)[0] == frames + 1
        assert context.error == "GL_NO_ERROR"
        unfinished = engine.start(1, second, hidden, 0, y)
    with pytest.raises(ValueError, match="Job.advance: the engine is closed"):
        unfinished.advance(1)


def test_a_network_on_buffers(context):
    """Weights and biases in one buffer, samples in another, results into a third, between other elements."""
    first, second, x = integers((16, 8)), integers((3, 16), seed=1), integers((50, 8), seed=2)
    bias = integers(16, seed=3)
    weights = context.buffer(first.tobytes() + second.tobytes() + bias.tobytes())
    samples, result = context.buffer(x.tobytes()), context.buffer(np.full((50, 4), 7, np.float32).tobytes())
    expected = np.maximum(x @ first.T + bias, 0) @ second.T
    with glgemm.Engine.current() as engine:
        layers = [
            glgemm.Layer(engine.wrap(weights, (16, 8)), engine.wrap(weights, 16, offset=704), "relu"),
            glgemm.Layer(engine.wrap(weights, (3, 16), offset=512)),
        ]
        y = engine.wrap(result, (50, 3), strides=(16, 4))
        assert engine.mlp(engine.wrap(samples, (50, 8)), layers, out=y).buffer == result.glo
        engine.barrier("transfers")
        read = np.frombuffer(result.read(), np.float32).reshape(50, 4)
        assert np.array_equal(read[:, :3], expected) and (read[:, 3] == 7).all()
        assert np.array_equal(engine.start_mlp(x, layers).result().numpy(), expected)
        assert context.error == "GL_NO_ERROR"


def test_each_engine_of_a_context_is_another(context):
    """With programs of its own; closing one leaves the others."""
    a, lines = integers((20, 20)), []
    with glgemm.Engine.current() as first, glgemm.Engine.current(log=lines.append, program_cache="") as second:
        assert first is not second
        d, e = first.asarray(a), second.asarray(a)
        assert np.array_equal((d @ d).numpy(), a @ a) and not lines
        second.prepare(1, e, e)
        assert lines
        before = lines.copy()
        assert np.array_equal((e @ e).numpy(), a @ a) and lines == before
        with pytest.raises(ValueError, match="different engines"):
            d @ e
        first.close()
        assert np.array_equal((e @ e).numpy(), a @ a)


def test_reports_and_stopwatches(context):
    a, report = integers((40, 40)), glgemm.Report()
    buffer = context.buffer(a.tobytes())
    with glgemm.Engine.current() as engine:
        x, watch, others = engine.wrap(buffer, (40, 40)), engine.stopwatch(), [engine.stopwatch()]
        with watch, engine.scope():
            c = glgemm.matmul(x, x, kernel="tiled:tile=8", report=report)
        assert report.kernel == "tiled:tile=8" and 0 < report.kernel_time <= watch.elapsed()
        assert np.array_equal(c.numpy(), a @ a) and context.error == "GL_NO_ERROR"
        engine.prepare(1, x, x, 0, x)  # whose C is not written
        assert np.array_equal(x.numpy(), a)
        errors = []

        def use(_):
            for call in (watch.start, watch.elapsed, engine.stopwatch, lambda: engine.prepare(1, x, x)):
                with pytest.raises(ValueError, match="of another thread"):
                    call()
                errors.append(call)
            others.clear()  # is freed here, later

        on_threads(use)
        assert len(errors) == 4
        assert np.array_equal((x @ x).numpy(), a @ a) and context.error == "GL_NO_ERROR"
    with pytest.raises(ValueError, match="Stopwatch.elapsed: the engine is closed"):
        watch.elapsed()


def test_another_thread_is_refused(context):
    with glgemm.Engine.current() as engine:
        d = engine.asarray(np.ones((2, 2), np.float32))
        job = engine.start(1, d, d)
        errors = []

        def use(_):
            for call in (lambda: d @ d, lambda: d.numpy(), engine.finish, engine.close, lambda: engine.asarray([1.0]), lambda: job.advance(1)):
                try:
                    call()
                except ValueError as error:
                    errors.append("of another thread" in str(error))

        on_threads(use)
        assert errors == [True] * 6
        with pytest.raises(ValueError, match="in the background"):
            engine.stream(np.ones((2, 2), np.float32), np.ones((2, 2), np.float32))
        # Arrays and jobs that another thread lets go of are freed here.
        kept = [d @ d, job]
        del job
        on_threads(lambda _: kept.clear())
        assert (d @ d).numpy().sum() == 8


def test_its_log_cannot_use_it(context):
    said = []

    def log(line):
        for call in (lambda: d @ d, lambda: d.numpy(), lambda: engine.finish(), lambda: engine.close()):
            try:
                call()
                said.append("no error")
            except NameError:  # the engine is not there yet
                pass
            except glgemm.Error as error:
                said.append("the engine is at work" in str(error))

    with glgemm.Engine.current(log=log, program_cache="") as engine:
        d = engine.asarray(np.ones((2, 2), np.float32))
        assert ((d @ d).numpy() == 2).all()
        assert said and all(one is True for one in said)


def test_another_context_is_refused(context):
    with glgemm.Engine.current() as engine:
        d = engine.asarray(np.ones((2, 2), np.float32))
        other = moderngl.create_standalone_context(require=430, backend="egl")
        with pytest.raises(ValueError, match="current"):
            d @ d
        other.release()
        context.__enter__()
        assert (d @ d).numpy().sum() == 8


def test_fence_and_stopwatch_after_a_close_that_failed(context):
    engine = glgemm.Engine.current()
    fence, watch = engine.fence(), engine.stopwatch()
    other = moderngl.create_standalone_context(require=430, backend="egl")  # which is current now
    try:
        with pytest.raises(ValueError, match="context is not current"):
            engine.close()
    finally:
        other.release()
        context.__enter__()
    for call in (fence.poll, fence.wait, watch.start):
        with pytest.raises(ValueError, match=r"close\(\) has ended it"):
            call()
    engine.close()


def test_abandon(context):
    engine = glgemm.Engine.current()
    d, fence = engine.asarray(np.ones((2, 2), np.float32)), engine.fence()
    e, job = d @ d, engine.start(1, d, d)
    assert fence.wait() and fence.poll()
    other = moderngl.create_standalone_context(require=430, backend="egl")  # which is current now
    buffers = [other.buffer(np.float32([seed]).tobytes()) for seed in range(60)]  # with the names that the engine's have, too
    with pytest.raises(ValueError, match="current"):
        engine.close()
    with engine:
        engine.abandon()
    engine.close()
    for call in (lambda: e @ d, d.numpy, fence.poll, lambda: job.advance(1), engine.finish):
        with pytest.raises(ValueError):
            call()
    del d, e, fence, job, engine
    gc.collect()
    assert all(np.frombuffer(buffer.read(), np.float32)[0] == seed for seed, buffer in enumerate(buffers))
    assert other.error == "GL_NO_ERROR"
    other.release()
    context.__enter__()
    with glgemm.Engine.current() as again:
        assert (again.matmul(np.eye(2, dtype=np.float32), again.asarray(np.ones((2, 2), np.float32))).numpy() == 1).all()


def test_no_context():
    failure = []

    def use(_):
        try:
            glgemm.Engine.current()
        except glgemm.Unsupported as error:
            failure.append(str(error))

    on_threads(use)  # a new thread has none
    assert "context" in failure[0]


def test_bad_buffers(context):
    with glgemm.Engine.current() as engine:
        buffer = context.buffer(reserve=64)
        d = engine.wrap(buffer, (4, 4))
        check_errors(
            (lambda: engine.wrap(buffer, (5, 4)), ValueError, "leaves its buffer of 64"),
            (lambda: engine.wrap(4000000000, (4, 4)), ValueError, "not the name of a buffer"),
            (lambda: engine.wrap(buffer, (4, 4), offset=2), ValueError, "multiple"),
            (lambda: engine.wrap(buffer, (4, 4), offset=-4), ValueError, "starts at byte -4"),
            (lambda: engine.wrap(buffer, (4, 4), strides=(16, 3)), ValueError, "multiple"),
            (lambda: engine.wrap(buffer, (4, 4), strides=(4,)), ValueError, "1 strides for 2"),
            (lambda: engine.wrap(buffer, (-1, 4)), ValueError, "negative"),
            (lambda: engine.wrap(buffer, (4, 4), strides=(-16, 4)), ValueError, "starts at byte -48"),
            (lambda: glgemm.matmul(d, d, out=d), ValueError, "share|overlap|in common|element"),
            (lambda: engine.wrap(buffer, (4, 4), np.int64), TypeError, ""),
            (lambda: engine.wrap("buffer", (4, 4)), (TypeError, RuntimeError), ""),
        )
        buffer.release()
        with pytest.raises(ValueError, match="not the name of a buffer"):
            d.numpy()


def test_the_context_goes_first():
    """Nothing crashes where the application forgets to close the engine."""
    context = moderngl.create_standalone_context(require=430, backend="egl")
    engine = glgemm.Engine.current()
    d = engine.asarray(np.ones((2, 2), np.float32))
    context.release()
    try:
        d @ d  # some drivers go on until another context is current
    except (ValueError, glgemm.Error):
        pass
    del d, engine
    gc.collect()
