"""glgemm.matmul on NumPy arrays, against NumPy: shapes, strides, types and `out` at random."""

import numpy as np
import pytest
from conftest import TABLE, assert_product, check_errors
from hypothesis import given
from hypothesis import strategies as st

import glgemm

TYPES = sorted({*TABLE, "bool", "int16", "uint8", "uint16"})
sizes = st.integers(0, 9) | st.sampled_from([16, 17, 33])


def elements(draw, shape, dtype):
    generator = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    dtype = np.dtype(dtype)
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        return generator.integers(limits.min, limits.max, shape, dtype, endpoint=True)
    if dtype.kind == "b":
        return generator.integers(0, 2, shape).astype(bool)
    x = generator.uniform(-1, 1, shape)
    return (x + 1j * generator.uniform(-1, 1, shape) if dtype.kind == "c" else x).astype(dtype)


@st.composite
def laid_out(draw, shape, dtype):
    """An array of that shape which lies in memory in some way: padded, transposed, reversed, stepped over, repeated."""
    steps = [draw(st.sampled_from([1, 1, 1, 2, -1, -2])) for _ in shape]
    pads = [draw(st.sampled_from([0, 0, 1, 3])) for _ in shape]
    order = draw(st.permutations(range(len(shape)))) if draw(st.booleans()) else list(range(len(shape)))
    whole = [size * abs(step) + pad for size, step, pad in zip(shape, steps, pads)]
    base = elements(draw, [whole[i] for i in order], dtype).transpose(np.argsort(order))
    array = base[(..., *(slice(0, size * abs(step), abs(step)) for size, step in zip(shape, steps)))]
    array = array[(..., *(slice(None, None, 1 if step > 0 else -1) for step in steps))]
    assert array.shape == tuple(shape)
    return array


@st.composite
def operands(draw, dtypes=st.sampled_from(TYPES)):
    m, k, n = draw(sizes), draw(sizes), draw(sizes)
    dtype = draw(dtypes)
    batch = draw(st.lists(st.integers(0, 3), max_size=3))
    shapes = []
    for rows, columns, vector in ((m, k, k), (k, n, k)):
        own = [size if draw(st.booleans()) else 1 for size in batch][draw(st.integers(0, len(batch))) :]
        shapes.append([vector] if draw(st.integers(0, 5)) == 0 else [*own, rows, columns])
    return draw(laid_out(shapes[0], dtype)), draw(laid_out(shapes[1], dtype))


@given(operands())
def test_as_numpy(pair):
    a, b = pair
    before = a.copy(), b.copy()
    assert_product(glgemm.matmul(a, b), a, b)
    assert np.array_equal(a, before[0]) and np.array_equal(b, before[1])


@given(st.data(), operands())
def test_out(data, pair):
    a, b = pair
    expected = np.matmul(a, b)
    out = data.draw(laid_out(expected.shape, expected.dtype))
    around = out
    while around.base is not None:
        around = around.base
    before, own = around.copy(), out.copy()
    assert glgemm.matmul(a, b, out=out) is out
    assert_product(out, a, b)
    out[...] = own
    assert np.array_equal(around, before, equal_nan=around.dtype.kind in "fc")  # what lies between is as it was


@given(operands(st.just("float32")), st.sampled_from(["float64", "complex64", "complex128"]))
def test_dtype(pair, dtype):
    a, b = pair
    assert_product(glgemm.matmul(a, b, dtype=dtype), a.astype(dtype), b.astype(dtype))


@pytest.mark.parametrize("dtype", TABLE)
def test_every_type_of_the_table(engine, dtype):
    """What it gives by default is NumPy's; gemm, streams and the device give what the table says C may be."""
    x = np.arange(6).reshape(2, 3)
    a, expected = x.astype(dtype), x @ x.T
    types = [np.dtype(name) for name in glgemm._core.types_of_c[dtype, dtype]]
    assert glgemm.matmul(a, a.T).dtype == np.matmul(a, a.T).dtype
    assert glgemm.gemm(1, a, a.T).dtype == types[0] and glgemm.stream(a, a.T).result().dtype == types[-1]
    x, y = engine.asarray(a), engine.asarray(a.T)
    assert (x @ y).dtype == types[0]
    for wanted in types:
        for c in (glgemm.matmul(a, a.T, dtype=wanted), glgemm.gemm(1, a, a.T, dtype=wanted), glgemm.stream(a, a.T, dtype=wanted).result()):
            assert c.dtype == wanted and np.array_equal(c, expected)
        for c in (glgemm.matmul(x, y, dtype=wanted), engine.start(1, x, y, dtype=wanted).result()):
            assert c.dtype == wanted and np.array_equal(c.numpy(), expected)
    for call in (glgemm.gemm, lambda one, a, b, dtype: glgemm.stream(a, b, dtype=dtype)):
        with pytest.raises(TypeError, match=f"C is uint16, and products of {dtype} are summed in {types[-1]}"):
            call(1, a, a.T, dtype=np.uint16)


@pytest.mark.parametrize("dtype, wider", [("bool", "int32"), ("int8", "int32"), ("int8", "int64"), ("int16", "int32"), ("uint8", "uint32")])
def test_a_wider_out_gets_what_wraps(dtype, wider):
    """As in NumPy, `out` does not say in which type the sums are: only dtype= does."""
    a = np.full((3, 300), 100).astype(dtype)
    out = np.empty((3, 3), wider)
    assert glgemm.matmul(a, a.T, out=out) is out
    assert np.array_equal(out, np.matmul(a, a.T, out=np.empty((3, 3), wider)))
    if dtype == "int8":
        assert np.array_equal(glgemm.matmul(a, a.T, out=out, dtype=np.int32), np.full((3, 3), 3000000))


@pytest.mark.parametrize("batch", [(2,), (3, 1), (2, 3)])
def test_batches_without_an_inner_size(batch):
    a, b = np.ones((*batch, 5, 0), np.float32), np.ones((*batch, 0, 3), np.float32)
    for x, y in ((a, b), (a[0], b), (b.swapaxes(-1, -2), b), (a[:, ::-1], b[..., ::-1])):
        assert_product(glgemm.matmul(x, y), x, y)
        assert f"on the device: {4 * np.matmul(x, y).size} bytes of" in glgemm.explain(x, y)


def test_other_byte_order(engine):
    a = np.arange(6, dtype=np.float32).reshape(2, 3)
    other = a.astype(">f4")
    x = engine.asarray(other, dtype=">f4")
    assert x.dtype == np.dtype("=f4") and np.array_equal(x.numpy(), a)
    assert engine.asarray(x, dtype=">f4") is x
    for c in (
        *(x @ other.T, other @ x.T, glgemm.matmul(x, other.T, dtype=">f4"), glgemm.gemm(1, x, other.T, dtype=">f4")),
        *(glgemm.matmul(other, other.T), glgemm.matmul(a, a.T, dtype=">f4"), glgemm.gemm(1, other, a.T, dtype=">f4")),
        glgemm.stream(a, a.T, dtype=">f4").result(),
    ):
        assert c.dtype == np.dtype("=f4") and np.array_equal(np.asarray(c), a @ a.T)


def test_unaligned():
    raw = np.zeros(4 * 12 + 1, np.uint8)
    a = raw[1:].view(np.float32).reshape(3, 4)
    a[:] = np.arange(12).reshape(3, 4)
    assert np.array_equal(glgemm.matmul(a, a.T), np.matmul(a, a.T))
    record = np.zeros((3, 4), np.dtype([("x", np.float32), ("pad", np.uint8)]))
    record["x"] = a  # strides of 5 bytes
    assert np.array_equal(glgemm.matmul(record["x"], a.T), np.matmul(a, a.T))


def test_bfloat16():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    a = np.arange(-8, 8).reshape(4, 4).astype(ml_dtypes.bfloat16)
    c = glgemm.matmul(a, a)
    assert c.dtype == ml_dtypes.bfloat16
    exact = np.matmul(a.astype(np.float32), a.astype(np.float32))
    assert np.array_equal(c, exact.astype(ml_dtypes.bfloat16))
    assert np.array_equal(glgemm.matmul(a, a, dtype=np.float32), exact)
    f8 = np.arange(-4, 5).reshape(3, 3).astype(ml_dtypes.float8_e4m3fn)
    assert np.array_equal(glgemm.matmul(f8, f8), np.matmul(f8.astype(np.float32), f8.astype(np.float32)))


def test_explain_says_copies():
    a = np.ones((64, 48), np.float32)
    for view, how in ((a, "row-major, ld 48"), (a.T, "column-major, ld 48"), (a[:, :8], "row-major, ld 48"), (a[::2], "row-major, ld 96")):
        b = np.ones((view.shape[1], 2), np.float32)
        lines = glgemm.explain(view, b).splitlines()
        assert "no copy" in lines[0] and how in lines[0]
        assert f"on the device: {view.size * 4 + b.size * 4 + len(view) * 2 * 4} bytes" in lines[-1]  # without gaps
    for view in (a[:, ::2], a[::-1], np.broadcast_to(a[:, :1], a.shape)):
        assert "copied on the host" in glgemm.explain(view, np.ones((view.shape[1], 2), np.float32)).splitlines()[0]
    batch = np.ones((4, 5, 6), np.float32)
    for view in (batch, batch.swapaxes(1, 2), batch[:, :, :3], batch[1:]):
        assert "no copy" in glgemm.explain(view, np.ones((view.shape[-1], 2), np.float32)).splitlines()[0]
    assert "A is converted on the host from int8 to float32" in glgemm.explain(np.ones((2, 2), np.int8), np.ones((2, 2), np.float32))


def test_a_large_product_in_slices():
    generator = np.random.default_rng(1)
    a, b = generator.integers(-8, 8, (700, 600)).astype(np.float32), generator.integers(-8, 8, (600, 500)).astype(np.float32)
    assert np.array_equal(glgemm.matmul(a, b), a @ b)


def test_kernel_split_k_and_precision(engine):
    """They arrive by each way to a product."""
    generator = np.random.default_rng(1)
    a, b = (generator.uniform(-1, 1, shape).astype(np.float32) for shape in ((37, 1300), (1300, 41)))
    x, y = engine.asarray(a), engine.asarray(b)
    ways = (
        lambda **how: glgemm.matmul(a, b, **how),
        lambda **how: glgemm.gemm(1, a, b, **how),
        lambda **how: glgemm.matmul(x, y, **how).numpy(),
        lambda **how: engine.gemm(1, x, y, **how).numpy(),
        lambda **how: engine.start(1, x, y, **how).result().numpy(),
        lambda **how: glgemm.stream(a, b, device_memory_limit_bytes=200_000, progress=False, **how).result(),
    )
    # Which bits these are, tests/engine/gl_precision.cpp checks.
    bits = {name: glgemm.matmul(a, b, precision=name).tobytes() for name in ("fast", "standard", "extended", "reproducible")}
    assert len(set(bits.values())) == 3 and bits["fast"] == bits["standard"]
    for way in ways:
        assert way(precision="reproducible", kernel="tiled:tile=8").tobytes() == bits["reproducible"]
        with pytest.raises(glgemm.Unsupported, match="cublas"):
            way(kernel="cublas")
        with pytest.raises(ValueError, match="exact.*reproducible"):
            way(precision="exact")
    half = np.random.default_rng(3).uniform(-1, 1, (3, 10000)).astype(np.float32)
    wide, tall = np.concatenate([half, -half], 1), np.concatenate([half, half], 1).T  # sums that cancel
    exact, size = (np.matmul(*map(of, (wide.astype(np.float64), tall))) for of in (np.array, abs))
    assert np.all(abs(glgemm.matmul(wide, tall, precision="extended") - exact) <= 4 * 2.0**-24 * size)
    for p, q in ((a, b), (x, y)):
        assert "tiled:tile=8; 1 dispatch" in glgemm.explain(p, q, kernel="tiled:tile=8")
        assert glgemm.explain(p, q, split_k=1) != glgemm.explain(p, q, split_k=5)
        assert "precision" not in glgemm.explain(p, q)
        assert "precision: reproducible\n" in glgemm.explain(p, q, precision="reproducible")
        assert "precision: standard, since " in glgemm.explain(p, q, precision="fast")
    with pytest.raises(ValueError, match="nonsense"):
        glgemm.matmul(a, b, kernel="nonsense")


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda a: glgemm.matmul(a, a), ValueError, r"A is \(2, 3\) and B is \(2, 3\): the inner sizes 3 and 2 differ"),
        (lambda a: glgemm.matmul(a, 3), ValueError, "second operand is a scalar"),
        (lambda a: glgemm.matmul(a, None), TypeError, "an operand is None, which is no array"),
        (lambda a: glgemm.matmul("ab", a), TypeError, "an operand is 'ab'"),
        (lambda a: glgemm.matmul(["ab", "cd"], a), TypeError, ""),
        (lambda a: glgemm.matmul(a, a.T, out=np.zeros((2, 3), np.float32)), ValueError, r"out is \(2, 3\) and the product is \(2, 2\)"),
        (lambda a: glgemm.matmul(a, a.T, out=np.zeros((1, 2, 2), np.float32)), ValueError, "non-broadcastable"),
        (lambda a: glgemm.matmul(a, a.T, out=np.zeros((2, 2), np.int32)), TypeError, "float32 is not written to an out of int32"),
        (lambda a: glgemm.matmul(a, a.T, out=[[0, 0], [0, 0]]), TypeError, "out is a list"),
        (lambda a: glgemm.matmul(a, a.T, out=np.broadcast_to(np.float32(0), (2, 2))), ValueError, "read-only"),
        (lambda a: glgemm.matmul(a, a.T, out=repeated()), ValueError, "share memory"),
        (lambda a: glgemm.matmul(a, a.T, dtype=np.int32), TypeError, "not converted to int32"),
        (lambda a: glgemm.matmul(a, a.T, dtype=np.longdouble), TypeError, "has no products of"),
        (lambda a: glgemm.matmul(np.ones((2, 2, 3)), np.ones((3, 3, 2))), ValueError, r"batches \(2,\) of A and \(3,\) of B"),
    ],
)
def test_bad_input(call, error, words):
    with pytest.raises(error, match=words):
        call(np.ones((2, 3), np.float32))


def test_errors_name_the_function_and_the_argument(engine):
    a = np.ones((2, 2), np.float32)
    x = engine.asarray(a)
    many = np.ones((2, 2, 2), np.float32), np.ones((3, 2, 2), np.float32)
    with glgemm.Accelerators("0") as accelerators, glgemm.Engine() as other:
        y = other.asarray(a)
        check_errors(
            (lambda: glgemm.matmul(a, a, engine=accelerators), TypeError, "^matmul: the engine is <glgemm.Accelerators .*> and must be an Engine"),
            (lambda: glgemm.gemm(1, x, x, engine="0"), TypeError, "^gemm: the engine is '0' and must be an Engine"),
            (lambda: glgemm.explain(a, a, engine=accelerators), TypeError, "^explain: the engine is <glgemm.Accelerators .*> and must be an Engine"),
            (lambda: glgemm.stream(a, a, engine="0"), TypeError, "^stream: the engine is '0' and must be an Engine or Accelerators"),
            (lambda: glgemm.gemm(1, x, y), ValueError, "^gemm: the arrays belong to different engines"),
            (lambda: glgemm.gemm(1, x, x, bias=y), ValueError, "^gemm: the arrays belong to different engines"),
            (lambda: glgemm.gemm(1, x, x, residual=x, engine=other), ValueError, "^gemm: the arrays belong to different engines"),
            (lambda: glgemm.matmul(x, y), ValueError, "^matmul: the arrays belong to different engines"),
            (lambda: glgemm.gemm(1, x, x, 0, a), TypeError, "^gemm: C is a ndarray, and a call with arrays on the device needs an Array"),
            (lambda: glgemm.matmul(x, x, out=a), TypeError, "^matmul: out is a ndarray, and a call with arrays on the device needs an Array"),
            (lambda: glgemm.gemm(1, *many), ValueError, r"^gemm: the batches \(2,\) of A and \(3,\) of B"),
            (lambda: engine.asarray(many[0]) @ many[1], ValueError, r"^matmul: the batches \(2,\) of A and \(3,\) of B"),
            (lambda: glgemm.gemm(1, a, a, op_a="H"), ValueError, "^gemm: an op is 'H'"),
        )


def repeated():
    out = np.lib.stride_tricks.as_strided(np.zeros(3, np.float32), (2, 2), (4, 4))
    return out


def test_out_that_overlaps():
    a = np.arange(9, dtype=np.float32).reshape(3, 3)
    for out in (a, a.T, a[::-1]):
        x = a.copy()
        view = x if out is a else x.T if out.strides == a.T.strides else x[::-1]
        expected = np.matmul(x.copy(), x.copy())
        glgemm.matmul(x, x, out=view)
        assert np.array_equal(view, expected)
