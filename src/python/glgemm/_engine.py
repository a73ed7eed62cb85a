"""Engines: a device with a context of its own, or the context of the application."""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import operator
import os
import threading
import weakref
from typing import Any, Callable, Iterator, Sequence, overload

import numpy as np
import numpy.typing as npt

from . import _core
from ._arrays import as_numpy, native, native_type, operations
from ._weights import Quantized, made_of

_engines: weakref.WeakSet[Engine] = weakref.WeakSet()


class OfThisProcess:
    """What cannot leave its process, and has no second copy."""

    def __reduce_ex__(self, protocol: Any) -> Any:
        words = "belongs to this process: it is neither pickled nor copied by the module copy"
        raise TypeError(f"a {type(self).__module__}.{type(self).__name__} {words}")


class Owner:
    """Keeps an object, whose buffer arrays show, until they are freed. Each array has a reference to this, and so Python finds cycles."""

    __slots__ = ("__weakref__", "kept")

    def __init__(self, kept: Any) -> None:
        self.kept = kept


class Engine(OfThisProcess):
    """A device that multiplies.

    Engine() takes the first GPU, or a driver that computes on the CPU where there is none; `device` is an index or a part of
    a name as in `glgemm devices`, by default what the variable GLGEMM_DEVICE says. Such an engine has an OpenGL context and a
    thread of its own: any thread may use it, calls are done one after the other, and no other context is touched.
    Engine.current() makes an engine in the application's context.

    An engine is closed by close(), at the end of a `with` block, or as Python ends; its arrays are then freed. A child process
    that fork() made cannot use the engines of its parent, nor make one: it gets an Error. Start processes by 'spawn'.

    device          an index, or a part of the renderer's name
    log             called with lines for developers as long as this object lives; it cannot use the engine, which is at work
    program_cache   the folder that keeps compiled programs; '' keeps none
    tuning          a table that `glgemm tune` wrote; '' takes none but the built-in one
    max_dispatch    seconds: the longest time that a dispatch is planned to take; longer products go in slices of about this time
    vendor          whether products may run by NVIDIA's cuBLAS, which has matrix cores; or the path of libcublas or of its folder
    """

    _service: _core.Service
    _log: Callable[[str], object] | None

    def __init__(
        self,
        device: str | int = "",
        *,
        log: Callable[[str], object] | None = None,
        program_cache: str | os.PathLike[str] | None = None,
        tuning: str | os.PathLike[str] | None = None,
        max_dispatch: float = 0.1,
        vendor: bool | str | os.PathLike[str] = False,
    ) -> None:
        options = _core.EngineOptions(self._keep(log), program_cache, tuning, max_dispatch, vendor, True)
        self._take(_core.Service.headless(str(device), options))

    @classmethod
    def current(
        cls,
        *,
        get_proc_address: Any = None,
        log: Callable[[str], object] | None = None,
        program_cache: str | os.PathLike[str] | None = None,
        tuning: str | os.PathLike[str] | None = None,
        max_dispatch: float = 0.1,
        vendor: bool | str | os.PathLike[str] = False,
        debug_groups: bool = True,
    ) -> Engine:
        """Makes an engine in the OpenGL context that is current on this thread: moderngl's, GLFW's, Qt's.

        Each call makes another one, which compiles programs of its own: make one, and keep it as long as the context. It is used on
        this thread alone, while that context is current, and closed before the context goes. stream() refuses it, since that works
        on another thread; matmul() and gemm() stream on it what does not fit, within the call. OpenGL's state is after each call as
        it was before. `get_proc_address` is a ctypes function, or its address, that looks OpenGL's functions
        up; by default eglGetProcAddress, which serves GLX's contexts on Linux, too. Each product outside of a scope is a debug group,
        of which the application's debug output tells; with `debug_groups=False` none is.
        """
        address = 0
        if get_proc_address is not None:
            is_number = isinstance(get_proc_address, int)
            address = get_proc_address if is_number else ctypes.cast(get_proc_address, ctypes.c_void_p).value or 0
        engine = cls.__new__(cls)
        options = _core.EngineOptions(engine._keep(log), program_cache, tuning, max_dispatch, vendor, debug_groups)
        engine._take(_core.Service.current(address, options))
        return engine

    def _keep(self, log: Callable[[str], object] | None) -> Callable[[str], None] | None:
        """What calls the log. Python sees who keeps it, and so collects an engine that its log reaches: C++ keeps no reference to it."""
        self._log = log
        engine = weakref.ref(self)

        def tell(line: str) -> None:
            alive = engine()
            if alive is not None and alive._log is not None:
                alive._log(line)

        return tell if log is not None else None

    def _take(self, service: _core.Service) -> None:
        self._service = service
        _engines.add(self)

    @property
    def device(self) -> dict[str, Any]:
        """A dict. What the driver says of itself: vendor, renderer, version, software, processor (the CPU of a software driver);
        and what was found: device_clock (the device measures times itself), f64 (there are products in doubles),
        storage_block_bytes (the most that shaders reach in one buffer), vendor_library (how far it came with `vendor`: not_asked,
        no_driver, other_device, no_library, failed, left_alone or ready).
        """
        return self._service.device

    @property
    def device_memory_bytes(self) -> int:
        """Bytes that arrays may have without crowding others out, as far as is known: 7/8 of the memory that the driver reports as
        free now; half of the main memory if it computes on the CPU; 1 GiB if it does not say.
        """
        return self._service.memory()

    @property
    def closed(self) -> bool:
        """Whether close() or abandon() was called."""
        return self._service.closed

    def close(self) -> None:
        """Frees the engine and all of its arrays. Waits for what runs. Does nothing if it is closed.

        Raises ValueError where an engine of Engine.current() is called while another context or none is current.
        """
        self._service.close()

    def abandon(self) -> None:
        """Closes the engine and forgets its OpenGL objects without calling OpenGL: for a context that is lost or gone.

        Any context or none may be current, on any thread that does not use the engine. Its arrays, jobs, fences and stopwatches can
        then only be dropped: what uses them raises ValueError. close() after it does nothing.
        """
        self._service.abandon()

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<glgemm.Engine on {self.device['renderer']}{', closed' if self.closed else ''}>"

    def asarray(self, x: Any, dtype: npt.DTypeLike = None) -> _core.Array:
        """A copy of `x` on the device: of a NumPy array, of nested lists, of what has __array__ or, in the CPU's memory, DLPack.

        An array of this engine comes back as it is. A Quantized stays quantised, unless `dtype` names a type for its numbers. Raises
        TypeError for element types that glgemm has not, such as int64.
        """
        if isinstance(x, Quantized) and dtype is None:
            return x._upload(self._service)
        if isinstance(x, _core.Array):
            if _core.engine_of(x) is self._service and (dtype is None or native_type(dtype) == x.dtype):
                return x
            x = x.numpy()
        return self._service.upload(native(as_numpy(x), dtype))

    def empty(self, shape: int | Sequence[int], dtype: npt.DTypeLike = np.float32) -> _core.Array:
        """A new array on the device whose elements are not set."""
        return self._service.empty(shape, np.dtype(dtype))

    @overload
    def quantized(self, codes: Quantized) -> _core.Array: ...
    @overload
    def quantized(self, codes: Any, format: str, shape: Sequence[int] | None = None, *, scales: Any = None, zeros: Any = None) -> _core.Array: ...
    @overload
    def quantized(
        self, codes: Any, scales: Any, zeros: Any = None, *, group: int = 128, bits: int = 4, shape: Sequence[int] | None = None
    ) -> _core.Array: ...
    @overload
    def quantized(self, codes: Any, format: str, shape: Sequence[int], *, offset: int = 0, scales: Any = None, zeros: Any = None) -> _core.Array: ...
    def quantized(self, codes: Any, *arguments: Any, **named: Any) -> _core.Array:
        """A quantised matrix on the device: codes that stand for float32, along the last dimension, which is k of a product.

        quantized(w)                             a Quantized, of quantize() or load()
        quantized(codes, "q4_k", shape)          blocks with their scales, as .gguf files have them
        quantized(codes, scales, zeros=None, group=128, bits=4, shape=None)
                                                 codes of 4 or 8 bits, two or one in a byte, and a scale (float32, float16,
                                                 bfloat16) for each `group` of a row: ONNX's MatMulNBits. `zeros` has the groups'
                                                 zeros with as many bits, each row from a byte on; by default all are 2**(bits-1).
                                                 Without a shape, rows are the codes' first dimension, and hold whole groups
        quantized(codes, "per_row", scales=s)    int8, uint8 or an 8-bit float with a scale for each row; "per_tensor": with one
        quantized(buffer, "q4_k", shape, offset=0)
                                                 codes that lie in an OpenGL buffer, from a byte on, as wrap() takes one; nothing
                                                 is copied. If scales lie apart, `scales` and `zeros` are buffers
                                                 too, or (buffer, byte)

        Else codes are bytes, a memoryview or an array, such as numpy.memmap. x @ w.T and w @ x are products; numpy() decodes. Raises
        ValueError where the bytes are not as many as the shape needs. docs/weights.md has the formats.

        >>> import numpy as np
        >>> import glgemm
        >>> with glgemm.Engine() as engine:
        ...     w = engine.quantized(np.full((2, 16), 0x99, np.uint8), np.float32([[0.5], [2]]), group=32)
        ...     (np.ones((1, 32), np.float32) @ w.T).numpy()
        array([[16., 64.]], dtype=float32)
        """
        if isinstance(codes, Quantized) and not arguments and not named:
            return codes._upload(self._service)
        if _is_buffer(codes):
            return self._wrap_quantized(codes, *arguments, **named)
        given = dict(zip(("format", "shape") if arguments and isinstance(arguments[0], str) else ("scales", "zeros"), arguments))
        return made_of(codes, **given, **named)._upload(self._service)

    def _wrap_quantized(
        self, buffer: Any, format: str, shape: Sequence[int], *, offset: int = 0, scales: Any = None, zeros: Any = None
    ) -> _core.Array:
        given = ((buffer, offset), *(x if isinstance(x, tuple) else (x, 0) for x in (scales, zeros)))
        places = [(0 if x is None else _name_of("quantized", x), operator.index(at)) for x, at in given]
        for _, at in places:
            if not 0 <= at < 1 << 62:
                raise ValueError(f"quantized: the offset {at} is no byte of a buffer")
        return self._service.wrap_quantized(format, shape, places, Owner((buffer, scales, zeros)))

    def wrap(
        self,
        buffer: Any,
        shape: int | Sequence[int],
        dtype: npt.DTypeLike = np.float32,
        *,
        offset: int = 0,
        strides: Sequence[int] | None = None,
    ) -> _core.Array:
        """The elements of an OpenGL buffer as an array, which is read and written in place; nothing is copied.

        `buffer` is a moderngl.Buffer, any object with an attribute `glo`, or the name itself, in the engine's context or in one
        that shares with it. The array keeps the object. `offset` and `strides` are bytes, as NumPy's. A buffer of elements of 8
        or 16 bits has a size that is a multiple of 4 bytes. Raises ValueError where the array would leave the buffer.
        """
        owner = None if isinstance(buffer, int) else Owner(buffer)
        return self._service.wrap(_name_of("wrap", buffer), owner, shape, np.dtype(dtype), offset, strides)

    def barrier(self, *uses: str) -> None:
        """Has the uses to come of what products and the application's own shaders have written see it; waits for nothing.

        `uses` are "vertices", "indices", "uniforms", "textures" (buffer textures), "images", "commands" (of indirect draws), "pixels",
        "transfers" (reading back, copying), "storage" (storage buffers), "mapped"; without one, any use. It is glMemoryBarrier,
        which not every toolkit gives. What glgemm does itself, such as numpy(), needs none.
        """
        self._service.barrier(uses)

    def finish(self) -> None:
        """Waits until the device has done all that was enqueued. fence() tells it without waiting."""
        self._service.finish()

    def fence(self) -> _core.Fence:
        """A Fence behind all that was enqueued so far: once it has passed, numpy() of a result does not wait for the device.

        >>> import numpy as np
        >>> import glgemm
        >>> with glgemm.Engine() as engine:
        ...     x = engine.asarray(np.ones((64, 64), np.float32))
        ...     y, fence = x @ x, engine.fence()
        ...     while not fence.poll():
        ...         pass  # draw a frame
        ...     float(y.numpy()[0, 0])
        64.0
        """
        return self._service.fence()

    def stopwatch(self) -> _core.Stopwatch:
        """A Stopwatch, which measures how long the device takes for what is enqueued meanwhile.

        >>> import numpy as np
        >>> import glgemm
        >>> with glgemm.Engine() as engine:
        ...     x, watch = engine.asarray(np.ones((64, 64), np.float32)), engine.stopwatch()
        ...     with watch:
        ...         y = (x @ x) @ x
        ...     0 < watch.elapsed() < 10
        True
        """
        return self._service.stopwatch()

    @contextlib.contextmanager
    def scope(self) -> Iterator[Engine]:
        """A `with` block in which OpenGL's state is saved once, and not for each product.

        In the block the application must not rely on OpenGL's state or change it, and must not delete or resize the buffers of
        its products. Scopes do not nest.
        """
        saved = _core.SavedState(self._service)
        saved.enter()
        try:
            yield self
        finally:
            saved.exit()

    def matmul(self, a: Any, b: Any, out: Any = None, **options: Any) -> Any:
        """glgemm.matmul() on this engine."""
        return operations["matmul"](a, b, out, engine=self, **options)

    def gemm(self, alpha: complex, a: Any, b: Any, beta: complex = 0, c: Any = None, **options: Any) -> Any:
        """glgemm.gemm() on this engine."""
        return operations["gemm"](alpha, a, b, beta, c, engine=self, **options)

    def start(self, alpha: complex, a: Any, b: Any, beta: complex = 0, c: Any = None, **options: Any) -> _core.Job:
        """A product with gemm()'s arguments as a Job, which is enqueued piece by piece.

        Does here what may fail or take long: checks, copies to the device, compiles, makes room. NumPy arrays are copied, and
        results are Arrays: `c` is one, or None. Raises what gemm() raises, and ValueError for a `c` that kernels cannot write
        where it lies: with gaps between all elements, or steps back, and of a batch, say.

        >>> import numpy as np
        >>> import glgemm
        >>> with glgemm.Engine() as engine:
        ...     job = engine.start(2, np.eye(2, dtype=np.float32), np.float32([[1, 2], [3, 4]]))
        ...     while not job.advance(0.004):  # about 4 ms of the device in each frame
        ...         pass  # draw the frame
        ...     job.result().numpy()
        array([[2., 4.],
               [6., 8.]], dtype=float32)
        """
        job: _core.Job = operations["start"](self, alpha, a, b, beta, c, **options)
        return job

    def prepare(self, alpha: complex, a: Any, b: Any, beta: complex = 0, c: Any = None, **options: Any) -> None:
        """Compiles and checks what start() with these arguments needs, and makes room, so that no such product waits for that.

        Nothing is multiplied, and `c` is not written. It serves all products whose arrays have the same shapes, types and strides
        and the same options, by matmul(), gemm(), start() and `@`. Waits for the driver's compiler. Speed is not measured: a product
        that is expected to take more than an eighth of `max_dispatch` may still wait for its first slices. Where a vendor's library
        takes the product, start() compiles its shaders itself. NumPy arrays are copied to the device for it, and freed again.
        Raises what start() raises.

        >>> import numpy as np
        >>> import glgemm
        >>> with glgemm.Engine() as engine:
        ...     x, y = engine.asarray(np.eye(2, dtype=np.float32)), engine.asarray(np.float32([[1, 2], [3, 4]]))
        ...     engine.prepare(1, x, y)  # before the first frame
        ...     (x @ y).numpy()
        array([[1., 2.],
               [3., 4.]], dtype=float32)
        """
        operations["prepare"](self, alpha, a, b, beta, c, **options)

    def convolve(self, x: Any, w: Any, bias: Any = None, **options: Any) -> Any:
        """glgemm.convolve() on this engine."""
        return operations["convolve"](x, w, bias, engine=self, **options)

    def start_convolve(self, x: Any, w: Any, bias: Any = None, **options: Any) -> _core.Job:
        """A convolution with convolve()'s arguments as a Job, as start() makes one of a product; `out` is an Array, or None.

        >>> import numpy as np
        >>> import glgemm
        >>> with glgemm.Engine() as engine:
        ...     job = engine.start_convolve(np.ones((1, 3, 3, 1), np.float32), np.ones((1, 2, 2, 1), np.float32))
        ...     while not job.advance(0.004):
        ...         pass  # draw the frame
        ...     job.result().numpy()[0, :, :, 0]
        array([[4., 4.],
               [4., 4.]], dtype=float32)
        """
        job: _core.Job = operations["start_convolve"](self, x, w, bias, **options)
        return job

    def prepare_convolve(self, x: Any, w: Any, bias: Any = None, **options: Any) -> None:
        """Does for convolutions with convolve()'s arguments what prepare() does for products."""
        operations["prepare_convolve"](self, x, w, bias, **options)

    def mlp(self, x: Any, layers: Sequence[tuple[Any, ...]], **options: Any) -> Any:
        """glgemm.mlp() on this engine."""
        return operations["mlp"](x, layers, engine=self, **options)

    def start_mlp(self, x: Any, layers: Sequence[tuple[Any, ...]], **options: Any) -> _core.Job:
        """A network with mlp()'s arguments as a Job, as start() makes one of a product; `out` is an Array, or None."""
        job: _core.Job = operations["start_mlp"](self, x, layers, **options)
        return job

    def prepare_mlp(self, x: Any, layers: Sequence[tuple[Any, ...]], **options: Any) -> None:
        """Does for networks with mlp()'s arguments what prepare() does for products."""
        operations["prepare_mlp"](self, x, layers, **options)

    def stream(self, a: Any, b: Any, **options: Any) -> Any:
        """glgemm.stream() on this engine."""
        return operations["stream"](a, b, engine=self, **options)

    def _fits(self, size: int) -> bool:
        """Whether so many bytes fit the device beside what is there."""
        return size <= 1 << 26 or size <= self._service.memory()


def _is_buffer(x: Any) -> bool:
    return hasattr(x, "glo") or isinstance(x, (int, np.integer))


def _name_of(who: str, buffer: Any) -> int:
    """The name of a buffer of the application."""
    try:
        name = operator.index(getattr(buffer, "glo", buffer))
    except TypeError:
        words = "must be a moderngl.Buffer, an object with an attribute glo, or a name"
        raise TypeError(f"{who}: the buffer is {buffer!r} and {words}") from None
    if not 0 < name < 1 << 32:
        raise ValueError(f"{who}: {name} is not the name of a buffer")
    return name


_default: Engine | None = None
_default_lock = threading.RLock()  # the handler of a signal may want the engine while it is made


def default_engine() -> Engine:
    """The engine of products of NumPy arrays, made when it is first needed; threads share it."""
    global _default
    if not _core.is_first_process():  # the lock may be held by a thread that a forked child does not have
        return _default or Engine()  # both refuse every call here
    with _default_lock:
        if _default is None or _default.closed:
            _default = Engine()
        return _default


@atexit.register
def _close_all() -> None:
    _core.begin_exit()
    # An engine in the application's context is left as it is: its context may be gone by now.
    for engine in list(_engines):
        if engine._service.has_thread:
            engine.close()
