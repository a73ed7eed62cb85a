"""Products of matrices on the GPU, through OpenGL compute shaders.

NumPy arrays in, a NumPy array out:

>>> import numpy as np
>>> import glgemm
>>> a = np.array([[1, 4], [2, 5], [3, 6]], np.float32)
>>> b = np.array([[7, 8, 9], [10, 11, 12]], np.float32)
>>> glgemm.matmul(a, b)
array([[47., 52., 57.],
       [64., 71., 78.],
       [81., 90., 99.]], dtype=float32)

Arrays that stay on the device:

>>> with glgemm.Engine() as engine:
...     x, y = engine.asarray(a), engine.asarray(b)
...     z = (x @ y) @ x
...     z.numpy()
array([[ 322.,  790.],
       [ 440., 1079.],
       [ 558., 1368.]], dtype=float32)

matmul      NumPy's matmul, on the device
gemm        alpha op(A) op(B) + beta C + D + bias, and an activation
convolve    convolutions of images, plain and transposed
mlp         networks of fully connected layers, each a Layer
stream      products larger than the device or the memory, in the background
explain     what a product would do, and whether it copies; explain_convolve and explain_mlp say it of the others
Report      what ran, and how long it took
Engine      a device, or the OpenGL context of the application (moderngl's, for one)
Array       what lies on a device
Job         a product, convolution or network that is enqueued piece by piece, within a frame's budget; Engine.start(), start_convolve() and
            start_mlp() make it, and Engine.prepare() and its like compile ahead
Fence       tells when the device is done; Engine.fence() makes it
Stopwatch   measures time on the device; Engine.stopwatch() makes it
Accelerators  several devices at once
quantize    rounds a matrix to codes of 4 to 8 bits
load        a model's file, .gguf or .safetensors
Quantized   such a matrix on the host; Engine.quantized() brings it to a device

The tutorial is docs/python.md; docs/weights.md is about quantised matrices.
"""

from ._convolve import convolve, explain_convolve
from ._core import Array, DeviceLost, Error, Fence, Job, JobReport, Report, Stopwatch, Unsupported, __version__
from ._engine import Engine, default_engine
from ._mlp import Layer, explain_mlp, mlp
from ._products import explain, gemm, matmul
from ._stream import Accelerators, Future, stream
from ._weights import Model, Quantized, from_awq, from_gptq, load, quantize

__all__ = [
    "Accelerators",
    "Array",
    "DeviceLost",
    "Engine",
    "Error",
    "Fence",
    "Future",
    "Job",
    "JobReport",
    "Layer",
    "Model",
    "Quantized",
    "Report",
    "Stopwatch",
    "Unsupported",
    "convolve",
    "default_engine",
    "explain",
    "explain_convolve",
    "explain_mlp",
    "from_awq",
    "from_gptq",
    "gemm",
    "load",
    "matmul",
    "mlp",
    "quantize",
    "stream",
    "__version__",
]

for _name in __all__[:-1]:
    globals()[_name].__module__ = "glgemm"
del _name
