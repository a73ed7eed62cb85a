"""Convolutions, against a loop that follows the definition: that each argument arrives, on the host, on the device and as a job."""

import gc
import itertools

import numpy as np
import pytest
from conftest import check_errors, integers
from hypothesis import assume, given
from hypothesis import strategies as st

import glgemm

# Axes of a layout, and where they lie in (batch, channels, images...) or in (O, I, filters...).
TENSORS = {"nhwc": (-1, 1), "nchw": ((), ())}
FILTERS = {"ohwi": (-1, 1), "oihw": ((), ()), "hwio": ((-1, -2), (0, 1))}


def convolved(x, w, size, stride, dilation, before, groups, transposed):
    """By the definition, of arrays in the order of 'nchw' and 'oihw': a transposed convolution adds to where a plain one reads."""
    n, per = x.ndim - 2, len(w) // groups
    channels = w.shape[1] * groups if transposed else len(w)
    x, w, y = x.astype(np.int64), w.astype(np.int64), np.zeros((len(x), channels, *size), np.int64)
    coarse, fine = (x, y) if transposed else (y, x)
    for tap in itertools.product(*map(range, w.shape[2:])):
        places = [np.arange(coarse.shape[2 + d]) * stride[d] + tap[d] * dilation[d] - before[d] for d in range(n)]
        inside = [(place >= 0) & (place < fine.shape[2 + d]) for d, place in enumerate(places)]
        at_coarse, at_fine = np.ix_(*map(np.flatnonzero, inside)), np.ix_(*(place[ok] for place, ok in zip(places, inside)))
        for g in range(groups):
            outer, inner = slice(g * per, (g + 1) * per), slice(g * w.shape[1], (g + 1) * w.shape[1])
            weights = w[(outer, slice(None), *tap)]
            if transposed:
                fine[:, inner][(..., *at_fine)] += np.einsum("no...,oi->ni...", coarse[:, outer][(..., *at_coarse)], weights)
            else:
                coarse[:, outer][(..., *at_coarse)] += np.einsum("ni...,oi->no...", fine[:, inner][(..., *at_fine)], weights)
    return y


@pytest.mark.parametrize("dtype, wanted", [("float32", None), ("int8", None), ("float16", None), ("float16", "float32")])
@given(data=st.data())
def test_every_parameter(dtype, wanted, data):
    draw = lambda least, most: data.draw(st.integers(least, most))
    n, groups, transposed = draw(1, 3), data.draw(st.sampled_from([1, 2, 3, 17])), data.draw(st.booleans())
    layout, output_layout, filter_layout = (data.draw(st.sampled_from(sorted(names))) for names in (TENSORS, TENSORS, FILTERS))
    each = lambda least, most: [draw(least, most) for _ in range(n)]
    stride, dilation, filters, pads = each(1, 3), each(1, 2), each(1, 3), [(draw(0, 2), draw(0, 2)) for _ in range(n)]
    reach = [(f - 1) * d + 1 for f, d in zip(filters, dilation)]
    images = [max(1, r - sum(p)) + draw(0, 4) for r, p in zip(reach, pads)]
    more = [draw(0, s - 1) if transposed else 0 for s in stride]
    if transposed:
        size = [(i - 1) * s + r - sum(p) + m for i, s, r, p, m in zip(images, stride, reach, pads, more)]
    else:
        size = [(i + sum(p) - r) // s + 1 for i, s, r, p in zip(images, stride, reach, pads)]
    assume(min(size) >= 1 and min(s - m for s, m in zip(size, more)) >= 0)
    of_x, of_y = draw(1, 3), draw(1, 3)  # channels of a group
    out_type = wanted or ("int32" if dtype == "int8" else dtype)
    x = integers((draw(1, 2), of_x * groups, *images), dtype)
    outer, inner = (of_x * groups, of_y) if transposed else (of_y * groups, of_x)
    w = integers((outer, inner, *filters), dtype, 1)
    expected = convolved(x, w, size, stride, dilation, [p[0] for p in pads], groups, transposed)
    bias, residual = integers(of_y * groups, out_type), integers(expected.shape, out_type, 2)
    expected = 2 * expected + residual + bias.reshape(-1, *(1,) * n)
    put = lambda axes, array: np.ascontiguousarray(np.moveaxis(array, *axes[::-1]))
    arguments = dict(stride=stride, padding=pads, dilation=dilation, groups=groups, layout=layout, filter_layout=filter_layout)
    arguments.update(output_layout=output_layout, transposed=transposed, output_padding=more, alpha=2, dtype=wanted)
    if out_type != "int32":
        arguments["activation"], expected = ("clamp", -3, 300), np.clip(expected, -3, 300)
    engine = glgemm.default_engine()
    arrays = put(TENSORS[layout], x), put(FILTERS[filter_layout], w), bias
    residual = put(TENSORS[output_layout], residual)
    got = engine.convolve(*arrays, residual=residual, **arguments)
    assert got.dtype == out_type and np.array_equal(np.moveaxis(got, *TENSORS[output_layout]), expected)
    on = [engine.asarray(array) for array in (*arrays, residual)]
    made = engine.convolve(*on[:3], residual=on[3], **arguments)
    assert isinstance(made, glgemm.Array) and made.dtype == out_type and np.array_equal(made.numpy(), got)
    assert np.array_equal(engine.start_convolve(*on[:3], residual=on[3], **arguments).result().numpy(), got)
    host, first, second = np.full_like(got, 7), *(engine.asarray(np.full_like(got, 7)) for _ in range(2))
    assert engine.convolve(*arrays, residual=residual, out=host, **arguments) is host and np.array_equal(host, got)
    assert engine.convolve(*on[:3], residual=on[3], out=first, **arguments).buffer == first.buffer
    assert engine.start_convolve(*on[:3], residual=on[3], out=second, **arguments).result().buffer == second.buffer
    assert np.array_equal(first.numpy(), got) and np.array_equal(second.numpy(), got)


def test_padding_by_name(engine):
    x, w = integers((1, 5, 6, 2)), integers((3, 2, 3, 2), seed=1)
    plain = lambda **named: glgemm.convolve(x, w, **named)
    for name, pads in (("same_upper", ((0, 1), (1, 1))), ("same_lower", ((1, 0), (1, 1))), ("valid", 0)):
        assert np.array_equal(plain(padding=name), plain(padding=pads))
    assert np.array_equal(plain(padding=1, stride=2), plain(padding=[1, (1, 1)], stride=(2, 2)))
    d = engine.asarray(plain())
    assert np.array_equal(engine.convolve(x, w, residual=d, out=d).numpy(), 2 * plain())
    assert engine.convolve(x[:0], w).shape == (0, 4, 4, 3)
    assert engine.convolve(x, integers((2, 2, 3, 3)), transposed=True, stride=(1, 2), output_padding=(0, 1)).shape == (1, 6, 14, 3)
    for call in (engine.convolve, engine.start_convolve):
        with pytest.raises(glgemm.Unsupported, match="cublas"):
            call(engine.asarray(x), w, kernel="cublas")


def test_images_in_parts_of_arrays(engine):
    x, w = integers((4, 5, 6, 4)), integers((3, 2, 3, 2), seed=1)
    d = engine.asarray(x)
    for key in (np.s_[1:3, ..., 1:3], np.s_[[3, 0]]):  # the second one lies at no equal steps
        filters = np.repeat(w, x[key].shape[-1] // 2, -1)
        assert np.array_equal(engine.convolve(d[key], engine.asarray(filters)).numpy(), glgemm.convolve(x[key], filters))


@pytest.mark.parametrize("format", ["q8_0", "nbits:bits=4,group=32,zeros=1"])
def test_quantised_filters(engine, format):
    x, w = integers((2, 4, 4, 32)), integers((8, 3, 1, 32), seed=1)
    q = glgemm.quantize(w.reshape(8, -1), format)
    expected = glgemm.convolve(x, q.numpy().reshape(w.shape), padding=1)
    how = {"padding": 1, "filter_size": (3, 1)}
    assert np.allclose(glgemm.convolve(x, q, **how), expected, rtol=0, atol=1e-4)
    got = engine.convolve(engine.asarray(x), engine.quantized(q), np.arange(8, dtype=np.float32), **how)
    assert np.allclose(got.numpy(), expected + np.arange(8), rtol=0, atol=1e-4)
    check_errors(
        (lambda: engine.convolve(x, q), ValueError, r"quantised filters are a matrix .* this one is \(8, 96\), and the product 1"),
        (lambda: engine.convolve(x, q, filter_size=(5, 5)), ValueError, "and the product 25"),
        (lambda: engine.convolve(engine.quantized(q).reshape(8, 1, 96), w[..., 0]), TypeError, "the filters can be quantised"),
        (lambda: engine.convolve(x, q, engine.quantized(q), filter_size=3), TypeError, "the filters can be quantised"),
    )


def test_long_convolutions_are_done_in_slices(engine):
    x, w = integers((1, 96, 96, 32)), integers((32, 3, 3, 32), seed=1)  # 85 million multiply-adds
    got = engine.convolve(x, w, padding="same_upper")
    assert np.array_equal(got[0, 40:43, 50], glgemm.convolve(x[:, 39:44, 49:52], w)[0, :, 0])


def test_a_job_keeps_what_it_uses(engine):
    q = glgemm.quantize(integers((8, 9 * 32), seed=1), "q8_0")
    images = integers((1, 6, 6, 32))
    expected = engine.convolve(engine.asarray(images), engine.quantized(q), filter_size=(3, 3)).numpy()
    for into in (None, engine.asarray(np.zeros_like(expected))):
        filters = engine.quantized(q)
        job = engine.start_convolve(images, filters, filter_size=(3, 3), out=into)
        filters.free()
        if into is not None:
            into.free()
        gc.collect()
        others = [engine.asarray(np.full_like(expected, 9)) for _ in range(8)] + [engine.quantized(glgemm.quantize(0 * q.numpy(), "q8_0"))]
        shares = [job.progress]
        while not job.advance(1e-7):
            shares.append(job.progress)
        assert shares == sorted(shares) and shares[0] == 0 and job.progress == 1
        assert all((other.numpy() == 9).all() for other in others[:-1])
        assert into is not None or np.array_equal(job.result().numpy(), expected)
    nothing = engine.start_convolve(images[:0], integers((1, 3, 3, 32)))
    assert nothing.done() and nothing.result().shape == (0, 4, 4, 1)


def test_bad_input(engine):
    x, w = integers((1, 5, 6, 2)), integers((3, 2, 3, 2))
    d = engine.asarray(x)
    call = lambda *arguments, **named: lambda: engine.convolve(*arguments, **named)
    start = lambda *arguments, **named: lambda: engine.start_convolve(*arguments, **named)
    check_errors(
        (call(x[0, 0], w), ValueError, r"x is \(6, 2\) and must have a batch"),
        (call(x, w[0]), ValueError, r"x is \(1, 5, 6, 2\) and the filters are \(2, 3, 2\)"),
        (call(x, w, groups=2), ValueError, "x has 2 channels, and the filters are for 4, in 2 groups of 2"),
        (call(x, w, layout="hwcn"), ValueError, "the layout is 'hwcn' and must be one of 'nhwc', 'nchw'"),
        (call(x, w, padding="same"), ValueError, "the padding is 'same' and must be one of 'valid', 'same_upper'"),
        (call(x, w, padding=1.5), ValueError, "the padding is 1.5 and must be a name, a whole number, or one or a pair of them"),
        (call(x, w, padding=[(0, 1.5), 0]), TypeError, r"the padding is .* and must be whole numbers"),
        (call(x, w, groups="a"), TypeError, "groups is 'a' and must be a whole number"),
        (call(x, w, stride=(1, 2, 3, 4)), ValueError, r"the stride is \(1, 2, 3, 4\), and images have three dimensions at most"),
        (call(x, w, output_padding=(1, 2, 3)), ValueError, "output_padding has 3 numbers, and images have 2 dimensions"),
        (call(x, w, np.ones(4, np.float32)), ValueError, r"the bias is \(4,\), and there are 3 output channels"),
        (call(x, w, np.ones(3, np.float64)), TypeError, "the bias is float64 and the output is float32"),
        (call(x, w, residual=x), ValueError, "the residual"),
        (call(x, w, out=np.empty((1, 4, 4, 4), np.float32)), ValueError, "out"),
        (call(d, w, out=np.empty((1, 4, 4, 3), np.float32)), TypeError, "needs an Array"),
        (call(d, w, out=engine.empty((1, 4, 4, 6))[..., ::2]), ValueError, "with gaps"),
        (call(d, w, out=d), ValueError, r"the output is \(1, 4, 4, 3\) and out is \(1, 5, 6, 2\)"),
        (call(d, integers((2, 1, 1, 2)), out=d), ValueError, "the output overlaps the input"),
        (start(x, w, out=x), TypeError, "start_convolve: out is a ndarray, and a call with arrays on the device needs an Array"),
        (start(x, w, groups=3), ValueError, "start_convolve: x has 2 channels"),
        (start(x, w, strides=2), TypeError, "strides"),
    )
    with glgemm.Engine() as other, pytest.raises(ValueError, match="different engines"):
        glgemm.convolve(other.asarray(x), engine.asarray(w))
