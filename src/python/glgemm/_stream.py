"""Products larger than a device or than memory: in the background, with progress, on one device or on several."""

from __future__ import annotations

import atexit
import concurrent.futures
import contextlib
import errno
import importlib
import os
import secrets
import stat
import sys
import threading
import weakref
from typing import Any, Callable

import numpy as np
import numpy.typing as npt

from . import _core
from ._arrays import as_numpy, native_type, operation
from ._engine import Engine, OfThisProcess, default_engine
from ._products import Gemm, Precision, _Host, check_out, need_c, overlapping, types_of_c
from ._weights import Quantized

_running: weakref.WeakSet[Future] = weakref.WeakSet()


class _Ended(Exception):
    """Raised in the progress of a product that was cancelled."""


class _Waiters(list):  # type: ignore[type-arg]
    """Those of concurrent.futures.wait() and as_completed(): of a future that they cannot wait for, an error tells them."""

    def __init__(self, future: Future) -> None:
        self._future = weakref.ref(future)  # which keeps these

    def append(self, waiter: Any) -> None:
        if future := self._future():
            future._check_wait("Future")
        super().append(waiter)


class Future(OfThisProcess, concurrent.futures.Future):  # type: ignore[type-arg]
    """A product that runs in the background; see concurrent.futures.Future.

    result() waits and returns C. In a function that the engine calls meanwhile, such as `progress`, it would wait for itself and
    raises Error. A KeyboardInterrupt while it waits cancels the product and waits for its end. cancel() ends the product at its next
    step: an array C is then written in part, no file is made, and result() raises CancelledError. `progress` is the share that is
    done, from 0 to 1.
    """

    progress: float = 0.0
    _runner: _core.Devices | _core.Service | None = None
    _ends = False
    _has_ended = False

    def __init__(self) -> None:
        super().__init__()
        self._waiters: list[Any] = _Waiters(self)

    def _check_process(self, what: str) -> None:
        # A forked child has no thread that would end the product, and its copy of a lock may be held for ever.
        if not self._has_ended:
            _core.check_process(what)

    def _check_wait(self, what: str, timeout: float | None = None) -> None:
        """Raises Error where this thread is the one that computes the product, which would wait for itself."""
        self._check_process(what)
        runner = self._runner
        if runner is not None and timeout != 0 and not self.done():
            runner.check_idle(what)

    def cancel(self) -> bool:
        """Has the product end at its next step. False if it is done."""
        self._check_process("Future.cancel")
        self._ends = True
        return not self.done()

    def result(self, timeout: float | None = None) -> Any:
        """Waits for the product and returns C, or raises what ended it."""
        self._check_wait("Future.result", timeout)
        try:
            return super().result(timeout)
        except KeyboardInterrupt:
            self.cancel()
            concurrent.futures.wait([self])
            raise

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Waits for the product and returns what it raised, if anything."""
        self._check_wait("Future.exception", timeout)
        return super().exception(timeout)

    def _run(self, work: Callable[[Callable[[float], None]], Any], show: Callable[[float], object] | None, end: Callable[[], None]) -> None:
        def step(share: float) -> None:
            self.progress = share
            if show is not None:
                show(share)
            if self._ends and share < 1:
                raise _Ended

        try:
            if self._ends:
                raise _Ended
            result = work(step)
        except _Ended:
            end()
            super().cancel()
            self.set_running_or_notify_cancel()
        except BaseException as error:  # result() raises it
            end()
            self.set_exception(error)
        else:
            end()
            self.set_result(result)
        self._has_ended = True
        self._runner = None


class Accelerators(OfThisProcess):
    """Several devices that multiply together, each with a thread, a context and an engine of its own.

    `devices` names them: '' every GPU, or one software device where there is none; 'all' the software devices as well; else
    indices or parts of names as `glgemm devices` lists them, separated by commas, each as often as wanted. For drivers that
    compute on the CPU set the variable LP_NUM_THREADS to each one's share of the cores first.

    Used for stream(a, b, engine=accelerators). A device that fails gives its work to the others.
    """

    def __init__(self, devices: str = "") -> None:
        self._devices = _core.Devices(devices)
        _all_accelerators.add(self)

    def info(self) -> list[dict[str, Any]]:
        """For each device its name, software, renderer, failure (empty if it works) and rate (multiply-adds in a second)."""
        return self._devices.info()

    def stream(self, a: Any, b: Any, **options: Any) -> Future:
        """glgemm.stream() on these devices."""
        return stream(a, b, engine=self, **options)

    def close(self) -> None:
        """Ends the threads; waits for the product that runs."""
        self._devices.close()

    def __enter__(self) -> Accelerators:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


_all_accelerators: weakref.WeakSet[Accelerators] = weakref.WeakSet()


def _shape_of(x: Quantized) -> npt.NDArray[np.float32]:
    """An array of the shape and the type of x, without its numbers."""
    return np.broadcast_to(np.float32(0), x.shape)


@operation
def stream(
    a: Any,
    b: Any,
    *,
    out: npt.NDArray[Any] | str | os.PathLike[str] | None = None,
    alpha: complex = 1,
    beta: complex = 0,
    bias: Any = None,
    activation: str | tuple[Any, ...] | None = None,
    residual: Any = None,
    op_a: str = "N",
    op_b: str = "N",
    dtype: npt.DTypeLike = None,
    device_memory_limit_bytes: int = 0,
    memory_limit_bytes: int = 0,
    progress: bool | Callable[[float], object] | None = None,
    engine: Engine | Accelerators | None = None,
    kernel: str | None = None,
    precision: Precision = "standard",
    report: _core.Report | None = None,
) -> Future:
    """Begins a product of matrices that need not fit the device, nor main memory, and returns a Future of C.

    a, b       matrices with any strides, such as numpy.memmap and numpy.load(path, mmap_mode='r'); they are read piece by piece.
               One may be Quantized, as load() gives it: its codes go to the device as they lie if they lie along k, as w's do in
               x @ w.T; else, or beside another Quantized, it is decoded first
    out        C: an array (numpy.memmap), or the path of an .npy file, which is written piece by piece; by default a new array.
               The file gets its name once the product is done: one that is there is then replaced, and kept if the product
               fails; A and B may be mapped from it. An array is read if beta is not 0. It shares no memory with A, B and the
               bias; D may be C itself
    progress   True: a bar by tqdm; None: that where the standard error is a terminal; False: none. tqdm must be installed. Or a
               function that is called with the share that is done; what it raises ends the product. It cannot use the engine,
               which is at work, nor wait for the product
    device_memory_limit_bytes, memory_limit_bytes
               bytes: the most that buffers on the device, and on device and host together, may have. 0: as much as suits
    engine     an Engine with a context of its own, or Accelerators. It is busy until the product is done. An engine of
               Engine.current() is refused, since it works on its thread alone and not in the background
    report     is filled when the Future is done, and empty before. Its kernel_time is the host's waiting for the device, transfer_time
               the host's reading, copying and writing, total_time all of it; slices are windows of k, dispatches are not counted,
               and bytes_to_device and bytes_from_device are what was moved. Not with Accelerators, whose devices run kernels
               of their own

    All arrays are in the host's memory; an Array is copied there first. The other arguments are as in gemm(). A, B and C are not changed by others until the product is done.

    >>> import numpy as np
    >>> import glgemm
    >>> a = np.ones((300, 200), np.float32)
    >>> future = glgemm.stream(a, a.T, device_memory_limit_bytes=1 << 18, progress=False)
    >>> future.result()[0, :3]
    array([200., 200., 200.], dtype=float32)
    """
    codes_a = a._along_k(True, op_a) if isinstance(a, Quantized) else None
    codes_b = b._along_k(False, op_b) if isinstance(b, Quantized) and codes_a is None else None
    x, y = _shape_of(a) if codes_a else as_numpy(a), _shape_of(b) if codes_b else as_numpy(b)
    values, d = (None if given is None else as_numpy(given) for given in (bias, residual))
    need_c("stream", beta, None if isinstance(out, (str, os.PathLike)) else out)
    gemm = Gemm("stream", x, y, values, d, op_a, op_b)
    if len(gemm.shape) != 2:
        raise ValueError(f"stream: A is {x.shape} and B is {y.shape}: a streamed product has no batch")
    given_c = None if out is None or isinstance(out, (str, os.PathLike)) else out
    if given_c is not None:
        check_out("stream: out", given_c, gemm.shape)
        for name in overlapping(given_c, a=x, b=y, bias=values, residual=d):
            raise ValueError(f"stream: out overlaps {name}")
        for name, given in (("A", a if codes_a else None), ("B", b if codes_b else None)):
            if given is not None and any(np.may_share_memory(given_c, part) for part in (given.codes, given.scales, given.zeros)):
                raise ValueError(f"stream: out overlaps {name}")
    c_type = given_c.dtype if given_c is not None else native_type(dtype) or types_of_c(x.dtype, y.dtype)[-1]
    gemm.check_types(c_type)
    terms = _core.Terms("stream", alpha, beta, gemm.op_a, gemm.op_b, activation, kernel=kernel, precision=precision, report=report)
    if not isinstance(engine, (Engine, Accelerators, type(None))):
        raise TypeError(f"stream: the engine is {engine!r} and must be an Engine or Accelerators")
    if report is not None and isinstance(engine, Accelerators):
        raise TypeError("stream: a report is of one Engine, and these are Accelerators")
    device = engine or default_engine()
    if isinstance(device, Engine) and not device._service.has_thread:
        raise ValueError("stream: an engine in the application's context works on that context's thread alone, not in the background")
    limits = device_memory_limit_bytes, memory_limit_bytes
    _core.StreamTerms(*limits)  # raises if a limit is no number
    show, end = _shown(progress)
    # The file is made last, so that an error above leaves none.
    file = _NewFile(out, gemm.shape, c_type) if isinstance(out, (str, os.PathLike)) else None
    c = file.array if file else np.empty(gemm.shape, c_type) if given_c is None else given_c
    product = _core.HostProduct(gemm.a, gemm.b, c, gemm.bias, d, codes_a, codes_b)

    runner: _core.Devices | _core.Service = device._devices if isinstance(device, Accelerators) else device._service

    def work(step: Callable[[float], None]) -> npt.NDArray[Any]:
        if c.size:
            runner.stream(product, terms, _core.StreamTerms(*limits, step))
        if isinstance(c, np.memmap):
            c.flush()
        if file:
            file.keep()
        return c

    def ended() -> None:
        if file:
            file.discard()
        end()

    future = Future()
    future._runner = runner
    _running.add(future)
    try:
        threading.Thread(target=future._run, args=(work, show, ended), name="glgemm stream", daemon=True).start()
    except RuntimeError:  # the system gives no more threads
        ended()
        raise
    return future


class _NewFile:
    """A .npy file under a temporary name beside its own: what is mapped from a file that it replaces stays valid."""

    def __init__(self, path: str | os.PathLike[str], shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self._target = os.path.realpath(os.fsdecode(path))
        if os.path.exists(self._target) and not os.path.isfile(self._target):
            raise ValueError(f"stream: out is {str(path)!r}, which is not a file")
        self._temporary = f"{self._target}.{secrets.token_hex(4)}.tmp"
        size = 0
        try:
            self.array: _Host = np.lib.format.open_memmap(self._temporary, mode="w+", dtype=dtype, shape=shape)  # type: ignore[no-untyped-call]
            with open(self._temporary, "r+b") as file:
                # A disk that is full when the mapped file is written would end Python by a signal.
                size = os.fstat(file.fileno()).st_size
                os.posix_fallocate(file.fileno(), 0, size)
            with contextlib.suppress(FileNotFoundError):
                os.chmod(self._temporary, stat.S_IMODE(os.stat(self._target).st_mode))
        except BaseException as error:
            self.discard()
            if size and isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
                words = f"stream: out is {os.fspath(path)!r}, and its disk has no room for its {size} bytes"
                raise OSError(error.errno, words) from None
            raise

    def keep(self) -> None:
        os.replace(self._temporary, self._target)
        self.array.filename = self._target  # type: ignore[attr-defined]

    def discard(self) -> None:
        """Removes the file if it has not got its name."""
        with contextlib.suppress(OSError):  # the error that ended the product is the one to tell
            os.unlink(self._temporary)


def _shown(progress: bool | Callable[[float], object] | None) -> tuple[Callable[[float], object] | None, Callable[[], None]]:
    """What shows the share that is done, and what ends it."""
    if callable(progress):
        return progress, lambda: None
    if progress is False or (progress is None and not (sys.stderr and sys.stderr.isatty())):
        return None, lambda: None
    try:
        tqdm = importlib.import_module("tqdm").tqdm
    except ImportError:
        return None, lambda: None
    bar = tqdm(total=100, unit="%", bar_format="{l_bar}{bar}| {elapsed}<{remaining}")

    def show(share: float) -> None:
        bar.update(100 * share - bar.n)

    return show, bar.close


@atexit.register
def _end_all() -> None:
    # Python calls this before the engines' handler, which was registered earlier.
    if not _core.is_first_process():
        return
    futures = [future for future in _running if not future.done()]
    for future in futures:
        future.cancel()
    concurrent.futures.wait(futures)
    for accelerators in list(_all_accelerators):
        accelerators.close()
