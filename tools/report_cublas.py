#!/usr/bin/env python3
"""Times cuBLAS in plain fp32, through PyTorch or CuPy, on the products of a CSV file; for tools/report.

report_cublas.py [SHAPES.csv]    prints {"library": ..., "results": [{"m", "n", "k", "op_a", "op_b", "ms"}]}; without a file no
results. Exit status 3, with the reason on stderr, where neither library or no GPU is there.
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
        self.torch = torch
        self.name = "PyTorch %s, CUDA %s, %s" % (torch.__version__, torch.version.cuda, torch.cuda.get_device_name())

    def matrix(self, rows, columns):
        return self.torch.rand(rows, columns, device="cuda", dtype=self.torch.float32)

    def multiply(self, a, b, c):
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
        self.spin = cupy.RawKernel('extern "C" __global__ void spin() { long long t = clock64(); while (clock64() - t < 200000) {} }',
                                   "spin")
        self.name = "CuPy %s, CUDA %d, %s" % (cupy.__version__, cupy.cuda.runtime.runtimeGetVersion(), properties["name"].decode())

    def matrix(self, rows, columns):
        return self.cupy.random.rand(rows, columns, dtype=self.cupy.float32)

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


def time_product(library, m, n, k, op_a, op_b):
    """The median of the GPU's times: as many runs as half a second allows, 3 to 50, after a tenth of a second of others."""
    a = library.matrix(m, k) if op_a == "n" else library.matrix(k, m).T
    b = library.matrix(k, n) if op_b == "n" else library.matrix(n, k).T
    c = library.matrix(m, n)

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
    library = find_library()
    results = []
    if len(sys.argv) > 1:
        with open(sys.argv[1]) as file:
            lines = [line.strip() for line in file if line.strip()]
        for line in lines[1:]:
            m, n, k, op_a, op_b = [part.strip() for part in line.split(",")]
            shape = dict(m=int(m), n=int(n), k=int(k), op_a=op_a.lower(), op_b=op_b.lower())
            results.append({**shape, "ms": time_product(library, **shape)})
    json.dump({"library": library.name, "results": results}, sys.stdout)
    print()


main()
