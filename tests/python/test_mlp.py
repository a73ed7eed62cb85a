"""Networks of fully connected layers, against NumPy in float64: that each argument arrives, on the host, on the device and as a job."""

import numpy as np
import pytest
from conftest import check_errors, integers

import glgemm

# Whose slopes are 1 at most.
ACTIVATIONS = {
    "relu": lambda v: np.maximum(v, 0),
    "tanh": np.tanh,
    ("leaky_relu", 0.25): lambda v: np.where(v < 0, v / 4, v),
    ("clamp", -1, 2): lambda v: np.clip(v, -1, 2),
    None: lambda v: v,
}


def network(widths, dtype=np.float32):
    """Layers of these widths with activations of all kinds; the second one has no bias."""
    draw = np.random.default_rng(sum(widths)).standard_normal
    of = lambda i, k, m: glgemm.Layer(draw((m, k)).astype(dtype) / 8, draw(m).astype(dtype), list(ACTIVATIONS)[i % 5])
    layers = [of(i, k, m) for i, (k, m) in enumerate(zip(widths, widths[1:]))]
    return [layer._replace(bias=None) if i == 1 else layer for i, layer in enumerate(layers)]


def check(got, x, layers):
    """Whether these are the outputs, within the bound of the error of sums in float32, layer by layer."""
    u, y, error = 2.0**-24, x.astype(np.float64), np.zeros(x.shape)
    for w, bias, activation in layers:
        w, b = w.astype(np.float64).T, 0.0 if bias is None else bias.astype(np.float64)
        error = error @ abs(w) + 2 * (len(w) + 2) * u * ((abs(y) + error) @ abs(w) + abs(b))
        y = y @ w + b
        error += 8 * u * np.maximum(1, abs(y))
        y = ACTIVATIONS[activation](y)
    if got.dtype == np.float16:
        error = error + 2.0**-11 * (abs(y) + error) + 2.0**-24
    assert got.shape == y.shape and np.all(abs(got - y) <= error)


def on_device(engine, layers):
    """Those layers, each array by itself; a hidden bias is of the type of the sums."""
    types = [np.float32 if layer.weights.dtype == np.float16 else None for layer in layers[:-1]] + [None]
    bring = lambda bias, dtype: None if bias is None else engine.asarray(bias, dtype)
    return [glgemm.Layer(engine.asarray(w), bring(bias, dtype), activation) for (w, bias, activation), dtype in zip(layers, types)]


@pytest.mark.parametrize("dtype", ["float32", "float16", "float64"])
@pytest.mark.parametrize("widths", [(3, 1), (16, 64, 64, 3), (33, 130, 17, 65, 7, 9), (40, 700, 12)], ids=str)
def test_values(engine, widths, dtype):
    layers = network(widths, dtype)
    x = np.random.default_rng(1).standard_normal((77, widths[0])).astype(dtype)
    got = glgemm.mlp(x, layers)
    assert isinstance(got, np.ndarray) and got.dtype == dtype
    check(got, x, layers)
    d, on = engine.asarray(x), on_device(engine, layers)
    made = engine.mlp(d, on)
    assert isinstance(made, glgemm.Array) and made.dtype == dtype
    check(made.numpy(), x, layers)
    job = engine.start_mlp(d, on)
    while not job.advance(1e-5):
        pass
    assert np.array_equal(job.result().numpy(), made.numpy())
    host, first, second = np.full_like(got, 7), *(engine.asarray(np.full_like(got, 7)) for _ in range(2))
    assert engine.mlp(x, layers, out=host) is host and np.array_equal(host, got)
    assert engine.mlp(d, on, out=first).buffer == first.buffer and np.array_equal(first.numpy(), made.numpy())
    assert engine.start_mlp(d, on, out=second).result().buffer == second.buffer and np.array_equal(second.numpy(), made.numpy())
    assert glgemm.mlp(x[:0], layers).shape == (0, widths[-1]) and engine.start_mlp(d[:0], on).done()


def test_types_and_precision(engine):
    layers, x = network((24, 32, 5), np.float16), integers((50, 24), np.float16)
    wide = glgemm.mlp(x, layers, dtype=">f4")
    assert wide.dtype == np.float32 and glgemm.mlp(x.astype(np.float32), layers).dtype == np.float32
    check(wide, x, layers)
    assert np.array_equal(glgemm.mlp(x, layers, out=np.empty((50, 5), ">f4")), wide)
    x, w = integers((5, 6), np.int8), integers((3, 6), np.int8, 1)
    y = glgemm.mlp(x, [(w, np.int32([1, 2, 3]))])
    assert y.dtype == np.int32 and np.array_equal(y, x.astype(np.int32) @ w.T + [1, 2, 3])
    layers, x = network((24, 32, 32, 5)), integers((50, 24)) / 7
    layers[1] = layers[1]._replace(activation="relu")  # drivers' tanh differ
    y = x
    for w, bias, activation in layers:  # reproducible: the bits of the layers as products
        bias = None if bias is None else bias[:, None]
        y = engine.gemm(1, w, y.T, bias=bias, activation=activation, precision="reproducible").T
    assert np.array_equal(engine.mlp(x, layers, precision="reproducible"), y)


def test_arrays_that_lie_otherwise(engine):
    w, v, bias, x = integers((9, 6)), integers((3, 9), seed=2), integers(3), integers((40, 12), seed=1)
    expected = lambda part: np.maximum(part @ w.T, 0) @ v.T + bias
    d, turned = engine.asarray(x), engine.asarray(w.T.copy()).T
    both = engine.asarray(np.concatenate([w.ravel(), v.ravel(), bias]))
    parts = [(both[:54].reshape(9, 6), None, "relu"), (both[54:81].reshape(3, 9), both[81:])]
    for key in (np.s_[:, :6], np.s_[:, ::2], np.s_[::-1, 6:], np.s_[[3, 0, 39], :6]):
        assert np.array_equal(glgemm.mlp(x[key], [(w, None, "relu"), (v, bias)]), expected(x[key]))
        assert np.array_equal(engine.mlp(d[key], [(turned, None, "relu"), (v, bias)]).numpy(), expected(x[key]))
        assert np.array_equal(engine.mlp(d[key], parts).numpy(), expected(x[key]))
    assert np.array_equal(engine.mlp(d[:6].T, parts).numpy(), expected(x[:6].T))
    into, host = engine.asarray(np.full((40, 5), 7, np.float32)), np.full((40, 5), 7, np.float32)
    engine.mlp(d[:, 6:], parts, out=into[:, 1:4])
    host[:, 1:4] = expected(x[:, 6:])
    assert np.array_equal(into.numpy(), host)


def test_quantised_weights(engine):
    layers, x = network((64, 32, 8)), integers((20, 64))
    q = glgemm.quantize(layers[0].weights, "q8_0")
    as_numbers = [layers[0]._replace(weights=q.numpy()), layers[1]]
    for given in (q, engine.quantized(q)):
        check(np.asarray(engine.mlp(x, [layers[0]._replace(weights=given), layers[1]])), x, as_numbers)


def test_long_networks_are_done_in_slices(engine):
    x, w, v = integers((4096, 128)), integers((128, 128), seed=1), integers((128, 128), seed=2)  # 134 million multiply-adds
    assert np.array_equal(engine.mlp(x, [(w, None, "relu"), (v,)]), np.maximum(x @ w.T, 0) @ v.T)


def test_bad_input(engine):
    x, w, v = integers((5, 6)), integers((4, 6)), integers((3, 4))
    d, ones = engine.asarray(x), np.ones(4, np.float32)
    call = lambda *layers, x=x, **named: lambda: engine.mlp(x, layers, **named)
    check_errors(
        (call(), ValueError, "mlp: there are no layers"),
        (call(*[(integers((6, 6)),)] * 17), ValueError, "16"),
        (call(w), TypeError, "mlp: layer 0 is a ndarray and must be a Layer, or a tuple"),
        (call((w,), (v, None, "relu", 1)), TypeError, "mlp: layer 1 is a tuple and must be"),
        (call((w,), x=x[0]), ValueError, r"mlp: x is \(6,\) and must be \(samples, inputs\)"),
        (call((w,), (w,)), ValueError, r"mlp: layer 1: the weights are \(4, 6\) and must be \(outputs, 4\)"),
        (call((w,), (v.astype(np.int8),)), TypeError, "mlp: layer 1: products of int8 and float32 are not summed in one type"),
        (call((w,), dtype=np.float64), TypeError, "mlp: layer 0: the result is float64, and products of .* are summed in float32"),
        (call((w, ones[:3])), ValueError, r"mlp: layer 0: the bias is \(3,\) and must be \(4,\)"),
        (call((w, ones.astype(np.float64))), TypeError, "mlp: layer 0: the bias is float64 and what the layer gives is float32"),
        (call((w, engine.asarray(ones, np.float16))), TypeError, "mlp: layer 0: the bias is float16"),
        (call((w,), (v, None, "step")), ValueError, "mlp: layer 1: the activation is 'step' and must be one of 'relu'"),
        (call((w,), precision="best"), ValueError, "best"),
        (call((w,), kernel="naive"), TypeError, "kernel"),
        (call((w,), out=np.empty((5, 3), np.float32)), ValueError, r"mlp: out is \(5, 3\)"),
        (call((w,), x=d, out=np.empty((5, 4), np.float32)), TypeError, "needs an Array"),
        (call((w,), out=engine.empty((5, 3))), ValueError, r"mlp: the result is \(5, 4\) and out is \(5, 3\)"),
        (call((w,), out=engine.empty((5, 8))[:, ::2]), ValueError, "mlp: out has gaps between all elements, or steps back"),
        (call((integers((6, 6)),), x=d, out=d), ValueError, "overlaps"),
        (call((integers((4, 32)),), x=glgemm.quantize(np.ones((5, 32)), "q8_0")), TypeError, "the weights can be quantised, and other"),
        (lambda: engine.start_mlp(x, [(w,)], out=x), TypeError, "start_mlp: out is a ndarray"),
        (lambda: engine.start_mlp(x, [(w,), (w,)]), ValueError, "start_mlp: layer 1: the weights"),
    )
    with glgemm.Engine() as other, pytest.raises(ValueError, match="different engines"):
        glgemm.mlp(other.asarray(x), [(engine.asarray(w),)])
