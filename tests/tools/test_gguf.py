# SPDX-License-Identifier: LGPL-2.1-or-later
"""vlm-model with GGUF models: parts that lie apart, damage that is found, and what can be made of them."""

import glob
import json
import os
import shutil
import struct

from toolkit import GOLDEN, MODEL_TOOL, SMALL, ToolTest, caption, main, noise, run, write_rgb_png

MODEL = os.path.join(GOLDEN, "models", "gguf-q8_0")
MATRIX = b"blk.1.ffn_up.weight"
NORM = b"blk.1.ffn_norm.weight"
BLOCK = 34  # bytes of a block of Q8_0


def find_tensors(path):
    """Where the data of each tensor begin, by name: a second reader of the format."""
    sizes = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
    with open(path, "rb") as f:
        data = f.read()
    n_tensors, n_keys = struct.unpack_from("<QQ", data, 8)
    at, offsets = 24, {}

    def string():
        nonlocal at
        begin = at + 8
        at = begin + struct.unpack_from("<Q", data, at)[0]
        return data[begin:at]

    for _ in range(n_keys):
        string()
        kind, count = struct.unpack_from("<I", data, at)[0], 1
        at += 4
        if kind == 9:
            kind, count = struct.unpack_from("<IQ", data, at)
            at += 12
        for _ in range(count):
            if kind == 8:
                string()
            else:
                at += sizes[kind]
    for _ in range(n_tensors):
        name = string()
        at += 4 + 8 * struct.unpack_from("<I", data, at)[0] + 4
        offsets[name] = struct.unpack_from("<Q", data, at)[0]
        at += 8
    return {name: (at + 31) // 32 * 32 + offset for name, offset in offsets.items()}


class Gguf(ToolTest):
    def setUp(self):
        super().setUp()
        self.text, self.vision = self.path("text.gguf"), self.path("elsewhere", "vision.gguf")
        os.mkdir(self.path("elsewhere"))
        shutil.copy(glob.glob(os.path.join(MODEL, "model-*"))[0], self.text)
        shutil.copy(glob.glob(os.path.join(MODEL, "mmproj-*"))[0], self.vision)

    def info(self, *args):
        return json.loads(run(MODEL_TOOL, "info", "--json", *args)[0])

    def put(self, path, name, at, data):
        with open(path, "r+b") as f:
            f.seek(find_tensors(path)[name] + at)
            f.write(data)

    def test_info(self):
        whole = self.info(MODEL)
        self.assertEqual((whole["format"], whole["version"], whole["family"]), ("gguf", 3, "lfm2_vl"))
        apart = self.info("--mmproj", self.vision, self.text)
        self.assertEqual(apart["path"], self.text)
        for key in set(whole) - {"path"}:
            self.assertEqual(apart[key], whole[key], key)
        alone = self.info(self.text)
        self.assertEqual((alone["family"], alone["vision"], alone["image"]), ("lfm2", None, None))
        self.assertEqual(alone["text"], whole["text"])

    def test_wrong_part(self):
        for args, words in ((("--mmproj", self.text, self.text), 'general.architecture is "lfm2", expected "clip"'),
                            ((self.vision,), "vision.gguf: is the vision part of a model, expected the text part")):
            self.assertIn(words, run(MODEL_TOOL, "info", *args, status=1)[1])
            self.assertIn(words, run(MODEL_TOOL, "verify", *args, status=1)[0].decode())
        _, errors = run(MODEL_TOOL, "info", "--mmproj", self.vision, SMALL, status=1)
        self.assertIn("has its vision part in itself", errors)

    def test_verify(self):
        def verify(status):
            return run(MODEL_TOOL, "verify", "--mmproj", self.vision, self.text, status=status)[0].decode()

        self.assertEqual(verify(0), self.text + ": no problems\n")
        self.put(self.text, MATRIX, 5 * 2 * BLOCK + BLOCK, struct.pack("<H", 0x7E00))
        self.assertIn("text.gguf: block 1 of row 5 of tensor blk.1.ffn_up.weight has a scale that is NaN", verify(1))
        self.put(self.text, MATRIX, 5 * 2 * BLOCK + BLOCK, struct.pack("<H", 0))
        self.put(self.text, NORM, 4 * 7, struct.pack("<f", float("inf")))
        self.assertIn("layers.1.ffn_norm.weight has Inf at [7]", verify(1))

    def test_cut_vision(self):
        os.truncate(self.vision, os.path.getsize(self.vision) - 64)
        _, errors = run(MODEL_TOOL, "info", "--mmproj", self.vision, self.text, status=1)
        self.assertIn("vision.gguf: tensor ", errors)
        self.assertIn("it is cut off", errors)

    def test_convert(self):
        """Halves are written as they are: the converted model says the same."""
        folder = os.path.join(GOLDEN, "models", "gguf-f16")
        vision = shutil.copy(glob.glob(os.path.join(folder, "mmproj-*"))[0], self.path("elsewhere", "f16.gguf"))
        text = shutil.copy(glob.glob(os.path.join(folder, "model-*"))[0], self.path("f16.gguf"))
        os.remove(self.text)
        picture, slm = self.path("picture.png"), self.path("m.slm")
        write_rgb_png(picture, 96, 64, noise(3, 96 * 64 * 3))
        run(MODEL_TOOL, "convert", "--type", "f16", "--mmproj", vision, text, slm)
        self.assertEqual(caption(picture, model=slm)[0], caption(picture, model=folder)[0])


if __name__ == "__main__":
    main()
