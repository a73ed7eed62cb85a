"""matmul, gemm and explain."""

from __future__ import annotations

import numbers
from typing import Any, Iterator, Literal, Sequence

import numpy as np
import numpy.typing as npt

from . import _core
from ._engine import Engine, as_numpy, default_engine, native, native_type

_Host = npt.NDArray[Any]
Precision = Literal["fast", "standard", "extended", "reproducible"]

# Integers that glgemm has not are computed in wider ones, which wrap alike.
_computed_in = {"bool": "int8", "int16": "int32", "uint8": "uint32", "uint16": "uint32"}
_float8 = ("float8_e4m3fn", "float8_e5m2")


def matmul(
    a: Any,
    b: Any,
    out: Any = None,
    *,
    dtype: npt.DTypeLike = None,
    engine: Engine | None = None,
    kernel: str | None = None,
    split_k: int = 0,
    precision: Precision = "standard",
) -> Any:
    """The matrix product of two arrays, as numpy.matmul.

    Vectors, batches that are broadcast, zero sizes, strides of all kinds, types that are promoted, and `out` are as in NumPy.
    Transposed and padded matrices, and batches of them, are read where they lie; what no leading dimension can say is copied
    once (explain() tells). Products of NumPy arrays are computed on `engine`, by default the default_engine(). Products that do
    not fit the device are streamed.

    Types: float16, float32, float64, complex64, complex128, int8, int16, int32, uint8, uint16, uint32, bool, and of ml_dtypes
    bfloat16. Integers wrap as NumPy's do. Floats of 16 bits are summed in float32 and rounded once. float8_e4m3fn and
    float8_e5m2 give float32. With dtype=numpy.int32, int8 gives its sums without wrapping; with dtype=numpy.float32, narrower
    floats give their sums unrounded. A wider `out` alone does neither.

    Where `a` or `b` is an Array, the result is an Array, and both are of one type: nothing is converted on a device. There int8
    gives int32. `out` is then an Array, too.

    kernel, split_k: how the product runs, as in `glgemm bench`. precision: how exactly it is summed. 'standard': as is fastest;
    'reproducible': with the same bits on every driver, however the product is cut; 'extended': with an error of at most
    4 u |a| |b|, u the unit roundoff of the sums; 'fast': may compute in the type of `a` and `b`, and is 'standard', since no
    shader computes in a narrower type.

    Raises ValueError for shapes that do not go together, TypeError for types that glgemm has not (int64, object), MemoryError,
    and Error for what the driver refuses.

    >>> import numpy as np
    >>> import glgemm
    >>> glgemm.matmul(np.float32([[1, 2]]), np.float32([[3], [4]]))
    array([[11.]], dtype=float32)
    >>> glgemm.matmul(np.int8([100, 100]), np.int8([1, 1]))
    -56
    >>> glgemm.matmul(np.int8([100, 100]), np.int8([1, 1]), dtype=np.int32)
    200
    """
    if isinstance(a, _core.Array) or isinstance(b, _core.Array):
        service = _service_of("matmul", engine, a, b, out)
        return _core.multiply(
            _on_device(service, a),
            _on_device(service, b),
            _device_out("matmul: out", out),
            None,
            None,
            _terms("matmul", kernel=kernel, split_k=split_k, precision=precision),
            native_type(dtype),
        )
    plan = _HostMatmul(a, b, out, dtype)
    if plan.c.size:
        terms = _terms("matmul", kernel=kernel, split_k=split_k, precision=precision)
        _multiply(_engine_for("matmul", engine), plan.a, plan.b, plan.c, None, None, terms)
    return plan.result()


def gemm(
    alpha: complex,
    a: Any,
    b: Any,
    beta: complex = 0,
    c: Any = None,
    *,
    bias: Any = None,
    activation: str | tuple[Any, ...] | None = None,
    residual: Any = None,
    op_a: str = "N",
    op_b: str = "N",
    dtype: npt.DTypeLike = None,
    engine: Engine | None = None,
    kernel: str | None = None,
    split_k: int = 0,
    precision: Precision = "standard",
) -> Any:
    """C = activation(alpha op(A) op(B) + beta C + D + bias) of matrices or of batches of them; returns C.

    c           is overwritten, and read unless beta is 0. None: a new array, and beta must be 0
    bias        (n,): an element for each column of C; (m, 1): one for each row
    residual    D, of C's shape
    activation  'relu', 'gelu_erf', 'gelu_tanh', 'sigmoid', 'tanh', ('leaky_relu', slope) or ('clamp', low, high)
    op_a, op_b  'N': none, 'T': transposed, 'C': transposed and conjugate
    dtype       of a new C
    precision   as in matmul()

    A and B are of one type. C, D and the bias are of one type as well: that of A and B; or float32 for narrower floats, and
    int32 for int8. All of them are NumPy arrays, or all are Arrays of one engine. For what is raised see matmul().

    >>> import numpy as np
    >>> import glgemm
    >>> a, b = np.float32([[1, -2], [3, 4]]), np.eye(2, dtype=np.float32)
    >>> glgemm.gemm(2, a, b, bias=np.float32([1, 1]), activation="relu")
    array([[3., 0.],
           [7., 9.]], dtype=float32)
    """
    if c is None and beta != 0:
        raise ValueError(f"gemm: beta is {beta} and there is no C")
    if isinstance(a, _core.Array) or isinstance(b, _core.Array) or isinstance(c, _core.Array):
        service = _service_of("gemm", engine, a, b, c, bias, residual)
        a_on_device, b_on_device = _on_device(service, a), _on_device(service, b)
        _need_matrices("gemm", a=a_on_device.shape, b=b_on_device.shape)
        op_a, a_on_device = _apply_op("gemm", op_a, a_on_device, lambda m: m.mT)
        op_b, b_on_device = _apply_op("gemm", op_b, b_on_device, lambda m: m.mT)
        return _core.multiply(
            a_on_device,
            b_on_device,
            _device_out("gemm: C", c),
            None if bias is None else _on_device(service, bias),
            None if residual is None else _on_device(service, residual),
            _terms("gemm", alpha, beta, op_a, op_b, activation, kernel=kernel, split_k=split_k, precision=precision),
            native_type(dtype),
        )
    x, y = native(as_numpy(a)), native(as_numpy(b))
    _need_matrices("gemm", a=x.shape, b=y.shape)
    if x.dtype != y.dtype:
        raise TypeError(f"gemm: A is {x.dtype} and B is {y.dtype}: they must be of one type")
    op_a, x = _apply_op("gemm", op_a, x, lambda m: m.swapaxes(-1, -2))
    op_b, y = _apply_op("gemm", op_b, y, lambda m: m.swapaxes(-1, -2))
    terms = _terms("gemm", alpha, beta, op_a, op_b, activation, kernel=kernel, split_k=split_k, precision=precision)
    m, k = x.shape[-2:] if op_a == "N" else x.shape[:-3:-1]
    inner, n = y.shape[-2:] if op_b == "N" else y.shape[:-3:-1]
    if k != inner:
        raise ValueError(f"gemm: op(A) is {m}x{k} and op(B) is {inner}x{n}: the inner sizes {k} and {inner} differ")
    shape = (*_broadcast("gemm", x.shape[:-2], y.shape[:-2]), m, n)
    sums = _sums_of(x.dtype)
    if c is None:
        c = np.empty(shape, native_type(dtype) or (sums if x.dtype.name in ("int8", *_float8) else x.dtype))
    _check_out("gemm: C", c, shape)
    if c.dtype not in (x.dtype, sums) or (c.dtype == x.dtype != sums and x.dtype.name in ("int8", *_float8)):
        raise TypeError(f"gemm: C is {c.dtype}, and products of {x.dtype} are summed in {sums}")
    extra = []
    for name, given in (("the bias", bias), ("D", residual)):
        if given is not None and native(as_numpy(given)).dtype != c.dtype:
            raise TypeError(f"gemm: {name} is {as_numpy(given).dtype} and C is {c.dtype}")
        extra.append(None if given is None else native(as_numpy(given)))
    if extra[0] is not None and extra[0].ndim == 1:
        extra[0] = extra[0][None, :]
    if extra[0] is not None and extra[0].shape not in ((1, n), (m, 1)):
        raise ValueError(f"gemm: the bias is {np.shape(bias)} and C is {shape}: a bias is ({n},), for columns, or ({m}, 1), for rows")
    if extra[1] is not None and extra[1].shape != shape:
        raise ValueError(f"gemm: C is {shape} and D is {extra[1].shape}")
    if c.size:
        _multiply(_engine_for("gemm", engine), x, y, c, extra[0], extra[1], terms)
    return c


def explain(
    a: Any,
    b: Any,
    out: Any = None,
    *,
    dtype: npt.DTypeLike = None,
    engine: Engine | None = None,
    kernel: str | None = None,
    split_k: int = 0,
    precision: Precision = "standard",
) -> str:
    """What matmul() of these NumPy arrays would do, in lines of text: conversions, copies, the kernel, memory.

    >>> import numpy as np
    >>> import glgemm
    >>> a = np.ones((8, 6), np.float32)
    >>> print(glgemm.explain(a.T, a[:, ::2]).splitlines()[0])
    A: (6, 8) float32, no copy on the host: column-major, ld 6
    >>> print(glgemm.explain(a.T, a[:, ::2]).splitlines()[1])
    B: (8, 3) float32, copied on the host first: neither op nor ld says its strides of (24, 8) bytes
    """
    plan = _HostMatmul(a, b, out, dtype)
    if plan.c.size == 0:
        return "nothing: the product has no elements\n"
    engine = _engine_for("explain", engine)
    notes = "".join(
        f"{name} is converted on the host from {was.dtype} to {now.dtype}\n"
        for name, was, now in (("A", as_numpy(a), plan.a), ("B", as_numpy(b), plan.b), ("C", plan.c, plan.returned))
        if was.dtype != now.dtype
    )
    if not engine._fits(plan.a.nbytes + plan.b.nbytes + plan.c.nbytes):
        return notes + "streamed: the matrices do not fit the device\n"
    terms = _terms("matmul", kernel=kernel, split_k=split_k, precision=precision)
    return engine._service.explain(_core.HostProduct(plan.a, plan.b, plan.c, None, None), terms) + notes


class _HostMatmul:
    """A product of NumPy arrays, ready for the device: a, b and c have two dimensions at least, and types that go together."""

    a: _Host
    b: _Host
    c: _Host
    returned: _Host  # what C is copied to; has C's dimensions

    def __init__(self, a: Any, b: Any, out: Any, dtype: npt.DTypeLike) -> None:
        x, y = as_numpy(a), as_numpy(b)
        for name, operand in (("first", x), ("second", y)):
            if operand.ndim == 0:
                raise ValueError(f"matmul: the {name} operand is a scalar, which has no matrix product")
        self.row, self.column = x.ndim == 1, y.ndim == 1
        x, y = x[None, :] if self.row else x, y[:, None] if self.column else y
        if x.shape[-1] != y.shape[-2]:
            raise ValueError(
                f"matmul: A is {np.shape(a)} and B is {np.shape(b)}: the inner sizes {x.shape[-1]} and {y.shape[-2]} differ"
            )
        shape = (*_broadcast("matmul", x.shape[:-2], y.shape[:-2]), x.shape[-2], y.shape[-1])
        self._choose_types(x.dtype, y.dtype, native_type(dtype))
        self.a, self.b = native(x, self.computed), native(y, self.computed)
        self.out = out
        if out is not None:
            drop = -1 if self.column else -2
            kept = shape[:-2] + (() if self.row else shape[-2:-1]) + (() if self.column else shape[-1:])
            _check_out("matmul: out", out, kept)
            if not np.can_cast(self.dtype, out.dtype, "same_kind"):
                raise TypeError(f"matmul: a product of {self.dtype} is not written to an out of {out.dtype}")
            self.returned = out
            if self.row and self.column:
                self.returned = out[..., None, None]
            elif self.row or self.column:
                self.returned = np.expand_dims(out, drop)
        # Sums that are wider than the result wrap on their way to `out`, even to one of their own type.
        direct = out is not None and out.dtype == self.sums == self.dtype
        self.c = self.returned if direct else np.empty(shape, self.sums)
        if out is None:
            self.returned = self.c if self.dtype == self.sums else np.empty(shape, self.dtype)

    def _choose_types(self, a: np.dtype[Any], b: np.dtype[Any], wanted: np.dtype[Any] | None) -> None:
        """The type of the result, that in which A and B go to the device, and that in which C comes from there."""
        common = np.result_type(a, b)
        for name, given in (("A", a), ("B", b)):
            if wanted is not None and not np.can_cast(given, wanted, "same_kind"):
                raise TypeError(f"matmul: {name} is {given}, which is not converted to {wanted}")
        self.dtype = wanted or (np.dtype(np.float32) if common.name in _float8 else common.newbyteorder("="))
        # Narrow A and B stay so where their sums are what is wanted.
        narrow = common.name in ("int8", "float16", "bfloat16", *_float8) and self.dtype in (_sums_of(common), common)
        self.computed = np.dtype(_computed_in.get(self.dtype.name, common if narrow else self.dtype))
        if _core.type_name(self.computed) is None:
            raise TypeError(f"matmul: glgemm has no products of {self.dtype}: convert the operands, or name a dtype")
        self.sums = _sums_of(self.computed)
        if self.computed.name in ("float16", "bfloat16") and self.dtype == self.computed:
            self.sums = self.computed

    def result(self) -> Any:
        """What matmul returns."""
        if self.c is not self.returned:
            if self.dtype == np.bool_:
                np.not_equal(self.c, 0, out=self.returned, casting="same_kind")
            else:
                np.copyto(self.returned, self.c.astype(self.dtype, copy=False), "same_kind")
        if self.out is not None:
            return self.out
        c = self.returned
        if self.column:
            c = c[..., 0]
        if self.row:
            c = c[..., 0] if self.column else c[..., 0, :]
        return c[()] if c.ndim == 0 else c


def _multiply(engine: Engine, a: _Host, b: _Host, c: _Host, bias: _Host | None, residual: _Host | None, terms: _core.Terms) -> None:
    """The product on the device; streamed, matrix by matrix, if it does not fit."""
    if engine._fits(sum(x.nbytes for x in (a, b, c, bias, residual) if x is not None)):
        return engine._service.multiply(_core.HostProduct(a, b, c, bias, residual), terms)
    into = np.empty(c.shape, c.dtype) if any(_overlapping(c, a=a, b=b, bias=bias, residual=residual)) else c
    if into is not c:
        into[...] = c
    batch = c.shape[:-2]
    a = np.broadcast_to(a, (*batch, *a.shape[-2:]))
    b = np.broadcast_to(b, (*batch, *b.shape[-2:]))
    for item in np.ndindex(*batch):
        d = None if residual is None else _in_order_of(into[item], residual[item])
        engine._service.stream(_core.HostProduct(a[item], b[item], into[item], bias, d), terms, 0, 0, False, None)
    if into is not c:
        c[...] = into


def _in_order_of(c: _Host, d: _Host) -> _Host:
    """D, or a copy of it if its rows and columns have another order in memory than C's: streams take one order for both."""
    by_rows, d_by_rows = (abs(x.strides[1]) <= abs(x.strides[0]) for x in (c, d))
    if by_rows == d_by_rows:
        return d
    rows, columns = c.shape
    # The lines of C's order have a step of two elements at least, so that it is that order in a single row or column, too.
    copy = np.empty((rows, columns + 1), c.dtype)[:, :columns] if by_rows else np.empty((columns, rows + 1), c.dtype).T[:rows]
    copy[...] = d
    return copy


def _broadcast(who: str, a: Sequence[int], b: Sequence[int]) -> tuple[int, ...]:
    try:
        return np.broadcast_shapes(tuple(a), tuple(b))
    except ValueError:
        raise ValueError(f"{who}: the batches {tuple(a)} of A and {tuple(b)} of B cannot be broadcast together") from None


def _check_out(name: str, out: Any, shape: tuple[int, ...]) -> None:
    if not isinstance(out, np.ndarray):
        raise TypeError(f"{name} is a {type(out).__name__} and must be a NumPy array")
    if out.shape != shape:
        raise ValueError(f"{name} is {out.shape} and the product is {shape}: out is not broadcast (non-broadcastable)")
    if not out.flags.writeable:
        raise ValueError(f"{name} is read-only")
    if _overlaps_itself(out):
        raise ValueError(f"{name} has elements that share memory")


def _overlapping(c: _Host, *, a: _Host, b: _Host, bias: _Host | None, residual: _Host | None) -> Iterator[str]:
    """The operands that share memory with C and so would be overwritten before they are read. D may be C itself."""
    for name, x in (("A", a), ("B", b), ("the bias", bias), ("D", residual)):
        if x is None or (name == "D" and _where(x) == _where(c)):
            continue
        if np.may_share_memory(c, x, max_work=1 << 16):  # if that is hard to say, yes
            yield name


def _where(x: _Host) -> tuple[Any, ...]:
    return x.ctypes.data, x.shape, x.strides


def _overlaps_itself(x: _Host) -> bool:
    """Whether two indices name one element; sure of it where each dimension steps over all that the smaller steps reach."""
    reach = x.itemsize
    for step, size in sorted((abs(step), size) for step, size in zip(x.strides, x.shape) if size > 1):
        if step < reach:
            return x.size > 0
        reach = step * (size - 1) + reach
    return False


def _sums_of(dtype: np.dtype[Any]) -> np.dtype[Any]:
    if dtype.name == "int8":
        return np.dtype(np.int32)
    return np.dtype(np.float32) if dtype.name in ("float16", "bfloat16", *_float8) else dtype


def _need_matrices(who: str, **shapes: tuple[int, ...]) -> None:
    for name, shape in shapes.items():
        if len(shape) < 2:
            raise ValueError(f"{who}: {name} is {shape} and must have two dimensions or more; matmul() takes vectors")


def _terms(
    who: str,
    alpha: complex = 1,
    beta: complex = 0,
    op_a: str = "N",
    op_b: str = "N",
    activation: str | tuple[Any, ...] | None = None,
    *,
    kernel: str | None,
    split_k: int = 0,
    precision: str,
) -> _core.Terms:
    """What a product is beside its operands. What is of a wrong type is named."""
    try:
        return _core.Terms(alpha, beta, op_a, op_b, activation, kernel, split_k, precision)
    except (TypeError, RuntimeError) as error:  # what pybind11 says names nothing
        for name, value, kinds, wanted in (
            ("alpha", alpha, numbers.Complex, "a number"),
            ("beta", beta, numbers.Complex, "a number"),
            ("the activation", activation, (str, tuple, type(None)), "a name, a tuple or None"),
            ("the kernel", kernel, (str, type(None)), "a name or None"),
            ("split_k", split_k, numbers.Integral, "a whole number"),
            ("the precision", precision, str, "one of 'fast', 'standard', 'extended' and 'reproducible'"),
        ):
            if not isinstance(value, kinds):  # type: ignore[arg-type]
                raise TypeError(f"{who}: {name} is {value!r} and must be {wanted}") from None
        raise error


def _apply_op(who: str, op: str, x: Any, transpose: Any) -> tuple[str, Any]:
    """The op that is left to the library, and its operand: a transpose is said by strides."""
    if op not in ("N", "T", "C"):
        raise ValueError(f"{who}: an op is '{op}' and must be 'N', 'T' or 'C'")
    if op == "T" or (op == "C" and np.dtype(x.dtype).kind != "c"):
        return "N", transpose(x)
    return op, x


def _engine_for(who: str, engine: Engine | None) -> Engine:
    if engine is not None and not isinstance(engine, Engine):
        raise TypeError(f"{who}: the engine is {engine!r} and must be an Engine; stream() takes Accelerators")
    return engine or default_engine()


def _service_of(who: str, engine: Engine | None, *arrays: Any) -> _core.Service:
    services = [_core.engine_of(x) for x in arrays if isinstance(x, _core.Array)]
    if engine is not None:
        services.insert(0, _engine_for(who, engine)._service)
    if any(service is not services[0] for service in services):
        raise ValueError(f"{who}: the arrays belong to different engines")
    return services[0]


def _on_device(service: _core.Service, x: Any) -> _core.Array:
    return x if isinstance(x, _core.Array) else service.upload(native(as_numpy(x)))


def _device_out(name: str, out: Any) -> _core.Array | None:
    if out is not None and not isinstance(out, _core.Array):
        raise TypeError(f"{name} is a {type(out).__name__}, and a product of device arrays needs an Array")
    return out
