# SPDX-License-Identifier: LGPL-2.1-or-later
"""vlm-model and vlm-caption with a .cellm file, written here a second time from its description."""

import json
import os
import shutil
import struct

import container
from toolkit import MODEL_TOOL, SMALL, ToolTest, caption, main, noise, run, write_rgb_png

SETTINGS = ("tokenizer.json", "processor_config.json", "generation_config.json", "tokenizer_config.json")
NORM = "model.embedding_norm.weight"


def make_header(config):
    text = config["text_config"]
    projector = {key: value for key, value in config.items()
                 if key.startswith("projector_") or key in ("downsample_factor", "image_token_id")}
    return {"model_type": "lfm2", "vocab_size": text["vocab_size"], "hidden_dim": text["hidden_size"],
            "intermediate_size": text["intermediate_size"], "num_layers": text["num_hidden_layers"],
            "num_heads": text["num_attention_heads"], "num_kv_heads": text["num_key_value_heads"],
            "rms_norm_eps": text["norm_eps"], "rope_theta": text["rope_parameters"]["rope_theta"],
            "eos_token_id": text["eos_token_id"], "source_text_config": text,
            "source_vision_config": config["vision_config"], "source_projector_config": projector}


def write(folder, path):
    """The weights of a Hugging Face directory as they are. Returns where each tensor's data begin."""
    with open(os.path.join(folder, "config.json"), encoding="utf-8") as f:
        header = make_header(json.load(f))
    tensors, _ = container.read(os.path.join(folder, "model.safetensors"))
    places = {}
    for begin in (0, 1 << 16):  # the second time with a begin that leaves room for the header
        end, header["tensors"] = begin, []
        for name, tensor in sorted(tensors.items()):
            name = name.replace("model.language_model.", "model.")
            places[name] = end
            header["tensors"].append({"name": name, "dtype": tensor.dtype.lower(), "shape": list(tensor.shape),
                                      "offset_bytes": end, "nbytes": len(tensor.data)})
            end = (end + len(tensor.data) + 63) // 64 * 64
    text = json.dumps(header).encode()
    text += b" " * (begin - 10 - len(text))
    with open(path, "wb") as f:
        f.write(b"CELLM\x01" + struct.pack("<I", len(text)) + text)
        for _, tensor in sorted(tensors.items()):
            f.write(tensor.data + bytes(-len(tensor.data) % 64))
    return places


class Cellm(ToolTest):
    def setUp(self):
        super().setUp()
        self.model = self.path("model.cellm")
        self.places = write(SMALL, self.model)
        for name in SETTINGS:
            if os.path.exists(os.path.join(SMALL, name)):
                shutil.copy(os.path.join(SMALL, name), self.path(name))

    def info(self, path):
        return json.loads(run(MODEL_TOOL, "info", "--json", path)[0])

    def test_info(self):
        here, there = self.info(self.model), self.info(SMALL)
        self.assertEqual((here["format"], here["version"]), ("cellm", 1))
        for key in set(here) - {"path", "format", "version", "bytes"}:
            self.assertEqual(here[key], there[key], key)
        self.assertIn("cellm", run(MODEL_TOOL, "info", self.model)[0].decode())

    def test_verify(self):
        self.assertEqual(run(MODEL_TOOL, "verify", self.model)[0].decode(), self.model + ": no problems\n")
        with open(self.model, "r+b") as f:
            f.seek(self.places[NORM] + 2 * 3)
            f.write(b"\xff\x7f")
        out = run(MODEL_TOOL, "verify", self.model, status=1)[0].decode()
        self.assertIn("embedding_norm.weight has NaN at [3]", out)
        os.truncate(self.model, os.path.getsize(self.model) - 4096)
        self.assertIn("model.cellm: tensor ", run(MODEL_TOOL, "verify", self.model, status=1)[0].decode())

    def test_same_captions(self):
        """Of the directory, of the file, and of what it is converted to."""
        picture, slm = self.path("picture.png"), self.path("m.slm")
        write_rgb_png(picture, 96, 64, noise(3, 96 * 64 * 3))
        run(MODEL_TOOL, "convert", "--type", "f16", self.model, slm)
        captions = [caption("--max-tokens", "24", picture, model=model)[0] for model in (SMALL, self.model, slm)]
        self.assertEqual(captions[1:], captions[:1] * 2)
        self.assertGreater(len(captions[0]), 8)


if __name__ == "__main__":
    main()
