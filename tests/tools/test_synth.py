# SPDX-License-Identifier: LGPL-2.1-or-later
"""vlm-model synth: what it writes, and that it loads and answers. The full size takes 0.9 GB of disk."""

import json
import os
import struct

from toolkit import MODEL_TOOL, ToolTest, caption, main, noise, run, write_rgb_png

SPECIALS = {
    "<|pad|>": 0, "<|startoftext|>": 1, "<|im_start|>": 6, "<|im_end|>": 7, "<|reserved_6|>": 16, "<image>": 396,
    "<|img_row_1_col_1|>": 397, "<|img_row_2_col_1|>": 407, "<|img_row_10_col_10|>": 496, "<|img_thumbnail|>": 497,
    "<|image_start|>": 498, "<|image_end|>": 499,
}


class Synth(ToolTest):
    def synth(self, preset, seed="1", name="m"):
        run(MODEL_TOOL, "synth", "--preset", preset, "--seed", seed, self.path(name))
        return self.path(name)

    def check_weights(self, folder, n_tensors, n_values):
        path = os.path.join(folder, "model.safetensors")
        with open(path, "rb") as f:
            length = struct.unpack("<Q", f.read(8))[0]
            tensors = json.loads(f.read(length))
        del tensors["__metadata__"]
        end = 0
        for entry in tensors.values():
            count = 1
            for side in entry["shape"]:
                count *= side
            self.assertEqual(entry["dtype"], "BF16")
            self.assertEqual(entry["data_offsets"], [end, end + 2 * count])
            end += 2 * count
        self.assertEqual(os.path.getsize(path), 8 + length + end)
        self.assertEqual(length % 8, 0)
        if n_tensors:
            self.assertEqual((len(tensors), end), (n_tensors, 2 * n_values))

    def check_tokenizer(self, folder, size):
        with open(os.path.join(folder, "tokenizer.json"), encoding="utf-8") as f:
            tokenizer = json.load(f)
        vocab = tokenizer["model"]["vocab"]
        self.assertEqual(sorted(vocab.values()), list(range(size)))
        for text, token in SPECIALS.items():
            self.assertEqual(vocab[text], token)
        self.assertEqual([token["id"] for token in tokenizer["added_tokens"]], list(range(510)))
        known = set(text for text, token in vocab.items() if token < 510 + 256)
        for left, right in tokenizer["model"]["merges"]:
            self.assertTrue(left in known and right in known, (left, right))
            self.assertNotIn(left + right, known)
            known.add(left + right)
        self.assertEqual(len(known), size)

    def check_answers(self, folder, n_tokens):
        picture = self.path("picture.png")
        write_rgb_png(picture, 64, 64, noise(1, 64 * 64 * 3))
        text = "Hello, world 123 \u00e4\u4e2d\n"
        ids, _ = run(MODEL_TOOL, "tokenize", folder, stdin=text)
        self.assertEqual(run(MODEL_TOOL, "detokenize", folder, stdin=ids)[0].decode(), text)
        _, timings = caption("--max-tokens", str(n_tokens), "--timings", picture, model=folder)
        self.assertIn("%d answer tokens" % n_tokens, timings)

    def test_tiny(self):
        folder = self.synth("tiny")
        self.check_weights(folder, 0, 0)
        self.check_tokenizer(folder, 2048)
        self.check_answers(folder, 4)

    def test_seeds(self):
        files = {}
        for name, seed in (("a", "1"), ("b", "1"), ("c", "2")):
            with open(os.path.join(self.synth("tiny", seed, name), "model.safetensors"), "rb") as f:
                files[name] = f.read()
        self.assertEqual(files["a"], files["b"])
        self.assertNotEqual(files["a"], files["c"])

    def outliers(self, folder):
        """For each norm at the head of a layer's part: the channels whose weight is far from one."""
        found = {}
        with open(os.path.join(folder, "model.safetensors"), "rb") as f:
            length = struct.unpack("<Q", f.read(8))[0]
            tensors = json.loads(f.read(length))
            for name, entry in tensors.items():
                if name.endswith(("operator_norm.weight", "ffn_norm.weight", "layer_norm1.weight", "layer_norm2.weight")):
                    begin, end = entry["data_offsets"]
                    f.seek(8 + length + begin)
                    values = struct.unpack("<%dH" % ((end - begin) // 2), f.read(end - begin))
                    values = [struct.unpack("<f", struct.pack("<I", v << 16))[0] for v in values]
                    found[name] = [i for i, v in enumerate(values) if v > 15]
        return found

    def test_outliers(self):
        self.assertTrue(all(c == [] for c in self.outliers(self.synth("tiny")).values()))
        run(MODEL_TOOL, "synth", "--preset", "tiny", "--outliers", "3", self.path("three"))
        found = self.outliers(self.path("three"))
        self.assertEqual(len(found), 2 * 4 + 2 * 2)
        for part in ("language_model", "vision_tower"):
            channels = [c for name, c in found.items() if part in name]
            self.assertEqual(len(channels[0]), 3)
            self.assertTrue(all(c == channels[0] for c in channels))
        for wrong in ("-1", "17"):
            run(MODEL_TOOL, "synth", "--preset", "tiny", "--outliers", wrong, self.path("x"), status=2)

    def test_full_size(self):
        folder = self.synth("lfm2.5-vl-450m")
        self.check_weights(folder, 349, 448718848)
        self.check_tokenizer(folder, 65536)
        self.check_answers(folder, 2)


if __name__ == "__main__":
    main()
