#!/usr/bin/env python3
"""Writes what onnxruntime makes of the numbers of ggml_blocks.py, as 4 rows: onnxruntime_groups.py FOLDER

FOLDER/nbits-BITS-GROUP-ZEROS.quantised gets codes, scales of f32, and zeros where ZEROS is 1. Needs Python's onnxruntime and NumPy.
tests/weights/quantize.cpp compares glgemm::quantize with them.
"""
import pathlib
import sys

import numpy
from onnxruntime.capi import _pybind_state as onnxruntime

folder = pathlib.Path(sys.argv[1])
numbers = numpy.fromfile(folder / "numbers.f32", numpy.float32).reshape(4, -1)
rows, columns = numbers.shape
for bits, group, with_zeros in ((4, 16, 1), (4, 64, 0), (8, 16, 0), (8, 64, 1)):
    groups = columns // group
    codes = numpy.zeros((rows, groups, group * bits // 8), numpy.uint8)
    scales = numpy.zeros(rows * groups, numpy.float32)
    zeros = numpy.zeros(rows * groups * bits // 8, numpy.uint8)
    quantize = {4: onnxruntime.quantize_matmul_4bits, 8: onnxruntime.quantize_matmul_8bits}[bits]
    quantize(codes, numpy.ascontiguousarray(numbers.T), scales, zeros, group, rows, columns, not with_zeros)
    arrays = [codes, scales] + [zeros] * with_zeros
    (folder / f"nbits-{bits}-{group}-{with_zeros}.quantised").write_bytes(b"".join(array.tobytes() for array in arrays))
