"""ONNX's own node tests of its matrix products and convolutions, see tests/data/README.md: what they hold, by glgemm.

An operator is a function of OPERATORS, which says it by products or convolutions; a case that none can say is a line of LEFT_OUT, with the reason.
GLGEMM_ONNX_NODES names the folder data/node of ONNX's backend tests, whose cases then are taken in place of the archive's.
"""

import collections
import os
import pathlib
import zipfile

import numpy as np
import onnx_case
import pytest
from test_convolve import convolved

import glgemm

ARCHIVE = pathlib.Path(__file__).parent.parent / "data" / "onnx_node_tests.zip"


def bound(k, size):
    """The bound for the error of a float32 whose terms add up to `size` in absolute value: gamma_K M of docs/checking.md."""
    u = 2.0**-24
    return (k + 3) * u / (1 - (k + 3) * u) * size + np.finfo(np.float32).tiny * (k + 3)


def matmul(node, a, b):
    """What glgemm makes, what it is in float64, and the bound of the difference."""
    wide = [x.astype(np.float64) for x in (a, b)]
    return glgemm.matmul(a, b), np.matmul(*wide), bound(a.shape[-1], np.matmul(*map(abs, wide)))


def gemm(node, a, b, c=None):
    """alpha op(A) op(B) + beta C, with C a bias where C is one and beta is 1; else C is what it is broadcast to."""
    alpha, beta = (node.attributes.get(name, 1.0) for name in ("alpha", "beta"))
    ops = ["NT"[node.attributes.get(name, 0)] for name in ("transA", "transB")]
    x, y = (z.T if op == "T" else z for z, op in zip((a, b), ops))
    shape, whole = (x.shape[0], y.shape[1]), np.zeros((1, 1)) if c is None else c
    arguments = {"op_a": ops[0], "op_b": ops[1]}
    if c is not None and beta == 1 and c.size == shape[1]:
        got = glgemm.gemm(alpha, a, b, bias=c.reshape(-1), **arguments)
    elif c is not None and beta == 1 and c.shape == (shape[0], 1):
        got = glgemm.gemm(alpha, a, b, bias=c, **arguments)
    elif c is not None:
        got = glgemm.gemm(alpha, a, b, beta, np.broadcast_to(c, shape).copy(), **arguments)
    else:
        got = glgemm.gemm(alpha, a, b, **arguments)
    x, y, whole = x.astype(np.float64), y.astype(np.float64), beta * whole.astype(np.float64)
    return got, alpha * (x @ y) + whole, bound(x.shape[1], abs(alpha) * (abs(x) @ abs(y)) + abs(whole))


def exactly(a, b):
    """A product of integers of 8 bits, all of its sums."""
    return glgemm.matmul(a, b, dtype=np.uint32 if a.dtype == b.dtype == np.uint8 else np.int32).view(np.int32)


def matmul_integer(node, a, b, a_zero=0, b_zero=0):
    """(A - za) (B - zb) = A B - za (1 B) - (A 1 - k za) zb: za has an element, or one for each row, zb one for each column."""
    (m, k), n = a.shape, b.shape[1]
    za, zb = (np.broadcast_to(np.int32(zero), size)[None] for zero, size in ((a_zero, m), (b_zero, n)))
    c = exactly(a, b)
    glgemm.gemm(-1, za.T.copy(), exactly(np.ones((1, k), a.dtype), b), 1, c)
    glgemm.gemm(-1, exactly(a, np.ones((k, 1), b.dtype)) - k * za.T, zb.copy(), 1, c)
    return c, (a.astype(np.int64) - za.T) @ (b.astype(np.int64) - zb), 0


def qlinear_matmul(node, a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero):
    """A is quantised with its scale and zero, and B of integers, which half floats hold. With what A stands for, x = sa (A - za),

        y = clamp(sb / sy x B + r), r = zy - sb / sy zb (x 1)

    Rounding to integers is no part of a product. Codes are unsigned: 128 is added to those of i8, and to their zero."""
    lowest, highest = np.iinfo(y_zero.dtype).min, np.iinfo(y_zero.dtype).max
    scale = float(b_scale[0]) / float(y_scale[0])
    above = -np.iinfo(a.dtype).min
    rows, k = a.shape[:-1], a.shape[-1]
    codes = np.zeros((*rows, -(-k // 16) * 16), np.uint8)
    codes[..., :k] = a.astype(np.int16) + above
    zeros = np.full((*rows, codes.shape[-1] // 16), int(a_zero[0]) + above, np.uint8)
    scales = np.full(zeros.shape, a_scale[0])
    kind = {"float32": "f32", "float16": "f16"}[scales.dtype.name]
    x = glgemm.Quantized(f"nbits:bits=8,group=16,zeros=1,scales={kind}", a.shape, codes, scales, zeros)
    sums = np.full((*rows, 1), y_zero[0], np.float32)
    glgemm.gemm(-scale * int(b_zero[0]), x, np.ones((*a.shape[:-2], k, 1), np.float16), 1, sums)
    c = np.repeat(sums, b.shape[-1], axis=-1)
    glgemm.gemm(scale, x, b.astype(np.float16), 1, c, activation=("clamp", lowest, highest))
    factor = float(a_scale[0]) * scale
    exact = factor * np.matmul(a.astype(np.float64) - int(a_zero[0]), b.astype(np.float64) - int(b_zero[0])) + int(y_zero[0])
    return np.rint(c).astype(y_zero.dtype), np.clip(np.rint(exact), lowest, highest), 0


class Convolution:
    """What the attributes of a node say of a convolution of such images and filters."""

    def __init__(self, node, x, w, transposed=False):
        n, given = x.ndim - 2, node.attributes
        self.stride, self.dilation = (given.get(name, [1] * n) for name in ("strides", "dilations"))
        self.groups, self.transposed = given.get("group", 1), transposed
        self.reach = [(size - 1) * step + 1 for size, step in zip(w.shape[2:], self.dilation)]
        self.output_padding = given.get("output_padding", [0] * n)
        pads, auto = given.get("pads", [0] * 2 * n), given.get("auto_pad", "NOTSET")
        self.padding = list(zip(pads[:n], pads[n:])) if auto == "NOTSET" else auto.lower()
        self.before = pads[:n]
        if auto != "NOTSET" and not transposed:
            self.before = [self.first(auto, (-(-i // s) - 1) * s + r - i) for i, s, r in zip(x.shape[2:], self.stride, self.reach)]
        elif auto != "NOTSET":
            self.before = [self.first(auto, r - s) for s, r in zip(self.stride, self.reach)]
        if "output_shape" in given:  # which says what is added: what is too much becomes padding, and what lacks is left empty
            least = [(i - 1) * s + r + p for i, s, r, p in zip(x.shape[2:], self.stride, self.reach, self.output_padding)]
            self.output_padding = [p + max(0, size - z) for p, size, z in zip(self.output_padding, given["output_shape"], least)]
            self.before = [self.first("NOTSET", z - size) for size, z in zip(given["output_shape"], least)]
            self.padding = [(b, max(0, z - size) - b) for b, size, z in zip(self.before, given["output_shape"], least)]

    @staticmethod
    def first(auto, both):
        """How much of the padding comes first."""
        return max(0, both) // 2 if auto == "SAME_UPPER" else max(0, both) - max(0, both) // 2

    def run(self, x, w, bias=None, **more):
        how = {name: getattr(self, name) for name in ("stride", "dilation", "groups", "padding", "transposed", "output_padding")}
        return glgemm.convolve(x, w, bias, layout="nchw", filter_layout="oihw", **how, **more)

    def exact(self, x, w, size):
        return convolved(x, w, size, self.stride, self.dilation, self.before, self.groups, self.transposed)


def conv(node, x, w, bias=None, transposed=False):
    how = Convolution(node, x, w, transposed)
    got = how.run(x, w, bias)
    x, w, added = (np.zeros(1) if z is None else z.astype(np.float64) for z in (x, w, bias))
    added = added.reshape(-1, *(1,) * (x.ndim - 2))
    exact, size = (how.exact(*map(of, (x, w)), got.shape[2:]) + of(added) for of in (lambda z: z, abs))
    return got, exact, bound(w.size // w.shape[transposed], size)


def conv_transpose(node, x, w, bias=None):
    return conv(node, x, w, bias, transposed=True)


def conv_integer(node, x, w, x_zero=0, w_zero=0):
    """As matmul_integer, of an x that has its zero around it: the 1 that stands in its place has none."""
    how = Convolution(node, x, w)
    sums = lambda x, w: how.run(x, w, dtype=np.uint32 if x.dtype == w.dtype == np.uint8 else np.int32).view(np.int32)
    ones, all_ones, zx = np.ones_like(x), np.ones_like(w), np.int32(x_zero)
    zw = np.broadcast_to(np.int32(w_zero), len(w)).reshape(-1, *(1,) * (x.ndim - 2))
    c = sums(x, w) - zx * sums(ones, w) - zw * (sums(x, all_ones) - zx * sums(ones, all_ones))
    return c, how.exact(x.astype(np.int64) - zx, w.astype(np.int64) - np.int64(w_zero).reshape(-1, *(1,) * (x.ndim - 1)), c.shape[2:]), 0


def qlinear_conv(node, x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero):
    """y = clamp(sx sw / sy (x - zx) * (w - zw) + zy), with a bias of zy. Rounding to integers is no part of a convolution."""
    lowest, highest = np.iinfo(y_zero.dtype).min, np.iinfo(y_zero.dtype).max
    of_filters = lambda z: z.reshape(-1, *(1,) * (w.ndim - 1))
    x, w = x.astype(np.float32) - x_zero, (w.astype(np.float32) - of_filters(w_zero)) * of_filters(w_scale)
    how, scale = Convolution(node, x, w), float(x_scale) / float(y_scale)
    got = how.run(x, w, np.full(len(w), y_zero, np.float32), alpha=scale, activation=("clamp", lowest, highest))
    exact = scale * how.exact(x.astype(np.float64), w.astype(np.float64), got.shape[2:]) + y_zero
    return np.rint(got).astype(y_zero.dtype), np.clip(np.rint(exact), lowest, highest), 0


OPERATORS = {
    "MatMul": matmul,
    "Gemm": gemm,
    "MatMulInteger": matmul_integer,
    "QLinearMatMul": qlinear_matmul,
    "Conv": conv,
    "ConvTranspose": conv_transpose,
    "ConvInteger": conv_integer,
    "QLinearConv": qlinear_conv,
    "DeformConv": None,
}
COUNTS = dict(zip(OPERATORS, (7, 11, 1, 8, 6, 11, 2, 1, 4)))  # of ONNX's cases: none gets lost
DEFORMED = ("basic_deform_conv_with_padding", "basic_deform_conv_without_padding", "deform_conv_with_mask_bias", "deform_conv_with_multiple_offset_groups")
# Names of cases, and why neither products nor convolutions say them.
LEFT_OUT = {f"test_{name}": "filters read between an image's elements, at places that other data say" for name in DEFORMED}
# Their results wrap where the standard saturates: onnx/onnx#7835. That is, elements at the ends of their type's range differ.
WRAPPED = {f"test_qlinearmatmul_{size}_int8_{scales}" for size in ("2D", "3D") for scales in ("float16", "float32")}


def all_cases():
    folder = os.environ.get("GLGEMM_ONNX_NODES")
    root = pathlib.Path(folder) if folder else zipfile.Path(ARCHIVE)
    return [onnx_case.load(test, node) for test, node in onnx_case.cases_of(root) if node.operator in OPERATORS]


CASES = all_cases()
RUN = [case for case in CASES if case.name not in LEFT_OUT]


def test_no_case_is_lost(capsys):
    assert collections.Counter(case.node.operator for case in CASES) == COUNTS
    assert {*LEFT_OUT, *WRAPPED} <= {case.name for case in CASES}
    with capsys.disabled():
        print(f"ONNX's node tests: {len(RUN)} run, {len(LEFT_OUT)} left out", *(f"\n  {name}: {why}" for name, why in LEFT_OUT.items()))


@pytest.mark.parametrize("case", RUN, ids=lambda case: case.name)
def test_node(case):
    assert case.data
    for inputs, (expected,) in case.data:
        got, exact, limit = OPERATORS[case.node.operator](case.node, *inputs)
        assert got.dtype == expected.dtype and np.shape(got) == expected.shape
        assert np.all(abs(got - exact) <= limit)
        near = abs(got.astype(np.float64) - expected) <= 2 * limit  # ONNX's result has a rounding error of its own
        ends = [np.iinfo(got.dtype).min, np.iinfo(got.dtype).max] if case.name in WRAPPED else []
        assert np.array_equal(near, ~np.isin(got, ends))


@pytest.mark.parametrize("a_type, b_type", [("uint8", "uint8"), ("int8", "uint8"), ("uint8", "int8"), ("int8", "int8")])
def test_zeros_of_rows_and_columns(a_type, b_type):
    """What MatMulInteger allows, and no case of ONNX has."""
    generator = np.random.default_rng(0)
    draw = lambda shape, dtype: generator.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, shape, dtype, endpoint=True)
    a, b = draw((5, 70), a_type), draw((70, 3), b_type)
    for zeros in ((), (draw(1, a_type),), (draw(5, a_type), draw(1, b_type)), (draw(1, a_type), draw(3, b_type))):
        got, exact, _ = matmul_integer(None, a, b, *zeros)
        assert np.array_equal(got, exact)
