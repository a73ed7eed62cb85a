#!/usr/bin/env python3
"""Writes what ggml makes of some numbers, and what it takes blocks for: ggml_blocks.py LIBGGML-BASE.SO FOLDER FORMAT...

FOLDER/numbers.f32 gets the numbers, FOLDER/FORMAT.quantised the blocks that quantize_row_FORMAT_ref makes of them. FOLDER/FORMAT.blocks
gets 64 blocks of random bytes, the awkward ones first, without those that stand for numbers that are not finite. FOLDER/FORMAT.f32 gets
what dequantize_row_FORMAT makes of these. All of it depends on nothing. A format is a name of include/glgemm/quantization_table.h, which
has the codes and the bytes of its blocks. tests/weights/quantize.cpp and tests/base/quantization.cpp compare glgemm with these files.
Delete the .quantised of a format that glgemm does not make.
"""
import ctypes
import math
import pathlib
import random
import re
import struct
import sys

TABLE = pathlib.Path(__file__).resolve().parents[2] / "include/glgemm/quantization_table.h"
SIZES = {name: (int(codes), int(bytes_)) for name, codes, bytes_ in
         re.findall(r"^  ROW\((\w+), +\w+, +\d+, +(\d+), +(\d+),", TABLE.read_text(encoding="utf-8"), flags=re.M)}


def f32(x):
    return struct.unpack("<f", struct.pack("<f", x))[0]


def groups():
    """Groups of 32 numbers, the awkward ones first."""
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


class Ggml:
    def __init__(self, path):
        self._library = ctypes.CDLL(path)

    def convert(self, function, data, numbers, bytes_):
        """What a function makes of data with so many numbers: so many bytes."""
        to = ctypes.create_string_buffer(bytes_)
        function = getattr(self._library, re.sub("k(_ref)?$", r"K\1", function))
        function.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_int64]
        function(data, to, numbers)
        return to.raw

    def dequantize(self, name, blocks):
        codes, bytes_ = SIZES[name]
        return self.convert(f"dequantize_row_{name}", blocks, len(blocks) // bytes_ * codes, len(blocks) // bytes_ * codes * 4)

    def quantize(self, name, numbers):
        codes, bytes_ = SIZES[name]
        count = len(numbers) // 4
        blocks = self.convert(f"quantize_row_{name}_ref", numbers, count, count // codes * bytes_)
        if name != "iq4_nl":
            return blocks
        # Where all numbers of a block are below 1e-15, ggml leaves the codes that were in its memory. Here they are 0's nearest.
        is_tiny = [max(map(abs, struct.unpack("<32f", numbers[i:i + 128]))) < 1e-15 for i in range(0, len(numbers), 128)]
        return b"".join(bytes(2) + b"\x88" * 16 if tiny else blocks[18 * i:18 * i + 18] for i, tiny in enumerate(is_tiny))


def main():
    ggml, folder = Ggml(sys.argv[1]), pathlib.Path(sys.argv[2])
    source = groups()
    numbers = struct.pack("<4096f", *(x for _ in range(128) for x in next(source)))
    (folder / "numbers.f32").write_bytes(numbers)
    for name in sys.argv[3:]:
        (folder / f"{name}.quantised").write_bytes(ggml.quantize(name, numbers))
        (codes, bytes_), rng, blocks, values = SIZES[name], random.Random(1), b"", b""
        awkward = [bytes(bytes_), b"\xff" * bytes_]
        while len(values) < 64 * 4 * codes:
            block = awkward.pop() if awkward else rng.randbytes(bytes_)
            value = ggml.dequantize(name, block)
            if all(map(math.isfinite, struct.unpack(f"<{codes}f", value))):
                blocks, values = blocks + block, values + value
        (folder / f"{name}.blocks").write_bytes(blocks)
        (folder / f"{name}.f32").write_bytes(values)


main()
