"""Weights as models have them: quantised matrices on the host, and models' files."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Iterator, Literal, NoReturn, Sequence

import numpy as np
import numpy.typing as npt

from . import _core
from ._arrays import as_numpy, operations

_Bytes = npt.NDArray[np.uint8]


class Quantized:
    """A quantised matrix on the host: codes that stand for numbers, with their scales and zeros.

    Made by quantize(), load(), from_gptq() and from_awq(). It multiplies as a matrix of float32 does: `x @ w.T`. Each such product
    uploads it; Engine.quantized() does so once. The codes lie along the last dimension, which is a product's k: the operand w of
    shape (n, k) is used as w.T on the right of x, or as it is on the left.

    format   'q4_0', 'nbits:bits=4,group=128': see docs/weights.md
    codes, scales, zeros   the bytes of each; scales and zeros are empty where they lie in the codes' blocks
    """

    __array_ufunc__ = None  # so that NumPy leaves ndarray @ quantised to __rmatmul__

    def __init__(self, format: str, shape: Sequence[int], codes: Any, scales: Any = b"", zeros: Any = b"", *, _turned: bool = False) -> None:
        self._stored = tuple(int(size) for size in shape)
        self.format, self.codes, self.scales, self.zeros = format, bytes_of(codes), bytes_of(scales), bytes_of(zeros)
        self._turned = _turned
        _core.check_quantized(format, self._stored, self.codes, self.scales, self.zeros)

    @property
    def shape(self) -> tuple[int, ...]:
        """The matrix's sizes."""
        return (*self._stored[:-2], *self._stored[:-3:-1]) if self._turned else self._stored

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self._stored)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the numbers that the codes stand for: float32."""
        return np.dtype(np.float32)

    @property
    def nbytes(self) -> int:
        """The bytes of codes, scales and zeros."""
        return self.codes.nbytes + self.scales.nbytes + self.zeros.nbytes

    @property
    def mT(self) -> Quantized:
        """The same with the last two dimensions exchanged; nothing is copied."""
        if len(self._stored) < 2:
            raise ValueError(f"mT: the array has {len(self._stored)} dimensions, and two are needed")
        return Quantized(self.format, self._stored, self.codes, self.scales, self.zeros, _turned=not self._turned)

    @property
    def T(self) -> Quantized:
        """The transpose of a matrix; nothing is copied."""
        if len(self._stored) != 2:
            raise ValueError(f"T: the shape is {self.shape}, which is no matrix's: mT exchanges the last two dimensions")
        return self.mT

    def numpy(self) -> npt.NDArray[np.float32]:
        """The numbers that the codes stand for, decoded as shaders decode them."""
        numbers = _core.dequantize(self.format, self._stored, self.codes, self.scales, self.zeros)
        return numbers.swapaxes(-1, -2) if self._turned else numbers

    def __array__(self, dtype: npt.DTypeLike = None, copy: bool | None = None) -> npt.NDArray[Any]:
        """As numpy()."""
        if copy is False:
            raise ValueError("__array__: what codes stand for cannot be had without a copy")
        return self.numpy().astype(dtype or np.float32, copy=False)

    def __matmul__(self, other: Any) -> Any:
        return operations["matmul"](self, other)

    def __rmatmul__(self, other: Any) -> Any:
        return operations["matmul"](other, self)

    def __eq__(self, other: object) -> NoReturn:
        raise TypeError("a Quantized is not compared: x.numpy() == y compares its numbers, and x.codes its codes")

    __hash__ = None  # type: ignore[assignment]

    def __bool__(self) -> NoReturn:
        raise TypeError("a Quantized has no truth value: x.numpy().any() and all() have one, and x.shape")

    def __repr__(self) -> str:
        return f"<glgemm.Quantized of {self.format}, shape {self.shape}>"

    def _along_k(self, is_a: bool, op: str) -> _core.HostCodes | None:
        """The matrix for a product on the host's side, where its codes lie along k."""
        if self.ndim != 2 or (self._turned != (op != "N")) == is_a:
            return None
        return _core.HostCodes(self.format, self._stored, self.codes, self.scales, self.zeros)

    def _upload(self, service: _core.Service) -> _core.Array:
        array = service.quantized(self.format, self._stored, self.codes, self.scales, self.zeros)
        return array.mT if self._turned else array


def quantize(x: Any, format: str) -> Quantized:
    """Rounds numbers to codes: `x` is float32, or converted to it, and its last dimension is along k.

    format   a format in blocks of docs/weights.md, such as 'q4_0', as ggml's reference quantisers do, to the bit;
             'nbits:bits=4,group=128' or 'nbits:bits=8,group=32,zeros=1', with 'scales=f16' for narrower scales, as onnxruntime's;
             'per_row' and 'per_tensor', with 'codes=f8e4m3' for 8-bit floats in place of int8, as ONNX's QuantizeLinear

    Raises ValueError for a number that is infinite or NaN, a scale that its type does not hold, and a format that has no quantiser
    here, such as 'q4_k'.

    >>> import numpy as np
    >>> import glgemm
    >>> w = glgemm.quantize(127 * np.eye(2, 32, dtype=np.float32), "q8_0")
    >>> w
    <glgemm.Quantized of q8_0, shape (2, 32)>
    >>> w.nbytes
    68
    >>> np.ones((1, 32), np.float32) @ w.T
    array([[127., 127.]], dtype=float32)
    """
    return Quantized(*_core.quantize(as_numpy(x), format))


def from_gptq(
    qweight: Any,
    qzeros: Any,
    scales: Any,
    g_idx: Any = None,
    *,
    bits: int = 4,
    zeros: Literal["less_one", "themselves"] = "less_one",
) -> Quantized:
    """A layer of GPTQ, n x k, without a change of its codes and scales: for x @ w.T.

    qweight is (k * bits / 32, n), qzeros (k / group, n * bits / 32), both of int32; scales (k / group, n). `zeros` tells what the
    file stores of a zero: 'less_one' with the checkpoint_format "gptq", 'themselves' with "gptq_v2". Raises ValueError for a
    g_idx that permutes k.
    """
    if zeros not in ("less_one", "themselves"):
        raise ValueError(f"from_gptq: zeros is {zeros!r} and must be 'less_one' or 'themselves'")
    weight, factors = np.ascontiguousarray(qweight), np.ascontiguousarray(scales)
    k, n = weight.shape[0] * 32 // bits, weight.shape[1]
    order = np.empty(0, np.int32) if g_idx is None else np.ascontiguousarray(g_idx, np.int32)
    return Quantized(*_core.from_gptq(k, n, weight, np.ascontiguousarray(qzeros), factors, order, bits, zeros == "less_one"))


def from_awq(qweight: Any, qzeros: Any, scales: Any) -> Quantized:
    """A layer of AWQ in 4 bits, n x k, without a change of its codes and scales: for x @ w.T.

    qweight is (k, n / 8), qzeros (k / group, n / 8), both of int32; scales (k / group, n).
    """
    weight = np.ascontiguousarray(qweight)
    arrays = weight, np.ascontiguousarray(qzeros), np.ascontiguousarray(scales)
    return Quantized(*_core.from_awq(weight.shape[0], weight.shape[1] * 8, *arrays))


class Model(Mapping):  # type: ignore[type-arg]
    """A model's file: a mapping from the names of its tensors to NumPy arrays and to Quantized matrices, which lie in the file.

    Nothing is read before it is used, and nothing is copied. The last dimension is the contiguous one. The file must stay as it
    is meanwhile. `types` has what the file calls each tensor's type. `missing_files` has the paths of a model's files that are not
    there, whose tensors are left out.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = os.fspath(path)
        file = _core.ModelFile(path)
        self._tensors = {tensor[0]: tensor for tensor in file.tensors()}
        self.missing_files = file.missing_files()

    @property
    def types(self) -> dict[str, str]:
        """What the file calls each tensor's type, by the tensor's name."""
        return {name: tensor[1] for name, tensor in self._tensors.items()}

    def __getitem__(self, name: str) -> npt.NDArray[Any] | Quantized:
        if name not in self._tensors and self.missing_files:
            raise KeyError(f"{name}; of the model's files, these are missing: {', '.join(self.missing_files)}")
        _, type_name, dtype, format, shape, data = self._tensors[name]
        if format is not None:
            return Quantized(format, shape, data)
        if dtype is None:
            raise TypeError(f"load: the tensor {name!r} is of {type_name}, which glgemm has not")
        return np.ndarray(shape, _core.dtype_of(dtype), data)

    def __iter__(self) -> Iterator[str]:
        return iter(self._tensors)

    def __len__(self) -> int:
        return len(self._tensors)

    def __repr__(self) -> str:
        count = len(self.missing_files)
        missing = f", {count} {'file' if count == 1 else 'files'} missing" if count else ""
        return f"<glgemm.Model of {self._path!r}, {len(self)} tensors{missing}>"


def load(path: str | os.PathLike[str]) -> Model:
    """Opens a .gguf or a .safetensors file, whichever it is by its contents, in place: model["blk.0.attn_q.weight"].

    Raises OSError or RuntimeError for a file that cannot be opened, ValueError for one that is neither or malformed.
    """
    return Model(path)


def bytes_of(x: Any) -> _Bytes:
    """The bytes of an array, or of what has a buffer, one after the other; without a copy where that can be."""
    array = np.frombuffer(x, np.uint8) if isinstance(x, (bytes, bytearray, memoryview)) else np.ascontiguousarray(x)
    return array.reshape(-1).view(np.uint8)


_SCALES = {"float32": "f32", "float16": "f16", "bfloat16": "bf16"}
_CODES = {"int8": "i8", "uint8": "u8", "float8_e4m3fn": "f8e4m3", "float8_e5m2": "f8e5m2"}


def made_of(
    codes: Any,
    format: str | None = None,
    shape: Sequence[int] | None = None,
    scales: Any = None,
    zeros: Any = None,
    group: int = 128,
    bits: int = 4,
) -> Quantized:
    """What Engine.quantized() was given, as a Quantized."""
    own = np.asarray(codes) if hasattr(codes, "dtype") else np.frombuffer(codes, np.uint8)
    factors = None if scales is None else np.asarray(scales)
    if factors is not None and factors.dtype.name not in _SCALES:
        raise TypeError(f"quantized: the scales are {factors.dtype} and must be of {', '.join(_SCALES)}")
    if format is None:
        if factors is None:
            raise TypeError("quantized: neither a format nor scales are given")
        format = f"nbits:bits={bits},group={group}" + (",zeros=1" if zeros is not None else "")
        if shape is None:
            rows = own.shape[0] if own.ndim > 1 else factors.shape[0]
            shape = rows, own.nbytes * 8 // bits // max(1, rows)
    if factors is not None and "scales=" not in format:
        format += f"{',' if ':' in format else ':'}scales={_SCALES[factors.dtype.name]}"
    if format.startswith("per_") and "codes=" not in format and own.dtype.name in _CODES:
        format += f",codes={_CODES[own.dtype.name]}"
    if shape is None:
        if not format.startswith("per_"):
            raise TypeError(f"quantized: codes of {format} need a shape")
        shape = own.shape
    return Quantized(format, shape, own, b"" if factors is None else factors, b"" if zeros is None else zeros)
