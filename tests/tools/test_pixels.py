# SPDX-License-Identifier: LGPL-2.1-or-later
"""A PNG's pixels reach the model as they are in the file: no alpha, no gamma, no colour matrix.

Pictures of 256x256 become a crop without being resampled, so the crop shows the decoded bytes. They
are compared with what was written and, where PIL is there, with its convert("RGB").
"""

import os
import struct
import subprocess
import sys

from toolkit import ToolTest, caption, load_dump, main, noise, write_png

SIDE = 256
PALETTE = noise(90, 48)
PIL = "import sys; from PIL import Image; sys.stdout.buffer.write(Image.open(sys.argv[1]).convert('RGB').tobytes())"


def python_with_pil():
    for python in (sys.executable, "/usr/bin/python3"):
        if os.path.exists(python) and subprocess.run([python, "-c", "import PIL"], capture_output=True).returncode == 0:
            return python
    return None


def pack(values, depth):
    """Rows of samples below 8 bits, highest bits first."""
    per_byte, rows = 8 // depth, []
    for y in range(SIDE):
        row = values[y * SIDE:(y + 1) * SIDE]
        rows.append(bytes(sum(v << (8 - depth * (i + 1)) for i, v in enumerate(row[x:x + per_byte]))
                          for x in range(0, SIDE, per_byte)))
    return rows


def rows_of(data, width):
    return [data[y * SIDE * width:(y + 1) * SIDE * width] for y in range(SIDE)]


def grey(values):
    return bytes(v for value in values for v in (value, value, value))


class Pixels(ToolTest):
    def check(self, name, expected, colour, depth, rows, chunks=()):
        path, out = self.path(name + ".png"), self.path(name)
        write_png(path, SIDE, SIDE, colour, depth, rows, chunks)
        caption("--prompt", "x", "--max-tokens", "1", "--dump", out, path)
        crop = load_dump(out)["crop_000"]
        self.assertEqual(crop.shape, (SIDE, SIDE, 3))
        self.assertTrue(crop.bytes == expected, name + ": other pixels than the file's")
        python = python_with_pil()
        if python:
            pil = subprocess.run([python, "-c", PIL, path], stdout=subprocess.PIPE, check=True).stdout
            self.assertTrue(crop.bytes == pil, name + ": other pixels than PIL's")

    def test_rgb(self):
        data = noise(10, SIDE * SIDE * 3)
        self.check("rgb", data, 2, 8, rows_of(data, 3))

    def test_rgb_with_colour_chunks(self):
        data = noise(11, SIDE * SIDE * 3)
        chunks = [(b"gAMA", struct.pack(">I", 100000)),
                  (b"cHRM", struct.pack(">8I", 31270, 32900, 64000, 33000, 30000, 60000, 15000, 6000)),
                  (b"pHYs", struct.pack(">IIB", 2000, 4000, 1))]
        self.check("chunks", data, 2, 8, rows_of(data, 3), chunks)

    def test_rgba(self):
        data = noise(12, SIDE * SIDE * 4)
        expected = b"".join(data[i:i + 3] for i in range(0, len(data), 4))
        self.check("rgba", expected, 6, 8, rows_of(data, 4))

    def test_grey(self):
        data = noise(13, SIDE * SIDE)
        self.check("grey", grey(data), 0, 8, rows_of(data, 1))

    def test_grey_with_alpha(self):
        data = noise(14, SIDE * SIDE * 2)
        self.check("grey-alpha", grey(data[::2]), 4, 8, rows_of(data, 2))

    def test_grey_of_few_bits(self):
        for depth in (1, 2, 4):
            top = (1 << depth) - 1
            values = [v & top for v in noise(15 + depth, SIDE * SIDE)]
            self.check("grey%d" % depth, grey(v * 255 // top for v in values), 0, depth, pack(values, depth))

    def test_palette(self):
        for depth in (1, 2, 4, 8):
            n = min(1 << depth, 16)
            values = [v % n for v in noise(20 + depth, SIDE * SIDE)]
            expected = b"".join(PALETTE[3 * v:3 * v + 3] for v in values)
            rows = rows_of(bytes(values), 1) if depth == 8 else pack(values, depth)
            self.check("palette%d" % depth, expected, 3, depth, rows, [(b"PLTE", PALETTE[:3 * n])])

    def test_palette_with_transparency(self):
        values = bytes(v % 16 for v in noise(30, SIDE * SIDE))
        expected = b"".join(PALETTE[3 * v:3 * v + 3] for v in values)
        chunks = [(b"PLTE", PALETTE), (b"tRNS", noise(31, 16))]
        self.check("palette-alpha", expected, 3, 8, rows_of(values, 1), chunks)

    def test_transparent_colour(self):
        data = noise(32, SIDE * SIDE * 3)
        key = struct.pack(">3H", *data[:3])
        self.check("key", data, 2, 8, rows_of(data, 3), [(b"tRNS", key)])


if __name__ == "__main__":
    main()
