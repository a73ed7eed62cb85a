"""matmul, gemm and explain."""

from __future__ import annotations

from typing import Any, Callable, Iterator, Literal, Sequence

import numpy as np
import numpy.typing as npt

from . import _core
from ._arrays import as_numpy, native, native_type, operation, refuse_mask
from ._engine import Engine, default_engine
from ._weights import Quantized

_Host = npt.NDArray[Any]
Precision = Literal["standard", "fast", "extended", "reproducible"]


@operation
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
    report: _core.Report | None = None,
) -> Any:
    """The matrix product of two arrays, as numpy.matmul.

    Vectors, batches that are broadcast, zero sizes, strides of all kinds, types that are promoted, and `out` are as in NumPy.
    Transposed and padded matrices, and batches of them, are read where they lie; what no leading dimension can say is copied
    once (explain() tells). Products of NumPy arrays are computed on `engine`, by default the default_engine(). Products that do
    not fit the device are streamed.

    Types: bool, integers of 8 to 32 bits, floats of 16 to 64 bits, complex64, complex128, and of ml_dtypes bfloat16 and the floats
    of 8 bits. Integers wrap as NumPy's do. Floats of 16 bits are summed in float32 and rounded once. Floats of 8 bits give float32.
    With dtype=numpy.int32, int8 gives its sums without wrapping; with dtype=numpy.float32, narrower floats give their sums
    unrounded. A wider `out` alone does neither. Masked arrays are refused, since a product has no mask. Floats of 32, 16 and 8 bits
    are multiplied with each other as they are, and so are int8 and uint8; the result has NumPy's common type, or float32 where
    NumPy has none. What else is of two types is converted on the host.

    Where any array of a call is an Array, the call is done on that array's device: the result is an Array, `out` must be one, and
    the other arrays are copied there; nothing is converted. There int8 gives int32, and floats of two types give float32. Where
    none is, the result is NumPy's. One of `a` and `b` may be quantised, an Array or a Quantized.

    kernel, split_k: how the product runs, as in `glgemm inspect`. report: a Report, which tells what ran, and how long it took.
    precision: how exactly it is summed. 'standard': as is fastest; 'reproducible': with the same bits on every driver, however the
    product is cut; 'extended': with an error of at most 4 u |a| |b|, u the unit roundoff of the sums; 'fast': a vendor's library may
    round float32 elements to 10 bits of fraction first, and where shaders multiply it is 'standard'.

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
    how: dict[str, Any] = {"kernel": kernel, "precision": precision, "report": report}
    if is_on_device(a, b, out):
        service, terms = service_of("matmul", engine, a, b, out=out), _core.Terms("matmul", split_k=split_k, **how)
        return _core.product(terms, on_device(service, a), on_device(service, b), out, dtype=native_type(dtype)).run()
    if isinstance(a, Quantized) or isinstance(b, Quantized):
        if streams := _streams("matmul", engine, a, b):
            return returned(streams(a, b, dtype=dtype, **how), out)
        x, y, on_c = _brought("matmul", engine, a, b, out)
        c = matmul(x, y, on_c, dtype=dtype, split_k=split_k, **how).numpy()
        return returned(c if c.ndim else c[()], out)
    plan = _HostMatmul("matmul", a, b, out, dtype)
    terms = _core.Terms("matmul", split_k=split_k, **how)
    if plan.c.size:
        _multiply(engine_for("matmul", engine), terms, plan.a, plan.b, plan.c)
    return plan.result()


@operation
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
    report: _core.Report | None = None,
) -> Any:
    """C = activation(alpha op(A) op(B) + beta C + D + bias) of matrices or of batches of them; returns C.

    c           is overwritten, and read unless beta is 0. None: a new array, and beta must be 0
    bias        (n,): an element for each column of C; (m, 1): one for each row
    residual    D, of C's shape
    activation  'relu', 'gelu_erf', 'gelu_tanh', 'sigmoid', 'tanh', 'silu', 'hard_swish', 'softplus', 'exponential',
                ('leaky_relu', slope), ('clamp', low, high) or ('sine', factor)
    op_a, op_b  'N': none, 'T': transposed, 'C': transposed and conjugate
    dtype       of a new C
    kernel, split_k, precision, report
                as in matmul()

    A and B are of types whose products are summed in one type: that one, which is float32 for narrower floats and int32 for int8.
    One of them may be quantised. C, D and the bias are of the type of the sums, or where A or B is of 16-bit floats of that type:
    by default the type of A and B if they have one, else the type of the sums. A bias in the host's memory may be of a narrower
    type. Where any of the arrays is an Array, the call is done on its device, and C is an Array, as matmul() says. For what is
    raised see there.

    >>> import numpy as np
    >>> import glgemm
    >>> a, b = np.float32([[1, -2], [3, 4]]), np.eye(2, dtype=np.float32)
    >>> glgemm.gemm(2, a, b, bias=np.float32([1, 1]), activation="relu")
    array([[3., 0.],
           [7., 9.]], dtype=float32)
    """
    how: dict[str, Any] = {"bias": bias, "activation": activation, "residual": residual, "op_a": op_a, "op_b": op_b, "dtype": dtype}
    how |= {"kernel": kernel, "precision": precision}
    if is_on_device(a, b, c, bias, residual):
        return _work("gemm", engine, alpha, a, b, beta, c, split_k=split_k, told=report, **how).run()
    need_c("gemm", beta, c)
    if isinstance(a, Quantized) or isinstance(b, Quantized):
        how |= {"report": report}
        if streams := _streams("gemm", engine, a, b):
            return returned(streams(a, b, alpha=alpha, beta=beta, out=None if c is None else c.copy(), **how), c)
        x, y, on_c = _brought("gemm", engine, a, b, c)
        return returned(gemm(alpha, x, y, beta, on_c, split_k=split_k, **how).numpy(), c)
    product, terms, c_type = _ready("gemm", None, alpha, a, b, beta, c, split_k=split_k, told=report, **how)
    c = np.empty(product.shape, c_type) if c is None else c
    if c.size:
        _multiply(engine_for("gemm", engine), terms, product.a, product.b, c, product.bias, product.residual)
    return c


@operation
def start(engine: Engine, alpha: complex, a: Any, b: Any, beta: complex = 0, c: Any = None, **options: Any) -> _core.Job:
    """Engine.start()."""
    return _work("start", engine, alpha, a, b, beta, c, **options).start()


@operation
def prepare(engine: Engine, alpha: complex, a: Any, b: Any, beta: complex = 0, c: Any = None, **options: Any) -> None:
    """Engine.prepare()."""
    _work("prepare", engine, alpha, a, b, beta, c, **options).prepare()


def _work(who: str, engine: Engine | None, alpha: complex, a: Any, b: Any, beta: complex, c: Any, **options: Any) -> _core.Work:
    """A product with gemm()'s arguments on the device."""
    need_c(who, beta, c)
    service = service_of(who, engine, a, b, options.get("bias"), options.get("residual"), out=c, name="C")
    product, terms, c_type = _ready(who, service, alpha, a, b, beta, c, **options)
    return _core.product(terms, product.a, product.b, c, product.bias, product.residual, dtype=c_type)


def _ready(
    who: str,
    service: _core.Service | None,
    alpha: complex,
    a: Any,
    b: Any,
    beta: complex,
    c: Any,
    *,
    bias: Any = None,
    activation: str | tuple[Any, ...] | None = None,
    residual: Any = None,
    op_a: str = "N",
    op_b: str = "N",
    dtype: npt.DTypeLike = None,
    kernel: str | None = None,
    split_k: int = 0,
    precision: Precision = "standard",
    told: _core.Report | None = None,
) -> tuple[Gemm, _core.Terms, np.dtype[Any]]:
    """The operands of gemm(), start() or prepare(), on the device if there is one, checked; the terms; and the type of C."""
    bring: Callable[[Any], Any] = lambda one: on_device(service, one) if service else native(as_numpy(one))
    d = None if residual is None else bring(residual)
    if bias is not None:  # which is brought in C's type
        bias = bring(bias) if isinstance(bias, Quantized) else as_operand(bias)
    product = Gemm(who, bring(a), bring(b), bias, d, op_a, op_b)
    if c is not None and not service:
        check_out(f"{who}: C", c, product.shape)
    c_type = product.type_of_c(c, dtype)
    product.bias = None if bias is None else bring(product.bias)
    how: dict[str, Any] = {"kernel": kernel, "split_k": split_k, "precision": precision, "report": told}
    return product, _core.Terms(who, alpha, beta, product.op_a, product.op_b, activation, **how), c_type


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
    """What matmul() would do, in lines of text: conversions, copies, the kernel, memory. Nothing is promised of the words.

    >>> import numpy as np
    >>> import glgemm
    >>> a = np.ones((8, 6), np.float32)
    >>> print(glgemm.explain(a.T, a[:, ::2]).splitlines()[0])
    A: (6, 8) float32, no copy on the host: column-major, ld 6
    >>> print(glgemm.explain(a.T, a[:, ::2]).splitlines()[1])
    B: (8, 3) float32, copied on the host first: neither op nor ld says its strides of (24, 8) bytes
    """
    service, is_there = computed_by("explain", engine, a, b, out=out)
    terms = _core.Terms("explain", kernel=kernel, split_k=split_k, precision=precision)
    if is_there or isinstance(a, Quantized) or isinstance(b, Quantized):
        into = out if is_there else None
        return _core.product(terms, on_device(service, a), on_device(service, b), into, dtype=native_type(dtype)).explain()
    plan = _HostMatmul("explain", a, b, out, dtype)
    if plan.c.size == 0:
        return "nothing: the result has no elements\n"
    engine = engine_for("explain", engine)
    notes = "".join(
        f"{name} is converted on the host from {was.dtype} to {now.dtype}\n"
        for name, was, now in (("A", as_numpy(a), plan.a), ("B", as_numpy(b), plan.b), ("C", plan.c, plan.returned))
        if was.dtype != now.dtype
    )
    if not engine._fits(plan.a.nbytes + plan.b.nbytes + plan.c.nbytes):
        return notes + "streamed: the matrices do not fit the device\n"
    return engine._service.explain(_core.HostProduct(plan.a, plan.b, plan.c), terms) + notes


class _HostMatmul:
    """A product of NumPy arrays, ready for the device: a, b and c have two dimensions at least, and types that go together."""

    a: _Host
    b: _Host
    c: _Host
    returned: _Host  # C is copied to it; it has C's dimensions

    def __init__(self, who: str, a: Any, b: Any, out: Any, dtype: npt.DTypeLike) -> None:
        x, y = as_numpy(a), as_numpy(b)
        for name, operand in (("first", x), ("second", y)):
            if operand.ndim == 0:
                raise ValueError(f"{who}: the {name} operand is a scalar, which has no matrix product")
        self.row, self.column = x.ndim == 1, y.ndim == 1
        x, y = x[None, :] if self.row else x, y[:, None] if self.column else y
        if x.shape[-1] != y.shape[-2]:
            raise ValueError(f"{who}: A is {np.shape(a)} and B is {np.shape(b)}: the inner sizes {x.shape[-1]} and {y.shape[-2]} differ")
        shape = (*_broadcast(who, x.shape[:-2], y.shape[:-2]), x.shape[-2], y.shape[-1])
        self._choose_types(who, x.dtype, y.dtype, native_type(dtype))
        self.a, self.b = (native(operand, wanted) for operand, wanted in zip((x, y), self.computed))
        self.out = out
        if out is not None:
            kept = shape[:-2] + (() if self.row else shape[-2:-1]) + (() if self.column else shape[-1:])
            check_out(f"{who}: out", out, kept)
            if not np.can_cast(self.dtype, out.dtype, "same_kind"):
                raise TypeError(f"{who}: a product of {self.dtype} is not written to an out of {out.dtype}")
            self.returned = self._with(None, out) if self.row or self.column else out
        # Sums that are wider than the result wrap on their way to `out`, even to one of their own type.
        direct = out is not None and out.dtype == self.sums == self.dtype
        self.c = self.returned if direct else np.empty(shape, self.sums)
        if out is None:
            self.returned = self.c if self.dtype == self.sums else np.empty(shape, self.dtype)

    def _choose_types(self, who: str, a: np.dtype[Any], b: np.dtype[Any], wanted: np.dtype[Any] | None) -> None:
        """Chooses the type of the result, and the types that A and B, and C, have on the device."""
        for name, given in (("A", a), ("B", b)):
            if wanted is not None and not np.can_cast(given, wanted, "same_kind"):
                raise TypeError(f"{who}: {name} is {given}, which is not converted to {wanted}")
        mixed = types_of_c(a, b) if a.name != b.name else ()
        common = _common_type(a, b, mixed)
        if mixed and (wanted is None or wanted in (common, *mixed)):
            self.dtype = wanted or common
            self.computed = native_type(a), native_type(b)
            self.sums = self.dtype if self.dtype in mixed else mixed[-1]
            return
        of_common = types_of_c(common)
        is_kept = common.kind in "biu" or common in of_common or not of_common  # NumPy gives the common type too
        self.dtype = wanted or (common if is_kept else of_common[-1])
        # Narrow A and B are not widened if the result has their type or the type of their sums.
        is_narrow = bool(of_common) and self.dtype in (common, of_common[-1])
        computed = common if is_narrow else _computed_in(self.dtype)
        self.computed = computed, computed
        of_computed = types_of_c(computed)
        if not of_computed:
            raise TypeError(f"{who}: glgemm has no products of {self.dtype}: convert the operands, or name a dtype")
        self.sums = self.dtype if self.dtype in of_computed else of_computed[-1]

    def result(self) -> Any:
        """What matmul returns."""
        if self.c is not self.returned:
            if self.dtype == np.bool_:
                np.not_equal(self.c, 0, out=self.returned, casting="same_kind")
            else:
                np.copyto(self.returned, self.c.astype(self.dtype, copy=False), "same_kind")
        if self.out is not None:
            return self.out
        c = self._with(0, self.returned) if self.row or self.column else self.returned
        return c[()] if c.ndim == 0 else c

    def _with(self, key: int | None, x: _Host) -> _Host:
        """`x` with that index in place of the dimensions that vectors have not."""
        every = slice(None)
        return x[(..., key if self.row else every, key if self.column else every)]


class Gemm:
    """What gemm() and stream() check of arrays: alpha op(A) op(B) + beta C + D + bias."""

    def __init__(self, who: str, a: Any, b: Any, bias: Any, residual: Any, op_a: str, op_b: str) -> None:
        if not a.dtype.isnative or not b.dtype.isnative or not types_of_c(a.dtype, b.dtype):
            words = "they must be of types that glgemm has, whose products are summed in one type; nothing is converted"
            raise TypeError(f"{who}: A is {a.dtype} and B is {b.dtype}: {words}")
        self.who = who
        self.op_a, self.a = apply_op(who, "A", op_a, a)
        self.op_b, self.b = apply_op(who, "B", op_b, b)
        m, k = self.a.shape[-2:] if self.op_a == "N" else self.a.shape[:-3:-1]
        inner, n = self.b.shape[-2:] if self.op_b == "N" else self.b.shape[:-3:-1]
        if k != inner:
            raise ValueError(f"{who}: op(A) is {m}x{k} and op(B) is {inner}x{n}: the inner sizes {k} and {inner} differ")
        self.shape = (*_broadcast(who, self.a.shape[:-2], self.b.shape[:-2]), m, n)
        self.residual = residual
        self.bias = bias[None, :] if bias is not None and bias.ndim == 1 else bias
        if self.bias is not None and self.bias.shape not in ((1, n), (m, 1)):
            words = f"a bias is ({n},), for columns, or ({m}, 1), for rows"
            raise ValueError(f"{who}: the bias is {bias.shape} and C is {self.shape}: {words}")
        if residual is not None and residual.shape != self.shape:
            raise ValueError(f"{who}: C is {self.shape} and D is {residual.shape}")

    def type_of_c(self, c: Any, dtype: npt.DTypeLike) -> np.dtype[Any]:
        """That of C, where there is one, else what is wanted."""
        kind: np.dtype[Any] = c.dtype if c is not None else native_type(dtype) or default_type_of_c(self.a.dtype, self.b.dtype)
        self.check_types(kind)
        return kind

    def check_types(self, c: np.dtype[Any]) -> None:
        """Whether C, the bias and D go with A and B."""
        a, b = self.a.dtype, self.b.dtype
        possible = types_of_c(a, b)
        if c not in possible:
            raise TypeError(f"{self.who}: C is {c}, and products of {a if a == b else f'{a} and {b}'} are summed in {possible[-1]}")
        self.bias = bias_in(c, self.bias)
        for name, array in (("the bias", self.bias), ("D", self.residual)):
            if array is not None and array.dtype != c:
                raise TypeError(f"{self.who}: {name} is {array.dtype} and C is {c}")


def bias_in(kind: np.dtype[Any], bias: Any) -> Any:
    """A bias in the host's memory in the type of what it is added to, where that holds all of its own type's numbers."""
    return native(bias, kind) if isinstance(bias, np.ndarray) and np.can_cast(bias.dtype, kind) else bias


def _multiply(
    engine: Engine, terms: _core.Terms, a: _Host, b: _Host, c: _Host, bias: _Host | None = None, residual: _Host | None = None
) -> None:
    """The product on the device; streamed, matrix by matrix, if it does not fit."""
    if engine._fits(sum(x.nbytes for x in (a, b, c, bias, residual) if x is not None)):
        return engine._service.multiply(_core.HostProduct(a, b, c, bias, residual), terms)
    into = np.empty(c.shape, c.dtype) if any(overlapping(c, a=a, b=b, bias=bias, residual=residual)) else c
    if into is not c:
        into[...] = c
    batch = c.shape[:-2]
    a = np.broadcast_to(a, (*batch, *a.shape[-2:]))
    b = np.broadcast_to(b, (*batch, *b.shape[-2:]))
    for item in np.ndindex(*batch):
        d = None if residual is None else residual[item]
        engine._service.stream(_core.HostProduct(a[item], b[item], into[item], bias, d), terms, _core.StreamTerms())
    if into is not c:
        c[...] = into


def _broadcast(who: str, a: Sequence[int], b: Sequence[int]) -> tuple[int, ...]:
    try:
        return np.broadcast_shapes(tuple(a), tuple(b))
    except ValueError:
        raise ValueError(f"{who}: the batches {tuple(a)} of A and {tuple(b)} of B cannot be broadcast together") from None


def check_out(name: str, out: Any, shape: tuple[int, ...]) -> None:
    refuse_mask(out)
    if not isinstance(out, np.ndarray):
        raise TypeError(f"{name} is a {type(out).__name__} and must be a NumPy array")
    if out.shape != shape:
        raise ValueError(f"{name} is {out.shape} and the product is {shape}: out is not broadcast (non-broadcastable)")
    if not out.flags.writeable:
        raise ValueError(f"{name} is read-only")
    if _overlaps_itself(out):
        raise ValueError(f"{name} has elements that share memory")


def overlapping(c: _Host, *, a: _Host, b: _Host, bias: _Host | None, residual: _Host | None) -> Iterator[str]:
    """The operands that share memory with C and so would be overwritten before they are read. D may be C itself."""
    for name, x in (("A", a), ("B", b), ("the bias", bias), ("D", residual)):
        if x is None or (name == "D" and _where(x) == _where(c)):
            continue
        if np.may_share_memory(c, x, max_work=1 << 16):  # where the answer takes long, it is yes
            yield name


def _where(x: _Host) -> tuple[Any, ...]:
    return x.ctypes.data, x.shape, x.strides


def _overlaps_itself(x: _Host) -> bool:
    """Whether two elements share memory."""
    reach = x.itemsize
    for step, size in sorted((abs(step), size) for step, size in zip(x.strides, x.shape) if size > 1):
        if step < reach:
            break
        reach = step * (size - 1) + reach
    else:
        return False  # each dimension steps over all that the smaller steps reach
    # Two that differ in a dimension lie in different halves of it, or so do two in the first half that are as far apart.
    for axis in range(x.ndim):
        x = x.swapaxes(0, axis)
        while len(x) > 1:
            half = (len(x) + 1) // 2
            if np.may_share_memory(x[:half], x[half:], max_work=1 << 20):  # where the answer takes long, it is yes
                return True
            x = x[:half]
        x = x.swapaxes(0, axis)
    return False


def types_of_c(a: np.dtype[Any], b: np.dtype[Any] | None = None) -> tuple[np.dtype[Any], ...]:
    """What C may be where A and B are of these types: the type of the sums last; nothing if glgemm has no such product."""
    return tuple(_core.dtype_of(name) for name in _core.types_of_c.get((a.name, (b or a).name), ()))


def default_type_of_c(a: np.dtype[Any], b: np.dtype[Any]) -> np.dtype[Any]:
    """The type of A and B where they have one and C may have it, else the type of the sums."""
    return types_of_c(a, b)[0 if a.name == b.name else -1]


def _common_type(a: np.dtype[Any], b: np.dtype[Any], mixed: Sequence[np.dtype[Any]]) -> np.dtype[Any]:
    """NumPy's common type, or the type of the sums where it has none."""
    try:
        return np.result_type(a, b).newbyteorder("=")
    except TypeError:
        if not mixed:
            raise
        return mixed[-1]


def _computed_in(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The type in which products of `dtype` are computed: of integers that glgemm has not, the narrowest wider one, which wraps alike."""
    if dtype.kind not in "biu" or types_of_c(dtype):
        return dtype
    wider = (f"{'uint' if dtype.kind == 'u' else 'int'}{bits}" for bits in (8, 16, 32, 64) if bits >= 8 * dtype.itemsize)
    return np.dtype(next((name for name in wider if (name, name) in _core.types_of_c), dtype))


def need_c(who: str, beta: complex, c: Any) -> None:
    if c is None and beta != 0:
        raise ValueError(f"{who}: beta is {beta} and there is no C")


def apply_op(who: str, name: str, op: str, x: Any) -> tuple[str, Any]:
    """The op that is left to the library, and its operand: a transpose is said by strides."""
    if len(x.shape) < 2:
        raise ValueError(f"{who}: {name} is {x.shape} and must have two dimensions or more; matmul() takes vectors")
    if op not in ("N", "T", "C"):
        raise ValueError(f"{who}: an op is '{op}' and must be 'N', 'T' or 'C'")
    if op == "N" or (op == "C" and x.dtype.kind == "c"):
        return op, x
    return "N", x.mT if isinstance(x, _core.Array) else x.swapaxes(-1, -2)


def engine_for(who: str, engine: Engine | None) -> Engine:
    if engine is not None and not isinstance(engine, Engine):
        raise TypeError(f"{who}: the engine is {engine!r} and must be an Engine; stream() takes Accelerators")
    return engine or default_engine()


def is_on_device(*arrays: Any) -> bool:
    """Whether a call with these arrays is done on a device: where any of them is there."""
    return any(isinstance(x, _core.Array) for x in arrays)


def service_of(who: str, engine: Engine | None, *arrays: Any, out: Any = None, name: str = "out") -> _core.Service:
    """That of a call on the device, by the engine or by an array. What is written must be there, too."""
    services = [_core.engine_of(x) for x in (*arrays, out) if isinstance(x, _core.Array)]
    if engine is not None:
        services.insert(0, engine_for(who, engine)._service)
    if any(service is not services[0] for service in services):
        raise ValueError(f"{who}: the arrays belong to different engines")
    if out is not None and not isinstance(out, _core.Array):
        raise TypeError(f"{who}: {name} is a {type(out).__name__}, and a call with arrays on the device needs an Array")
    return services[0]


def computed_by(who: str, engine: Engine | None, *arrays: Any, out: Any = None) -> tuple[_core.Service, bool]:
    """The service that computes a call, and whether the arrays are on its device."""
    if is_on_device(*arrays, out):
        return service_of(who, engine, *arrays, out=out), True
    return engine_for(who, engine)._service, False


def as_operand(x: Any) -> Any:
    """An operand as it is, if it is glgemm's, else as a NumPy array in this machine's byte order."""
    return x if isinstance(x, (_core.Array, Quantized)) else native(as_numpy(x))


def on_device(service: _core.Service, x: Any) -> _core.Array:
    if isinstance(x, Quantized):
        return x._upload(service)
    return x if isinstance(x, _core.Array) else service.upload(as_numpy(x))


def _streams(who: str, engine: Engine | None, a: Any, b: Any) -> Callable[..., Any] | None:
    """What multiplies matrices in the host's memory that do not fit the device, one of them quantised; None for others."""
    target = engine_for(who, engine)
    on_host: Callable[[Any], Any] = lambda given: given if isinstance(given, Quantized) else as_numpy(given)
    x, y = on_host(a), on_host(b)
    if x.ndim != 2 or y.ndim != 2 or not target._service.has_thread or target._fits(x.nbytes + y.nbytes):
        return None
    return lambda *arguments, **named: target.stream(*arguments, progress=False, **named).result()


def _brought(who: str, engine: Engine | None, a: Any, b: Any, c: Any) -> Iterator[Any]:
    """Operands in the host's memory, one of them quantised, on the device; C, where there is one."""
    service = engine_for(who, engine)._service
    if c is not None:
        check_out(f"{who}: {'out' if who == 'matmul' else 'C'}", c, c.shape)
    return (None if x is None else on_device(service, x) for x in (a, b, c))


def returned(made: Any, out: Any) -> Any:
    """The product, in `out` where there is one."""
    if out is None:
        return made
    out[...] = made
    return out
