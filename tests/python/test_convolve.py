"""Convolutions, against a loop that follows the definition."""

import gc
import itertools

import numpy as np
import pytest
from conftest import check_errors, integers
from hypothesis import given
from hypothesis import strategies as st

import glgemm

# Axes of a layout, and where they lie in (batch, channels, images...) or in (O, I, filters...).
TENSORS = {"nhwc": (-1, 1), "nchw": ((), ())}
FILTERS = {"ohwi": (-1, 1), "oihw": ((), ()), "hwio": ((-1, -2), (0, 1))}


def taps(size):
    return itertools.product(*map(range, size))


def convolved(x, w, size, stride, dilation, before, groups=1, transposed=False):
    """By the definition, of arrays in the order of 'nchw' and 'oihw': a transposed convolution adds to where a plain one reads."""
    n, per = x.ndim - 2, len(w) // groups
    channels = w.shape[1] * groups if transposed else len(w)
    y = np.zeros((len(x), channels, *size), np.result_type(x, w, np.int64))
    coarse, fine = (x, y) if transposed else (y, x)
    for tap in taps(w.shape[2:]):
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


@given(st.data())
def test_every_parameter(data):
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
    if min(size) < 1 or min(s - m for s, m in zip(size, more)) < 0:
        return
    of_x, of_y = draw(1, 3), draw(1, 3)  # channels of a group
    dtype = data.draw(st.sampled_from(["float32", "int8"]))
    x = integers((draw(1, 2), of_x * groups, *images), dtype)
    outer, inner = (of_x * groups, of_y) if transposed else (of_y * groups, of_x)
    w = integers((outer, inner, *filters), dtype, 1)
    expected = convolved(x, w, size, stride, dilation, [p[0] for p in pads], groups, transposed)
    bias, residual = integers(of_y * groups, "int32"), integers(expected.shape, "int32", 2)
    expected = expected + residual + bias.reshape(-1, *(1,) * n)
    put = lambda axes, array: np.ascontiguousarray(np.moveaxis(array, *axes[::-1]))
    out_type = "float32" if dtype == "float32" else "int32"
    arguments = dict(stride=stride, padding=pads, dilation=dilation, groups=groups, layout=layout, filter_layout=filter_layout)
    arguments.update(output_layout=output_layout, transposed=transposed, output_padding=more)
    given_x, given_w = put(TENSORS[layout], x), put(FILTERS[filter_layout], w)
    given_bias, given_residual = bias.astype(out_type), put(TENSORS[output_layout], residual).astype(out_type)
    on = glgemm.default_engine().asarray
    got = glgemm.convolve(given_x, given_w, given_bias, residual=given_residual, **arguments)
    assert got.dtype == out_type and np.array_equal(np.moveaxis(got, *TENSORS[output_layout]), expected)
    on_device = glgemm.convolve(on(given_x), on(given_w), on(given_bias), residual=on(given_residual), **arguments)
    assert isinstance(on_device, glgemm.Array) and np.array_equal(on_device.numpy(), got)


def test_padding_by_name_and_an_epilogue(engine):
    x, w = integers((1, 5, 6, 2)), integers((3, 2, 3, 2), seed=1)
    plain = lambda **named: glgemm.convolve(x, w, **named)
    for name, pads in (("same_upper", ((0, 1), (1, 1))), ("same_lower", ((1, 0), (1, 1))), ("valid", 0)):
        assert np.array_equal(plain(padding=name), plain(padding=pads))
    assert np.array_equal(plain(padding="same_upper", stride=2), plain(padding=((0, 1), (0, 1)), stride=(2, 2)))
    assert np.array_equal(plain(padding=1), plain(padding=[1, (1, 1)]))
    assert np.array_equal(plain(alpha=-2, activation="relu"), np.maximum(-2 * plain(), 0))
    out = np.full((1, 4, 4, 3), 7, np.float32)
    assert plain(out=out) is out and np.array_equal(out, plain())
    d = engine.asarray(out)
    assert np.array_equal(engine.convolve(x, w, residual=d, out=d).numpy(), 2 * out)
    half = engine.convolve(engine.asarray(x.astype(np.float16)), w.astype(np.float16))
    assert half.dtype == np.float16 and np.array_equal(half.numpy(), plain())
    wide = engine.convolve(x.astype(np.float16), w.astype(np.float16), dtype=np.float32)
    assert wide.dtype == np.float32 and np.array_equal(wide, plain())
    assert engine.convolve(x[:0], w).shape == (0, 4, 4, 3)


def test_images_in_parts_of_arrays(engine):
    x, w = integers((4, 5, 6, 4)), integers((3, 2, 3, 2), seed=1)
    d = engine.asarray(x)
    for key in (np.s_[1:3], np.s_[[3, 0]]):  # the second one lies at no equal steps
        assert np.array_equal(engine.convolve(d[key][..., :4], engine.asarray(np.repeat(w, 2, -1))).numpy(), glgemm.convolve(x[key], np.repeat(w, 2, -1)))
    assert np.array_equal(engine.convolve(d[..., 1:3], w).numpy(), glgemm.convolve(x[..., 1:3], w))


def test_quantised_filters(engine):
    x, w = integers((2, 4, 4, 32)), integers((8, 3, 3, 32), seed=1)
    q = glgemm.quantize(w.reshape(8, -1), "q8_0")
    numbers = engine.asarray(q).numpy().reshape(w.shape)
    expected = glgemm.convolve(x, numbers, padding=1)
    assert np.allclose(glgemm.convolve(x, q, padding=1, filter_size=(3, 3)), expected, rtol=0, atol=1e-4)
    got = engine.convolve(engine.asarray(x), engine.quantized(q), np.arange(8, dtype=np.float32), padding=1, filter_size=(3, 3))
    assert np.allclose(got.numpy(), expected + np.arange(8), rtol=0, atol=1e-4)
    check_errors(
        (lambda: engine.convolve(x, q), ValueError, r"quantised filters are a matrix .* this one is \(8, 288\), and the product 1"),
        (lambda: engine.convolve(x, q, filter_size=(5, 5)), ValueError, "and the product 25"),
        (lambda: engine.convolve(x, q, filter_size=3, groups=2), ValueError, "x has 32 channels, and the filters are for 64, in 2 groups of 32"),
        (lambda: engine.convolve(engine.quantized(q).reshape(8, 1, 288), w[..., 0]), TypeError, "the filters can be quantised, and other arrays cannot"),
        (lambda: engine.convolve(x, q, engine.quantized(q), filter_size=3), TypeError, "the filters can be quantised"),
    )


def test_long_convolutions_are_done_in_slices(engine):
    x, w = integers((1, 96, 96, 32)), integers((32, 3, 3, 32), seed=1)  # 85 million multiply-adds
    got = engine.convolve(x, w, padding="same_upper")
    assert np.array_equal(got[0, 40:43, 50], glgemm.convolve(x[:, 39:44, 49:52], w)[0, :, 0])
    assert np.array_equal(got[0, :2, -2:], glgemm.convolve(x[:, :3, -3:], w, padding=((1, 0), (0, 1)))[0])


def test_jobs(engine):
    x, w, bias = integers((2, 40, 40, 16)), integers((24, 3, 3, 16), seed=1), np.arange(24, dtype=np.float32)
    arguments = dict(padding=1, stride=(2, 1), activation="relu", output_layout="nchw")
    expected = glgemm.convolve(x, w, bias, **arguments)
    d = engine.asarray(w)
    into = engine.asarray(np.zeros_like(expected))
    job = engine.start_convolve(x, d, bias, out=into, **arguments)
    d.free()  # the job keeps it
    gc.collect()
    others = [engine.asarray(np.full(w.shape, 9, np.float32)) for _ in range(3)]
    shares = [job.progress]
    while not job.advance(1e-7):
        shares.append(job.progress)
    assert len(others) == 3 and len(shares) >= 3 and shares == sorted(shares) and shares[0] == 0 and job.progress == 1
    assert job.result().buffer == into.buffer and np.array_equal(into.numpy(), expected)
    assert np.array_equal(engine.start_convolve(x, w, bias, **arguments).result().numpy(), expected)
    q = glgemm.quantize(integers((8, 9 * 32), seed=1), "q8_0")
    images = integers((1, 6, 6, 32))
    expected = engine.convolve(engine.asarray(images), engine.quantized(q), filter_size=(3, 3)).numpy()
    for into in (None, engine.asarray(np.zeros_like(expected))):
        filters = engine.quantized(q)
        job = engine.start_convolve(images, filters, filter_size=(3, 3), out=into)
        filters.free()
        if into is not None:
            into.free()
        others = [engine.asarray(np.full_like(expected, 9)) for _ in range(8)] + [engine.quantized(glgemm.quantize(0 * q.numpy(), "q8_0"))]
        while not job.advance(1e-7):
            pass
        assert all((other.numpy() == 9).all() for other in others[:-1])
        assert into is not None or np.array_equal(job.result().numpy(), expected)
    nothing = engine.start_convolve(x[:0], w)
    assert nothing.done() and nothing.result().shape == (0, 38, 38, 24)
    check_errors(
        (lambda: engine.start_convolve(x, w, out=expected), TypeError, "start_convolve: out is a ndarray, and a convolution of device arrays"),
        (lambda: engine.start_convolve(x[0, 0], w), ValueError, r"start_convolve: x is \(40, 16\) and must have a batch"),
        (lambda: engine.start_convolve(x, w, groups=3), ValueError, "start_convolve: x has 16 channels"),
        (lambda: engine.start_convolve(x, w, padding="all"), ValueError, "start_convolve: the padding is 'all'"),
        (lambda: engine.start_convolve(x, w, padding=[(1, 2, 3), 1]), ValueError, "start_convolve: the padding is"),
        (lambda: engine.start_convolve(x, w, strides=2), TypeError, "strides"),
    )


def test_bad_input(engine):
    x, w = integers((1, 5, 6, 2)), integers((3, 2, 3, 2))
    d = engine.asarray(x)
    call = lambda *arguments, **named: lambda: engine.convolve(*arguments, **named)
    check_errors(
        (call(x[0, 0], w), ValueError, r"x is \(6, 2\) and must have a batch"),
        (call(x, w[0]), ValueError, r"x is \(1, 5, 6, 2\) and the filters are \(2, 3, 2\)"),
        (call(x, w, groups=2), ValueError, "x has 2 channels, and the filters are for 4, in 2 groups of 2"),
        (call(x, w, groups=0), ValueError, "groups"),
        (call(x, w, layout="hwcn"), ValueError, "the layout is 'hwcn' and must be one of 'nhwc', 'nchw'"),
        (call(x, w, filter_layout="iohw"), ValueError, "the filters' layout is 'iohw'"),
        (call(x, w, padding="same"), ValueError, "the padding is 'same' and must be one of 'valid', 'same_upper'"),
        (call(x, w, padding=(1, 2, 3)), ValueError, "2 dimensions, and padding of 1x2x3 3"),
        (call(x, w, padding=1.5), ValueError, "the padding is 1.5 and must be a name, a whole number, or one or a pair of them"),
        (call(x, w, padding=[(0, 1.5), 0]), TypeError, r"the padding is .* and must be whole numbers"),
        (call(x, w, padding=[(0, 1, 2), 0]), ValueError, "the padding is"),
        (call(x, w, groups="a"), TypeError, "groups is 'a' and must be a whole number"),
        (call(x, w, layout=3), ValueError, "the layout is 3 and must be one of"),
        (call(x, w, stride=2**70), ValueError, "the stride is"),
        (call(x, w, padding=-1), ValueError, "padding of -1x-1"),
        (call(x, w, stride=(1, 2, 3)), ValueError, "images of 5x6 have 2 dimensions, and strides of 1x2x3 3"),
        (call(x, w, stride=(1, 2, 3, 4)), ValueError, r"the stride is \(1, 2, 3, 4\), and images have three dimensions at most"),
        (call(x, w, output_padding=(1, 2, 3)), ValueError, "output_padding has 3 numbers, and images have 2 dimensions"),
        (call(x, w, stride=0), ValueError, "strides of 0x0"),
        (call(x[:, :1], w), ValueError, "filters of 2x3 leave images of 1x6"),
        (call(x, w, np.ones(4, np.float32)), ValueError, r"the bias is \(4,\), and there are 3 output channels"),
        (call(x, w, np.ones(3, np.float64)), TypeError, "the bias is float64 and the output is float32"),
        (call(x, w, residual=x), ValueError, "the residual"),
        (call(x, w.astype(np.int32)), TypeError, "convolve: A is float32 and B is int32"),
        (call(x, w, output_padding=1), ValueError, "and the output is"),
        (call(x, w, out=np.empty((1, 4, 4, 4), np.float32)), ValueError, "out"),
        (call(d, w, out=np.empty((1, 4, 4, 3), np.float32)), TypeError, "needs an Array"),
        (call(d, w, out=engine.empty((1, 4, 4, 6))[..., ::2]), ValueError, "with gaps"),
        (call(d, w, out=d), ValueError, r"the output is \(1, 4, 4, 3\) and out is \(1, 5, 6, 2\)"),
        (call(d, integers((2, 1, 1, 2)), out=d), ValueError, "the output overlaps the input"),
        (call(x, w, activation="nonsense"), ValueError, "activation"),
    )


def test_engines_are_apart(engine):
    x, w = integers((1, 5, 6, 2)), integers((3, 2, 3, 2))
    with glgemm.Engine() as other, pytest.raises(ValueError, match="different engines"):
        glgemm.convolve(other.asarray(x), engine.asarray(w))
