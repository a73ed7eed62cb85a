#!/usr/bin/env python3
"""Times cuBLAS, through PyTorch or CuPy, on the products of a CSV file; for tools/report.

report_cublas.py [SHAPES.csv [TYPE [BATCH]]]
    TYPE is f32 (the default), f64, f16, bf16 or i8; BATCH products of each shape run in one call. Prints {"library": ...,
    "arithmetic": what the products are computed in, "tensor_cores": whether by tensor cores, "results": [{"m", "n", "k", "op_a",
    "op_b", "ms"}]}; without a file no results. Exit status 3, with the reason on stderr, where neither library or no GPU is there;
    4 where the library has no such product.
"""
import json
import os
import statistics
import sys
import time

os.environ["NVIDIA_TF32_OVERRIDE"] = "0"
os.environ["CUPY_TF32"] = "0"


class Torch:
    def __init__(self):
        import torch
        if not torch.cuda.is_available():
            raise RuntimeError("PyTorch sees no CUDA device")
        torch.backends.cuda.matmul.allow_tf32 = False
        torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
        torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
        self.torch = torch
        self.capability = torch.cuda.get_device_capability()
        self.name = "PyTorch %s, CUDA %s, %s" % (torch.__version__, torch.version.cuda, torch.cuda.get_device_name())

    def matrix(self, shape, type):
        if type == "i8":
            return self.torch.randint(-128, 128, shape, device="cuda", dtype=self.torch.int8)
        types = {"f32": self.torch.float32, "f64": self.torch.float64, "f16": self.torch.float16, "bf16": self.torch.bfloat16,
                 "i32": self.torch.int32}
        if type == "i32":
            return self.torch.empty(shape, device="cuda", dtype=types[type])
        return self.torch.rand(shape, device="cuda", dtype=self.torch.float32).to(types[type])

    def multiply(self, a, b, c):
        if a.dtype == self.torch.int8:
            self.torch._int_mm(a, b, out=c)
        else:
            self.torch.matmul(a, b, out=c)

    def hold(self):
        self.torch.cuda._sleep(200_000)

    def event(self):
        event = self.torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def milliseconds(self, begin, end):
        end.synchronize()
        return begin.elapsed_time(end)


class CuPy:
    def __init__(self):
        import cupy
        cupy.cuda.runtime.getDeviceCount()
        self.cupy = cupy
        properties = cupy.cuda.runtime.getDeviceProperties(0)
        self.capability = (properties["major"], properties["minor"])
        self.spin = cupy.RawKernel('extern "C" __global__ void spin() { long long t = clock64(); while (clock64() - t < 200000) {} }',
                                   "spin")
        self.name = "CuPy %s, CUDA %d, %s" % (cupy.__version__, cupy.cuda.runtime.runtimeGetVersion(), properties["name"].decode())

    def matrix(self, shape, type):
        types = {"f32": self.cupy.float32, "f64": self.cupy.float64, "f16": self.cupy.float16}
        if type not in types:
            raise NotImplementedError("CuPy has no cuBLAS products of " + type)
        return self.cupy.random.rand(*shape, dtype=self.cupy.float32).astype(types[type])

    def multiply(self, a, b, c):
        self.cupy.matmul(a, b, out=c)

    def hold(self):
        self.spin((1,), (1,), ())

    def event(self):
        event = self.cupy.cuda.Event()
        event.record()
        return event

    def milliseconds(self, begin, end):
        end.synchronize()
        return self.cupy.cuda.get_elapsed_time(begin, end)


def find_library():
    reasons = []
    for library in (Torch, CuPy):
        try:
            return library()
        except Exception as error:  # of the import, or of the driver
            reasons.append("%s: %s" % (library.__name__, str(error).splitlines()[0] if str(error) else type(error).__name__))
    print("; ".join(reasons), file=sys.stderr)
    sys.exit(3)


def arithmetic(library, type):
    """In words, and whether by tensor cores."""
    if type == "f32":
        return "fp32, TF32 off", False
    if type == "f64":  # since 8.0 data-centre devices have tensor cores for it, which cuBLAS takes and cannot be told not to
        by_tensor_cores = tuple(library.capability) in ((8, 0), (9, 0), (10, 0))
        return "fp64" + (" on tensor cores" if by_tensor_cores else ""), by_tensor_cores
    by_tensor_cores = tuple(library.capability) >= (7, 0)
    where = " on tensor cores" if by_tensor_cores else ""
    return {"f16": "fp16%s, summed in fp32, C in fp16", "bf16": "bf16%s, summed in fp32, C in bf16", "i8": "int8%s, C in int32"}[type] % where, \
        by_tensor_cores


def time_product(library, type, batch, m, n, k, op_a, op_b):
    """The median of the GPU's times: as many runs as half a second allows, 3 to 50, after a tenth of a second of others."""
    def matrix(rows, columns, of=type):
        return library.matrix((rows, columns) if batch == 1 else (batch, rows, columns), of)

    a = matrix(m, k) if op_a == "n" else matrix(k, m).swapaxes(-1, -2)
    b = matrix(k, n) if op_b == "n" else matrix(n, k).swapaxes(-1, -2)
    c = matrix(m, n, "i32" if type == "i8" else type)

    def run():
        library.hold()  # the GPU is busy until all of this is enqueued, so that Python's own time is in no measurement
        begin = library.event()
        library.multiply(a, b, c)
        return library.milliseconds(begin, library.event())

    start, count = time.monotonic(), 0
    while count < 1 or (count < 50 and time.monotonic() - start < 0.1):
        run()
        count += 1
    times = []
    while len(times) < 3 or (len(times) < 50 and sum(times) < 500):
        times.append(run())
    return statistics.median(times)


def main():
    type = sys.argv[2] if len(sys.argv) > 2 else "f32"
    batch = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    if type not in ("f32", "f64", "f16", "bf16", "i8") or batch < 1:
        sys.exit(__doc__)
    library = find_library()
    results = []
    if len(sys.argv) > 1:
        with open(sys.argv[1]) as file:
            lines = [line.strip() for line in file if line.strip()]
        for line in lines[1:]:
            m, n, k, op_a, op_b = [part.strip() for part in line.split(",")]
            shape = dict(m=int(m), n=int(n), k=int(k), op_a=op_a.lower(), op_b=op_b.lower())
            try:
                results.append({**shape, "ms": time_product(library, type, batch, **shape)})
            except (AttributeError, NotImplementedError, RuntimeError, TypeError) as error:
                if type == "f32" or "CUDA" in str(error) or "memory" in str(error):  # those mean something else
                    raise
                print("%s: no product of %s: %s" % (library.name, type, (str(error).splitlines() or [repr(error)])[0]), file=sys.stderr)
                sys.exit(4)
    words, by_tensor_cores = arithmetic(library, type)
    json.dump({"library": library.name, "arithmetic": words, "tensor_cores": by_tensor_cores, "results": results}, sys.stdout)
    print()


main()
