#!/usr/bin/env python3
"""Times cuBLAS, through PyTorch, on the products of a CSV file; for tools/report.

report_cublas.py [SHAPES.csv [TYPE [BATCH]]]
    TYPE is f32 (the default), f64, f16, bf16 or i8; BATCH products of each shape run in one call. Prints {"library": ...,
    "arithmetic": what the products are computed in, "tensor_cores": whether by tensor cores, "results": [{"m", "n", "k", "op_a",
    "op_b", "ms"}]}; without a file no results. Exit status 3, with the reason on stderr, where PyTorch or a GPU is missing; 4 where
    it has no such product.
"""
import argparse
import json
import os
import statistics
import sys
import time

os.environ["NVIDIA_TF32_OVERRIDE"] = "0"
TYPES = {"f32": "float32", "f64": "float64", "f16": "float16", "bf16": "bfloat16", "i8": "int8"}


def find_torch():
    """Set so that it computes in the types that are asked for."""
    try:
        import torch
        if not torch.cuda.is_available():
            raise RuntimeError("PyTorch sees no CUDA device")
    except Exception as error:  # of the import, or of the driver
        print(str(error).splitlines()[0] if str(error) else type(error).__name__, file=sys.stderr)
        sys.exit(3)
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
    return torch


def arithmetic(torch, type):
    """In words, and whether by tensor cores."""
    capability = torch.cuda.get_device_capability()
    if type == "f32":
        return "fp32, TF32 off", False
    if type == "f64":  # since 8.0 data-centre devices have tensor cores for it, which cuBLAS takes and cannot be told not to
        by_tensor_cores = capability in ((8, 0), (9, 0), (10, 0))
        return "fp64" + (" on tensor cores" if by_tensor_cores else ""), by_tensor_cores
    by_tensor_cores = capability >= (7, 0)
    where = " on tensor cores" if by_tensor_cores else ""
    return {"f16": "fp16%s, summed in fp32, C in fp16", "bf16": "bf16%s, summed in fp32, C in bf16", "i8": "int8%s, C in int32"}[type] % where, \
        by_tensor_cores


def time_product(torch, type, batch, m, n, k, op_a, op_b):
    """The median of the GPU's times: as many runs as half a second allows, 3 to 50, after a tenth of a second of others."""
    def matrix(rows, columns):
        shape = (rows, columns) if batch == 1 else (batch, rows, columns)
        if type == "i8":
            return torch.randint(-128, 128, shape, device="cuda", dtype=torch.int8)
        return torch.rand(shape, device="cuda", dtype=torch.float32).to(getattr(torch, TYPES[type]))

    a = matrix(m, k) if op_a == "n" else matrix(k, m).swapaxes(-1, -2)
    b = matrix(k, n) if op_b == "n" else matrix(n, k).swapaxes(-1, -2)
    c = torch.empty(a.shape[:-2] + (m, n), device="cuda", dtype=torch.int32 if type == "i8" else a.dtype)
    multiply = torch._int_mm if type == "i8" else torch.matmul

    def run():
        torch.cuda._sleep(200_000)  # the GPU is busy until all of this is enqueued, so that Python's own time is in no measurement
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        multiply(a, b, out=c)
        end.record()
        end.synchronize()
        return begin.elapsed_time(end)

    start, count = time.monotonic(), 0
    while count < 1 or (count < 50 and time.monotonic() - start < 0.1):
        run()
        count += 1
    times = []
    while len(times) < 3 or (len(times) < 50 and sum(times) < 500):
        times.append(run())
    return statistics.median(times)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shapes", nargs="?")
    parser.add_argument("type", nargs="?", default="f32", choices=TYPES)
    parser.add_argument("batch", nargs="?", type=int, default=1)
    arguments = parser.parse_args()
    type, batch = arguments.type, arguments.batch
    torch = find_torch()
    name = "PyTorch %s, CUDA %s, %s" % (torch.__version__, torch.version.cuda, torch.cuda.get_device_name())
    results = []
    if arguments.shapes:
        with open(arguments.shapes) as file:
            lines = [line.strip() for line in file if line.strip()]
        for line in lines[1:]:
            m, n, k, op_a, op_b = [part.strip() for part in line.split(",")]
            shape = dict(m=int(m), n=int(n), k=int(k), op_a=op_a.lower(), op_b=op_b.lower())
            try:
                results.append({**shape, "ms": time_product(torch, type, batch, **shape)})
            except (AttributeError, RuntimeError, TypeError) as error:
                if type == "f32" or "CUDA" in str(error) or "memory" in str(error):  # those mean something else
                    raise
                print("%s: no product of %s: %s" % (name, type, (str(error).splitlines() or [repr(error)])[0]), file=sys.stderr)
                sys.exit(4)
    words, by_tensor_cores = arithmetic(torch, type)
    json.dump({"library": name, "arithmetic": words, "tensor_cores": by_tensor_cores, "results": results}, sys.stdout)
    print()


main()
