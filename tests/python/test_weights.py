"""Quantised matrices: on the host and on the device, from formats, layers and files; and products of two types."""

import json
import struct

import numpy as np
import pytest
from conftest import TABLE, assert_product, check_errors, integers
from hypothesis import given
from hypothesis import strategies as st
from test_matmul import elements

import glgemm

FORMATS = ["q4_0", "q5_1", "q8_0", "mxfp4", "nvfp4", "per_row", "per_tensor:codes=f8e5m2,scales=f16", "nbits:bits=4,group=32"]
FORMATS += ["nbits:bits=4,group=16,zeros=1,scales=f16", "nbits:bits=8,group=32,zeros=1"]


def random_weight(draw, format, shape):
    return glgemm.quantize(elements(draw, shape, "float32"), format)


@pytest.mark.parametrize("format", FORMATS)
@given(data=st.data())
def test_products(format, data):
    """Products of a whole weight and of parts of it, on either side, in batches, beside each type of floats."""
    shape = data.draw(st.sampled_from([(1, 64), (7, 96), (16, 70), (5, 1), (2, 6, 64), (3, 1, 4, 32), (0, 32), (4, 0)]))
    weight = random_weight(data.draw, format, shape)
    w = glgemm.default_engine().quantized(weight)
    numbers = weight.numpy()
    assert w.shape == numbers.shape == weight.shape and w.dtype == np.float32
    assert numbers.size == 0 or w.nbytes == w.mT.nbytes == weight.nbytes
    assert w.format == weight.format and np.array_equal(w.numpy(), numbers) and np.array_equal(w.mT.numpy(), weight.mT.numpy())
    first, begin = data.draw(st.integers(0, 2)), data.draw(st.sampled_from([0, 0, 64]))
    if "per_" in format or len(shape) == 2:  # a batch's rows lie close together, and a part's rows do not
        w, numbers = w[..., first:, :], numbers[..., first:, :]
    w, numbers = w[..., begin:], numbers[..., begin:]
    assert np.array_equal(w.numpy(), numbers)
    x = elements(data.draw, (3, numbers.shape[-1]), data.draw(st.sampled_from(["float32", "float16"])))
    assert_product((x @ w.mT).numpy(), x, numbers.swapaxes(-1, -2))
    assert_product((w @ x.T).numpy(), numbers, x.T)
    y = elements(data.draw, numbers.shape[-1:], "float32")
    assert_product((w @ y).numpy()[()], numbers, y)


def test_on_the_host(engine):
    weight, x = glgemm.quantize(integers((6, 64)), "q8_0"), integers((4, 64), seed=1)
    numbers = weight.numpy()
    assert isinstance(x @ weight.T, np.ndarray) and isinstance(x @ engine.asarray(weight).T, glgemm.Array)
    assert isinstance(engine.asarray(x) @ weight.T, glgemm.Array)
    assert_product(x @ weight.T, x, numbers.T)
    assert_product(weight @ x.T, numbers, x.T)
    assert np.array_equal(weight @ x[0], numbers @ x[0]) and np.array_equal(x[0] @ weight.T, numbers @ x[0])
    out = np.empty((4, 6), np.float32)
    assert glgemm.matmul(x, weight.T, out=out) is out and np.array_equal(out, x @ weight.T)
    c, bias = integers((4, 6), seed=2), integers((6,), seed=3)
    expected = np.maximum(2 * (x @ weight.T) + c + bias, 0)
    assert glgemm.gemm(2, x, weight, 1, c, bias=bias, activation="relu", op_b="T") is c and np.allclose(c, expected, rtol=1e-6)
    assert np.asarray(weight).dtype == np.float32 and np.array_equal(weight.T.numpy(), numbers.T)
    assert "q8_0, shape (64, 6)" in repr(weight.T) and "q8_0, shape (6, 64)" in repr(engine.asarray(weight))
    assert np.array_equal(engine.asarray(weight, np.float32).numpy(), numbers)
    copy = engine.asarray(weight).copy()
    assert copy.format is None and np.array_equal(copy.numpy(), numbers)


@given(data=st.data())
def test_streams(data):
    """Codes go to the device as they lie, on either side; where they do not lie along k, they are decoded."""
    n, k = data.draw(st.sampled_from([(1, 64), (7, 96), (40, 700), (33, 1)]))
    weight = random_weight(data.draw, data.draw(st.sampled_from(FORMATS)), (n, k))
    numbers, x = weight.numpy(), elements(data.draw, (5, k), data.draw(st.sampled_from(["float32", "float16"])))
    how = {"device_memory_limit_bytes": data.draw(st.sampled_from([0, 1 << 16])), "progress": False}
    assert_product(glgemm.stream(x, weight.T, **how).result(), x, numbers.T)
    assert_product(glgemm.stream(x, weight, op_b="T", **how).result(), x, numbers.T)
    assert_product(glgemm.stream(weight.T, x.T, op_a="T", **how).result(), numbers, x.T)
    y = elements(data.draw, (n, 3), "float32")
    assert_product(glgemm.stream(weight.T, y, **how).result(), numbers.T, y)
    assert_product(glgemm.stream(weight, weight.T, **how).result(), numbers, numbers.T)


def test_weights_that_do_not_fit_are_streamed(engine, monkeypatch):
    weight, x, c = glgemm.quantize(integers((6, 64)), "q8_0"), integers((4, 64), seed=1), integers((4, 6), seed=2)
    numbers, streamed = weight.numpy(), []
    monkeypatch.setattr(glgemm.Engine, "_fits", lambda self, size: size < 6 * 68 + 4 * 64 * 4)
    stream = glgemm.Engine.stream
    monkeypatch.setattr(glgemm.Engine, "stream", lambda self, *a, **b: streamed.append(self) or stream(self, *a, **b))
    assert_product(x @ weight.T, x, numbers.T)
    assert_product(engine.matmul(weight, x.T, out=np.empty((6, 4), np.float32)), numbers, x.T)
    expected = np.maximum(2 * (x @ numbers.T) + c, 0)
    assert glgemm.gemm(2, x, weight, 1, c, activation="relu", op_b="T") is c and np.allclose(c, expected, rtol=1e-6)
    assert streamed == [glgemm.default_engine(), engine, glgemm.default_engine()]
    assert_product(x[:3] @ weight.T, x[:3], numbers.T)
    assert np.array_equal(weight @ x[0], numbers @ x[0]) and len(streamed) == 3  # this fits, and a vector is no matrix


def test_streams_move_codes(engine):
    """What is streamed is checked, kept, and not decoded as a whole."""
    weight, x = glgemm.quantize(integers((64, 4096)), "q4_0"), integers((4096, 2), seed=1)
    with glgemm.Accelerators("0,0") as devices, pytest.MonkeyPatch.context() as patch:
        patch.setattr(glgemm.Quantized, "numpy", lambda self: pytest.fail("decoded"))
        c = engine.stream(weight, x, device_memory_limit_bytes=1 << 17, progress=False).result()
        assert np.array_equal(devices.stream(weight, x, progress=False).result(), c)
    assert_product(c, weight.numpy(), x)
    with pytest.raises(ValueError, match="stream: out overlaps A"):
        engine.stream(weight, x, out=weight.codes[: 64 * 2 * 4].view(np.float32).reshape(64, 2))
    with pytest.raises(ValueError, match="a streamed product has no batch"):
        engine.stream(glgemm.quantize(integers((2, 6, 64)), "q8_0"), integers((64, 2)))


@pytest.mark.parametrize("format", ["q4_0", "per_row", "nbits:bits=4,group=32", "nbits:bits=8,group=32,zeros=1"])
def test_buffers_of_the_application(engine, format):
    """Codes, scales and zeros where they lie, behind other bytes; nothing is copied."""
    weight, x = glgemm.quantize(integers((6, 96)), format), integers((4, 96), seed=1)
    numbers = weight.numpy()

    class Buffer:
        def __init__(self, part, before):
            self.bytes = np.concatenate([np.full(before, 255, np.uint8), part, np.zeros(-len(part) % 4, np.uint8)])
            self.array = engine.asarray(self.bytes)
            self.glo = self.array.buffer

    codes, scales, zeros = (Buffer(part, before) for part, before in ((weight.codes, 32), (weight.scales, 16), (weight.zeros, 4)))
    w = engine.quantized(codes, weight.format, (6, 96), offset=32, scales=(scales, 16), zeros=(zeros.glo, 4))
    assert w.format == weight.format and w.shape == (6, 96) and w.nbytes == weight.nbytes and w.buffer == codes.glo
    assert np.array_equal(w.numpy(), numbers) and np.array_equal(w[2:].numpy(), numbers[2:])
    assert_product((x @ w.T).numpy(), x, numbers.T)
    assert_product((x @ w[2:].T).numpy(), x, numbers[2:].T)
    other = glgemm.quantize(integers((6, 96), seed=2), format)
    for buffer, part, before in ((codes, other.codes, 32), (scales, other.scales, 16), (zeros, other.zeros, 4)):
        buffer.bytes[before : before + len(part)] = part
        buffer.array[...] = buffer.bytes
    assert_product((x @ w.T).numpy(), x, other.numpy().T)
    with pytest.raises(ValueError, match=r"quantized: A of 600x96 .*needs \d+ bytes from byte 32 on and leaves its buffer of \d+"):
        engine.quantized(codes, weight.format, (600, 96), offset=32, scales=(scales, 16), zeros=(zeros, 4))
    for refused, message in (
        (lambda: engine.quantized(4000000000, weight.format, (6, 96), scales=scales, zeros=zeros), "not the name of a buffer object"),
        (lambda: engine.quantized(0, weight.format, (6, 96)), "quantized: 0 is not the name of a buffer"),
        (lambda: engine.quantized(codes, weight.format, (6, 96), offset=-2), "quantized: the offset -2 is no byte of a buffer"),
    ):
        with pytest.raises(ValueError, match=message):
            refused()
    if weight.scales.size:
        with pytest.raises(ValueError, match="quantized: the scales of A .*: 0 is not the name of a buffer object"):
            engine.quantized(codes, weight.format, (6, 96), offset=32)


@pytest.mark.parametrize("bits, zeros, dtype", [(4, False, np.float32), (4, True, np.float16), (8, True, np.float32), (8, False, np.float16)])
def test_codes_with_scales(engine, bits, zeros, dtype):
    """ONNX's MatMulNBits, written out."""
    generator = np.random.default_rng(bits)
    n, groups, group = 5, 3, 32
    codes = generator.integers(0, 1 << bits, (n, groups * group), np.uint8)
    points = generator.integers(0, 1 << bits, (n, groups), np.uint8) if zeros else np.full((n, groups), 1 << bits - 1)
    scales = (2.0 ** generator.integers(-3, 3, (n, groups))).astype(dtype)
    pack = lambda x: x if bits == 8 else np.pad(x, ((0, 0), (0, x.shape[1] % 2))).reshape(n, -1, 2) @ np.array([1, 16], np.uint8)
    numbers = (codes.astype(np.float32) - np.repeat(points, group, 1)) * np.repeat(scales, group, 1)
    arguments = (pack(codes), scales, pack(points)) if zeros else (pack(codes), scales)
    w = engine.quantized(*arguments, group=group, bits=bits)
    assert np.array_equal(w.numpy(), numbers)
    x = integers((4, groups * group))
    assert np.array_equal((x @ w.T).numpy(), x @ numbers.T)
    short = engine.quantized(*arguments, group=group, bits=bits, shape=(n, groups * group - 7))
    assert np.array_equal((x[:, :-7] @ short.T).numpy(), x[:, :-7] @ numbers[:, :-7].T)


def test_explain(engine):
    weight, x = glgemm.quantize(integers((6, 64)), "q8_0"), integers((4, 64))
    for a, b in ((x, weight.T), (engine.asarray(x), weight.T), (x, engine.quantized(weight).T)):
        lines = glgemm.explain(a, b, kernel="naive").splitlines()
        assert lines[:2] == ["A: (4, 64) float32, on the device", "B: (64, 6) q8_0, on the device"]
        assert lines[2].startswith("kernel: naive")
        assert lines[3].startswith(f"on the device: {4 * 64 * 4 + 6 * 68 + 4 * 6 * 4} bytes of")
    assert glgemm.explain(x[:0], weight.T).startswith("nothing")


def test_scales_for_rows(engine):
    codes, scales = integers((4, 10), np.int8), np.float32([1, 2, 4, 8])
    numbers = codes * scales[:, None]
    assert np.array_equal(engine.quantized(codes, "per_row", scales=scales).numpy(), numbers)
    unsigned = engine.quantized(codes.view(np.uint8), "per_tensor", scales=np.float16(0.5))
    assert unsigned.format == "per_tensor:codes=u8,scales=f16" and np.array_equal(unsigned.numpy(), codes.view(np.uint8) * 0.5)


def packed_words(codes, axis, bits):
    """Codes as words of 32 bits, the first in the lowest bits."""
    codes = np.moveaxis(codes, axis, -1).astype(np.uint32)
    words = codes.reshape(*codes.shape[:-1], -1, 32 // bits) << np.arange(0, 32, bits, dtype=np.uint32)
    return np.moveaxis(words.sum(-1, dtype=np.uint32), -1, axis).view(np.int32)


@pytest.mark.parametrize("bits", [4, 8])
def test_layers_of_gptq_and_awq(bits):
    generator = np.random.default_rng(bits)
    k, n, group = 64, 16, 32
    codes, points = generator.integers(0, 1 << bits, (k, n)), generator.integers(1, 1 << bits, (k // group, n))
    scales = (2.0 ** generator.integers(-3, 3, (k // group, n))).astype(np.float16)
    numbers = ((codes - np.repeat(points, group, 0)) * np.repeat(scales, group, 0).astype(np.float32)).T
    arrays = packed_words(codes, 0, bits), packed_words(points - 1, 1, bits), scales
    order, after = np.arange(k) // group, packed_words(points, 1, bits)
    assert np.array_equal(glgemm.from_gptq(*arrays, bits=bits).numpy(), numbers)
    assert np.array_equal(glgemm.from_gptq(*arrays, order, bits=bits).numpy(), numbers)
    assert np.array_equal(glgemm.from_gptq(arrays[0], after, scales, bits=bits, zeros="themselves").numpy(), numbers)
    check_errors(
        (lambda: glgemm.from_gptq(*arrays, order[::-1], bits=bits), ValueError, "g_idx"),
        (lambda: glgemm.from_gptq(*arrays, bits=bits, zeros="v2"), ValueError, "zeros is 'v2'"),
        (lambda: glgemm.from_gptq(arrays[0], arrays[1][:1], scales, bits=bits), ValueError, "bytes"),
    )
    if bits == 4:
        order = np.arange(n).reshape(-1, 8)[:, [0, 2, 4, 6, 1, 3, 5, 7]].reshape(-1)
        weight = glgemm.from_awq(packed_words(codes[:, order], 1, 4), packed_words(points[:, order], 1, 4), scales)
        assert np.array_equal(weight.numpy(), numbers)


def gguf(path, tensors):
    """A .gguf file of (name, number of its type, shape, bytes)."""
    text = lambda words: struct.pack("<Q", len(words)) + words.encode()
    header, data = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), 0), b""
    for name, number, shape, given in tensors:
        header += text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *reversed(shape), number, len(data))
        data += given + bytes(-len(given) % 32)
    path.write_bytes(header + bytes(-len(header) % 32) + data)


def test_files(tmp_path, engine):
    x, w = integers((3, 64)), integers((5, 64), seed=1)
    quantised = glgemm.quantize(w, "q4_0")
    path = tmp_path / "model.gguf"
    tensors = [("w", 2, (5, 64), quantised.codes.tobytes()), ("half", 1, (5, 64), w.astype(np.float16).tobytes()), ("odd", 16, (256,), bytes(66))]
    gguf(path, tensors)
    model = glgemm.load(path)
    assert list(model) == ["w", "half", "odd"] and len(model) == 3 and "3 tensors" in repr(model) and "w" in model
    assert model.types["w"] == "Q4_0" and model["w"].format == "q4_0" and not model["w"].codes.flags.writeable
    assert np.array_equal(model["w"].numpy(), quantised.numpy()) and np.array_equal(x @ model["w"].T, x @ quantised.T)
    half = model["half"]
    del model
    assert half.dtype == np.float16 and np.array_equal(glgemm.matmul(x, half.T), x @ w.T)  # which keeps the file
    check_errors(
        (lambda: glgemm.load(path)["v"], KeyError, "v"),
        (lambda: glgemm.load(path)["odd"], TypeError, "'odd' is of .* which glgemm has not"),
        (lambda: glgemm.load(tmp_path / "none.gguf"), RuntimeError, "none.gguf"),
        (lambda: glgemm.load(__file__), ValueError, "test_weights.py"),
        (lambda: glgemm.load(3), TypeError, "PathLike"),
    )
    path = tmp_path / "model.safetensors"
    header = json.dumps({"x": {"dtype": "I8", "shape": [5, 64], "data_offsets": [0, 320]}}).encode()
    path.write_bytes(struct.pack("<Q", len(header)) + header + w.astype(np.int8).tobytes())
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"x": path.name, "y": "other.safetensors"}}))
    part = glgemm.load(index)
    assert part.missing_files == [str(tmp_path / "other.safetensors")] and "1 file missing" in repr(part)
    with pytest.raises(KeyError, match="y; of the model's files, these are missing: .*other.safetensors"):
        part["y"]
    model = glgemm.load(path)
    assert model.missing_files == [] and model["x"].dtype == np.int8 and np.array_equal(model["x"], w)


def test_what_is_refused(engine):
    weight = glgemm.quantize(integers((4, 64)), "q4_0")
    w, x = engine.quantized(weight), integers((3, 64))
    codes, scales = np.zeros((2, 64), np.uint8), np.ones((2, 4), np.float32)
    groups = engine.quantized(codes, scales, np.zeros((2, 2), np.uint8), group=32)
    many = engine.quantized(np.tile(codes, (2, 1)), np.tile(scales, (2, 1)), group=32)
    check_errors(
        (lambda: integers((3, 4)) @ w, ValueError, "its codes do not lie along k"),
        (lambda: x[:, 1:] @ w[:, 1:].T, ValueError, "begins at element 1 of a row, within a block of 32"),
        (lambda: x[:, ::2] @ w[:, ::2].T, ValueError, "all codes of each row"),
        (lambda: x @ w[::-1].T, ValueError, "all codes of each row"),
        (lambda: np.ones((1, 64), np.float32) @ groups[:, 32:96].T, ValueError, "whose zero lies within a byte"),
        (lambda: np.ones((1, 128), np.float32) @ many[::2].T, ValueError, "leaves out rows"),
        (lambda: w.__setitem__(0, 1), TypeError, "a quantised array cannot be written"),
        (lambda: glgemm.matmul(x, engine.asarray(x).T, out=w), TypeError, "C, D and the bias cannot"),
        (lambda: engine.quantized(weight.codes[1:], "q4_0", (4, 64)), ValueError, r"the codes of \(4, 64\) of q4_0 take 144 bytes, and 143 are given"),
        (lambda: engine.quantized(weight.codes, "q4_0"), TypeError, "need a shape"),
        (lambda: engine.quantized(codes), TypeError, "neither a format nor scales"),
        (lambda: engine.quantized(codes, scales, group=48), ValueError, "group is 48"),
        (lambda: engine.quantized(codes, scales, bits=5), ValueError, "bits is 5"),
        (lambda: engine.quantized(codes, scales.astype(int)), TypeError, "the scales are int64"),
        (lambda: glgemm.quantize(x, "q4_k"), ValueError, "q4_k"),
    )


@given(st.data())
def test_two_types(data):
    """What NumPy gives, without a copy on the host where the device multiplies both types as they are."""
    a_type, b_type = data.draw(st.sampled_from(TABLE)), data.draw(st.sampled_from(TABLE))
    a, b = elements(data.draw, (4, 5), a_type), elements(data.draw, (5, 3), b_type)
    common = np.result_type(a, b)
    if common == np.int64:
        with pytest.raises(TypeError, match="no products of int64"):
            glgemm.matmul(a, b)
        return
    assert_product(glgemm.matmul(a, b), a.astype(common), b.astype(common))
    mixed = a_type != b_type and glgemm._core.types_of_c.get((a_type, b_type))
    said = glgemm.explain(a, b)
    assert ("A is converted" in said or "B is converted" in said) == (not mixed and a_type != b_type)
    x, y = glgemm.default_engine().asarray(a), glgemm.default_engine().asarray(b)
    if not mixed:
        if a_type != b_type:
            with pytest.raises(TypeError, match="no common type of sums"):
                x @ y
        return
    assert (x @ y).dtype == mixed[-1] == glgemm.gemm(1, a, b).dtype == glgemm.stream(a, b).result().dtype
    for wanted in mixed:
        expected = glgemm.matmul(a, b, dtype=wanted)
        for made in (glgemm.matmul(x, y, dtype=wanted).numpy(), glgemm.gemm(1, a, b, dtype=wanted)):
            assert made.dtype == wanted and np.array_equal(made, expected, equal_nan=np.dtype(wanted).kind == "f")


def test_pairs_of_types():
    pairs = glgemm._core.types_of_c
    assert pairs["float16", "float32"] == ("float16", "float32") and pairs["int8", "uint8"] == ("int32",)
    assert pairs["bfloat16", "float16"] == ("bfloat16", "float16", "float32") and pairs["float8_e5m2", "float32"] == ("float32",)
    assert ("float32", "float64") not in pairs and ("int8", "float32") not in pairs
