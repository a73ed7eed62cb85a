"""convolve, at once and as a job."""

from __future__ import annotations

from typing import Any, Literal, Sequence

import numpy as np
import numpy.typing as npt

from . import _core
from ._arrays import as_numpy, native, native_type, operation
from ._engine import Engine
from ._products import Precision, _engine_for, _is_on_device, _on_device, _service_of, check_out
from ._weights import Quantized

Layout = Literal["nhwc", "nchw"]
FilterLayout = Literal["ohwi", "oihw", "hwio"]
PaddingName = Literal["valid", "same_upper", "same_lower"]


@operation
def convolve(
    x: Any,
    w: Any,
    bias: Any = None,
    *,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int | Sequence[int]] | PaddingName = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    layout: Layout = "nhwc",
    filter_layout: FilterLayout = "ohwi",
    output_layout: Layout | None = None,
    transposed: bool = False,
    output_padding: int | Sequence[int] = 0,
    filter_size: Sequence[int] | None = None,
    alpha: complex = 1,
    residual: Any = None,
    activation: str | tuple[Any, ...] | None = None,
    out: Any = None,
    dtype: npt.DTypeLike = None,
    engine: Engine | None = None,
    kernel: str | None = None,
    split_k: int = 0,
    precision: Precision = "standard",
) -> Any:
    """activation(alpha x * w + residual + bias): a convolution as networks mean it, of images with one to three dimensions.

    x               images: (batch, height, width, channels), or with layout='nchw' (batch, channels, height, width). With
                    one dimension there is no height; with three, a depth comes before it
    w               filters: (output channels, height, width, input channels / groups) with 'ohwi'; 'oihw' is PyTorch's and
                    ONNX's order, 'hwio' TensorFlow's
    bias            (output channels,)
    padding         how many zeros are added on both sides: a number, one for each dimension, or pairs (before, after); 'valid' is
                    none, 'same_upper' (TensorFlow's SAME) and 'same_lower' give the output ceil(size / stride) elements
    dilation        the distance of a filter's neighbours in the image; 1 is a dense filter
    groups          the channels are cut into so many, and each group is convolved apart
    output_layout   of the result, by default as x
    transposed      the gradient of a convolution of the result: O then counts the channels of x, I the channels of the result in a group
    output_padding  of a transposed one: how much larger the result is than the least that fits, below the stride
    filter_size     of quantised filters, which are a matrix with a row for each output channel: quantize(w.reshape(len(w), -1), ...)
    residual        is added; of the result's shape

    Types are as for gemm(). All arrays are NumPy's, then the result is; or x or w is an Array, then it is an Array. `out` is
    written and returned. For what is raised see matmul().

    >>> import numpy as np
    >>> import glgemm
    >>> image = np.arange(16, dtype=np.float32).reshape(1, 4, 4, 1)
    >>> blur = np.full((1, 3, 3, 1), 1 / 9, np.float32)
    >>> glgemm.convolve(image, blur, padding="same_upper", activation="relu")[0, 1:3, 1:3, 0].round(3)
    array([[ 5.,  6.],
           [ 9., 10.]], dtype=float32)
    """
    how = _how(
        "convolve", x, stride, padding, dilation, groups, layout, filter_layout, output_layout, transposed, output_padding, filter_size
    )
    terms = _core.Terms("convolve", alpha, activation=activation, kernel=kernel, split_k=split_k, precision=precision)
    on_device = _is_on_device(x, w, bias, residual, out)
    if on_device:
        service = _service_for("convolve", engine, x, w, bias, residual, out)
    else:
        service = _engine_for("convolve", engine)._service
    wanted = native_type(dtype) if on_device or out is None else out.dtype
    c = _core.convolve(terms, how, *_brought(service, x, w, out if on_device else None, bias, residual), wanted)
    if on_device:
        return c
    if out is None:
        return c.numpy()
    check_out("convolve: out", out, c.shape)
    out[...] = c.numpy()
    return out


@operation
def start_convolve(
    engine: Engine,
    x: Any,
    w: Any,
    bias: Any = None,
    *,
    alpha: complex = 1,
    residual: Any = None,
    activation: str | tuple[Any, ...] | None = None,
    out: Any = None,
    dtype: npt.DTypeLike = None,
    kernel: str | None = None,
    split_k: int = 0,
    precision: Precision = "standard",
    **how: Any,
) -> _core.Job:
    """Engine.start_convolve()."""
    who = "start_convolve"
    terms = _core.Terms(who, alpha, activation=activation, kernel=kernel, split_k=split_k, precision=precision)
    service = _service_for(who, engine, x, w, bias, residual, out)
    return _core.start_convolve(terms, _how(who, x, **how), *_brought(service, x, w, out, bias, residual), native_type(dtype))


def _service_for(who: str, engine: Engine | None, x: Any, w: Any, bias: Any, residual: Any, out: Any) -> _core.Service:
    """That of arrays on the device."""
    if out is not None and not isinstance(out, _core.Array):
        raise TypeError(f"{who}: out is a {type(out).__name__}, and a convolution of device arrays needs an Array")
    return _service_of(who, engine, x, w, bias, residual, out)


def _brought(service: _core.Service, x: Any, w: Any, out: Any, bias: Any, residual: Any) -> tuple[Any, Any, Any, Any, Any]:
    """The arrays on the device."""

    def bring(given: Any) -> Any:
        return _on_device(service, given if isinstance(given, (_core.Array, Quantized)) else native(as_numpy(given)))

    values, d = (None if given is None else bring(given) for given in (bias, residual))
    return bring(x), bring(w), out, values, d


def _how(
    who: str,
    x: Any,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
    layout: Layout = "nhwc",
    filter_layout: FilterLayout = "ohwi",
    output_layout: Layout | None = None,
    transposed: bool = False,
    output_padding: Any = 0,
    filter_size: Sequence[int] | None = None,
) -> _core.ConvolutionTerms:
    n = np.ndim(x) - 2
    if not 1 <= n <= 3:
        raise ValueError(f"{who}: x is {np.shape(x) or repr(x)} and must have a batch, channels, and one to three dimensions of images")
    kind, before, after = _padding(who, padding, n)
    return _core.ConvolutionTerms(
        who,
        _each(stride, n),
        _each(dilation, n),
        kind,
        before,
        after,
        groups,
        layout,
        filter_layout,
        layout if output_layout is None else output_layout,
        bool(transposed),
        _each(output_padding, n),
        () if filter_size is None else _each(filter_size, n),
    )


def _each(given: Any, n: int) -> Any:
    """One for each dimension, where there is one for all."""
    return [given] * n if isinstance(given, (int, np.integer)) else given


def _padding(who: str, given: Any, n: int) -> tuple[str, Sequence[Any], Sequence[Any]]:
    """The kind of padding, and what is added before and behind in each dimension."""
    if isinstance(given, str):
        return given, (), ()
    try:
        before, after = zip(*((first, last) for first, last in (_each(side, 2) for side in _each(given, n))))
    except (TypeError, ValueError):
        words = "must be a name, a whole number, or one or a pair of them for each dimension"
        raise ValueError(f"{who}: the padding is {given!r} and {words}") from None
    return "given", before, after
