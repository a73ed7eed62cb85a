"""mlp, at once and as a job."""

from __future__ import annotations

from typing import Any, Callable, NamedTuple, Sequence

import numpy as np
import numpy.typing as npt

from . import _core
from ._arrays import as_numpy, native, native_type, operation
from ._engine import Engine
from ._products import Precision, _check_device_out, _engine_for, _is_on_device, _on_device, _returned, _service_of, check_out, types_of_c
from ._weights import Quantized


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
) -> Any:
    """A network of fully connected layers. Where they are narrow enough, one dispatch of the device runs several of them.

    x          (samples, inputs); the result is (samples, outputs)
    layers     1 to 16 of them, the first one first: each a Layer, or a tuple (weights, bias, activation) or a part of one
    out        is written and returned
    dtype      of the result: by default the type of x and all weights if they have one, else the type of the last layer's sums
    precision  as in matmul()

    Weights and x are of types whose products are summed in one type, and so are weights and that type: floats of 32, 16 and 8 bits,
    which are summed in float32. What a layer gives to the next one is of that type, and its bias too; the last bias is of the
    result's type. A bias in NumPy's memory may be of a narrower type. All arrays are NumPy's, then the result is; or one is an Array,
    then it is an Array. For what is raised see matmul(); the words have the number of the layer, from 0 on.

    >>> import numpy as np
    >>> import glgemm
    >>> first = glgemm.Layer(np.float32([[1, 1], [1, -1]]), np.float32([0, 1]), "relu")
    >>> glgemm.mlp(np.float32([[1, 2], [3, 0]]), [first, (np.float32([[1, 10]]),)])
    array([[ 3.],
           [43.]], dtype=float32)
    """
    given = _layers("mlp", layers)
    arrays = [x, out, *(array for layer in given for array in layer[:2])]
    on_device = _is_on_device(*arrays)
    if on_device:
        _check_device_out("mlp: out", out)
    service = _service_of("mlp", engine, *arrays) if on_device else _engine_for("mlp", engine)._service
    y = _core.mlp(*_ready("mlp", service, x, given, out, dtype, precision))
    return y if on_device else _returned(y.numpy(), out)


@operation
def start_mlp(
    engine: Engine, x: Any, layers: Sequence[tuple[Any, ...]], *, out: Any = None, dtype: npt.DTypeLike = None, precision: Precision = "standard"
) -> _core.Job:
    """Engine.start_mlp()."""
    given = _layers("start_mlp", layers)
    service = _service_of("start_mlp", engine, x, out, *(array for layer in given for array in layer[:2]))
    _check_device_out("start_mlp: out", out)
    return _core.start_mlp(*_ready("start_mlp", service, x, given, out, dtype, precision))


def _layers(who: str, given: Sequence[tuple[Any, ...]]) -> list[Layer]:
    for number, layer in enumerate(given):
        if not isinstance(layer, tuple) or not 1 <= len(layer) <= 3:
            words = "must be a Layer, or a tuple of weights, a bias and an activation"
            raise TypeError(f"{who}: layer {number} is a {type(layer).__name__} and {words}")
    if len(given) == 0:
        raise ValueError(f"{who}: there are no layers")
    return [Layer(*layer) for layer in given]


def _ready(
    who: str, service: _core.Service, x: Any, layers: Sequence[Layer], out: Any, dtype: npt.DTypeLike, precision: Precision
) -> tuple[Any, ...]:
    """What the extension takes: the arrays are on the device, and shapes and types go together."""
    x, *weights = map(_native, (x, *(layer.weights for layer in layers)))
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
            bias = _native(bias)
            if bias.shape != (inputs,):
                raise ValueError(f"{name}: the bias is {bias.shape} and must be ({inputs},)")
            if isinstance(bias, np.ndarray) and np.can_cast(bias.dtype, kind):
                bias = native(bias, kind)
            if bias.dtype != kind:
                raise TypeError(f"{name}: the bias is {bias.dtype} and what the layer gives is {kind}")
        biases.append(bias)
    shape, on_c = (x.shape[0], inputs), out if isinstance(out, _core.Array) else None
    if on_c is not None and on_c.shape != shape:
        raise ValueError(f"{who}: the result is {shape} and out is {on_c.shape}")
    if out is not on_c:
        check_out(f"{who}: out", out, shape)
    on: Callable[[Any], Any] = lambda array: None if array is None else _on_device(service, array)
    brought = [(on(w), on(bias), layer.activation) for w, bias, layer in zip(weights, biases, layers)]
    return _core.Terms(who, kernel=None, precision=precision), on(x), brought, on_c, kind


def _native(given: Any) -> Any:
    return given if isinstance(given, (_core.Array, Quantized)) else native(as_numpy(given))
