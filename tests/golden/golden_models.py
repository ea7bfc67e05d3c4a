"""The little random checkpoints: what each one varies, its weights, and its files."""

import json
import os

import numpy as np
import torch
from safetensors.torch import save_file

import golden_vocab as vocab
from golden_common import hash_normals, write_bytes

TEMPLATE = """{{- bos_token -}}
{%- macro flatten(content) -%}
    {%- if content is string -%}
        {{- content -}}
    {%- else -%}
        {%- for part in content -%}
            {%- if part.type == "image" -%}
                {{- "<image>" -}}
            {%- elif part.type == "text" -%}
                {{- part.text -}}
            {%- else -%}
                {{- part | tojson -}}
            {%- endif -%}
        {%- endfor -%}
    {%- endif -%}
{%- endmacro -%}
{%- if messages[0].role == "system" -%}
    {%- set system = flatten(messages[0].content) -%}
    {%- set messages = messages[1:] -%}
    {%- if system -%}
        {{- "<|im_start|>system\\n" + system + "<|im_end|>\\n" -}}
    {%- endif -%}
{%- endif -%}
{%- for message in messages -%}
    {{- "<|im_start|>" + message.role + "\\n" + flatten(message.content) + "<|im_end|>\\n" -}}
{%- endfor -%}
{%- if add_generation_prompt -%}
    {{- "<|im_start|>assistant\\n" -}}
{%- endif -%}
"""

PROCESSOR_DEFAULTS = {
    "image_processor_type": "Lfm2VlImageProcessor", "do_image_splitting": True, "do_normalize": True,
    "do_pad": True, "do_rescale": True, "do_resize": True, "downsample_factor": 2,
    "encoder_patch_size": 16, "image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5],
    "max_image_tokens": 256, "max_num_patches": 1024, "max_pixels_tolerance": 2.0, "max_tiles": 10,
    "min_image_tokens": 64, "min_tiles": 2, "resample": 2, "rescale_factor": 0.00392156862745098,
    "return_row_col_info": True, "size": {"height": 512, "width": 512}, "tile_size": 512,
    "use_thumbnail": True,
}


def _text(**over):
    text = {"model_type": "lfm2", "hidden_size": 64, "num_attention_heads": 2, "num_key_value_heads": 1,
            "intermediate_size": 192, "block_multiple_of": 32, "block_ffn_dim_multiplier": 1.0,
            "block_auto_adjust_ff_dim": True, "conv_L_cache": 3, "conv_bias": False, "norm_eps": 1e-5,
            "max_position_embeddings": 128000, "bos_token_id": 1, "eos_token_id": 7, "pad_token_id": 0,
            "initializer_range": 0.02, "use_cache": True}
    text.update(over)
    return {k: v for k, v in text.items() if v is not None}


def _vision(**over):
    vision = {"model_type": "siglip2_vision_model", "hidden_size": 64, "intermediate_size": 128,
              "num_hidden_layers": 2, "num_attention_heads": 1, "num_channels": 3, "num_patches": 256,
              "patch_size": 16, "hidden_act": "gelu_pytorch_tanh", "layer_norm_eps": 1e-6,
              "attention_dropout": 0.0, "vision_use_head": False}
    vision.update(over)
    return vision


def kinds(letters):
    return [{"c": "conv", "a": "full_attention"}[x] for x in letters]


# Keys: dtype, level (the `vision_model.` level in tensor names), shards, tokenizer, nested (image
# settings inside processor_config.json), attention_gain (weight of attention in the text model),
# eos_extra (second end ids), processor (overrides; None drops a key), config (top level), text,
# vision, spelling (changes made to our config.json only; the reference reads the usual spelling).
MODELS = {
    "lfm25": {
        "about": "LFM2.5-VL-450M in small: projector without norm, block_ff_dim with auto-adjust, true image defaults",
        "seed": 11, "dtype": "bfloat16", "level": True, "nested": True, "tokenizer": "standard",
        "config": {"projector_hidden_size": 96, "projector_use_layernorm": False},
        "text": _text(num_hidden_layers=5, layer_types=kinds("ccaca"), block_ff_dim=160, intermediate_size=160,
                      rope_parameters={"rope_theta": 1000000.0, "rope_type": "default"}),
        "vision": _vision(num_hidden_layers=3),
    },
    "lfm2-first": {
        "about": "first LFM2-VL uploads: lfm2-vl, image_token_index, full_attn_idxs, rope_theta, torch_dtype, "
                 "projector norm by absent key, flat preprocessor_config.json, bicubic, no thumbnail, "
                 "max_pixels_tolerance 1.5, do_resize false, two heads of 32 in the tower",
        "seed": 22, "dtype": "float16", "level": True, "nested": False, "tokenizer": "standard",
        "config": {"projector_hidden_size": 80},
        "text": _text(num_hidden_layers=4, full_attn_idxs=[1, 3], num_key_value_heads=2, rope_theta=1000000.0),
        "vision": _vision(num_attention_heads=2),
        "processor": {"resample": 3, "use_thumbnail": False, "max_pixels_tolerance": 1.5, "do_resize": False,
                      "tile_size": 256, "min_image_tokens": 16, "max_image_tokens": 64, "max_num_patches": 256},
        "spelling": {"model_type": "lfm2-vl", "image_token_id": None, "image_token_index": 396,
                     "dtype": None, "torch_dtype": "float16"},
    },
    "attn-first": {
        "about": "attention first, heads of 64, as many KV heads as heads, no auto-adjust, projector norm on, "
                 "no vision_model level, theta 10000, tiles of 256 pixels in 1..6",
        "seed": 42, "attention_gain": 0.8, "dtype": "bfloat16", "level": False, "nested": True, "tokenizer": "standard",
        "config": {"projector_hidden_size": 64, "projector_use_layernorm": True},
        "text": _text(hidden_size=128, num_hidden_layers=4, layer_types=kinds("acca"), num_key_value_heads=2,
                      block_auto_adjust_ff_dim=False, intermediate_size=144,
                      rope_parameters={"rope_theta": 10000.0, "rope_type": "default"}),
        "vision": _vision(hidden_size=48, intermediate_size=80, num_attention_heads=2, num_hidden_layers=2),
        "processor": {"min_tiles": 1, "max_tiles": 6, "tile_size": 256, "min_image_tokens": 16,
                      "max_image_tokens": 64, "max_num_patches": None, "rescale_factor": None},
    },
    "ids-moved": {
        "about": "float32; special tokens after the ordinary vocabulary (396 is a word), tiles 2..8 of 256 pixels, "
                 "two end ids, ffn multiplier 1.3",
        "seed": 44, "eos_extra": [546], "dtype": "float32", "level": False, "nested": True, "tokenizer": "moved",
        "config": {"projector_hidden_size": 48, "projector_use_layernorm": False},
        "text": _text(hidden_size=32, num_hidden_layers=4, layer_types=kinds("acca"), intermediate_size=100,
                      block_multiple_of=16, block_ffn_dim_multiplier=1.3, norm_eps=1e-6,
                      rope_parameters={"rope_theta": 500000.0, "rope_type": "default"}),
        "vision": _vision(hidden_size=32, intermediate_size=64, num_attention_heads=1),
        "processor": {"min_tiles": 2, "max_tiles": 8, "tile_size": 256, "min_image_tokens": 16,
                      "max_image_tokens": 64, "max_num_patches": 256},
    },
    "sharded": {
        "about": "three shards with an index, tower heads of 72, explicit head_dim 32 with four heads per KV head, "
                 "thumbnail with min_image_tokens 32, splitting off",
        "seed": 55, "dtype": "bfloat16", "level": True, "nested": False, "tokenizer": "standard", "shards": 3,
        "config": {"projector_hidden_size": 64, "projector_use_layernorm": True},
        "text": _text(num_hidden_layers=4, layer_types=kinds("caca"), num_attention_heads=4, head_dim=32,
                      block_ff_dim=130, intermediate_size=999, rope_theta=1000000.0),
        "vision": _vision(hidden_size=144, intermediate_size=304, num_attention_heads=2, num_hidden_layers=2),
        "processor": {"do_image_splitting": False, "min_image_tokens": 32, "max_image_tokens": 128},
    },
    "untied": {
        "about": "untied lm_head, conv_bias, bicubic, tiles 4..4, flat settings with keys left out",
        "seed": 66, "dtype": "float16", "level": False, "nested": False, "tokenizer": "standard",
        "config": {"projector_hidden_size": 72, "projector_use_layernorm": False, "tie_word_embeddings": False},
        "text": _text(num_hidden_layers=3, layer_types=kinds("cac"), conv_bias=True, intermediate_size=96,
                      block_auto_adjust_ff_dim=False, tie_word_embeddings=False,
                      rope_parameters={"rope_theta": 1000000.0, "rope_type": "default"}),
        "vision": _vision(hidden_size=32, intermediate_size=48, num_attention_heads=1),
        "processor": {"resample": 3, "min_tiles": 4, "max_tiles": 4, "tile_size": 128, "min_image_tokens": 4,
                      "max_image_tokens": 16, "do_pad": None, "do_rescale": None, "do_normalize": None,
                      "rescale_factor": None, "image_mean": None, "image_std": None, "max_num_patches": None,
                      "return_row_col_info": None, "downsample_factor": None, "use_thumbnail": None},
    },
    "vl-3b": {
        "about": "LFM2.5-VL-3B in small: three tower layers with heads of 72, projector without norm, bicubic, "
                 "tiles 1..10 of 256 pixels, the 128k vocabulary's regex and its special ids behind the words",
        "seed": 88, "dtype": "bfloat16", "level": True, "nested": True, "tokenizer": "moved-128k",
        "config": {"projector_hidden_size": 64, "projector_use_layernorm": False},
        "text": _text(hidden_size=32, num_hidden_layers=5, layer_types=kinds("ccaca"), num_attention_heads=4,
                      num_key_value_heads=1, intermediate_size=84, block_auto_adjust_ff_dim=False,
                      rope_parameters={"rope_theta": 1000000.0, "rope_type": "default"}),
        "vision": _vision(hidden_size=144, intermediate_size=96, num_attention_heads=2, num_hidden_layers=3),
        "processor": {"min_tiles": 1, "tile_size": 256, "min_image_tokens": 16, "max_image_tokens": 64,
                      "max_num_patches": 256, "resample": 3},
    },
    "text-only": {
        "about": "plain LFM2 text model: prefix model., four heads of 16 with two KV heads, bos and pad omitted",
        "seed": 77, "dtype": "bfloat16", "level": False, "nested": False, "tokenizer": "standard", "text_only": True,
        "config": {},
        "text": _text(hidden_size=64, num_hidden_layers=4, layer_types=kinds("ccac"), num_attention_heads=4,
                      num_key_value_heads=2, block_ff_dim=150, intermediate_size=150, block_multiple_of=64,
                      bos_token_id=None, pad_token_id=None,
                      rope_parameters={"rope_theta": 1000000.0, "rope_type": "default"}),
    },
}

# Those of which there are only GGUF files (golden_gguf_model.py): all rows are multiples of 32, and the
# image settings are the ones that the engine takes where a file has none.
GGUF_MODELS = {
    "gguf": {
        "about": "LFM2.5-VL in small: projector without norm, one KV head for two heads, bilinear",
        "seed": 88, "dtype": "float32", "level": False, "nested": True, "tokenizer": "moved",
        "config": {"projector_hidden_size": 64, "projector_use_layernorm": False},
        "text": _text(num_hidden_layers=3, layer_types=kinds("cac"), intermediate_size=128,
                      block_auto_adjust_ff_dim=False,
                      rope_parameters={"rope_theta": 1000000.0, "rope_type": "default"}),
        "vision": _vision(hidden_size=32, intermediate_size=64, num_attention_heads=2),
    },
    "gguf-norm": {
        "about": "LFM2-VL in small: projector with norm, as many KV heads as heads, bicubic",
        "seed": 99, "dtype": "float32", "level": False, "nested": True, "tokenizer": "moved",
        "config": {"projector_hidden_size": 96, "projector_use_layernorm": True},
        "text": _text(num_hidden_layers=3, layer_types=kinds("cca"), num_key_value_heads=2,
                      intermediate_size=96, block_auto_adjust_ff_dim=False,
                      rope_parameters={"rope_theta": 500000.0, "rope_type": "default"}),
        "vision": _vision(hidden_size=32, intermediate_size=96, num_attention_heads=1),
        "processor": {"resample": 3},
    },
    "gguf-k": {
        "about": "rows of 256, as the blocks of the K types need them; two attention layers, of which the quantiser "
                 "gives one more bits, heads of 64",
        "seed": 111, "dtype": "float32", "level": False, "nested": True, "tokenizer": "moved",
        "config": {"projector_hidden_size": 64, "projector_use_layernorm": False},
        "text": _text(hidden_size=256, num_hidden_layers=4, layer_types=kinds("caca"), num_attention_heads=4,
                      num_key_value_heads=2, intermediate_size=256, block_auto_adjust_ff_dim=False,
                      rope_parameters={"rope_theta": 1000000.0, "rope_type": "default"}),
        "vision": _vision(hidden_size=32, intermediate_size=64, num_attention_heads=1),
    },
}
SPECS = {**MODELS, **GGUF_MODELS}

DTYPES = {"bfloat16": torch.bfloat16, "float16": torch.float16, "float32": torch.float32}
TOKENIZERS = {"standard": lambda: vocab.standard(1280, 1, 6000), "moved": lambda: vocab.moved(560, 2, 6000),
              "moved-128k": lambda: vocab.moved(570, 3, 6000, vocab.SPLIT_128K)}


# ---------------------------------------------------------------- configuration


def config_of(spec, tokenizer):
    """config.json as transformers 5 spells it."""
    text = dict(spec["text"], vocab_size=vocab.vocabulary_size(tokenizer))
    if spec["tokenizer"].startswith("moved"):
        ids = {"bos_token_id": vocab.BOS, "eos_token_id": "<|im_end|>", "pad_token_id": "<|pad|>"}
        text.update({key: vocab.special_id(tokenizer, token) for key, token in ids.items()})
    if spec.get("text_only"):
        return {"architectures": ["Lfm2ForCausalLM"], "dtype": spec["dtype"], **text}
    config = {"architectures": ["Lfm2VlForConditionalGeneration"], "model_type": "lfm2_vl",
              "dtype": spec["dtype"], "downsample_factor": 2, "projector_bias": True,
              "projector_hidden_act": "gelu", "image_token_id": vocab.special_id(tokenizer, vocab.IMAGE),
              "tile_size": 512, "min_tiles": 2, "max_tiles": 10}
    config.update(spec["config"])
    return {**config, "text_config": text, "vision_config": spec["vision"]}


def respelled(config, spec):
    changed = {**config, **spec.get("spelling", {})}
    return {k: v for k, v in changed.items() if v is not None}


# ---------------------------------------------------------------- weights


class Weights:
    """Names to tensors; every tensor has its own noise, so order does not matter."""

    def __init__(self, seed):
        self.seed, self.tensors = seed * 1000, {}

    def normal(self, name, shape, std, mean=0.0):
        self.seed += 1
        values = hash_normals(self.seed, int(np.prod(shape))) * std + mean
        self.tensors[name] = torch.from_numpy(values.reshape(shape).astype(np.float32))

    def linear(self, name, rows, cols, gain=1.0, bias=0.0):
        self.normal(name + ".weight", (rows, cols), gain / cols ** 0.5)
        if bias:
            self.normal(name + ".bias", (rows,), bias)

    def norm(self, name, size, scale=1.0, bias=0.0):
        self.normal(name + ".weight", (size,), 0.2 * scale, scale)
        if bias:
            self.normal(name + ".bias", (size,), bias)


def ff_rows(text):
    ff = text.get("block_ff_dim", text["intermediate_size"])
    if text["block_auto_adjust_ff_dim"]:
        ff = int(text["block_ffn_dim_multiplier"] * int(2 * ff / 3))
        ff = text["block_multiple_of"] * -(-ff // text["block_multiple_of"])
    return ff


def add_text(w, text, prefix, tied, attention_gain=1.5):
    hidden, ff = text["hidden_size"], ff_rows(text)
    heads, groups = text["num_attention_heads"], text["num_key_value_heads"]
    head = text.get("head_dim", hidden // heads)
    count = text["num_hidden_layers"]
    layer_types = text.get("layer_types") or kinds(
        "".join("a" if i in text["full_attn_idxs"] else "c" for i in range(count)))
    bias = 0.2 if text["conv_bias"] else 0.0
    w.normal(prefix + "embed_tokens.weight", (text["vocab_size"], hidden), 0.25)
    w.norm(prefix + "embedding_norm", hidden, scale=20.0 / hidden ** 0.5)
    if not tied:
        w.normal("lm_head.weight", (text["vocab_size"], hidden), 0.25)
    for i, kind in enumerate(layer_types):
        at = "%slayers.%d." % (prefix, i)
        w.norm(at + "operator_norm", hidden)
        w.norm(at + "ffn_norm", hidden)
        w.linear(at + "feed_forward.w1", ff, hidden, 1.5)
        w.linear(at + "feed_forward.w3", ff, hidden, 1.5)
        w.linear(at + "feed_forward.w2", hidden, ff, 0.5)
        if kind == "conv":
            w.linear(at + "conv.in_proj", 3 * hidden, hidden, 1.0, bias)
            w.normal(at + "conv.conv.weight", (hidden, 1, text["conv_L_cache"]), 0.6)
            if bias:
                w.normal(at + "conv.conv.bias", (hidden,), bias)
            w.linear(at + "conv.out_proj", hidden, hidden, 0.6, bias)
        else:
            w.linear(at + "self_attn.q_proj", heads * head, hidden)
            w.linear(at + "self_attn.k_proj", groups * head, hidden)
            w.linear(at + "self_attn.v_proj", groups * head, hidden)
            w.linear(at + "self_attn.out_proj", hidden, heads * head, attention_gain)
            w.norm(at + "self_attn.q_layernorm", head, 1.6 * (32 / head) ** 0.25)
            w.norm(at + "self_attn.k_layernorm", head, 1.6 * (32 / head) ** 0.25)


def add_vision(w, vision, prefix):
    hidden, ff = vision["hidden_size"], vision["intermediate_size"]
    w.linear(prefix + "embeddings.patch_embedding", hidden, 768, 1.5, 0.2)
    w.normal(prefix + "embeddings.position_embedding.weight", (vision["num_patches"], hidden), 0.7)
    for i in range(vision["num_hidden_layers"]):
        at = "%sencoder.layers.%d." % (prefix, i)
        w.norm(at + "layer_norm1", hidden, 1.0, 0.1)
        w.norm(at + "layer_norm2", hidden, 1.0, 0.1)
        for name in ("q_proj", "k_proj", "v_proj", "out_proj"):
            w.linear(at + "self_attn." + name, hidden, hidden, 1.3, 0.1)
        w.linear(at + "mlp.fc1", ff, hidden, 1.2, 0.2)
        w.linear(at + "mlp.fc2", hidden, ff, 1.0, 0.1)
    w.norm(prefix + "post_layernorm", hidden, 1.0, 0.1)


def weights_of(name, config):
    """All tensors of a checkpoint, in its dtype, under the names that its files use."""
    spec = SPECS[name]
    w = Weights(spec["seed"])
    if spec.get("text_only"):
        add_text(w, config, "model.", True)
    else:
        text, vision = config["text_config"], config["vision_config"]
        add_text(w, text, "model.language_model.", config.get("tie_word_embeddings", True),
                 spec.get("attention_gain", 1.5))
        add_vision(w, vision, "model.vision_tower." + ("vision_model." if spec["level"] else ""))
        wide, at = 4 * vision["hidden_size"], "model.multi_modal_projector."
        if config.get("projector_use_layernorm", True):
            w.norm(at + "layer_norm", wide, 1.0, 0.1)
        w.linear(at + "linear_1", config["projector_hidden_size"], wide, 1.2, 0.1)
        w.linear(at + "linear_2", text["hidden_size"], config["projector_hidden_size"], 0.9, 0.05)
    return {k: v.to(DTYPES[spec["dtype"]]).contiguous() for k, v in w.tensors.items()}


# ---------------------------------------------------------------- files


def write_json_file(folder, name, value):
    write_bytes(os.path.join(folder, name), (json.dumps(value, indent=1, ensure_ascii=False) + "\n").encode())


def save(tensors, path):
    save_file(tensors, path, metadata={"format": "pt"})
    os.chmod(path, 0o644)


def write_weights(folder, tensors, shards):
    if not shards:
        save(tensors, os.path.join(folder, "model.safetensors"))
        return
    names, mapping = sorted(tensors), {}
    for s in range(shards):
        shard = "model-%05d-of-%05d.safetensors" % (s + 1, shards)
        part = names[s::shards]
        save({n: tensors[n] for n in part}, os.path.join(folder, shard))
        mapping.update({n: shard for n in part})
    size = sum(t.numel() * t.element_size() for t in tensors.values())
    write_json_file(folder, "model.safetensors.index.json",
                    {"metadata": {"total_size": size}, "weight_map": dict(sorted(mapping.items()))})


def write_processor(folder, spec):
    over = spec.get("processor", {})
    settings = {k: v for k, v in {**PROCESSOR_DEFAULTS, **over}.items() if v is not None}
    if spec["nested"]:
        write_json_file(folder, "processor_config.json",
                        {"image_processor": settings, "processor_class": "Lfm2VlProcessor"})
    else:
        write_json_file(folder, "preprocessor_config.json", {**settings, "processor_class": "Lfm2VlProcessor"})


def write_checkpoint(folder, name, reference=False):
    """One Hugging Face directory; `reference` keeps the spelling that transformers reads."""
    spec = SPECS[name]
    os.makedirs(folder, exist_ok=True)
    tokenizer = TOKENIZERS[spec["tokenizer"]]()
    config = config_of(spec, tokenizer)
    write_json_file(folder, "config.json", config if reference else respelled(config, spec))
    write_weights(folder, weights_of(name, config), spec.get("shards", 0))
    write_bytes(os.path.join(folder, "tokenizer.json"),
                json.dumps(tokenizer, ensure_ascii=False, separators=(",", ":")).encode())
    write_json_file(folder, "tokenizer_config.json", {
        "backend": "tokenizers", "bos_token": vocab.BOS, "eos_token": "<|im_end|>", "pad_token": "<|pad|>",
        "clean_up_tokenization_spaces": True, "model_max_length": 1000000000000000019884624838656,
        "tokenizer_class": "PreTrainedTokenizerFast"})
    write_bytes(os.path.join(folder, "chat_template.jinja"), TEMPLATE.encode())
    if not spec.get("text_only"):
        write_processor(folder, spec)
    ids = [vocab.special_id(tokenizer, t) for t in (vocab.BOS, "<|im_end|>", "<|pad|>")]
    generation = {"bos_token_id": ids[0], "eos_token_id": ids[1], "pad_token_id": ids[2]}
    if "eos_extra" in spec:
        generation["eos_token_id"] = [ids[1]] + spec["eos_extra"]
    write_json_file(folder, "generation_config.json", generation)
    return config
