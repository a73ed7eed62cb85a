"""NumPy's own tests of matmul, run against glgemm.matmul."""

import itertools

import numpy as np
import pytest

import glgemm

test_multiarray = pytest.importorskip("numpy.core.tests.test_multiarray")

# NumPy's types without those that glgemm has not: 64-bit integers (l, q, L, Q), long doubles (g, G) and objects (O).
TYPES = "?bhiBHIefdFD"


def with_matmul(common):
    """The tests of a class of NumPy's, on glgemm.matmul."""

    class Adapted(common):
        types = TYPES
        matmul = staticmethod(glgemm.matmul)

    return Adapted


class TestCommon(with_matmul(test_multiarray.MatmulCommon)):
    pass


class TestMatmul(with_matmul(test_multiarray.TestMatmul)):
    # NumPy's own class has these for numpy.matmul; each is left out for a reason.
    test_matmul_object = test_matmul_object_type_scalar = None  # there are no products of objects
    test_out_arg = None  # asks for the wording of NumPy's ufuncs; test_matmul.py has the same cases

    @pytest.mark.parametrize("dtype", TYPES[1:])
    def test_matmul_bool_like(self, dtype):
        a = np.array([[2, 1], [0, 1]], dtype)
        assert np.array_equal(glgemm.matmul(a, a), a @ a)


@pytest.mark.parametrize("dtype", "lqLQgGO")
def test_types_that_are_refused(dtype):
    a = np.ones((2, 2), dtype)
    with pytest.raises(TypeError, match="has no products of"):
        glgemm.matmul(a, a)


def test_all_types_of_numpy_are_here():
    assert sorted(TYPES + "lqLQgGO") == sorted(test_multiarray.MatmulCommon.types)


def test_mixed_types():
    for x, y in itertools.product(TYPES, TYPES):
        expected = np.result_type(np.dtype(x), np.dtype(y))
        a, b = np.ones((2, 3), x), np.ones((3, 2), y)
        if expected.char in TYPES:
            assert glgemm.matmul(a, b).dtype == np.matmul(a, b).dtype
        else:
            with pytest.raises(TypeError):
                glgemm.matmul(a, b)
