#!/usr/bin/env python3
"""Writes what onnxruntime makes of the numbers of ggml_blocks.py, as 4 rows: onnxruntime_groups.py FOLDER

FOLDER/nbits-BITS-GROUP-ZEROS-SCALES.quantised gets codes, scales, and zeros where ZEROS is 1. Where scales are f16, the numbers are
rounded to f16 first. Needs Python's onnxruntime and NumPy. tests/weights/quantize.cpp compares glgemm::quantize with them.
"""
import pathlib
import sys

import numpy
from onnxruntime.capi import _pybind_state as onnxruntime

folder = pathlib.Path(sys.argv[1])
numbers = numpy.fromfile(folder / "numbers.f32", numpy.float32).reshape(4, -1)
rows, columns = numbers.shape
for bits, group, with_zeros, scale in ((4, 16, 1, "f32"), (4, 64, 0, "f32"), (8, 16, 0, "f32"), (8, 64, 1, "f32"), (8, 32, 1, "f16")):
    number = {"f32": numpy.float32, "f16": numpy.float16}[scale]
    groups = columns // group
    codes = numpy.zeros((rows, groups, group * bits // 8), numpy.uint8)
    scales = numpy.zeros(rows * groups, number)
    zeros = numpy.zeros(rows * groups * bits // 8, numpy.uint8)
    quantize = {4: onnxruntime.quantize_matmul_4bits, 8: onnxruntime.quantize_matmul_8bits}[bits]
    quantize(codes, numpy.ascontiguousarray(numbers.T.astype(number)), scales, zeros, group, rows, columns, not with_zeros)
    arrays = [codes, scales] + [zeros] * with_zeros
    (folder / f"nbits-{bits}-{group}-{with_zeros}-{scale}.quantised").write_bytes(b"".join(array.tobytes() for array in arrays))
