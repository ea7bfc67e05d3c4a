"""Little checkpoints as GGUF pairs, written by the gguf package, and what the reference makes of their values."""

import os
import subprocess

import gguf
import numpy as np
import torch
from gguf import GGMLQuantizationType as Type

import golden_cases
import golden_models as gm
import golden_vocab as vocab

# name: the checkpoint, types of text and vision matrices, what the file calls the final norm
FILES = {
    "gguf-f16": ("gguf", Type.F16, Type.F16, "token_embd_norm"),
    "gguf-q8_0": ("gguf", Type.Q8_0, Type.Q8_0, "token_embd_norm"),
    "gguf-q4_0": ("gguf-norm", Type.Q4_0, Type.Q8_0, "output_norm"),
}

# The K types come from llama.cpp's own quantiser, once: the text file is committed, and made anew only where
# LLAMA_QUANTIZE names the program. name: the checkpoint, type of the text file, type of vision matrices
QUANTISED_FILES = {"gguf-q4_k_m": ("gguf-k", "Q4_K_M", Type.Q8_0)}

CASES = [
    golden_cases.case("text", system=golden_cases.SYSTEM),
    golden_cases.case("80x48", ("mix", 80, 48, 91)), golden_cases.case("exact-256x256", ("hash", 256, 256, 92)),
    golden_cases.case("tiled-1024x544", ("tri", 1024, 544, 93)),
]

TEXT_NAMES = {
    "operator_norm": "attn_norm", "ffn_norm": "ffn_norm", "feed_forward.w1": "ffn_gate", "feed_forward.w3": "ffn_up",
    "feed_forward.w2": "ffn_down", "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v", "self_attn.out_proj": "attn_output", "self_attn.q_layernorm": "attn_q_norm",
    "self_attn.k_layernorm": "attn_k_norm", "conv.in_proj": "shortconv.in_proj", "conv.conv": "shortconv.conv",
    "conv.out_proj": "shortconv.out_proj",
}
TOWER_NAMES = {
    "layer_norm1": "ln1", "layer_norm2": "ln2", "mlp.fc1": "ffn_up", "mlp.fc2": "ffn_down", "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v", "self_attn.out_proj": "attn_out",
}
VISION_NAMES = {
    "embeddings.patch_embedding": "v.patch_embd", "embeddings.position_embedding": "v.position_embd",
    "post_layernorm": "v.post_ln", "layer_norm": "mm.input_norm", "linear_1": "mm.1", "linear_2": "mm.2",
}


def gguf_name(name, final_norm):
    """Where a tensor of the checkpoint goes: whether into the vision file, and its name there."""
    stem, kind = name.rsplit(".", 1)
    stem = stem.removeprefix("model.").removeprefix("language_model.")
    if stem.startswith(("vision_tower.", "multi_modal_projector.")):
        stem = stem.split(".", 1)[1]
        if stem.startswith("encoder.layers."):
            _, _, layer, part = stem.split(".", 3)
            return True, "v.blk.%s.%s.%s" % (layer, TOWER_NAMES[part], kind)
        return True, "%s.%s" % (VISION_NAMES[stem], kind)
    if stem.startswith("layers."):
        _, layer, part = stem.split(".", 2)
        return False, "blk.%s.%s.%s" % (layer, TEXT_NAMES[part], kind)
    return False, "%s.%s" % ({"embed_tokens": "token_embd", "embedding_norm": final_norm, "lm_head": "output"}[stem], kind)


def kind_of(name, shape, wanted):
    """Norms, biases, the taps and the positions stay float32; patches are halves only beside other halves."""
    if len(shape) == 4:
        return Type.F16 if wanted == Type.F16 else Type.F32
    if len(shape) != 2 or "shortconv.conv" in name or "position_embd" in name:
        return Type.F32
    return wanted


def place(writer, name, values, wanted):
    """Writes a tensor, numpy float32 in the file's order, and returns the values that the file now has."""
    kind = kind_of(name, values.shape, wanted)
    if kind in (Type.F32, Type.F16):
        stored = values.astype(np.float16 if kind == Type.F16 else np.float32)
        writer.add_tensor(name, stored)
        return stored.astype(np.float32)
    stored = gguf.quantize(values, kind)
    writer.add_tensor(name, stored, raw_dtype=kind)
    return gguf.dequantize(stored, kind).reshape(values.shape)


def write_tensors(text, vision, tensors, types, final_norm):
    """All tensors into the two files; their values under the names of the checkpoint."""
    values = {}
    for name, tensor in tensors.items():
        in_vision, there = gguf_name(name, final_norm)
        array, shape = tensor.to(torch.float32).numpy(), tuple(tensor.shape)
        if there == "v.patch_embd.weight":  # rows of (ky, kx, c) become (c, ky, kx)
            array = array.reshape(-1, 16, 16, 3).transpose(0, 3, 1, 2)
        elif there.endswith("shortconv.conv.weight"):
            array = array.reshape(shape[0], shape[2])
        array = place(vision if in_vision else text, there, np.ascontiguousarray(array), types[in_vision])
        if there == "v.patch_embd.weight":
            array = array.transpose(0, 2, 3, 1)
        values[name] = torch.from_numpy(np.ascontiguousarray(array.reshape(shape)))
    return values


def add_text_settings(writer, config):
    text = config["text_config"]
    writer.add_name(config["architectures"][0])
    writer.add_block_count(text["num_hidden_layers"])
    writer.add_context_length(text["max_position_embeddings"])
    writer.add_embedding_length(text["hidden_size"])
    writer.add_feed_forward_length(gm.ff_rows(text))
    writer.add_head_count(text["num_attention_heads"])
    writer.add_head_count_kv([text["num_key_value_heads"] if kind == "full_attention" else 0
                              for kind in text["layer_types"]])
    writer.add_layer_norm_rms_eps(text["norm_eps"])
    writer.add_rope_freq_base(text["rope_parameters"]["rope_theta"])
    writer.add_vocab_size(text["vocab_size"])
    writer.add_shortconv_l_cache(text["conv_L_cache"])


def add_tokens(writer, tokenizer):
    """The vocabulary; control tokens are those that tokenizer.json calls special."""
    words = dict((i, w) for w, i in tokenizer["model"]["vocab"].items())
    special = {t["id"]: t["content"] for t in tokenizer["added_tokens"]}
    words.update(special)
    size = vocab.vocabulary_size(tokenizer)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("lfm2")
    writer.add_token_list([words[i] for i in range(size)])
    writer.add_token_types([gguf.TokenType.CONTROL if i in special else gguf.TokenType.NORMAL for i in range(size)])
    writer.add_token_merges([" ".join(pair) for pair in tokenizer["model"]["merges"]])
    writer.add_bos_token_id(vocab.special_id(tokenizer, vocab.BOS))
    writer.add_eos_token_id(vocab.special_id(tokenizer, "<|im_end|>"))
    writer.add_eot_token_id(vocab.special_id(tokenizer, "<|endoftext|>"))
    writer.add_pad_token_id(vocab.special_id(tokenizer, "<|pad|>"))
    writer.add_chat_template(gm.TEMPLATE)


def add_vision_settings(writer, config):
    vision = config["vision_config"]
    writer.add_type("mmproj")
    writer.add_clip_has_vision_encoder(True)
    writer.add_clip_projector_type("lfm2")
    writer.add_vision_use_gelu(True)
    writer.add_vision_image_size(256)
    writer.add_vision_patch_size(vision["patch_size"])
    writer.add_vision_embedding_length(vision["hidden_size"])
    writer.add_vision_feed_forward_length(vision["intermediate_size"])
    writer.add_vision_block_count(vision["num_hidden_layers"])
    writer.add_vision_head_count(vision["num_attention_heads"])
    writer.add_vision_attention_layernorm_eps(vision["layer_norm_eps"])
    writer.add_vision_projection_dim(config["text_config"]["hidden_size"])
    writer.add_vision_projector_scale_factor(config["downsample_factor"])
    writer.add_vision_image_mean([0.5, 0.5, 0.5])
    writer.add_vision_image_std([0.5, 0.5, 0.5])


def finish(writer):
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def write_pair(folder, name, config, tokenizer):
    """model-TYPE.gguf and mmproj-TYPE.gguf; returns the values that they hold."""
    model, text_type, vision_type, final_norm = FILES[name]
    os.makedirs(folder, exist_ok=True)
    text = gguf.GGUFWriter(os.path.join(folder, "model-%s.gguf" % text_type.name), "lfm2")
    vision = gguf.GGUFWriter(os.path.join(folder, "mmproj-%s.gguf" % vision_type.name), "clip")
    add_text_settings(text, config)
    add_tokens(text, tokenizer)
    add_vision_settings(vision, config)
    values = write_tensors(text, vision, gm.weights_of(model, config), (text_type, vision_type), final_norm)
    finish(text)
    finish(vision)
    return values


def quantise_text(folder, scratch, name, config, tokenizer):
    """model-TYPE.gguf and its vision part; the halves that the program starts from are not kept."""
    model, text_type, vision_type = QUANTISED_FILES[name]
    FILES[name] = (model, Type.F16, vision_type, "token_embd_norm")
    values = write_pair(scratch, name, config, tokenizer)
    vision = "mmproj-%s.gguf" % vision_type.name
    os.makedirs(folder, exist_ok=True)
    os.replace(os.path.join(scratch, vision), os.path.join(folder, vision))
    path = os.path.join(folder, "model-%s.gguf" % text_type)
    if os.environ.get("LLAMA_QUANTIZE"):
        subprocess.run([os.environ["LLAMA_QUANTIZE"], os.path.join(scratch, "model-F16.gguf"), path, text_type, "1"],
                       check=True)
    read_back(path, values)
    return values


def read_back(path, values):
    """The values of a text file, in place of those of the same tensors."""
    stored = {tensor.name: tensor for tensor in gguf.GGUFReader(path).tensors}
    for name, value in values.items():
        in_vision, there = gguf_name(name, "token_embd_norm")
        if not in_vision:
            tensor = stored.pop(there)
            array = np.array(gguf.dequantize(tensor.data, tensor.tensor_type)).reshape(value.shape)
            values[name] = torch.from_numpy(np.ascontiguousarray(array, dtype=np.float32))
    assert not stored, list(stored)


def make_gguf_model(out, scratch, name):
    """Writes models/<name>/ and its cases."""
    print(name)
    model = (FILES.get(name) or QUANTISED_FILES[name])[0]
    folder, target = os.path.join(scratch, "reference", name), os.path.join(out, "models", name)
    config = gm.write_checkpoint(folder, model, reference=True)
    tokenizer = gm.TOKENIZERS[gm.SPECS[model]["tokenizer"]]()
    if name in QUANTISED_FILES:
        values = quantise_text(target, os.path.join(scratch, "halves"), name, config, tokenizer)
    else:
        values = write_pair(target, name, config, tokenizer)
    gm.save(values, os.path.join(folder, "model.safetensors"))
    reference = golden_cases.Reference(folder, model)
    golden_cases.write_cases(out, name, {
        "model": name, "about": gm.SPECS[model]["about"], "blob": name + ".f32.gz",
        "vocab_size": config["text_config"]["vocab_size"], "image_token_id": config["image_token_id"],
        "end_ids": [reference.model.generation_config.eos_token_id],
        "ff_rows": gm.ff_rows(gm.SPECS[model]["text"])}, reference, CASES[:3] if name in QUANTISED_FILES else CASES)
