"""Arrays on the device: views, transfers, products that stay there."""

import gc

import numpy as np
import pytest
from conftest import TABLE, assert_product, check_errors, integers
from hypothesis import given
from hypothesis import strategies as st
from test_matmul import elements, operands

import glgemm


@pytest.mark.parametrize("dtype", TABLE)
def test_there_and_back(engine, dtype):
    for shape in ((), (5,), (3, 4), (2, 3, 4), (4, 4), (0, 3), (3, 0), (0,), (1, 1, 1, 7)):
        x = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)
        d = engine.asarray(x)
        assert d.shape == x.shape and d.dtype == x.dtype and d.ndim == x.ndim and d.size == x.size and d.nbytes == x.nbytes
        assert np.array_equal(d.numpy(), x) and np.array_equal(np.asarray(d), x)
        assert np.array_equal(engine.asarray(x.T).numpy(), x.T)


indices = st.one_of(
    st.integers(-8, 8),
    st.slices(6),
    st.none(),
    st.just(Ellipsis),
)


@given(st.lists(st.integers(0, 6), max_size=4), st.lists(indices, max_size=5), st.booleans())
def test_indices_are_numpys(shape, key, transposed):
    x = np.arange(np.prod(shape, dtype=int), dtype=np.int32).reshape(shape)
    d = glgemm.default_engine().asarray(x)
    if transposed:
        x, d = x.T, d.T
    key = tuple(key)
    try:
        expected = x[key]
    except IndexError:
        with pytest.raises(IndexError):
            d[key]
        return
    assert d[key].shape == expected.shape
    assert np.array_equal(d[key].numpy(), expected)
    if expected.size:
        new = np.arange(1000, 1000 + expected.size, dtype=np.int32).reshape(expected.shape)
        x = x.copy()
        copy = d.copy()
        x[key] = new
        copy[key] = new
        assert np.array_equal(copy.numpy(), x)
        copy[key] = 7
        x[key] = 7
        assert np.array_equal(copy.numpy(), x)


@given(operands(st.sampled_from(["float32", "int32", "complex64"])))
def test_products(pair):
    a, b = pair
    on = glgemm.default_engine().asarray
    for c in (on(a) @ on(b), on(a) @ b, a @ on(b)):
        assert isinstance(c, glgemm.Array)
        assert_product(c.numpy()[()], a, b)


@given(st.data())
def test_products_of_views(data):
    engine = glgemm.default_engine()
    x = elements(data.draw, (8, 9, 10), "int32")
    d = engine.asarray(x)
    draw = lambda size: slice(data.draw(st.integers(0, 3)), size - data.draw(st.integers(0, 3)), data.draw(st.sampled_from([1, 1, 2, -1])))
    key = tuple(draw(size) for size in x.shape)
    a, b = x[key], x[key].swapaxes(-1, -2)
    da, db = d[key], d[key].mT
    assert_product((da @ db).numpy(), a, b)
    out = engine.asarray(np.zeros((12, 20, 20), np.int32))[: a.shape[0] : 1, : a.shape[1], : 2 * a.shape[1] : 2]
    assert glgemm.matmul(da, db, out=out) is not None
    assert_product(out.numpy(), a, b)


def test_reshape_and_views(engine):
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    d = engine.asarray(x)
    assert np.array_equal(d.reshape(6, 4).numpy(), x.reshape(6, 4))
    assert np.array_equal(d.reshape((-1, 2)).numpy(), x.reshape(-1, 2))
    assert d.reshape(np.int64(24)).shape == (24,) and d.reshape(np.int64(6), 4).shape == (6, 4) and d[0, 0, :1].reshape(()).shape == ()
    assert d.reshape(np.array([12, 2])).shape == (12, 2)
    assert d.T.strides == x.T.strides and d[1, :, ::2].strides == x[1, :, ::2].strides
    assert len(d) == 2 and [part.shape for part in d] == [(3, 4), (3, 4)]
    with pytest.raises(ValueError, match="cannot reshape"):
        d.reshape(5, 5)
    with pytest.raises(ValueError, match="gaps"):
        d.T.reshape(24)
    assert "float32, shape (2, 3, 4)" in repr(d)


@given(st.data(), st.lists(st.integers(1, 6), min_size=1, max_size=4), st.booleans())
def test_arrays_of_numbers_are_indices(data, shape, transposed):
    draw = lambda least, most: data.draw(st.integers(least, most))
    x = np.arange(np.prod(shape, dtype=int), dtype=np.int32).reshape(shape)
    d = glgemm.default_engine().asarray(x)
    if transposed:
        x, d = x.T, d.T
    for _ in range(draw(1, 3)):  # later ones choose among what the first one has
        axis = draw(0, x.ndim - 1)
        if x.shape[axis] == 0:
            return
        numbers = np.array(data.draw(st.lists(st.integers(-x.shape[axis], x.shape[axis] - 1), max_size=7)), np.int8)
        front = (slice(None, None, data.draw(st.sampled_from([1, 2, -1]))),) * axis
        key = (*front, *(None,) * draw(0, 1), numbers, *data.draw(st.sampled_from([(), (...,), (..., None)])))
        if draw(0, 1) and len(key) == axis + 1:
            key = (..., numbers, *(slice(None),) * (x.ndim - axis - 1))
        x, d = x[key], d[key]
        assert d.shape == x.shape
        assert np.array_equal(d.numpy(), x) and np.array_equal(d.T.numpy(), x.T)
        part = tuple(slice(0, draw(0, 4), draw(1, 2)) if draw(0, 3) else draw(0, size - 1) if size else slice(None) for size in x.shape)
        assert np.array_equal(d[part].numpy(), x[part])


def test_gathered_elements_are_written(engine):
    x = np.arange(24, dtype=np.float32).reshape(4, 6)
    d = engine.asarray(x)
    for key, value in ((np.s_[[3, 0]], 7), (np.s_[:, [5, 1, 2]], x[:, :3].copy()), (np.s_[1::2, [0, -1]], [[1], [2]]), (np.s_[[2, 2]], [[1], [9]])):
        d[key] = value
        x[key] = value
        assert np.array_equal(d.numpy(), x)
    rows = d[[2, 0]]
    d[0] = -1
    assert rows.numpy()[1, 0] == -1  # a view, where NumPy makes a copy
    assert np.array_equal(d[engine.asarray(np.int32([1, -1]))].numpy(), x[[1, -1]])
    assert d[[]].shape == (0, 6) and (d[[]] @ d.T).shape == (0, 4)


@given(st.data())
def test_products_by_tables(data):
    """Operands that no leading dimension describes, of each kind of type; nothing is copied."""
    engine = glgemm.default_engine()
    dtype = data.draw(st.sampled_from(["float32", "int8", "float16", "complex64", "int32"]))
    shape = (*data.draw(st.sampled_from([(), (3,), (2, 3)])), 7, 9)
    x, y = integers(shape, dtype), integers((9, 12), dtype, 1)
    dx, dy = engine.asarray(x), engine.asarray(y)
    rows, columns = (data.draw(st.lists(st.integers(-7, 6), min_size=2, max_size=9)) for _ in range(2))
    pick = data.draw(st.sampled_from([np.s_[..., ::2, ::-1], np.s_[..., rows, :], np.s_[..., ::3, :], np.s_[..., ::-1, :]]))
    a, da = x[pick], dx[pick]
    if len(shape) > 2:
        items = data.draw(st.lists(st.integers(-shape[0], shape[0] - 1), min_size=1, max_size=4))
        a, da = a[items], da[items]
    b, db = y[:, columns][:, ::-1], dy[:, columns][:, ::-1]
    expected = np.matmul(a, b, dtype=np.int32 if dtype == "int8" else dtype)
    assert np.array_equal((da @ db).numpy(), expected)
    assert np.array_equal((db.mT @ da.mT).numpy(), expected.swapaxes(-1, -2))
    told = glgemm.explain(da, db).splitlines()
    assert "copied" not in told[0] and told[1].endswith("by tables of offsets")


def test_quantised_matrices_of_a_batch_by_number(engine):
    generator = np.random.default_rng(0)
    x, w = (generator.standard_normal(shape).astype(np.float32) for shape in ((3, 5, 64), (4, 8, 64)))
    chosen = [3, 0, -1]
    for form in ("q8_0", "nbits:bits=4,group=32,scales=f16", "per_row:codes=i8,scales=f32"):
        experts = engine.asarray(glgemm.quantize(w, form))
        numbers = experts.numpy()[chosen]
        assert np.array_equal(experts[chosen].numpy(), numbers)
        assert np.allclose((engine.asarray(x) @ experts[chosen].mT).numpy(), x @ numbers.swapaxes(-1, -2), rtol=0, atol=1e-4)
        with pytest.raises(ValueError, match="a part of a quantised array has all codes of each row from one to another"):
            engine.asarray(x[0]) @ experts[0][chosen].T


def test_tables_say_where_c_lies(engine):
    x, y = (np.random.default_rng(i).integers(-4, 5, shape).astype(np.float32) for i, shape in enumerate(((4, 5), (5, 3))))
    dx, dy = engine.asarray(x), engine.asarray(y)
    for key in (np.s_[::2, ::3], np.s_[7:3:-1, [5, 0, 2]], np.s_[[6, 0, 3, 1], :3], np.s_[[6, 0, 3, 1], ::-4], np.s_[::2, [8, 1, 2]]):
        c = np.arange(72, dtype=np.float32).reshape(8, 9)
        d = engine.asarray(c)
        out = engine.gemm(2, dx, dy, -1, d[key])
        c[key] = 2 * (x @ y) - c[key]
        assert np.array_equal(d.numpy(), c) and np.array_equal(out.numpy(), c[key])
    d = engine.asarray(c)
    assert np.array_equal(glgemm.matmul(dx, dy, out=d[[0, 1, 2, 3], :3]).numpy(), x @ y)
    square = engine.asarray(np.eye(8, dtype=np.float32))
    glgemm.matmul(square[::2, ::2], square[1::2, 1::2], out=square[::2, 1::2])  # between what is read: by way of a copy
    assert np.array_equal(square.numpy()[::2, 1::2], np.eye(4))
    check_errors(
        (lambda: glgemm.matmul(dx, dy, out=d[[0, 0, 2, 3], :3]), ValueError, "two of its elements lie in one place"),
        (lambda: engine.gemm(1, square[::2, ::2], square[1::2, 1::2], 1, square[::2, 1::2]), ValueError, "gaps between all elements"),
    )


def test_bias_and_residual_with_any_strides(engine):
    x, y, values = integers((6, 4)), integers((4, 5), seed=1), integers((6, 12), seed=2)
    on, v = engine.asarray, engine.asarray(values)
    for key in (np.s_[:, 3:4], np.s_[::-1, 1:2], np.s_[0, :5], np.s_[0, :10:2], np.s_[0, 4::-1], np.s_[5:, 2:7]):
        assert np.array_equal(engine.gemm(1, on(x), on(y), bias=v[key]).numpy(), x @ y + values[key])
    assert np.array_equal(engine.gemm(1, on(x), on(y[:, :1]), bias=v[:1, 3].reshape(1, 1)).numpy(), x @ y[:, :1] + values[0, 3])
    for c in (None, on(np.zeros((5, 6), np.float32)).T, on(np.zeros((6, 10), np.float32))[:, ::2]):
        for key in (np.s_[:, :5], np.s_[:, :10:2], np.s_[::-1, 4::-1]):
            assert np.array_equal(engine.gemm(1, on(x), on(y), 0, c, residual=v[key]).numpy(), x @ y + values[key])
    a, b, d = integers((2, 3, 6, 4)), integers((3, 4, 5), seed=1), integers((2, 3, 6, 8), seed=2)
    c = on(np.zeros((2, 3, 6, 9), np.float32))[:, :, :, 2:7]
    key = np.s_[:, ::-1, :, :5]
    for out in (None, c):
        assert np.array_equal(engine.gemm(1, on(a), on(b), 0, out, residual=on(d)[key]).numpy(), a @ b + d[key])
    rows = on(values)[:, :5]
    engine.gemm(1, on(x), on(y), 0, rows, residual=rows[::-1])  # a copy, so that nothing is read after it was written
    assert np.array_equal(rows.numpy(), x @ y + values[::-1, :5])


def test_bias_and_residual_are_of_the_type_of_c(engine):
    d = engine.asarray(np.ones((4, 4), np.float32))
    for dtype in (np.float16, np.int32, np.float64):
        with pytest.raises(TypeError, match=f"gemm: the bias is {np.dtype(dtype)} and C is float32"):
            engine.gemm(1, d, d, bias=engine.asarray(np.ones(4, dtype)))
        with pytest.raises(TypeError, match=f"gemm: D is {np.dtype(dtype)} and C is float32"):
            engine.gemm(1, d, d, residual=engine.asarray(np.ones((4, 4), dtype)))
    half = engine.asarray(np.ones((4, 4), np.float16))
    assert (engine.gemm(1, half, half, bias=half[0]).numpy() == 5).all()


def test_context_managers(engine):
    with engine.asarray(np.ones((2, 2), np.float32)) as d:
        view = d[0]
        assert view.numpy().sum() == 2
    for use in (lambda: d.numpy(), lambda: view.numpy(), lambda: d @ d, lambda: d.__setitem__(0, 1)):
        with pytest.raises(ValueError, match="freed"):
            use()
    assert "freed" in repr(d)


def test_scope(engine):
    d = engine.asarray(np.eye(3, dtype=np.float32))
    with engine.scope():
        for _ in range(3):
            d = d @ d
        with pytest.raises(ValueError):
            with engine.scope():
                pass
    assert np.array_equal(d.numpy(), np.eye(3))


def test_bad_input(engine):
    d = engine.asarray(np.ones((2, 3), np.float32))
    check_errors(
        (lambda: d @ d, ValueError, "inner sizes 3 and 2 differ"),
        (lambda: d @ 3, TypeError, "unsupported operand"),
        (lambda: glgemm.matmul(d, engine.asarray(np.ones((3, 2)))), TypeError, "A is float32 and B is float64"),
        (lambda: glgemm.matmul(d, d.T, out=engine.empty((3, 3))), ValueError, r"product is \(2, 2\) and out is \(3, 3\)"),
        (lambda: glgemm.matmul(d, d.T, out=engine.empty((2, 2), np.float64)), TypeError, "summed in float32"),
        (lambda: glgemm.matmul(d[:, :2], d[:, :2], out=d[:, :2]), ValueError, "share|overlap"),
        (lambda: engine.asarray([1, 2]), TypeError, "int64"),
        (lambda: engine.empty((-1, 2)), ValueError, ""),
        (lambda: engine.empty((1 << 21, 1 << 21)), MemoryError, "bytes"),
        (lambda: d.__setitem__(0, np.ones(5, np.float32)), ValueError, "broadcast"),
        (lambda: d[5], IndexError, "out of bounds"),
        (lambda: d[0, 0, 0], IndexError, "too many"),
        (lambda: d[{}], IndexError, "takes integers, slices"),
        (lambda: d[[0, 2]], IndexError, "index 2 is out of bounds for axis 0 with size 2"),
        (lambda: d[..., [0, -4]], IndexError, "index -4 is out of bounds for axis 1 with size 3"),
        (lambda: d[[0.5]], IndexError, r"whole numbers with one dimension as an index; this one is \(1,\) float64"),
        (lambda: d[[[0]]], IndexError, r"this one is \(1, 1\) int64"),
        (lambda: d[[True, False]], IndexError, "bool"),
        (lambda: d[[0, 1]].reshape(6), ValueError, "gaps"),
        (lambda: np.add(d, 1), TypeError, ""),
        (lambda: engine.gemm(1, d, d), ValueError, r"^gemm: op\(A\) is 2x3 and op\(B\) is 2x3: the inner sizes 3 and 2 differ"),
        (lambda: engine.gemm(1, d, d.T, 0, engine.empty((3, 3))), ValueError, r"^gemm: the product is \(2, 2\) and out is \(3, 3\)"),
        (lambda: engine.gemm(10**400, d, d.T), ValueError, "gemm: alpha is larger than any float"),
        (lambda: engine.gemm(1, d, d.T, activation=("clamp", "a", "b")), TypeError, r"the activation is \('clamp', 'a', 'b'\) and must"),
        (lambda: engine.gemm(1, d, d.T, activation=(1,)), TypeError, r"the activation is \(1,\) and must"),
        (lambda: engine.gemm(1, d, d.T, activation=()), ValueError, "the activation is"),
        (lambda: d.reshape("a"), TypeError, "reshape: the shape is 'a' and must be whole numbers"),
        (lambda: d.reshape(2, 1.5), TypeError, r"reshape: the shape is \(2, 1.5\) and must be whole numbers"),
        (lambda: d.reshape(1 << 70), ValueError, "reshape: the shape"),
        (lambda: engine.empty("x"), TypeError, "empty: the shape is .*'x'.* and must be whole numbers"),
        (lambda: engine.wrap(1, (2, 2), strides="ab"), TypeError, "wrap: strides is .* and must be whole numbers"),
        (lambda: glgemm.Engine(program_cache=3), TypeError, "Engine: program_cache is 3 and must be a path"),
        (lambda: glgemm.Engine(tuning=3), TypeError, "Engine: tuning is 3 and must be a path"),
        (lambda: glgemm.Engine(device="no such device"), ValueError, "no such device"),
    )
    gc.collect()
    assert np.array_equal((d @ d.T).numpy(), np.full((2, 2), 3))


def test_masked_arrays_are_refused(engine):
    """A product would lose the mask."""
    a = np.eye(2, dtype=np.float32)
    masked, d = np.ma.masked_array(a, mask=a > 0), engine.asarray(a)
    for call in (
        lambda: glgemm.matmul(masked, a),
        lambda: glgemm.matmul(a, a, out=masked),
        lambda: glgemm.explain(a, masked),
        lambda: glgemm.gemm(1, a, masked),
        lambda: glgemm.gemm(1, a, a, 1, masked),
        lambda: glgemm.gemm(1, a, a, bias=masked[0]),
        lambda: glgemm.stream(a, masked),
        lambda: glgemm.stream(a, a, out=masked),
        lambda: engine.asarray(masked),
        lambda: d @ masked,
        lambda: masked @ d,
        lambda: glgemm.matmul(d, masked),
        lambda: d.__setitem__(0, masked[0]),
    ):
        with pytest.raises(TypeError, match="a masked array, whose mask .* lost"):
            call()
    assert np.array_equal(d.numpy(), a)


def test_sizes_that_64_bits_do_not_count(engine):
    with pytest.raises(ValueError, match=r"\(4294967296, 4294967296, 1\) has more elements than 64 bits count"):
        engine.empty((2**32, 2**32, 1))
    with pytest.raises(ValueError, match="cannot reshape"):
        engine.empty((0, 3)).reshape(2**32, 2**32)
    with pytest.raises(ValueError, match="64 bits"):
        engine.empty((0, 2**40, 2**40))  # NumPy refuses it as well


def test_wrap_names_what_is_wrong(engine):
    elements = engine.asarray(np.arange(4, dtype=np.float32))
    name = elements.buffer
    assert np.array_equal(engine.wrap(name, 4).numpy(), elements.numpy())
    assert np.array_equal(engine.wrap(name, (1, 4), strides=(2**62, 4)).numpy(), [elements.numpy()])
    assert engine.wrap(name, (0, 9), offset=16).size == 0
    check_errors(
        (lambda: engine.wrap(name, (5, 5)), ValueError, r"wrap: \(5, 5\) float32 needs 100 bytes from byte 0 on and leaves its buffer of 16"),
        (lambda: engine.wrap(name, (2, 2), offset=4), ValueError, r"wrap: \(2, 2\) float32 needs 16 bytes from byte 4 on and leaves its buffer of 16"),
        (lambda: engine.wrap(name, (2, 2), strides=(0, 4)).__setitem__(..., 1), ValueError, "that repeats its elements"),
        (lambda: engine.wrap(name, (2, 2), strides=(-8, 4)), ValueError, r"wrap: \(2, 2\) float32 starts at byte -8"),
        (lambda: engine.wrap(name, (2, 3), strides=(2**62, 2**62)), ValueError, r"wrap: \(2, 3\) float32 .* reaches further than any buffer"),
        (lambda: engine.wrap(4000000000, (2, 2)), ValueError, r"wrap: \(2, 2\) float32: 4000000000 is not the name of a buffer"),
        (lambda: engine.wrap(2**40, (2, 2)), ValueError, "wrap: 1099511627776 is not the name of a buffer"),
        (lambda: engine.wrap(name, (2, 2), offset=2**70), ValueError, "wrap: the offset is 1180591620717411303424 and must be .* 64 bits"),
        (lambda: engine.wrap(name, (2, 2), offset="a"), TypeError, "wrap: the offset is 'a' and must be a whole number"),
    )


def test_engines_are_apart(engine):
    with glgemm.Engine() as other:
        x = other.asarray(np.ones((2, 2), np.float32))
        with pytest.raises(ValueError, match="different engines"):
            glgemm.matmul(x, engine.asarray(np.ones((2, 2), np.float32)))
        assert engine.asarray(x).numpy().sum() == 4
    assert other.closed and "closed" in repr(other)
    other.close()
    for use in (lambda: x.numpy(), lambda: x @ x):
        with pytest.raises(ValueError, match="freed"):
            use()
    for use in (lambda: other.asarray([1.0]), lambda: other.finish(), lambda: other.matmul(np.ones(2), np.ones(2))):
        with pytest.raises(ValueError, match="the engine is closed"):
            use()
