"""mlp, at once and as a job."""

from __future__ import annotations

from typing import Any, NamedTuple, Sequence

import numpy as np
import numpy.typing as npt

from . import _core
from ._arrays import native_type, operation
from ._engine import Engine
from ._products import Precision, as_operand, bias_in, check_out, computed_by, on_device, returned, service_of, types_of_c


class Layer(NamedTuple):
    """A fully connected layer of mlp(): activation(weights @ sample + bias) of each sample.

    weights     (outputs, inputs), as torch.nn.Linear has them; they can be quantised
    bias        (outputs,)
    activation  as in gemm()
    """

    weights: Any
    bias: Any = None
    activation: str | tuple[Any, ...] | None = None


@operation
def mlp(
    x: Any,
    layers: Sequence[tuple[Any, ...]],
    *,
    out: Any = None,
    dtype: npt.DTypeLike = None,
    engine: Engine | None = None,
    precision: Precision = "standard",
    report: _core.Report | None = None,
) -> Any:
    """A network of fully connected layers. Where they are narrow enough, one dispatch of the device runs several of them.

    x          (samples, inputs); the result is (samples, outputs)
    layers     1 to 16 of them, the first one first: each a Layer, or a tuple (weights, bias, activation) or a part of one
    out        is written and returned
    dtype      of the result: by default the type of x and all weights if they have one, else the type of the last layer's sums
    precision, report
               as in matmul()

    Weights and x are of types whose products are summed in one type, and so are weights and that type: floats of 32, 16 and 8 bits,
    which are summed in float32. What a layer gives to the next one is of that type, and its bias too; the last bias is of the
    result's type. A bias in the host's memory may be of a narrower type. Where any of the arrays is an Array, the call is done on its
    device, and the result is an Array, as matmul() says. For what is raised see there; the words have the layer's number, from 0 on.

    >>> import numpy as np
    >>> import glgemm
    >>> first = glgemm.Layer(np.float32([[1, 1], [1, -1]]), np.float32([0, 1]), "relu")
    >>> glgemm.mlp(np.float32([[1, 2], [3, 0]]), [first, (np.float32([[1, 10]]),)])
    array([[ 3.],
           [43.]], dtype=float32)
    """
    given = _layers("mlp", layers)
    service, is_there = computed_by("mlp", engine, x, *_arrays_of(given), out=out)
    y = _work("mlp", service, x, given, out=out, dtype=dtype, precision=precision, told=report).run()
    return y if is_there else returned(y.numpy(), out)


@operation
def start_mlp(engine: Engine, x: Any, layers: Sequence[tuple[Any, ...]], *, out: Any = None, **how: Any) -> _core.Job:
    """Engine.start_mlp()."""
    given = _layers("start_mlp", layers)
    service = service_of("start_mlp", engine, x, *_arrays_of(given), out=out)
    return _work("start_mlp", service, x, given, out=out, **how).start()


@operation
def prepare_mlp(engine: Engine, x: Any, layers: Sequence[tuple[Any, ...]], *, out: Any = None, **how: Any) -> None:
    """Engine.prepare_mlp()."""
    given = _layers("prepare_mlp", layers)
    service = service_of("prepare_mlp", engine, x, *_arrays_of(given), out=out)
    _work("prepare_mlp", service, x, given, out=out, **how).prepare()


def explain_mlp(x: Any, layers: Sequence[tuple[Any, ...]], *, engine: Engine | None = None, out: Any = None, **how: Any) -> str:
    """What mlp() would do with these arguments, in lines of text, as explain() tells it of matmul(): which layers run together.

    >>> import numpy as np
    >>> import glgemm
    >>> layers = [(np.ones((16, 8), np.float32), None, "relu"), (np.ones((4, 16), np.float32),)]
    >>> print(glgemm.explain_mlp(np.ones((100, 8), np.float32), layers).splitlines()[0])
    x: (100, 8) float32, on the device
    """
    given = _layers("explain_mlp", layers)
    service, _ = computed_by("explain_mlp", engine, x, *_arrays_of(given), out=out)
    return _work("explain_mlp", service, x, given, out=out, **how).explain()


def _arrays_of(layers: Sequence[Layer]) -> list[Any]:
    return [array for layer in layers for array in layer[:2]]


def _layers(who: str, given: Sequence[tuple[Any, ...]]) -> list[Layer]:
    for number, layer in enumerate(given):
        if not isinstance(layer, tuple) or not 1 <= len(layer) <= 3:
            words = "must be a Layer, or a tuple of weights, a bias and an activation"
            raise TypeError(f"{who}: layer {number} is a {type(layer).__name__} and {words}")
    if len(given) == 0:
        raise ValueError(f"{who}: there are no layers")
    return [Layer(*layer) for layer in given]


def _work(
    who: str,
    service: _core.Service,
    x: Any,
    layers: Sequence[Layer],
    *,
    out: Any = None,
    dtype: npt.DTypeLike = None,
    precision: Precision = "standard",
    told: _core.Report | None = None,
) -> _core.Work:
    """A network with mlp()'s arguments on the device, whose shapes and types go together."""
    x, *weights = map(as_operand, (x, *(layer.weights for layer in layers)))
    if x.ndim != 2:
        raise ValueError(f"{who}: x is {x.shape} and must be (samples, inputs)")
    kind, inputs = x.dtype, x.shape[1]
    biases = []
    for number, (w, (_, bias, _)) in enumerate(zip(weights, layers)):
        name = f"{who}: layer {number}"
        if w.ndim != 2 or w.shape[1] != inputs:
            raise ValueError(f"{name}: the weights are {w.shape} and must be (outputs, {inputs})")
        possible, inputs, products = types_of_c(w.dtype, kind), w.shape[0], f"products of {w.dtype} and {kind}"
        if not possible:
            raise TypeError(f"{name}: {products} are not summed in one type, and nothing is converted")
        kind = possible[-1]
        if number == len(layers) - 1:
            common = x.dtype if all(each.dtype == x.dtype for each in weights) else None
            kind = native_type(getattr(out, "dtype", dtype)) or (common if common in possible else kind)
        if kind not in possible:
            raise TypeError(f"{name}: the result is {kind}, and {products} are summed in {possible[-1]}")
        if bias is not None:
            bias = as_operand(bias)
            if bias.shape != (inputs,):
                raise ValueError(f"{name}: the bias is {bias.shape} and must be ({inputs},)")
            bias = bias_in(kind, bias)
            if bias.dtype != kind:
                raise TypeError(f"{name}: the bias is {bias.dtype} and what the layer gives is {kind}")
        biases.append(bias)
    shape, on_c = (x.shape[0], inputs), out if isinstance(out, _core.Array) else None
    if on_c is not None and on_c.shape != shape:
        raise ValueError(f"{who}: the result is {shape} and out is {on_c.shape}")
    if out is not on_c:
        check_out(f"{who}: out", out, shape)
    brought = [
        (on_device(service, w), None if bias is None else on_device(service, bias), layer.activation)
        for w, bias, layer in zip(weights, biases, layers)
    ]
    terms = _core.Terms(who, kernel=None, precision=precision, report=told)
    return _core.network(terms, on_device(service, x), brought, on_c, kind)
