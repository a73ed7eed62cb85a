"""ONNX's node tests, a model of one node each, with tensors in and out: a reader of as much of protobuf's wire format as they need.

  onnx_case.py FOLDER ARCHIVE LICENCE OPERATOR...   packs the tests of these operators, from the folder data/node of ONNX's backend tests

The numbers of the fields are those of onnx.proto; https://protobuf.dev/programming-guides/encoding has the format.
"""

import pathlib
import struct
import sys
import zipfile
from typing import Any, NamedTuple

import numpy as np

# TensorProto.DataType, as far as NumPy has it.
TYPES = {1: "float32", 2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32", 7: "int64", 9: "bool", 10: "float16", 11: "float64",
         12: "uint32", 13: "uint64", 14: "complex64", 15: "complex128"}  # fmt: skip


class Node(NamedTuple):
    """A node of a graph."""

    operator: str
    inputs: list  # names; an optional input that is left out has the name ""
    outputs: list
    attributes: dict


def varint(data, at):
    """A number of 7 bits for each byte, and where it ends."""
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def fields(data):
    """The fields of a message, by number: lists of integers, and of the bytes of all else."""
    found, at = {}, 0
    while at < len(data):
        tag, at = varint(data, at)
        kind = tag & 7
        if kind == 0:
            value, at = varint(data, at)
        else:
            size, at = varint(data, at) if kind == 2 else ({1: 8, 5: 4}[kind], at)
            if at + size > len(data):
                raise ValueError(f"a field of {size} bytes begins at byte {at} of {len(data)}")
            value, at = data[at : at + size], at + size
        found.setdefault(tag >> 3, []).append(value)
    return found


def integers(values):
    """A repeated field of integers, packed or not, of 64 bits with a sign."""
    result = []
    for value in values:
        at = 0
        while isinstance(value, bytes) and at < len(value):
            number, at = varint(value, at)
            result.append(number)
        if isinstance(value, int):
            result.append(value)
    return [x - (1 << 64) if x >> 63 else x for x in result]


def tensor(data):
    """A TensorProto as an array."""
    found = fields(data)
    shape = integers(found.get(1, []))
    if found[2][0] == 8:  # string_data
        return np.array([text.decode() for text in found.get(6, [])]).reshape(shape)
    dtype = np.dtype(TYPES[found[2][0]])
    if 9 in found:  # raw_data
        return np.frombuffer(found[9][0], dtype.newbyteorder("<")).astype(dtype).reshape(shape)
    floats, doubles = (b"".join(found.get(number, [])) for number in (4, 10))
    if floats or doubles:
        return np.frombuffer(floats or doubles, "<f4" if floats else "<f8").view(dtype).reshape(shape)
    numbers = integers(found.get(5, []) + found.get(7, []) + found.get(11, []))  # int32_data, int64_data, uint64_data
    if dtype == np.float16:  # its bits
        return np.array(numbers, np.uint16).view(dtype).reshape(shape)
    return np.array(numbers).astype(dtype).reshape(shape)


def attribute(data) -> tuple[str, Any]:
    """The name and the value of an AttributeProto."""
    found = fields(data)
    kind = found.get(20, [0])[0]
    number = lambda raw: struct.unpack("<f", raw)[0]
    values = {
        1: lambda: number(found.get(2, [bytes(4)])[0]),
        2: lambda: (integers(found.get(3, [])) or [0])[0],
        3: lambda: found.get(4, [b""])[0].decode(),
        4: lambda: tensor(found[5][0]),
        6: lambda: list(np.frombuffer(b"".join(found.get(7, [])), "<f4")),
        7: lambda: integers(found.get(8, [])),
        8: lambda: [text.decode() for text in found.get(9, [])],
    }
    return found[1][0].decode(), values[kind]() if kind in values else None


def nodes(model):
    """The nodes of a ModelProto's graph."""
    result = []
    for found in map(fields, fields(fields(model)[7][0]).get(1, [])):
        names = lambda number: [name.decode() for name in found.get(number, [])]
        result.append(Node(found[4][0].decode(), names(1), names(2), dict(map(attribute, found.get(5, [])))))
    return result


class Case(NamedTuple):
    """A test: its node, and for each of its sets of data the arrays in and out. An input that is left out is None."""

    name: str
    node: Node
    data: list


def cases_of(folder):
    """The tests of a folder or of an archive, both as pathlib has them, whose model is a single node."""
    for test in sorted(folder.iterdir(), key=lambda path: path.name):
        if not (test / "model.onnx").is_file():
            continue
        graph = nodes((test / "model.onnx").read_bytes())
        if len(graph) == 1:
            yield test, graph[0]


def load(test, node):
    """The test of a folder."""
    data = []
    for part in sorted((part for part in test.iterdir() if part.name.startswith("test_data_set_")), key=lambda path: path.name):
        names = [file.name for file in part.iterdir()]
        read = lambda kind, i: tensor((part / f"{kind}_{i}.pb").read_bytes())
        given = iter(range(sum(name.startswith("input_") for name in names)))
        outputs = range(sum(name.startswith("output_") for name in names))
        data.append(([read("input", next(given)) if name else None for name in node.inputs], [read("output", i) for i in outputs]))
    return Case(test.name, node, data)


def pack(folder, archive, licence, operators):
    """Writes the tests of some operators, and their licence, to an archive: the same bytes for the same tests."""
    with zipfile.ZipFile(archive, "w") as packed:
        packed.writestr(zipfile.ZipInfo("LICENSE"), licence.read_bytes(), zipfile.ZIP_DEFLATED)
        for test, node in cases_of(folder):
            if node.operator not in operators:
                continue
            for file in sorted(file for file in test.rglob("*") if file.is_file()):
                packed.writestr(zipfile.ZipInfo(str(file.relative_to(folder))), file.read_bytes(), zipfile.ZIP_DEFLATED)


if __name__ == "__main__":
    pack(pathlib.Path(sys.argv[1]), sys.argv[2], pathlib.Path(sys.argv[3]), sys.argv[4:])
