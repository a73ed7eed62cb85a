"""Where a call is done: on the device of its arrays, whichever of them is there; else on the host. And what a bias may be."""

import numpy as np
import pytest
from conftest import check_errors, integers

import glgemm

A, B, C, BIAS = integers((6, 5)), integers((5, 4), seed=1), integers((6, 4), seed=2), integers(4, seed=3)
IMAGES, FILTERS, RESIDUAL = integers((2, 5, 5, 3)), integers((4, 2, 2, 3), seed=1), integers((2, 4, 4, 4), seed=2)
X, W, V = integers((7, 5)), integers((6, 5), seed=1), integers((4, 6), seed=2)

# Calls, and their arrays by names; those of the second row are written.
CALLS = {
    "matmul": (lambda a, b, out=None: glgemm.matmul(a, b, out), {"a": A, "b": B}, {"out": C}),
    "gemm": (
        lambda a, b, bias, residual, c=None: glgemm.gemm(2, a, b, 0 if c is None else -1, c, bias=bias, residual=residual),
        {"a": A, "b": B, "bias": BIAS, "residual": C},
        {"c": C},
    ),
    "convolve": (glgemm.convolve, {"x": IMAGES, "w": FILTERS, "bias": BIAS, "residual": RESIDUAL}, {"out": RESIDUAL}),
    "mlp": (
        lambda x, w, first, v, bias, out=None: glgemm.mlp(x, [(w, first, "relu"), (v, bias)], out=out),
        {"x": X, "w": W, "first": integers(6), "v": V, "bias": BIAS},
        {"out": integers((7, 4))},
    ),
}


class Foreign:
    """Another library's array, in the host's memory."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **how):
        return self.array.__dlpack__(**how)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


@pytest.mark.parametrize("name", CALLS)
def test_any_array_on_the_device_decides(engine, name):
    call, read, written = CALLS[name]
    expected = call(**read)
    assert isinstance(expected, np.ndarray)
    assert np.array_equal(call(**{key: Foreign(array) for key, array in read.items()}), expected)
    for key in read:
        for others in (lambda array: array, Foreign, np.asfortranarray):
            mixed = {each: engine.asarray(array) if each == key else others(array) for each, array in read.items()}
            got = call(**mixed)
            assert isinstance(got, glgemm.Array) and np.array_equal(got.numpy(), expected)
            for out, array in written.items():
                with pytest.raises(TypeError, match=f"^{name}: (out|C) is a ndarray, and a call with arrays on the device needs an Array"):
                    call(**mixed, **{out: array.copy()})
    for out, array in written.items():
        host, on_device = array.copy(), engine.asarray(array)
        assert call(**read, **{out: host}) is host
        got = call(**read, **{out: on_device})
        assert isinstance(got, glgemm.Array) and got.buffer == on_device.buffer and np.array_equal(on_device.numpy(), host)
    with glgemm.Engine() as other:
        first, *_, last = read
        mixed = {**read, first: engine.asarray(read[first]), last: other.asarray(read[last])}
        with pytest.raises(ValueError, match=f"^{name}: the arrays belong to different engines"):
            call(**mixed)


def test_a_buffer_is_no_array_by_itself(engine):
    class Buffer:
        glo = engine.asarray(A).buffer

    for call in (lambda: glgemm.matmul(Buffer(), B), lambda: glgemm.mlp(engine.asarray(X), [(Buffer(),)]), lambda: engine.asarray(Buffer())):
        with pytest.raises(TypeError, match=r"an operand is .*Buffer.*: an OpenGL buffer is an array once Engine.wrap\(\) has its shape"):
            call()


def test_lists_and_quantised_matrices(engine):
    q = glgemm.quantize(integers((6, 32)), "q8_0")
    x = integers((3, 32), seed=1)
    expected = x @ q.numpy().T
    assert np.array_equal(glgemm.matmul(engine.asarray(A.astype(np.float64)), B.tolist()).numpy(), A @ B)
    into, bias = engine.empty((3, 6)), engine.asarray(np.ones(6, np.float32))
    assert np.array_equal(glgemm.matmul(x, q.T, out=into).numpy(), expected) and np.array_equal(into.numpy(), expected)
    got = glgemm.gemm(1, x, q, op_b="T", bias=bias)
    assert isinstance(got, glgemm.Array) and np.array_equal(got.numpy(), expected + 1)
    assert np.array_equal(glgemm.stream(engine.asarray(x), q.T, progress=False).result(), expected)
    assert isinstance(glgemm.stream(engine.asarray(A), engine.asarray(B), progress=False).result(), np.ndarray)


def test_explain_goes_by_the_same_rule(engine):
    into = engine.asarray(np.full((6, 4), 7, np.float32))
    for given in ((engine.asarray(A), B), (A, engine.asarray(B)), (A, B, into)):
        assert glgemm.explain(*given).splitlines()[0] == "A: (6, 5) float32, on the device"
    assert (into.numpy() == 7).all()
    assert "no copy on the host" in glgemm.explain(A, B, C)
    half = engine.asarray(A.astype(np.float16)), engine.asarray(B.astype(np.float16))
    assert f"on the device: {2 * (A.size + B.size) + 4 * C.size} bytes" in glgemm.explain(*half, dtype=np.float32)
    check_errors(
        (lambda: glgemm.explain(engine.asarray(A), B, C), TypeError, "explain: out is a ndarray, and a call with arrays on the device"),
        (lambda: glgemm.explain(engine.asarray(A), B, into[:2]), ValueError, "explain: the product is"),
        (lambda: glgemm.explain(engine.asarray(A), B, dtype=np.int32), TypeError, "explain: a product of float32 is summed in float32"),
    )


def biased(engine):
    """Calls with a bias for four columns, outputs or channels, by the type of the sums."""
    layers = lambda bias: [(W, None, "relu"), (V, bias)]
    yield lambda bias: glgemm.gemm(1, A, B, bias=bias)
    yield lambda bias: glgemm.gemm(1, engine.asarray(A), B, bias=bias).numpy()
    yield lambda bias: engine.start(1, A, B, bias=bias).result().numpy()
    yield lambda bias: glgemm.stream(A, B, bias=bias, progress=False).result()
    yield lambda bias: glgemm.convolve(IMAGES, FILTERS, bias)
    yield lambda bias: glgemm.convolve(engine.asarray(IMAGES), FILTERS, bias).numpy()
    yield lambda bias: engine.start_convolve(IMAGES, FILTERS, bias).result().numpy()
    yield lambda bias: glgemm.mlp(X, layers(bias))
    yield lambda bias: glgemm.mlp(engine.asarray(X), layers(bias)).numpy()
    yield lambda bias: engine.start_mlp(X, layers(bias)).result().numpy()


def test_a_bias_in_the_hosts_memory_may_be_narrower(engine):
    for call in biased(engine):
        expected = call(BIAS)
        for narrow in (np.float16, np.int8, ">f4", ">f2"):
            assert np.array_equal(call(BIAS.astype(narrow)), expected)
        with pytest.raises(TypeError, match="bias is float64"):  # whose numbers float32 does not hold
            call(BIAS.astype(np.float64))
        with pytest.raises(TypeError, match="bias is int32"):
            call(BIAS.astype(np.int32))


def test_a_bias_on_the_device_is_of_the_type_that_it_is_added_to(engine):
    half, ones = engine.asarray(BIAS.astype(np.float16)), np.ones(4, np.float16)
    for call in biased(engine):
        if "stream" in call.__code__.co_names:
            continue  # which copies it to the host
        with pytest.raises(TypeError, match="bias is float16"):
            call(half)
    # Of a result that is rounded to float16, it is float16, and float32 of a hidden layer.
    a, b, images, filters, x, w, v = (one.astype(np.float16) for one in (A, B, IMAGES, FILTERS, X, W, V))
    for on in (np.asarray, engine.asarray):
        bias = on(ones)
        for got, plain in (
            (glgemm.gemm(1, on(a), b, bias=bias), A @ B),
            (glgemm.convolve(on(images), filters, bias), glgemm.convolve(IMAGES, FILTERS)),
            (glgemm.mlp(on(x), [(w, np.zeros(6, np.float16)), (v, bias)]), X @ W.T @ V.T),
        ):
            assert got.dtype == np.float16 and np.array_equal(np.asarray(got), plain + 1)
        for wide in (np.float32, np.float64):
            check_errors(
                (lambda: glgemm.gemm(1, on(a), b, bias=on(ones.astype(wide))), TypeError, "the bias is float.. and C is float16"),
                (lambda: glgemm.convolve(on(images), filters, ones.astype(wide)), TypeError, "the bias is float.. and the output is float16"),
                (lambda: glgemm.mlp(on(x), [(w,), (v, ones.astype(wide))]), TypeError, "layer 1: the bias is float.. and what the layer gives is"),
            )
    with pytest.raises(TypeError, match="mlp: layer 0: the bias is float16 and what the layer gives is float32"):
        glgemm.mlp(x, [(w, engine.asarray(np.zeros(6, np.float16))), (v,)])
    # Integers, in C's type, rows and columns.
    i, j = integers((6, 5), np.int8), integers((5, 4), np.int8, 1)
    for on in (np.asarray, engine.asarray):
        for bias in (integers(4, np.int32), integers((6, 1), np.int32)):
            got = glgemm.gemm(1, on(i), on(j), bias=on(bias))
            assert np.array_equal(np.asarray(got), i.astype(np.int32) @ j + bias)
    z = (A + 1j * A).astype(np.complex64)
    assert np.array_equal(glgemm.gemm(1, z, B.astype(np.complex64), bias=BIAS), z @ B + BIAS)
