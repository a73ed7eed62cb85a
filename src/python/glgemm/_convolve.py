"""convolve, at once and as a job."""

from __future__ import annotations

from typing import Any, Literal, Sequence

import numpy as np
import numpy.typing as npt

from . import _core
from ._arrays import native_type, operation
from ._engine import Engine
from ._products import Precision, as_operand, bias_in, check_out, computed_by, default_type_of_c, on_device, service_of, types_of_c

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
    report: _core.Report | None = None,
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

    Types are as for gemm(), and so are the other arguments. Where any of the arrays is an Array, the call is done on its device, and
    the result is an Array, as matmul() says. `out` is written and returned. For what is raised see matmul().

    >>> import numpy as np
    >>> import glgemm
    >>> image = np.arange(16, dtype=np.float32).reshape(1, 4, 4, 1)
    >>> blur = np.full((1, 3, 3, 1), 1 / 9, np.float32)
    >>> glgemm.convolve(image, blur, padding="same_upper", activation="relu")[0, 1:3, 1:3, 0].round(3)
    array([[ 5.,  6.],
           [ 9., 10.]], dtype=float32)
    """
    service, is_there = computed_by("convolve", engine, x, w, bias, residual, out=out)
    how: dict[str, Any] = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups, "layout": layout}
    how |= {"filter_layout": filter_layout, "output_layout": output_layout, "transposed": transposed}
    how |= {"output_padding": output_padding, "filter_size": filter_size, "alpha": alpha, "residual": residual}
    how |= {"activation": activation, "out": out, "dtype": dtype, "kernel": kernel, "split_k": split_k, "precision": precision}
    c = _work("convolve", service, x, w, bias, told=report, **how).run()
    if is_there:
        return c
    if out is None:
        return c.numpy()
    check_out("convolve: out", out, c.shape)
    out[...] = c.numpy()
    return out


@operation
def start_convolve(engine: Engine, x: Any, w: Any, bias: Any = None, *, residual: Any = None, out: Any = None, **how: Any) -> _core.Job:
    """Engine.start_convolve()."""
    service = service_of("start_convolve", engine, x, w, bias, residual, out=out)
    return _work("start_convolve", service, x, w, bias, residual=residual, out=out, **how).start()


@operation
def prepare_convolve(engine: Engine, x: Any, w: Any, bias: Any = None, *, residual: Any = None, out: Any = None, **how: Any) -> None:
    """Engine.prepare_convolve()."""
    service = service_of("prepare_convolve", engine, x, w, bias, residual, out=out)
    _work("prepare_convolve", service, x, w, bias, residual=residual, out=out, **how).prepare()


def explain_convolve(
    x: Any, w: Any, bias: Any = None, *, engine: Engine | None = None, residual: Any = None, out: Any = None, **how: Any
) -> str:
    """What convolve() would do with these arguments, in lines of text, as explain() tells it of matmul().

    >>> import numpy as np
    >>> import glgemm
    >>> image, filters = np.ones((1, 8, 8, 4), np.float32), np.ones((2, 3, 3, 4), np.float32)
    >>> for line in glgemm.explain_convolve(image, filters).splitlines()[:3]:
    ...     print(line)
    x: (1, 8, 8, 4) float32, on the device
    w: (2, 3, 3, 4) float32, on the device
    runs: 1 piece of at most 1 image and 6 rows of output
    """
    service, _ = computed_by("explain_convolve", engine, x, w, bias, residual, out=out)
    return _work("explain_convolve", service, x, w, bias, residual=residual, out=out, **how).explain()


def _work(
    who: str,
    service: _core.Service,
    x: Any,
    w: Any,
    bias: Any,
    *,
    alpha: complex = 1,
    residual: Any = None,
    activation: str | tuple[Any, ...] | None = None,
    out: Any = None,
    dtype: npt.DTypeLike = None,
    kernel: str | None = None,
    split_k: int = 0,
    precision: Precision = "standard",
    told: _core.Report | None = None,
    **how: Any,
) -> _core.Work:
    """A convolution with convolve()'s arguments on the device. An `out` in the host's memory says the type alone."""
    x, w = as_operand(x), as_operand(w)
    named = _how(who, x.shape, **how)
    terms = _core.Terms(who, alpha, activation=activation, kernel=kernel, split_k=split_k, precision=precision, report=told)
    images, filters = on_device(service, x), on_device(service, w)
    kind = native_type(getattr(out, "dtype", dtype))
    values, d = (None if each is None else as_operand(each) for each in (bias, residual))
    if types_of_c(images.dtype, filters.dtype):  # else the extension says what is wrong
        values = bias_in(kind or default_type_of_c(images.dtype, filters.dtype), values)
    values, d = (None if each is None else on_device(service, each) for each in (values, d))
    into = out if isinstance(out, _core.Array) else None
    return _core.convolution(terms, named, images, filters, into, values, d, kind)


def _how(
    who: str,
    shape: tuple[int, ...],
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
    n = len(shape) - 2
    if not 1 <= n <= 3:
        raise ValueError(f"{who}: x is {shape} and must have a batch, channels, and one to three dimensions of images")
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
