#!/usr/bin/env python3
"""Times cuBLAS, through PyTorch, on products that tools/report has measured.

  report_cublas.py REPORT.json SECTION [--json FILE]

Takes what the planner's own kernels did in a section of the report, as squares, and prints both times. FILE gets {"results":
[{"section", "m", "n", "k", "op_a", "op_b", "type", "batch", "library", "arithmetic": what cuBLAS computes in, "tensor_cores":
whether by tensor cores, "glgemm_ms", "cublas_ms", "ratio": of the rates}]}. Ends with 3 where there are no such products, PyTorch or GPU.
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
    parser.add_argument("report", metavar="REPORT.json")
    parser.add_argument("section", metavar="SECTION")
    parser.add_argument("--json", metavar="FILE", help="for what was found")
    arguments = parser.parse_args()
    try:
        with open(arguments.report) as file:
            benches = json.load(file)["bench"]
    except (OSError, ValueError, KeyError) as error:
        parser.error(f"{arguments.report} is no report: {error}")
    products = [x for bench in benches if bench["section"] == arguments.section for x in bench["found"]["results"]
                if x["requested"] == "auto"]
    if not products:
        print("the report has no products there", file=sys.stderr)
        sys.exit(3)
    torch = find_torch()
    library = f"PyTorch {torch.__version__}, CUDA {torch.version.cuda}, {torch.cuda.get_device_name()}"
    line = "{:>24}  {:4} {:>6} {:>10} {:>10} {:>6}  {}"
    print(f"{library}; medians of the GPU's times\n")
    print(line.format("m x n x k", "type", "batch", "glgemm ms", "cuBLAS ms", "ratio", "cuBLAS' arithmetic"))
    results = []
    for ours in products:
        x = {field: ours[field] for field in ("m", "n", "k", "op_a", "op_b", "type", "batch")}
        shape = f"{x['m']} x {x['n']} x {x['k']}, {x['op_a']}{x['op_b']}"
        try:
            ms = time_product(torch, **x)
        except (AttributeError, KeyError, RuntimeError, TypeError) as error:
            why = (str(error).splitlines() or [repr(error)])[0]
            if x["type"] == "f32" or "CUDA" in why or "memory" in why:  # those mean something else
                raise
            print(line.format(shape, x["type"], x["batch"], "-", "-", "-", f"no such product: {why}"))
            continue
        words, by_tensor_cores = arithmetic(torch, x["type"])
        our_ms = ours["kernel_ms"]
        print(line.format(shape, x["type"], x["batch"], f"{our_ms:.4g}", f"{ms:.4g}", f"{ms / our_ms:.3g}", words))
        results.append({"section": arguments.section, **x, "library": library, "arithmetic": words, "tensor_cores": by_tensor_cores,
                        "glgemm_ms": our_ms, "cublas_ms": ms, "ratio": ms / our_ms})
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump({"results": results}, file)


main()
