"""What would run, what ran and how long it took; and what is compiled ahead."""

import gc
import pathlib
import time

import numpy as np
import pytest
from conftest import check_errors, integers, run_python

import glgemm

KERNEL = "tiled:tile=8"
STAND_INS = pathlib.Path(glgemm._core.__file__).parents[2] / "tests" / "vendor"  # for CUDA's driver and cuBLAS, where they were built


def network(widths=(8, 32, 32, 3)):
    return [(integers((m, k), seed=m), integers(m), "relu") for k, m in zip(widths, widths[1:])]


def calls(engine):
    """Each kind of call with and without arrays on the device: what to call, and what explains it."""
    a, b, bias = integers((70, 50)), integers((50, 60), seed=1), integers(60)
    images, filters, layers, x = integers((2, 9, 9, 4)), integers((8, 3, 3, 4), seed=1), network(), integers((90, 8))
    for on in (np.asarray, engine.asarray):
        d, e, f, w, y = (on(array) for array in (a, b, images, filters, x))
        yield lambda d=d, e=e, **how: glgemm.matmul(d, e, **how), lambda d=d, e=e, **how: glgemm.explain(d, e, **how)
        yield lambda d=d, e=e, **how: glgemm.gemm(2, d, e, bias=bias, activation="relu", **how), None
        yield lambda f=f, w=w, **how: glgemm.convolve(f, w, **how), lambda f=f, w=w, **how: glgemm.explain_convolve(f, w, **how)
        yield lambda y=y, **how: glgemm.mlp(y, layers, **how), lambda y=y, **how: glgemm.explain_mlp(y, layers, **how)
    quantised = glgemm.quantize(integers((60, 64)), "q8_0").T
    yield lambda **how: glgemm.matmul(integers((7, 64)), quantised, **how), lambda **how: glgemm.explain(integers((7, 64)), quantised, **how)
    yield lambda **how: glgemm.gemm(1, integers((7, 64)), quantised, **how), None


def test_each_call_says_what_ran(engine):
    for call, explain in calls(engine):
        report = glgemm.Report()
        expected = np.asarray(call())
        begin = time.perf_counter()
        assert np.array_equal(call(report=report), expected)
        took = time.perf_counter() - begin
        assert report.kernel and report.precision == "standard" and report.dispatches >= report.slices >= 1
        assert 0 < report.kernel_time <= took
        if explain is not None:
            assert f"kernel {report.kernel}" in explain().replace("kernel:", "kernel") and "precision" not in explain()
        before = report.kernel, report.slices, report.dispatches
        call(report=report, precision="reproducible")
        assert report.precision == "reproducible"  # nothing of the call before is left
        call(report=report, precision="fast")
        assert report.precision == "standard" and (report.kernel, report.slices, report.dispatches) == before
        assert repr(report).startswith(f"<glgemm.Report of {report.kernel}, standard, ")


def test_a_kernel_that_is_named_is_the_one_that_ran(engine):
    report, a = glgemm.Report(), integers((40, 40))
    for on in (np.asarray, engine.asarray):
        for call in (
            lambda **how: glgemm.matmul(on(a), a, **how),
            lambda **how: glgemm.gemm(1, on(a), a, **how),
            lambda **how: glgemm.convolve(on(a[None, :, :, None]), a[None, :3, :3, None], **how),
        ):
            for kernel in (KERNEL, "naive:workgroup_x=8,workgroup_y=8"):
                call(kernel=kernel, report=report)
                assert report.kernel == kernel
    for job in (
        engine.start(1, a, a, kernel=KERNEL),
        engine.start_convolve(a[None, :, :, None], a[None, :3, :3, None], kernel=KERNEL),
    ):
        assert job.kernel == KERNEL
        job.cancel()
        assert job.kernel == KERNEL
    x, layers = integers((90, 8)), network()
    glgemm.mlp(x, layers, report=report)
    assert engine.start_mlp(x, layers).kernel == report.kernel
    assert engine.start(1, a[:0], a).kernel == ""


def test_long_ones_and_empty_ones(engine):
    report, a = glgemm.Report(), np.ones((600, 600), np.float32)  # 216 million multiply-adds: in slices
    images, filters = np.ones((1, 66, 66, 64), np.float32), np.ones((64, 3, 3, 64), np.float32)
    layers = [(np.ones((256, 256), np.float32),)] * 2
    for call in (
        lambda **how: glgemm.matmul(a, a, **how),
        lambda **how: engine.matmul(engine.asarray(a), a, **how),
        lambda **how: glgemm.convolve(images, filters, **how),
        lambda **how: glgemm.mlp(np.ones((2000, 256), np.float32), layers, **how),
    ):
        for precision in ("standard", "reproducible"):
            call(report=report, precision=precision)
            assert report.kernel and report.precision == precision and report.dispatches >= report.slices >= 1
            assert 0 < report.kernel_time < 60
        call(report=report, precision="fast")
        assert report.precision == "standard"
    for call in (
        lambda: glgemm.matmul(a[:0], a, report=report),
        lambda: engine.matmul(engine.asarray(a[:0]), a, report=report),
        lambda: glgemm.gemm(1, a[:0], a, report=report),
        lambda: glgemm.convolve(images[:0], filters, report=report),
        lambda: glgemm.mlp(np.ones((0, 256), np.float32), layers, report=report),
    ):
        glgemm.matmul(a[:9], a, report=report)
        assert report.kernel
        call()
        assert (report.kernel, report.slices, report.dispatches, report.kernel_time) == ("", 0, 0, 0)


@pytest.mark.skipif(not (STAND_INS / "libcuda.so.1").exists(), reason="the stand-ins are not here")
def test_a_vendors_library_takes_long_products():
    code = f"""
import ctypes
cuda = ctypes.CDLL("{STAND_INS}/libcuda.so.1")
a = np.ones((500, 600), np.float32)  # 150 million multiply-adds
with glgemm.Engine(vendor="{STAND_INS}/libcublas.so.13") as engine:
    for on in (np.asarray, engine.asarray):
        for how in ({{}}, {{"report": glgemm.Report()}}):
            cuda.stand_in_reset()
            c = engine.matmul(on(a), a.T, kernel="cublas", **how)
            assert (np.asarray(c) == 600).all() and cuda.stand_in_calls(b"cublasGemmEx") > 0
        assert how["report"].kernel == "cublas" and how["report"].kernel_time > 0
        assert "kernel: cublas" in glgemm.explain(on(a), a.T, kernel="cublas", engine=engine)
print("end")
"""
    assert run_python(code) == (0, "end\n", "")


def test_streamed_products(monkeypatch):
    report, a = glgemm.Report(), integers((300, 200))
    assert np.array_equal(glgemm.stream(a, a.T, device_memory_limit_bytes=1 << 18, progress=False, report=report).result(), a @ a.T)
    assert report.kernel and report.precision == "standard" and report.slices > 1 and report.dispatches == 0
    assert 0 < report.kernel_time <= report.total_time < 60 and 0 < report.transfer_time <= report.total_time
    assert report.bytes_to_device >= a.nbytes and report.bytes_from_device >= 300 * 300 * 4
    monkeypatch.setattr(glgemm.Engine, "_fits", lambda self, size: False)
    glgemm.matmul(a, a.T, kernel=KERNEL, precision="reproducible", report=report)
    one = report.slices
    assert report.kernel == KERNEL and report.precision == "reproducible" and one >= 1
    glgemm.matmul(np.stack([a, a, a]), a.T, kernel=KERNEL, report=report)
    assert report.slices == 3 * one  # of all matrices
    weight = glgemm.quantize(integers((6, 64)), "q8_0")
    for call in (glgemm.matmul, lambda x, y, **how: glgemm.gemm(1, x, y, **how)):
        call(integers((4, 64)), weight.T, kernel=KERNEL, report=report)
        assert report.kernel == KERNEL
    with glgemm.Accelerators("0") as devices, pytest.raises(TypeError, match="stream: a report is of one Engine"):
        devices.stream(a, a.T, report=report)


def test_bad_reports(engine):
    a, image, layers = integers((3, 3)), integers((1, 5, 5, 1)), [(integers((3, 3)),)]
    check_errors(
        (lambda: glgemm.matmul(a, a, report=1), TypeError, "Terms"),
        (lambda: engine.start(1, a, a, report=glgemm.Report()), TypeError, "'report'"),
        (lambda: engine.prepare(1, a, a, report=glgemm.Report()), TypeError, "'report'"),
        (lambda: engine.start_convolve(image, image, report=glgemm.Report()), TypeError, "'report'"),
        (lambda: engine.start_mlp(a, layers, report=glgemm.Report()), TypeError, "'report'"),
    )
    report = glgemm.Report()
    with pytest.raises(AttributeError):
        report.kernel = "other"
    glgemm.matmul(a, a, report=report)
    with pytest.raises(ValueError):
        glgemm.gemm(1j, a, a, report=report)
    assert report.kernel == ""  # of the call that failed


def explained(text):
    return dict(line.split(": ", 1) for line in text.splitlines())


def test_explained_convolutions(engine):
    x, w = integers((2, 9, 9, 8)), integers((16, 3, 3, 8), seed=1)
    lines = explained(glgemm.explain_convolve(x, w, integers(16), padding=1, residual=integers((2, 9, 9, 16)), kernel=KERNEL))
    shapes = {"x": "(2, 9, 9, 8)", "w": "(16, 3, 3, 8)", "bias": "(16,)", "residual": "(2, 9, 9, 16)"}
    assert all(lines[name] == f"{shape} float32, on the device" for name, shape in shapes.items())
    assert lines["runs"].startswith("1 piece of at most 2 images and 9 rows of output") and "precision" not in lines
    assert lines["kernel"].startswith(f"{KERNEL}; ") and "dispatch" in lines["kernel"] and "workspace" in lines["kernel"]
    assert lines["on the device"].startswith(f"{4 * (x.size + w.size + 16 + 2 * 2 * 9 * 9 * 16)} bytes of ")
    assert explained(glgemm.explain_convolve(x, w, precision="extended"))["precision"] == "extended"
    d = engine.asarray(integers((2, 9, 9, 16)))[..., ::2]
    assert explained(glgemm.explain_convolve(d, w))["x"] == "(2, 9, 9, 8) float32, on the device, copied first"
    depthwise = glgemm.explain_convolve(x, integers((8, 3, 3, 1)), groups=8)
    report = glgemm.Report()
    glgemm.convolve(x, integers((8, 3, 3, 1)), groups=8, report=report)
    assert f"kernel: {report.kernel}; {report.dispatches} dispatch" in depthwise
    assert ("runs: depthwise" in depthwise) == report.kernel.startswith("depthwise")
    q = glgemm.quantize(w.reshape(16, -1), "q8_0")
    assert explained(glgemm.explain_convolve(x, q, filter_size=3, engine=engine))["w"] == "(16, 72) q8_0, on the device"
    assert glgemm.explain_convolve(x[:0], w) == "nothing: the result has no elements\n"
    into = engine.asarray(np.full((2, 7, 7, 16), 7, np.float32))
    glgemm.explain_convolve(x, w, out=into)
    assert (into.numpy() == 7).all()
    with pytest.raises(ValueError, match="explain_convolve: x has 8 channels"):
        glgemm.explain_convolve(x, w, groups=2)


def test_explained_networks(engine):
    layers, x = network((8, 32, 700, 3)), integers((90, 8))
    text = glgemm.explain_mlp(x, layers)
    lines = explained(text)
    assert lines["x"] == "(90, 8) float32, on the device" and lines["bias of layer 2"] == "(3,) float32, on the device"
    assert lines["weights of layer 1"] == "(700, 32) float32, on the device"
    told = [line for line in text.splitlines() if line.startswith("layer")]
    assert "layer 1: a product" in text and "; apart from the next, since 700 values" in text and "; apart" not in told[-1]
    size = x.size + 90 * 3 + sum(w.size + bias.size for w, bias, _ in layers)
    assert lines["on the device"].startswith(f"{4 * size} bytes of ")
    report = glgemm.Report()
    glgemm.mlp(x, layers, report=report)
    assert lines["runs"].startswith(f"{report.dispatches} dispatches, 1 piece of at most 90 samples, workspace ")
    # In one buffer nothing is copied.
    narrow = network((8, 32, 3))
    assert "each call copies" in glgemm.explain_mlp(x, narrow)
    (w, bias, _), (v, other, _) = narrow
    both, biases = engine.asarray(np.concatenate([w.ravel(), v.ravel()])), engine.asarray(np.concatenate([bias, other]))
    parts = [(both[: w.size].reshape(w.shape), biases[:32], "relu"), (both[w.size :].reshape(v.shape), biases[32:], "relu")]
    assert "each call copies" not in glgemm.explain_mlp(x, parts)
    assert explained(glgemm.explain_mlp(x, narrow, precision="reproducible"))["precision"] == "reproducible"
    stepped = engine.asarray(integers((90, 16)))[::-1, ::2]
    assert explained(glgemm.explain_mlp(stepped, narrow))["x"] == "(90, 8) float32, on the device, copied first"
    assert glgemm.explain_mlp(x[:0], narrow).startswith("nothing")
    with pytest.raises(ValueError, match="explain_mlp: layer 1: the weights"):
        glgemm.explain_mlp(x, [narrow[0], narrow[0]])


def test_what_is_prepared_compiles_no_more():
    a, b, bias, c = integers((70, 50)), integers((50, 60), seed=1), integers(60), integers((70, 60))
    images, filters, layers, x = integers((2, 9, 9, 4)), integers((8, 3, 3, 4), seed=1), network(), integers((90, 8))
    lines = []
    with glgemm.Engine(log=lines.append, program_cache="") as engine:
        on = engine.asarray
        into, output, y = on(c), on(np.full((2, 7, 7, 8), 7, np.float32)), on(np.full((90, 3), 7, np.float32))
        for prepare, *works in (
            (lambda: engine.prepare(1, on(a), on(b)), lambda: on(a) @ on(b), lambda: engine.matmul(a, b), lambda: engine.gemm(1, a, b)),
            (lambda: engine.prepare(1, a.astype("f2"), b.astype("f2")), lambda: engine.start(1, a.astype("f2"), b.astype("f2")).result()),
            (
                lambda: engine.prepare(2, a, b, -1, into, bias=bias, activation="tanh"),
                lambda: engine.gemm(3, on(a), b, 1, on(c), bias=bias, activation="tanh"),
            ),
            (
                lambda: engine.prepare_convolve(images, filters, integers(8), out=output, kernel=KERNEL),
                lambda: engine.convolve(images, on(filters), integers(8), kernel=KERNEL),
                lambda: engine.start_convolve(images, filters, integers(8), kernel=KERNEL).result(),
            ),
            (lambda: engine.prepare_mlp(x, layers, out=y), lambda: engine.mlp(on(x), layers), lambda: engine.start_mlp(x, layers).result()),
        ):
            before = len(lines)
            assert prepare() is None
            assert len(lines) > before  # it has compiled
            before = lines.copy()
            for work in works:
                work()
            assert lines == before
        assert np.array_equal(into.numpy(), c) and (output.numpy() == 7).all() and (y.numpy() == 7).all()
        assert engine.prepare(1, a[:0], b) is None and engine.prepare_mlp(x[:0], layers) is None
        check_errors(
            (lambda: engine.prepare(1, a, a), ValueError, "prepare: op.A. is 70x50 and op.B. is 70x50: the inner sizes"),
            (lambda: engine.prepare(1, a, b, 1), ValueError, "prepare: beta is 1 and there is no C"),
            (lambda: engine.prepare(1, a, b, 0, c), TypeError, "prepare: C is a ndarray, and a call with arrays on the device needs"),
            (lambda: engine.prepare(1, a, b, kernel="cublas"), glgemm.Unsupported, "cublas"),
            (lambda: engine.prepare_convolve(images, filters, groups=3), ValueError, "prepare_convolve: x has 4 channels"),
            (lambda: engine.prepare_mlp(x, layers[1:]), ValueError, "prepare_mlp: layer 0: the weights"),
            (lambda: engine.prepare_mlp(x, layers, out=np.empty((90, 3), np.float32)), TypeError, "prepare_mlp: out is a ndarray"),
        )
    with pytest.raises(ValueError, match="the engine is closed"):
        engine.prepare(1, a, b)


def test_stopwatch(engine):
    a = engine.asarray(np.ones((700, 700), np.float32))
    watch, idle = engine.stopwatch(), engine.stopwatch()
    check_errors(
        (watch.stop, ValueError, "Stopwatch.stop: it was not started"),
        (watch.elapsed, ValueError, "Stopwatch.elapsed: it was not stopped since it was started"),
        (watch.poll, ValueError, "Stopwatch.poll: it was not stopped"),
        (glgemm.Stopwatch, TypeError, "cannot create|No constructor"),
    )
    a @ a
    with idle:
        pass
    with watch as itself:
        assert itself is watch
        a @ a
    took = watch.elapsed()
    assert 0 <= idle.elapsed() < took < 60 and watch.poll() == took == watch.elapsed()
    watch.start()
    with pytest.raises(ValueError, match="Stopwatch.poll: it was not stopped since it was started"):
        watch.poll()
    watch.stop()
    engine.finish()
    assert 0 <= watch.poll() < took  # of nothing


def test_a_stopwatch_and_its_engine():
    with glgemm.Engine() as engine:
        watches = [engine.stopwatch() for _ in range(3)]
        with watches[0]:
            pass
        del watches[2]
        gc.collect()
        assert watches[0].elapsed() >= 0
    check_errors(
        (watches[0].elapsed, ValueError, "Stopwatch.elapsed: the engine is closed"),
        (watches[1].start, ValueError, "Stopwatch.start: the engine is closed"),
        (engine.stopwatch, ValueError, "stopwatch: the engine is closed"),
    )
    engine = glgemm.Engine()
    watch = engine.stopwatch()
    del engine
    gc.collect()
    with watch:  # which keeps its engine
        pass
    assert watch.elapsed() >= 0
    code = """
engine = glgemm.Engine()
watch = engine.stopwatch()
with watch: pass
child = os.fork()
if child == 0:
    print(*errors_of("fork", watch.start, watch.elapsed, engine.stopwatch, lambda: engine.prepare(1, np.eye(2), np.eye(2))))
    del watch
    sys.exit(7)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), watch.elapsed() >= 0)
"""
    status, out, errors = run_python(code)
    assert (status, out.split(), errors) == (0, ["True"] * 4 + ["7", "True"], "")
