# SPDX-License-Identifier: LGPL-2.1-or-later
"""vlm-model with GGUF models: parts that lie apart, damage that is found, and what can be made of them."""

import glob
import json
import os
import shutil
import struct

from toolkit import CAPTION, GOLDEN, MODEL_TOOL, SMALL, ToolTest, caption, main, noise, run, write_rgb_png

MODEL = os.path.join(GOLDEN, "models", "gguf-q8_0")
MATRIX = b"blk.1.ffn_up.weight"
NORM = b"blk.1.ffn_norm.weight"
BLOCK = 34  # bytes of a block of Q8_0


def read_header(data):
    """Offsets of the tensors by name, and where the header ends: a second reader of the format."""
    sizes = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
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
    return offsets, at


def align(at):
    return (at + 31) // 32 * 32


def find_tensors(path):
    """Where the data of each tensor begin, by name."""
    with open(path, "rb") as f:
        offsets, end = read_header(f.read())
    return {name: align(end) + offset for name, offset in offsets.items()}


def add_keys(path, keys):
    """keys: names to numbers; an int becomes an i32, a float an f32."""
    with open(path, "rb") as f:
        data = f.read()
    end = read_header(data)[1]
    header = data[:16] + struct.pack("<Q", struct.unpack_from("<Q", data, 16)[0] + len(keys))
    for name, value in keys.items():
        header += struct.pack("<Q", len(name)) + name.encode()
        header += struct.pack("<Ii", 5, value) if isinstance(value, int) else struct.pack("<If", 6, value)
    header += data[24:end]
    with open(path, "wb") as f:
        f.write(header + bytes(-len(header) % 32) + data[align(end):])


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


class Sampling(ToolTest):
    """What a file says of sampling is what a request does that says nothing."""

    KEYS = {"temp": 3.0, "top_k": 10, "top_p": 0.7, "min_p": 0.45, "penalty_repeat": 1.5}
    OPTIONS = {"temp": "temperature", "top_k": "top-k", "top_p": "top-p", "min_p": "min-p",
               "penalty_repeat": "repetition-penalty"}

    def setUp(self):
        super().setUp()
        self.picture = self.path("picture.png")
        write_rgb_png(self.picture, 64, 64, noise(3, 64 * 64 * 3))

    def say(self, model, *options):
        return run(CAPTION, "--model", model, "--precision", "exact", "--threads", "1", "--seed", "5",
                   "--max-tokens", "24", *options, self.picture)[0]

    def options(self, keys):
        return ["--%s=%g" % (self.OPTIONS[name], value) for name, value in keys.items()]

    def with_keys(self, name, keys):
        folder = shutil.copytree(MODEL, self.path(name))
        add_keys(glob.glob(os.path.join(folder, "model-*"))[0],
                 {"general.sampling." + key: value for key, value in keys.items()})
        return folder

    def test_of_the_file(self):
        wanted = self.say(MODEL, *self.options(self.KEYS))
        self.assertEqual(self.say(self.with_keys("all", self.KEYS)), wanted)
        self.assertNotEqual(self.say(MODEL), wanted)
        # Each of them counts, and a request may still say otherwise.
        for name in self.KEYS:
            with self.subTest(name):
                others = {key: value for key, value in self.KEYS.items() if key != name}
                folder = self.with_keys(name, others)
                self.assertNotEqual(self.say(folder), wanted)
                self.assertEqual(self.say(folder, *self.options({name: self.KEYS[name]})), wanted)

    def test_converted(self):
        """They go with the model."""
        folder, slm = self.with_keys("all", self.KEYS), self.path("m.slm")
        run(MODEL_TOOL, "convert", "--type", "keep", folder, slm)
        said = json.loads(run(MODEL_TOOL, "info", "--json", slm)[0])["generation"]
        self.assertEqual((said["do_sample"], said["temperature"], said["top_k"], said["top_p"], said["min_p"],
                          said["repetition_penalty"]), (True, 3, 10, 0.7, 0.45, 1.5))
        self.assertEqual(self.say(slm), self.say(folder))

    def test_off(self):
        self.assertEqual(self.say(self.with_keys("off", {"temp": 3.0, "top_k": -1})),
                         self.say(MODEL, "--temperature=3"))


if __name__ == "__main__":
    main()
