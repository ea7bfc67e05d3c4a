# SPDX-License-Identifier: LGPL-2.1-or-later
"""A reader of safetensors and .slm files, and the rules of rounding, written a second time in plain Python."""

import json
import os
import struct

SIZES = {"F32": 4, "F16": 2, "BF16": 2, "U8": 1, "I8": 1}
GROUP = 64


class Tensor:
    def __init__(self, dtype, shape, data, offset):
        self.dtype, self.shape, self.data = dtype, tuple(shape), data
        self.offset = offset  # in the file

    def values(self):
        """Floats, row by row."""
        count = len(self.data) // SIZES[self.dtype]
        if self.dtype == "BF16":
            return [struct.unpack("<f", b"\0\0" + self.data[i:i + 2])[0] for i in range(0, 2 * count, 2)]
        return list(struct.unpack("<%d%s" % (count, {"F32": "f", "F16": "e"}[self.dtype]), self.data))


def read(path):
    """The tensors of one file by name, and its metadata. The bytes must be covered without gaps."""
    with open(path, "rb") as f:
        data = f.read()
    length = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + length].decode("utf-8"))
    metadata = header.pop("__metadata__", {})
    tensors, end = {}, 0
    for name, entry in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        first, last = entry["data_offsets"]
        count = 1
        for side in entry["shape"]:
            count *= side
        if first != end or last - first != count * SIZES[entry["dtype"]]:
            raise AssertionError("%s: %s lies at %d..%d" % (path, name, first, last))
        start = 8 + length + first
        tensors[name] = Tensor(entry["dtype"], entry["shape"], data[start:start + last - first], start)
        end = last
    if 8 + length + end != len(data):
        raise AssertionError("%s: ends at %d, not at %d" % (path, len(data), 8 + length + end))
    return tensors, metadata


def write(path, tensors):
    """tensors: name to (dtype, shape, bytes)."""
    header, end = {}, 0
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [end, end + len(data)]}
        end += len(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + b"".join(data for _, _, data in tensors.values()))


def read_directory(folder):
    tensors = {}
    for name in sorted(os.listdir(folder)):
        if name.endswith(".safetensors"):
            tensors.update(read(os.path.join(folder, name))[0])
    return tensors


def f32(value):
    return struct.unpack("<f", struct.pack("<f", value))[0]


def f16(value):
    """Rounds to the nearest half, ties to even; the bytes."""
    return struct.pack("<e", value)


def quantise(values, largest):
    """One row or group of floats: the scale's bytes, and the integers."""
    scale = f16(f32(max(abs(x) for x in values) / largest))
    step = struct.unpack("<e", scale)[0]
    if step == 0:
        return scale, [0] * len(values)
    return scale, [max(-largest, min(largest, round(f32(x / step)))) for x in values]


def pack_int8(values, columns):
    """[rows][columns] floats: the bytes of the integers, and those of the scales."""
    scales, integers = b"", []
    for first in range(0, len(values), columns):
        scale, row = quantise(values[first:first + columns], 127)
        scales += scale
        integers += row
    return struct.pack("%db" % len(integers), *integers), scales


def pack_int4(values, columns):
    scales, packed = b"", bytearray()
    for first in range(0, len(values), columns):
        row = []
        for start in range(first, first + columns, GROUP):
            scale, integers = quantise(values[start:min(start + GROUP, first + columns)], 7)
            scales += scale
            row += integers
        row += [0] * (columns % 2)
        packed += bytes(row[i] + 8 | row[i + 1] + 8 << 4 for i in range(0, len(row), 2))
    return bytes(packed), scales


def unpack(tensor, scale, columns):
    """The floats of a quantised tensor."""
    scales = scale.values()
    rows = tensor.shape[0]
    if tensor.dtype == "I8":
        integers = struct.unpack("%db" % len(tensor.data), tensor.data)
        return [integers[i] * scales[i // columns] for i in range(rows * columns)]
    stride, groups, values = (columns + 1) // 2, (columns + GROUP - 1) // GROUP, []
    for row in range(rows):
        for column in range(columns):
            byte = tensor.data[row * stride + column // 2]
            values.append(((byte >> 4 if column % 2 else byte & 15) - 8) * scales[row * groups + column // GROUP])
    return values
