"""What Python does to any object: it copies and pickles it, compares it, asks for its truth, indexes it, collects it."""

import gc
import os
import weakref

import numpy as np
import pytest
from conftest import check_errors, run_python

import glgemm


def test_nothing_is_copied_or_made_without_its_constructor():
    """By any protocol, alone and in containers, through functions of object and of pybind11's classes; nothing ends Python."""
    code = """
import copy, inspect, pickle, weakref
engine = glgemm.Engine()
array, accelerators = engine.asarray(np.eye(2, dtype=np.float32)), glgemm.Accelerators("0")
future = engine.stream(np.eye(2, dtype=np.float32), np.eye(2, dtype=np.float32), progress=False)
future.result()
terms = glgemm._core.Terms("matmul", kernel=None, precision="standard")
objects = [engine, array, engine.start(1, array, array), accelerators, future, engine._service, accelerators._devices, terms,
           glgemm._core.StreamTerms(), glgemm._core.SavedState(engine._service), engine.stopwatch(), glgemm.Report()]
kinds = {kind for kind in vars(glgemm._core).values() if isinstance(kind, type) and not issubclass(kind, Exception)}
refused, allowed = 0, []
def refuse(call):
    global refused
    try: allowed.append(call())
    except TypeError: refused += 1
for one in objects:
    for protocol in range(6):
        for what in (one, [one], {"a": one}, (1, {2: [one]})):
            refuse(lambda: pickle.dumps(what, protocol))
            refuse(lambda: pickle._dumps(what, protocol))
        refuse(lambda: one.__reduce_ex__(protocol))
    refuse(lambda: copy.copy(one))
    refuse(lambda: copy.deepcopy([one]))
    assert weakref.ref(one)() is one and repr(one) and dir(one)
    inspect.getmembers(one)
    kind = type(one)
    assert issubclass(type("Sub", (kind,), {}), kind)
refuse(lambda: object.__reduce__(array))
for kind in (glgemm.Array, glgemm.Job, glgemm.Stopwatch, glgemm._core.Work, glgemm._core.Service):
    for call in (kind, lambda: kind(1), lambda: kind.__new__(kind), lambda: object.__new__(kind), type("Sub", (kind,), {}),
                 type("Sub", (kind,), {"__init__": lambda self: None}), kind.__mro__[1]):
        refuse(call)
assert not allowed, allowed
for kind in kinds:
    assert kind.__reduce_ex__ is not object.__reduce_ex__, kind
assert array.numpy()[0, 0] == 1
print("end")
"""
    assert run_python(code) == (0, "end\n", "")


def test_what_is_on_the_host_is_copied():
    import copy
    import pickle

    w = glgemm.quantize(np.eye(4, 32, dtype=np.float32), "q8_0").T
    made = [pickle.loads(pickle.dumps(w, protocol)) for protocol in range(6)]
    for one in (*made, copy.copy(w), copy.deepcopy(w)):
        assert one.format == "q8_0" and np.array_equal(one.numpy(), w.numpy())
    for kind in (glgemm.Error, glgemm.Unsupported, glgemm.DeviceLost):
        for protocol in range(6):
            one = pickle.loads(pickle.dumps(kind("words"), protocol))
            assert type(one) is kind and str(one) == "words"


def test_comparisons_and_truth_are_refused(engine):
    """By their identity two arrays are never equal, and each is true: NumPy looks at elements."""
    x = np.zeros(1, np.float32)
    d = engine.asarray(x)
    w = glgemm.quantize(np.eye(2, 32, dtype=np.float32), "q8_0")
    for one, host in ((d, x), (w, w.numpy())):
        check_errors(
            *((lambda call=call: call(one), TypeError, r"is not compared: x.numpy\(\) == y compares") for call in (
                lambda z: z == host,
                lambda z: host == z,
                lambda z: z != host,
                lambda z: z == z,
                lambda z: np.float32(0) == z,
                lambda z: None != z,
                lambda z: z in [host, z],
            )),
            *((lambda call=call: call(one), TypeError, r"has no truth value: x.numpy\(\).any\(\)") for call in (bool, lambda z: not z, lambda z: z and 1)),
            (lambda: hash(one), TypeError, "unhashable"),
            (lambda: one < host, TypeError, "'<' not supported"),
        )
    assert d is not None and d in [d] and np.array_equal(d, x)
    check_errors(
        (lambda: 0 in d, TypeError, "is not compared"),
        (lambda: list(d[0]), TypeError, "iteration over a 0-d array"),
        (lambda: len(d[0]), TypeError, "unsized"),
    )
    assert [one.shape for one in engine.asarray(np.ones((2, 3)))] == [(3,), (3,)]


KEYS = [
    *(True, False, np.True_, np.array(True), (None, True), (slice(None), False), [True], [False, True, True, False], np.array([], bool)),
    *(1, -4, np.int8(-1), np.array(2), np.array(253, np.uint8), np.uint64(1), 4, -5, np.array(9), 1 << 40, -1 << 80, [1 << 80]),
    *([], [[]], np.array([]), np.array([], np.int32), np.empty((0, 2), int), ([], 0), ([], []), (slice(None), [])),
    *((), None, ..., (..., None), (None, ..., None, 1), (..., ...), (0, 0, 0), (0, 0, ..., None)),
    *(1.0, np.float32(1), np.array(1.0), np.array([1.0]), [1.5], "0", b"0", np.str_("0"), np.array(None), {}, object(), 1j),
    *([1, 0], [-1], np.array([3, 0], np.uint64), [4], [-5], [None], [slice(1)], np.array([2**64 - 1], np.uint64), (0, [1, 0]), ([1], [0])),
    *(slice(True, None), slice(0, 99, 2), slice(None, None, -2), slice(0, "a"), slice(1.0), slice(9, 2), slice(0, 1 << 90), slice(0, 2, 0)),
    *(range(2), (0, 1), ((0, 1),), ([0], None), (None, [0, 1], ...), (..., [0, 1]), (..., np.array(1)), [np.array(1), 2]),
]


@pytest.mark.filterwarnings("ignore:In future, it will be an error for 'np.bool_' scalars")
@pytest.mark.parametrize("key", KEYS, ids=repr)
def test_indices_are_numpys_or_refused(engine, key):
    for shape in ((4, 3), (4,), ()):
        x = np.arange(np.prod(shape, dtype=int), dtype=np.float32).reshape(shape)
        d, refused = engine.asarray(x), (IndexError, TypeError, ValueError)
        try:
            expected = x[key]
        except refused:
            with pytest.raises(refused):
                d[key]
            with pytest.raises(refused):
                d[key] = 7
        else:
            try:
                assert np.array_equal(d[key].numpy(), expected) and d[key].shape == np.shape(expected)
            except IndexError as error:
                assert "an array on the device takes" in str(error)
                with pytest.raises(IndexError, match="an array on the device takes"):
                    d[key] = 7
            else:
                x[key] = d[key] = 7
        assert np.array_equal(d.numpy(), x)


def test_numbers_on_the_device_are_indices(engine):
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    d = engine.asarray(x)
    assert np.array_equal(d[engine.asarray(np.int32(2))].numpy(), x[2])
    assert np.array_equal(d[engine.asarray(np.uint8([3, 0]))].numpy(), x[[3, 0]])
    with pytest.raises(IndexError, match=r"this one is \(\) float32"):
        d[engine.asarray(np.float32(2))]


def test_assigned_values_are_numpys(engine):
    x = np.zeros((4, 3), np.float32)
    d = engine.asarray(x)
    for key in (0, [3, 1], np.s_[:, 1:], np.s_[[2, 0, 1], ::2], np.s_[..., [0, 2]], True):
        for value in (3, np.float64(4), np.arange(1.0), np.full((1, 1, 1, 1), 5), [[6]], True, d[1:2, :1]):
            if key is not True:
                d[key] = value
                x[key] = np.asarray(value)
            assert np.array_equal(d.numpy(), x)
    for value in (1j, None, "1", np.ones(4), np.ones((2, 1, 4))):
        with pytest.raises((TypeError, ValueError)):
            d[[0, 2]] = value
    assert np.array_equal(d.numpy(), x)


def test_dlpack_keeps_its_promises(engine):
    d = engine.asarray(np.arange(6, dtype=np.float32).reshape(2, 3).T)

    class Foreign:
        """An array whose consumer asks as the array API has it."""

        def __init__(self, **arguments):
            self.arguments = arguments

        def __dlpack__(self, **_):
            return d.__dlpack__(**self.arguments)

        def __dlpack_device__(self):
            return d.__dlpack_device__()

    for arguments in ({}, {"copy": None}, {"copy": True}, {"stream": None, "dl_device": (1, 0)}, {"dl_device": d.__dlpack_device__()}):
        for taken in (np.from_dlpack(Foreign(**arguments)), engine.asarray(Foreign(**arguments)).numpy()):
            assert np.array_equal(taken, d.numpy())
    assert np.array_equal(np.from_dlpack(d), d.numpy()) and np.array_equal(glgemm.matmul(Foreign(), d.T.numpy()), (d @ d.T).numpy())
    # A consumer of version 1.0 gets a capsule of it, or of the version before.
    assert "dltensor" in repr(d.__dlpack__(max_version=(1, 0), copy=True, dl_device=(1, 0)))
    check_errors(
        (lambda: d.__dlpack__(copy=False), BufferError, "cannot be had without a copy"),
        (lambda: d.__dlpack__(copy=False, max_version=(1, 0)), BufferError, "cannot be had without a copy"),
        (lambda: d.__dlpack__(dl_device=(2, 0)), BufferError, r"not to \(2, 0\)"),
        (lambda: d.__dlpack__(stream=1), BufferError, "not 1"),
        (lambda: d.__dlpack__(other=1), TypeError, ""),
        (lambda: d.__array__(copy=False), ValueError, "without a copy"),
    )


def test_operands_that_are_no_arrays_are_named(engine):
    a = np.ones((2, 2), np.float32)
    d, image = engine.asarray(a), np.ones((1, 3, 3, 1), np.float32)
    for given, words in ((None, "None"), ("a", "'a'"), (b"a", "b'a'"), (object, "object"), ({}, "{}")):
        for call in (
            lambda: glgemm.matmul(given, a),
            lambda: glgemm.matmul(a, given),
            lambda: glgemm.matmul(d, given),
            lambda: glgemm.matmul(glgemm.quantize(np.eye(2, 32, dtype=np.float32), "q8_0"), given),
            lambda: glgemm.gemm(1, given, a),
            lambda: glgemm.gemm(1, d, given),
            lambda: engine.start(1, given, a),
            lambda: glgemm.stream(a, given),
            lambda: glgemm.explain(given, a),
            lambda: glgemm.convolve(image, given),
            lambda: glgemm.convolve(given, image),
            lambda: engine.start_convolve(image, given),
            lambda: glgemm.mlp(given, [(a,)]),
            lambda: glgemm.mlp(a, [(given,)]),
            lambda: engine.prepare(1, given, a),
            lambda: glgemm.explain_convolve(image, given),
            lambda: glgemm.explain_mlp(given, [(a,)]),
            lambda: engine.asarray(given),
        ):
            with pytest.raises(TypeError, match=f"an operand is .*{words}"):
                call()
    with pytest.raises(ValueError, match="the second operand is a scalar"):
        glgemm.matmul(a, 3.0)


def test_an_out_with_odd_strides(engine):
    """It is refused where two of its elements share memory, and for nothing else."""
    generator = np.random.default_rng(0)
    shared = 0
    for _ in range(400):
        shape = tuple(generator.integers(1, 6, 2))
        steps = tuple(int(step) * int(generator.choice([4, 4, 2])) for step in generator.integers(-9, 10, 2))
        out = np.lib.stride_tricks.as_strided(np.zeros(400, np.float32)[200:], shape, steps)
        places = {(i * steps[0] + j * steps[1]) for i in range(shape[0]) for j in range(shape[1])}
        bytes_of = [place + byte for place in places for byte in range(4)]
        is_shared = len(places) < out.size or len(set(bytes_of)) < len(bytes_of)
        shared += is_shared
        a, b = np.ones((shape[0], 3), np.float32), np.ones((3, shape[1]), np.float32)
        if is_shared:
            with pytest.raises(ValueError, match="elements that share memory"):
                glgemm.matmul(a, b, out=out)
        else:
            assert glgemm.matmul(a, b, out=out) is out and (out == 3).all()
    assert 50 < shared < 350
    deep = np.lib.stride_tricks.as_strided(np.zeros(400, np.float32), (2, 3, 2), (4, 12, 8))
    with pytest.raises(ValueError, match="share memory"):
        glgemm.matmul(np.ones((2, 3, 1), np.float32), np.ones((1, 2), np.float32), out=deep)
    deep = np.lib.stride_tricks.as_strided(np.zeros(400, np.float32), (2, 2, 2), (12, 8, 44))
    assert (glgemm.matmul(np.ones((2, 2, 1), np.float32), np.ones((1, 2), np.float32), out=deep) == 1).all()


@pytest.mark.skipif(not os.path.exists("/proc/self/task"), reason="counts threads in /proc")
def test_an_engine_that_its_log_reaches_is_collected():
    """Through the engine, an array, a job; its thread ends."""
    glgemm.matmul(np.ones(2, np.float32), np.ones(2, np.float32))

    def make(reach):
        class Holder:
            pass

        holder, lines = Holder(), []
        engine = glgemm.Engine(log=lambda line: lines.append((line, holder)), program_cache="")
        array = engine.asarray(np.eye(3, dtype=np.float32))
        assert (array @ array).numpy()[0, 0] == 1 and lines
        holder.kept = {"engine": engine, "array": array, "job": engine.start(1, array, array)}[reach]
        return weakref.ref(engine), weakref.ref(holder)

    gc.collect()
    threads = len(os.listdir("/proc/self/task"))
    left = [one for reach in ("engine", "array", "job") for one in make(reach)]
    gc.collect()
    assert [one() for one in left] == [None] * 6
    assert len(os.listdir("/proc/self/task")) <= threads


@pytest.mark.parametrize("reach", ["array", "view", "copy", "quantized", "job", "begun", "into", "convolution", "network"])
def test_a_buffer_that_keeps_its_own_array_is_collected(engine, reach):
    """Through an array, a view, several of both, a job that is done or not; and not as long as anything else has one of them."""

    class Buffer:
        pass

    elements, ones = engine.asarray(np.ones((4, 4), np.float32)), np.ones((4, 4), np.float32)
    codes = engine.asarray(np.zeros(8 * 34, np.uint8))

    def make():
        buffer = Buffer()
        buffer.glo = (codes if reach == "quantized" else elements).buffer
        array = engine.quantized(buffer, "q8_0", (8, 32)) if reach == "quantized" else engine.wrap(buffer, (4, 4))
        buffer.kept = {
            "array": lambda: array,
            "view": lambda: array[1:].T,
            "copy": lambda: [array, array[1:], array.T, array @ array, {"more": array[None]}],
            "quantized": lambda: [array, array[4:]],
            "begun": lambda: engine.start(1, array, ones, bias=array[:, :1]),
            "into": lambda: engine.start(1, ones, ones, 0, array),
            "convolution": lambda: engine.start_convolve(array[None, ..., None], array[:1, :3, None, None], out=None),
            "network": lambda: engine.start_mlp(ones, [(ones,), (array, array[0])]),
            "job": lambda: [job := engine.start(1, ones, ones, 0, array), job.result()],
        }[reach]()
        return array, weakref.ref(buffer)

    gc.collect()
    array, buffer = make()
    view = array[2:]
    del array
    gc.collect()
    assert buffer() is not None and view.numpy().shape[0] in (2, 6)  # something else shows its elements
    del view
    gc.collect()
    assert buffer() is None
    array, buffer = make()
    view = array[2:]
    view.free()  # of all that show them
    with pytest.raises(ValueError, match="the array is freed"):
        array.numpy()
    gc.collect()
    assert buffer() is None and array.shape[1] in (4, 32)


def test_a_log_is_called_as_long_as_its_engine_lives():
    lines = []
    engine = glgemm.Engine(log=lines.append, program_cache="")
    gc.collect()
    array = engine.asarray(np.eye(3, dtype=np.int32))
    before = len(lines)
    array @ array
    assert len(lines) > before
    del engine
    gc.collect()
    assert np.array_equal((array @ array).numpy(), np.eye(3))
