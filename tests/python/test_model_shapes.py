"""Products of language, speech and image models, see tests/data/README.md: weights of several types with float32.

GLGEMM_MODEL_PRODUCTS is the greatest m n k of those that run: the long tier has more.
"""

import csv
import os
import pathlib

import numpy as np
import pytest

import glgemm

SHAPES = pathlib.Path(__file__).parent.parent / "data" / "model_gemm_shapes.csv"
GREATEST = float(os.environ.get("GLGEMM_MODEL_PRODUCTS", "2e7"))


def shapes():
    """batch, m, n and k of the products that run, where n is the number of a weight's rows."""
    found = []
    with open(SHAPES) as file:
        for row in csv.DictReader(file):
            batch, m, n, k = (int(row[name]) for name in ("batch", "m", "n", "k"))
            if row["source"].startswith("llama"):  # C is a column for each token
                m, n = n, m
            if batch * m * n * k <= GREATEST:
                found.append((batch, m, n, k))
    return sorted(set(found))


def check(got, x, w):
    """Within gamma_K M of docs/checking.md, of x @ w.mT."""
    w = w.swapaxes(-1, -2)
    exact, size = np.matmul(x.astype(np.float64), w), np.matmul(abs(x).astype(np.float64), abs(w))
    k = x.shape[-1] + 2
    assert got.shape == exact.shape and got.dtype == np.float32
    assert np.all(abs(got - exact) <= k * 2.0**-24 / (1 - k * 2.0**-24) * size)


@pytest.mark.parametrize("batch, m, n, k", shapes())
def test_shape(batch, m, n, k):
    generator = np.random.default_rng(0)
    lead = () if batch == 1 else (batch,)
    x, w = (generator.uniform(-1, 1, (*lead, rows, k)).astype(np.float32) for rows in (m, n))
    check(glgemm.matmul(x, w.swapaxes(-1, -2)), x, w.astype(np.float64))
    half = w.astype(np.float16)
    check(glgemm.matmul(x, half.swapaxes(-1, -2)), x, half.astype(np.float64))
    if batch == 1:  # a weight
        for format in ("q8_0", "q4_0", "nbits:bits=4,group=32", "mxfp4"):
            weight = glgemm.quantize(w, format)
            check(x @ weight.T, x, weight.numpy().astype(np.float64))


def test_there_are_shapes():
    assert len(shapes()) >= 12
