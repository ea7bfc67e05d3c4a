# SPDX-License-Identifier: LGPL-2.1-or-later
"""vlm-model info: what it says about models whose files say it too."""

import json
import math
import os
import shutil
import struct
import tempfile

import container
from toolkit import MODEL_TOOL, MODELS, SMALL, ToolTest, main, run

KEYS = ["path", "format", "version", "family", "published", "n_parameters", "n_tensors", "bytes", "weights", "text",
        "vision", "projector", "image", "tokenizer", "generation"]


def info(path):
    return json.loads(run(MODEL_TOOL, "info", "--json", path)[0])


def load(folder, name):
    with open(os.path.join(folder, name), encoding="utf-8") as f:
        return json.load(f)


# Names, then hidden, heads, layers, attention layers, feed-forward rows; tower hidden, layers, rows, heads;
# projector width and whether it has a norm; parameters as the publications count them, where they do.
SIZES = (
    ("LFM2.5-230M", (1024, 16, 14, (2, 4, 6, 8, 10, 12), 2560), None, None, 229693184),
    ("LFM2-350M", (1024, 16, 16, (2, 5, 8, 10, 12, 14), 4608), None, None, 354483968),
    ("LFM2-700M", (1536, 24, 16, (2, 5, 8, 10, 12, 14), 6912), None, None, 742489344),
    ("LFM2-1.2B", (2048, 32, 16, (2, 5, 8, 10, 12, 14), 8192), None, None, 1170340608),
    ("LFM2-2.6B", (2048, 32, 30, (2, 5, 9, 13, 17, 21, 24, 27), 10752), None, None, 2569272320),
    ("LFM2-VL-450M", (1024, 16, 16, (2, 5, 8, 10, 12, 14), 4608), (768, 12, 3072, 12), (2560, True), 450822656),
    ("LFM2.5-VL-450M", (1024, 16, 16, (2, 5, 8, 10, 12, 14), 4608), (768, 12, 3072, 12), (2048, False), 448718848),
    ("LFM2-VL-1.6B", (2048, 32, 16, (2, 5, 8, 10, 12, 14), 8192), (1152, 27, 4304, 16), (2560, True), None),
    ("LFM2.5-VL-1.6B", (2048, 32, 16, (2, 5, 8, 10, 12, 14), 8192), (1152, 27, 4304, 16), (2048, False), 1596625904),
    ("LFM2-VL-3B", (2048, 32, 30, (2, 5, 9, 13, 17, 21, 24, 27), 10752), (1152, 27, 4304, 16), (2048, True), 2995566832),
    ("LFM2.5-VL-3B", (2048, 32, 30, (2, 5, 9, 13, 17, 21, 24, 27), 10752), (1152, 27, 4304, 16), (2048, False), None),
)
UNVERIFIED = ("LFM2.5-230M", "LFM2.5-VL-3B")


def text_shapes(prefix, hidden, heads, layers, attention, rows, vocabulary):
    shapes = {prefix + "embed_tokens.weight": (vocabulary, hidden), prefix + "embedding_norm.weight": (hidden,)}
    for i in range(layers):
        layer = {"operator_norm.weight": (hidden,), "ffn_norm.weight": (hidden,),
                 "feed_forward.w1.weight": (rows, hidden), "feed_forward.w3.weight": (rows, hidden),
                 "feed_forward.w2.weight": (hidden, rows)}
        if i in attention:
            layer.update({"self_attn.q_proj.weight": (heads * 64, hidden), "self_attn.k_proj.weight": (512, hidden),
                          "self_attn.v_proj.weight": (512, hidden), "self_attn.out_proj.weight": (hidden, heads * 64),
                          "self_attn.q_layernorm.weight": (64,), "self_attn.k_layernorm.weight": (64,)})
        else:
            layer.update({"conv.in_proj.weight": (3 * hidden, hidden), "conv.conv.weight": (hidden, 1, 3),
                          "conv.out_proj.weight": (hidden, hidden)})
        shapes.update({"%slayers.%d.%s" % (prefix, i, name): shape for name, shape in layer.items()})
    return shapes


def vision_shapes(hidden, layers, rows, width, norm, text_hidden):
    tower, projector = "model.vision_tower.", "model.multi_modal_projector."
    linears = {tower + "embeddings.patch_embedding": (hidden, 768), projector + "linear_1": (width, 4 * hidden),
               projector + "linear_2": (text_hidden, width)}
    norms = {tower + "post_layernorm": hidden}
    for i in range(layers):
        layer = "%sencoder.layers.%d." % (tower, i)
        linears.update({layer + "self_attn.%s_proj" % name: (hidden, hidden) for name in ("q", "k", "v", "out")})
        linears.update({layer + "mlp.fc1": (rows, hidden), layer + "mlp.fc2": (hidden, rows)})
        norms.update({layer + "layer_norm1": hidden, layer + "layer_norm2": hidden})
    if norm:
        norms[projector + "layer_norm"] = 4 * hidden
    shapes = {tower + "embeddings.position_embedding.weight": (256, hidden)}
    for name, (rows, columns) in linears.items():
        shapes.update({name + ".weight": (rows, columns), name + ".bias": (rows,)})
    for name, side in norms.items():
        shapes.update({name + ".weight": (side,), name + ".bias": (side,)})
    return shapes


def shape_config(text, vision, projector, vocabulary):
    hidden, heads, layers, attention, rows = text
    config = {"model_type": "lfm2", "hidden_size": hidden, "num_attention_heads": heads, "num_key_value_heads": 8,
              "num_hidden_layers": layers, "intermediate_size": rows, "block_auto_adjust_ff_dim": False,
              "vocab_size": vocabulary, "norm_eps": 1e-5,
              "layer_types": ["full_attention" if i in attention else "conv" for i in range(layers)]}
    if vision is None:
        return config
    return {"model_type": "lfm2_vl", "text_config": config, "projector_hidden_size": projector[0],
            "projector_use_layernorm": projector[1],
            "vision_config": {"hidden_size": vision[0], "num_hidden_layers": vision[1], "intermediate_size": vision[2],
                              "num_attention_heads": vision[3], "vision_use_head": False}}


class Info(ToolTest):
    def shape(self, text, vision, projector, vocabulary=65536):
        """A directory of that shape whose weights are a hole in the disk: only headers are read."""
        folder = tempfile.mkdtemp(dir=self.path())
        prefix = "model." if vision is None else "model.language_model."
        shapes = text_shapes(prefix, *text, vocabulary)
        if vision is not None:
            shapes.update(vision_shapes(*vision[:3], *projector, text[0]))
        header, end = {}, 0
        for name, shape in shapes.items():
            size = 2 * math.prod(shape)
            header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [end, end + size]}
            end += size
        data = json.dumps(header).encode()
        with open(os.path.join(folder, "model.safetensors"), "wb") as f:
            f.write(struct.pack("<Q", len(data)) + data)
            f.truncate(8 + len(data) + end)
        with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as f:
            json.dump(shape_config(text, vision, projector, vocabulary), f)
        shutil.copy(os.path.join(SMALL, "tokenizer.json"), folder)
        return folder

    def test_published_sizes(self):
        for name, text, vision, projector, parameters in SIZES:
            with self.subTest(name):
                folder = self.shape(text, vision, projector, 125056 if name == "LFM2.5-VL-3B" else 65536)
                found = info(folder)
                self.assertEqual(found["published"], {
                    "name": name, "same_as": {"LFM2-350M": "LFM2.5-350M", "LFM2-1.2B": "LFM2.5-1.2B"}.get(name),
                    "verified": name not in UNVERIFIED, "deviations": []})
                if parameters is not None:
                    self.assertEqual(found["n_parameters"], parameters)
                table = run(MODEL_TOOL, "info", folder)[0].decode()
                self.assertIn(name, table)
                self.assertEqual("counts and shapes only" in table, name in UNVERIFIED)

    def test_deviations(self):
        name, text, vision, projector, _ = SIZES[6]
        folder = self.shape(text, vision, projector, vocabulary=64000)
        published = info(folder)["published"]
        self.assertEqual(published["name"], name)
        self.assertEqual(published["deviations"], [
            "vocab_size is 64000, LFM2.5-VL-450M has 65536",
            "number of parameters is 447145984, LFM2.5-VL-450M has 448718848"])
        self.assertIn("differs   vocab_size is 64000", run(MODEL_TOOL, "info", folder)[0].decode())

    def test_verify_tells_deviations(self):
        _, text, _, _, _ = SIZES[0]
        folder = self.shape(text, None, None, vocabulary=5000)
        out = run(MODEL_TOOL, "verify", folder)[0].decode().splitlines()
        self.assertEqual(out, [
            "note: %s: vocab_size is 5000, LFM2.5-230M has 65536" % folder,
            "note: %s: number of parameters is 167704320, LFM2.5-230M has 229693184" % folder,
            "%s: no problems" % folder])

    def test_other_size(self):
        _, (hidden, heads, layers, attention, _), _, _, _ = SIZES[1]
        self.assertIsNone(info(self.shape((hidden, heads, layers, attention, 4096), None, None))["published"])

    def check_model(self, folder, found):
        config = load(folder, "config.json")
        text = config.get("text_config", config)
        tensors = container.read_directory(folder)
        tensors = {name: tensor for name, tensor in tensors.items() if ".vision_model.head." not in name}
        self.assertEqual(list(found), KEYS)
        self.assertEqual(found["path"], folder)
        self.assertEqual(found["format"], "safetensors")
        self.assertIsNone(found["version"])
        self.assertEqual(found["family"], config["model_type"].replace("-", "_"))
        self.assertIsNone(found["published"])
        self.assertEqual(found["n_tensors"], len(tensors))
        self.assertEqual(found["n_parameters"], sum(len(tensor.values()) for tensor in tensors.values()))
        for mine, theirs in (("hidden_size", "hidden_size"), ("n_heads", "num_attention_heads"),
                             ("n_kv_heads", "num_key_value_heads"), ("vocab_size", "vocab_size"),
                             ("n_layers", "num_hidden_layers"), ("max_context", "max_position_embeddings")):
            self.assertEqual(found["text"][mine], text[theirs])
        if "layer_types" in text:
            self.assertEqual(found["text"]["layer_types"], text["layer_types"])
        self.assertEqual(found["text"]["norm_eps"], text["norm_eps"])
        self.assertEqual("vision_config" in config, found["vision"] is not None)
        self.assertEqual(found["vision"] is None, found["projector"] is None and found["image"] is None)
        if "vision_config" in config:
            self.assertEqual(found["vision"]["hidden_size"], config["vision_config"]["hidden_size"])
            self.assertEqual(found["vision"]["n_layers"], config["vision_config"]["num_hidden_layers"])
            self.assertEqual(found["projector"]["hidden_size"], config["projector_hidden_size"])
        eos = load(folder, "generation_config.json")["eos_token_id"]
        self.assertEqual(found["generation"]["eos_ids"], eos if isinstance(eos, list) else [eos])

    def check_groups(self, found):
        for key, total in (("n_tensors", "n_tensors"), ("n_parameters", "n_parameters")):
            self.assertEqual(sum(group[key] for group in found["weights"]), found[total])
        for group in found["weights"]:
            self.assertEqual(list(group), ["part", "matrices", "type", "group", "scale", "minimum", "n_tensors",
                                            "n_parameters", "bytes"])

    def test_golden_models(self):
        for folder in MODELS:
            with self.subTest(os.path.basename(folder)):
                found = info(folder)
                self.check_model(folder, found)
                self.check_groups(found)
                sizes = {"f32": 4, "f16": 2, "bf16": 2}
                for group in found["weights"]:
                    self.assertEqual(group["bytes"], group["n_parameters"] * sizes[group["type"]])
                    self.assertIsNone(group["group"])

    def test_slm(self):
        directory = info(SMALL)
        for kind, vision in (("f16", "f16"), ("int8", "int8"), ("int4", "int8")):
            run(MODEL_TOOL, "convert", "--type", kind, SMALL, self.path("m.slm"))
            found = info(self.path("m.slm"))
            self.check_groups(found)
            self.assertEqual((found["format"], found["version"]), ("slm", 2))
            self.assertEqual(found["bytes"], os.path.getsize(self.path("m.slm")))
            for key in ("family", "n_parameters", "n_tensors", "text", "vision", "projector", "image", "tokenizer",
                        "generation"):
                self.assertEqual(found[key], directory[key])
            types = {(group["part"], group["matrices"]): (group["type"], group["group"]) for group in found["weights"]}
            self.assertEqual(types, {
                ("text", True): (kind, 64 if kind == "int4" else None), ("text", False): ("f16", None),
                ("vision", True): (vision, None), ("vision", False): ("f16", None),
                ("projector", True): (vision, None), ("projector", False): ("f16", None)})

    def test_table(self):
        out, errors = run(MODEL_TOOL, "info", SMALL)
        self.assertEqual(errors, "")
        for line in ("not a published size", "lfm2_vl", "tied head", "bf16", "%d in " % info(SMALL)["n_parameters"]):
            self.assertIn(line, out.decode())

    def test_errors(self):
        _, errors = run(MODEL_TOOL, "info", self.path("nowhere"), status=1)
        self.assertIn("nowhere", errors)
        with open(self.path("junk.slm"), "wb") as f:
            f.write(b"no model at all")
        _, errors = run(MODEL_TOOL, "info", self.path("junk.slm"), status=1)
        self.assertIn("junk.slm", errors)
        folder = shutil.copytree(SMALL, self.path("copy"))
        os.remove(os.path.join(folder, "config.json"))
        _, errors = run(MODEL_TOOL, "info", folder, status=1)
        self.assertIn("config.json", errors)

    def test_usage(self):
        for words in (("info",), ("info", SMALL, SMALL), ("verify",), ("verify", SMALL, SMALL)):
            _, errors = run(MODEL_TOOL, *words, status=2)
            self.assertIn("%s works on one model" % words[0], errors)

    def test_lost_output(self):
        self.loses_output(MODEL_TOOL, "info", SMALL)
        self.loses_output(MODEL_TOOL, "info", "--json", SMALL)
        self.loses_output(MODEL_TOOL, "verify", SMALL)


if __name__ == "__main__":
    main()
