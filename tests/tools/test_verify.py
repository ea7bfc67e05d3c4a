# SPDX-License-Identifier: LGPL-2.1-or-later
"""vlm-model verify: sound models pass, and damage is found and named wherever it is."""

import os
import random
import shutil
import struct

import container
from toolkit import CAPTION, GGUF_MODELS, MODEL_TOOL, MODELS, SMALL, ToolTest, main, run

NORM = "model.language_model.layers.0.ffn_norm.weight"
MATRIX = "model.language_model.layers.0.feed_forward.w1.weight"


def problems(path):
    """What verify finds; it must find something."""
    out, errors = run(MODEL_TOOL, "verify", path, status=1)
    found = [line for line in out.decode().splitlines() if line.startswith("problem: ")]
    if not found or "problems: %d" % len(found) not in errors:
        raise AssertionError("%r: %r" % (found, errors))
    return found


class Sound(ToolTest):
    def sound(self, path):
        out, errors = run(MODEL_TOOL, "verify", path)
        self.assertEqual(out.decode(), path + ": no problems\n")
        self.assertEqual(errors, "")

    def test_golden_models(self):
        for path in MODELS + GGUF_MODELS:
            self.sound(path)

    def test_slm(self):
        for kind in ("f16", "int8", "int4"):
            for source in MODELS:
                run(MODEL_TOOL, "convert", "--type", kind, source, self.path("m.slm"))
                self.sound(self.path("m.slm"))

    def test_no_model(self):
        for path in ("nowhere", ""):
            _, errors = run(MODEL_TOOL, "verify", self.path(path), status=1)
            self.assertIn(self.path(path), errors)


class Directory(ToolTest):
    def setUp(self):
        super().setUp()
        self.folder = shutil.copytree(SMALL, self.path("copy"))
        self.weights = os.path.join(self.folder, "model.safetensors")

    def put(self, name, index, value):
        """Writes a bfloat16 in place."""
        tensor = container.read(self.weights)[0][name]
        with open(self.weights, "r+b") as f:
            f.seek(tensor.offset + 2 * index)
            f.write(struct.pack("<f", value)[2:])

    def test_special_values(self):
        self.put(NORM, 4, float("nan"))
        self.put(NORM, 6, float("inf"))
        self.put(NORM, 7, float("-inf"))
        self.put(MATRIX, container.read(self.weights)[0][MATRIX].shape[1] + 2, float("-inf"))
        found = problems(self.folder)
        self.assertEqual(len(found), 2)
        self.assertTrue(any("tensor %s has NaN at [4] and 2 more" % NORM in line for line in found), found)
        self.assertTrue(any("tensor %s has -Inf at [1, 2]" % MATRIX in line for line in found), found)

    def test_structure(self):
        """The first contradiction is told, as loading tells it."""
        tensors = {name: (tensor.dtype, tensor.shape, tensor.data)
                   for name, tensor in container.read(self.weights)[0].items()}
        for change, parts in ((lambda t: t.pop(NORM), [NORM, "missing"]),
                              (lambda t: t.update(extra=("F32", (1,), b"\0" * 4)), ["extra"]),
                              (lambda t: t.update({NORM: ("F32", (1,), b"\0" * 4)}), [NORM, "[1]"])):
            changed = dict(tensors)
            change(changed)
            container.write(self.weights, changed)
            found = problems(self.folder)
            self.assertEqual(len(found), 1)
            for part in parts:
                self.assertIn(part, found[0])

    def test_truncated(self):
        os.truncate(self.weights, os.path.getsize(self.weights) - 1)
        self.assertIn("model.safetensors", problems(self.folder)[0])


class Slm(ToolTest):
    def setUp(self):
        super().setUp()
        self.file = self.path("m.slm")

    def convert(self, kind):
        run(MODEL_TOOL, "convert", "--type", kind, SMALL, self.file)
        with open(self.file, "rb") as f:
            return f.read()

    def put(self, at, byte):
        with open(self.file, "r+b") as f:
            f.seek(at)
            f.write(bytes([byte]))

    def refused(self, name, load=True):
        """By verify, with the name, and by loading, which takes longer to find out."""
        found = problems(self.file)
        self.assertTrue(any(name in line for line in found), (name, found))
        if load:
            run(CAPTION, "--model", self.file, "--prompt", "x", "--max-tokens", "1", status=1)

    def test_flipped_bits_of_tensors(self):
        """One bit of every tensor: of weights, scales, settings and padding."""
        chance = random.Random(4)
        for kind in ("f16", "int4"):
            data = self.convert(kind)
            for name, tensor in container.read(self.file)[0].items():
                at = tensor.offset + chance.randrange(len(tensor.data))
                self.put(at, data[at] ^ 1 << chance.randrange(8))
                self.refused("padding" if name.startswith("padding/") else name.replace("files/", ""),
                             load=chance.randrange(8) == 0)
                self.put(at, data[at])
        run(MODEL_TOOL, "verify", self.file)

    def test_flipped_bits_of_the_header(self):
        chance = random.Random(5)
        data = self.convert("int4")
        length = struct.unpack("<Q", data[:8])[0]
        places = list(range(8)) + [chance.randrange(8, 8 + length) for _ in range(100)]
        for at in places:
            self.put(at, data[at] ^ 1 << chance.randrange(8))
            self.refused("m.slm", load=chance.randrange(8) == 0)
            self.put(at, data[at])

    def test_several(self):
        """One damaged tensor does not hide another."""
        data = self.convert("int8")
        tensors = container.read(self.file)[0]
        for name in (NORM, MATRIX, MATRIX + ".scale"):
            self.put(tensors[name].offset, data[tensors[name].offset] ^ 8)
        found = problems(self.file)
        self.assertEqual(len(found), 2)
        self.assertIn(NORM, found[0] + found[1])
        self.assertIn(MATRIX, found[0] + found[1])

    def test_length(self):
        data = self.convert("int8")
        for changed in (data[:-1], data[:len(data) // 2], data[:100], data[:7], b"", data + b"\0", b"\0" + data):
            with open(self.file, "wb") as f:
                f.write(changed)
            self.refused("m.slm")


if __name__ == "__main__":
    main()
