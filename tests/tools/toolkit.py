# SPDX-License-Identifier: LGPL-2.1-or-later
"""What the tests of the tools share: running them, reading .npy, writing PNG. Standard library only."""

import array
import errno
import glob
import json
import os
import struct
import subprocess
import sys
import tempfile
import unittest
import zlib

GOLDEN = os.environ["VLM_GOLDEN_DIR"]
CAPTION = os.environ["VLM_CAPTION"]
MODEL_TOOL = os.environ["VLM_MODEL"]
DEMO_MODEL = os.environ["VLM_DEMO_MODEL"]
SMALL = os.path.join(GOLDEN, "models", "lfm25")
# Small models: as Hugging Face directories, and as directories with GGUF files.
MODELS = sorted(map(os.path.dirname, glob.glob(os.path.join(GOLDEN, "models", "*", "config.json"))))
GGUF_MODELS = sorted(glob.glob(os.path.join(GOLDEN, "models", "gguf-*")))


def run(*command, stdin=b"", stdout=subprocess.PIPE, env=None, status=0, timeout=600):
    """Runs a program; returns its standard output and error as bytes and text.

    stdin is what the program reads, or a file descriptor to read from; stdout may be one to write to.
    """
    if isinstance(stdin, str):
        stdin = stdin.encode()
    source = {"stdin": stdin} if isinstance(stdin, int) else {"input": stdin}
    merged = dict(os.environ, **(env or {}))
    merged = {key: value for key, value in merged.items() if value is not None}
    done = subprocess.run(command, **source, stdout=stdout, stderr=subprocess.PIPE, env=merged, timeout=timeout)
    errors = done.stderr.decode("utf-8", "replace")
    if done.returncode != status:
        raise AssertionError("%r gave %d, not %d:\n%s" % (command, done.returncode, status, errors))
    return done.stdout, errors


def caption(*args, model=SMALL, **kwargs):
    return run(CAPTION, "--model", model, "--temperature", "0", "--precision", "exact", "--threads", "1",
               *args, **kwargs)


class Npy:
    """An array of a .npy file: dtype text, shape, bytes."""

    TYPES = {"|u1": "B", "<i4": "i", "<f4": "f"}

    def __init__(self, path):
        with open(path, "rb") as f:
            data = f.read()
        if data[:8] != b"\x93NUMPY\x01\x00":
            raise AssertionError("%s: no .npy of format 1.0" % path)
        length = struct.unpack("<H", data[8:10])[0]
        if (10 + length) % 64 or data[9 + length:10 + length] != b"\n":
            raise AssertionError("%s: header of %d bytes" % (path, length))
        header = eval(data[10:10 + length].decode("ascii"), {"__builtins__": {}})
        if header["fortran_order"]:
            raise AssertionError("%s: in Fortran order" % path)
        self.dtype, self.shape, self.bytes = header["descr"], header["shape"], data[10 + length:]
        self.values = array.array(self.TYPES[self.dtype], self.bytes)
        count = 1
        for side in self.shape:
            count *= side
        if len(self.values) != count:
            raise AssertionError("%s: %d values in %r" % (path, len(self.values), self.shape))


def load_dump(folder):
    return {name[:-4]: Npy(os.path.join(folder, name)) for name in os.listdir(folder)}


def fnv1a64(data):
    h = 0xCBF29CE484222325
    for byte in data:
        h = ((h ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return "%016x" % h


def splitmix64(x):
    mask = (1 << 64) - 1
    z = (x + 0x9E3779B97F4A7C15) & mask
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
    return z ^ (z >> 31)


def noise(seed, count):
    """count bytes; those of the golden pattern "hash"."""
    return bytes(splitmix64((seed << 32) + i) >> 56 for i in range(count))


def draw(picture):
    """The RGB bytes of a golden picture, or None for a pattern that would take too long here."""
    w, h = picture["w"], picture["h"]
    if picture["pattern"] == "hash":
        return noise(picture["seed"], w * h * 3) if w * h <= 10000 else None
    if picture["pattern"] == "ramp":
        rows = []
        for y in range(h):
            for x in range(w):
                rows += [x * 255 // max(w - 1, 1), y * 255 // max(h - 1, 1), (x + y) * 255 // max(w + h - 2, 1)]
        return bytes(rows)
    if picture["pattern"] == "halves":
        return (b"\xff\0\0" * (w // 2) + b"\0\0\xff" * (w - w // 2)) * h
    return None


def write_png(path, w, h, colour, depth, rows, chunks=()):
    """colour: 0 grey, 2 RGB, 3 palette, 4 grey + alpha, 6 RGBA; rows: packed bytes of each row."""

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    data = b"".join(b"\0" + row for row in rows)
    with open(path, "wb") as f:
        f.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", w, h, depth, colour, 0, 0, 0)))
        for kind, content in chunks:
            f.write(chunk(kind, content))
        f.write(chunk(b"IDAT", zlib.compress(data, 1)) + chunk(b"IEND", b""))


def write_rgb_png(path, w, h, rgb, chunks=()):
    write_png(path, w, h, 2, 8, [rgb[y * w * 3:(y + 1) * w * 3] for y in range(h)], chunks)


class ToolTest(unittest.TestCase):
    def loses_output(self, *command, stdin=b""):
        """The program's standard output takes nothing: it must say so and fail. Returns its errors."""
        with open("/dev/full", "wb") as full:
            _, errors = run(*command, stdin=stdin, stdout=full.fileno(), status=1)
        self.assertIn("standard output: " + os.strerror(errno.ENOSPC), errors)
        self.assertEqual(errors.count("standard output"), 1, errors)
        return errors

    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory(prefix="vlm-tools-", dir=os.environ.get("VLM_SCRATCH"))
        self.addCleanup(self.scratch.cleanup)

    def path(self, *parts):
        return os.path.join(self.scratch.name, *parts)


def main():
    unittest.main(argv=[sys.argv[0], "-v"] + sys.argv[1:])
