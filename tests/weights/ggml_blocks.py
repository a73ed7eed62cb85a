#!/usr/bin/env python3
"""Writes what ggml makes of some numbers: ggml_blocks.py LIBGGML-BASE.SO FOLDER

FOLDER/numbers.f32 gets the numbers, FOLDER/FORMAT.quantised the blocks that quantize_row_FORMAT_ref makes of them. The numbers depend on
nothing. tests/weights/quantize.cpp compares glgemm::quantize with them.
"""
import ctypes
import pathlib
import random
import struct
import sys

formats = {"q8_0": 34, "q4_0": 18, "q4_1": 20, "q5_0": 22, "q5_1": 24, "mxfp4": 17}  # bytes of a block


def f32(x):
    return struct.unpack("<f", struct.pack("<f", x))[0]


def blocks():
    """Blocks of 32 numbers, the awkward ones first."""
    rng = random.Random(1)
    yield [0.0] * 32
    yield [-0.0] * 32
    yield [1.0] * 32
    yield [-3.0] * 32
    yield [0.0] * 31 + [1e-30]  # the scale is 0 as a half
    yield [(-1) ** i * 7.0 for i in range(32)]  # which of the greatest comes first decides the scale's sign
    yield [(-1) ** (i + 1) * 7.0 for i in range(32)]
    yield [i - 127.0 for i in range(32)]
    yield [i / 2 - 8 for i in range(32)]  # halves between codes
    yield [i / 2 - 16 for i in range(32)]
    yield [127.0] + [i + 0.5 for i in range(31)]  # ties for q8_0
    yield [15.0, 0.0] + [i / 2 for i in range(30)]
    yield [31.0, 0.0] + [i + 0.5 for i in range(30)]
    yield [6.0] + [i / 4 - 3.5 for i in range(31)]  # ties for mxfp4
    yield [f32(2 - 2**-23)] * 32  # below a power of two
    yield [f32(2**-8 - 2**-31), 2**-9] * 16
    yield [f32(2**-20 * (1 - 2**-24))] + [2**-21] * 31
    yield [f32(6e-8 * 127 * rng.uniform(-1, 1)) for _ in range(32)]  # a scale that is a subnormal half
    yield [f32(3e-5 * 8 * rng.uniform(-1, 1)) for _ in range(32)]
    while True:
        size = 2.0 ** rng.uniform(-18, 9)
        offset = rng.choice([0, 0, 1, -1, 10]) * size
        kind = rng.randrange(4)
        draw = [lambda: rng.gauss(0, 1), lambda: rng.uniform(-1, 1), lambda: rng.gauss(0, 1) ** 3, lambda: rng.randrange(-9, 10) / 8][kind]
        yield [f32(offset + size * draw()) for _ in range(32)]


def main():
    library, folder = ctypes.CDLL(sys.argv[1]), pathlib.Path(sys.argv[2])
    source = blocks()
    numbers = [x for _ in range(128) for x in next(source)]
    packed = struct.pack(f"<{len(numbers)}f", *numbers)
    (folder / "numbers.f32").write_bytes(packed)
    for name, size in formats.items():
        to = ctypes.create_string_buffer(len(numbers) // 32 * size)
        function = getattr(library, f"quantize_row_{name}_ref")
        function.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_int64]
        function(packed, to, len(numbers))
        (folder / f"{name}.quantised").write_bytes(to.raw)


main()
