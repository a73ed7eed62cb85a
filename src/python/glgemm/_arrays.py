"""What all other modules build on: NumPy's arrays as operands, and the operations by their names.

Each module imports those before it alone: _arrays, _weights, _engine, _products, _stream, _convolve, _mlp.
"""

from __future__ import annotations

import os
from typing import Any, Callable, TypeVar

import numpy as np
import numpy.typing as npt

_Function = TypeVar("_Function", bound=Callable[..., Any])

# Methods of Engine and Quantized call what later modules define.
operations: dict[str, Callable[..., Any]] = {}


def operation(function: _Function) -> _Function:
    """Makes the function known to the methods of its name."""
    operations[function.__name__] = function
    return function


def as_numpy(x: Any) -> npt.NDArray[Any]:
    """`x` as a NumPy array, without a copy where that can be."""
    refuse_mask(x)
    if isinstance(x, (str, os.PathLike)):
        raise TypeError(f"glgemm: an operand is {x!r}: a file is opened by numpy.load(path, mmap_mode='r')")
    if hasattr(x, "glo"):
        raise TypeError(f"glgemm: an operand is {x!r}: an OpenGL buffer is an array once Engine.wrap() has its shape")
    array = np.from_dlpack(x) if hasattr(x, "__dlpack__") and not hasattr(x, "__array__") else np.asarray(x)
    if array.ndim == 0 and array.dtype.kind in "OSUMm":  # what NumPy makes of None, and of any object that it does not know
        raise TypeError(f"glgemm: an operand is {x!r}, which is no array of numbers")
    return array


def refuse_mask(x: Any) -> None:
    """Raises TypeError for a masked array."""
    if isinstance(x, np.ma.MaskedArray):
        raise TypeError("glgemm: an operand is a masked array, whose mask would be lost: x.filled(0) or x.data say what is meant")


def native(x: npt.NDArray[Any], dtype: npt.DTypeLike = None) -> npt.NDArray[Any]:
    """`x` in that type, or in its own, in this machine's byte order; without a copy where that can be."""
    return x.astype(native_type(dtype) or x.dtype.newbyteorder("="), copy=False)


def native_type(dtype: npt.DTypeLike) -> np.dtype[Any] | None:
    """That type in this machine's byte order, or None."""
    return None if dtype is None else np.dtype(dtype).newbyteorder("=")
