"""precision=: reproducible bits, and the bound of extended sums."""

import numpy as np
import pytest

import glgemm


def uniform(shape, seed):
    return np.random.default_rng(seed).uniform(-1, 1, shape).astype(np.float32)


def test_reproducible_bits(engine):
    a, b = uniform((37, 1300), 1), uniform((1300, 41), 2)
    # Which bits these are, tests/engine/gl_precision.cpp checks.
    expected = glgemm.matmul(a, b, precision="reproducible", kernel="naive").tobytes()
    for how in ({}, {"kernel": "tiled:tile=8"}, {"kernel": "register"}, {"kernel": "naive", "split_k": 1}, {"split_k": 2}):
        assert glgemm.matmul(a, b, precision="reproducible", **how).tobytes() == expected, how
    assert glgemm.matmul(np.asfortranarray(a), b, precision="reproducible").tobytes() == expected
    assert glgemm.gemm(1, a, b, precision="reproducible").tobytes() == expected
    x, y = engine.asarray(a), engine.asarray(b)
    assert engine.matmul(x, y, precision="reproducible").numpy().tobytes() == expected
    assert engine.gemm(1, x, y, precision="reproducible").numpy().tobytes() == expected
    streamed = glgemm.stream(a, b, device_memory_limit=200_000, precision="reproducible", progress=False)
    assert streamed.result().tobytes() == expected
    # There is something to promise: in another order the bits are others.
    assert (a @ b).tobytes() != expected or glgemm.matmul(a, b, split_k=5).tobytes() != expected


def test_extended_bound(engine):
    # Sums that cancel: each row's second half is its first one, negated, but for the last element.
    k = 20000
    half = uniform((3, k // 2), 3)
    a = np.concatenate([half, -half], 1)
    a[:, -1] += np.float32(1e-3)
    b = np.concatenate([uniform((k // 2, 5), 4)] * 2)
    tenths = np.full((3, k), 0.1, np.float32), np.ones((k, 5), np.float32)  # sums that grow

    def worst(c, x, y):
        size = np.abs(x).astype(np.float64) @ np.abs(y).astype(np.float64)
        return np.max(np.abs(c - x.astype(np.float64) @ y.astype(np.float64)) / size) * 2.0**24

    for x, y in ((a, b), tenths):
        assert worst(glgemm.matmul(x, y, precision="extended"), x, y) <= 4
        assert worst(glgemm.gemm(1, x, y, precision="extended", kernel="naive"), x, y) <= 4
        assert worst(engine.matmul(engine.asarray(x), engine.asarray(y), precision="extended").numpy(), x, y) <= 4
    assert worst(glgemm.matmul(*tenths, kernel="naive", split_k=1), *tenths) > 4  # what is not extended cannot do that


def test_explain_says_the_precision():
    a = np.ones((8, 8), np.float32)
    assert "precision" not in glgemm.explain(a, a)
    assert "precision: reproducible\n" in glgemm.explain(a, a, precision="reproducible")
    assert "precision: standard, since " in glgemm.explain(a, a, precision="fast")


def test_bad_precision():
    a = np.ones((2, 2), np.float32)
    for call in (
        lambda: glgemm.matmul(a, a, precision="exact"),
        lambda: glgemm.gemm(1, a, a, precision="exact"),
        lambda: glgemm.stream(a, a, precision="exact"),
        lambda: glgemm.explain(a, a, precision="exact"),
    ):
        with pytest.raises(ValueError, match="exact.*reproducible"):
            call()
