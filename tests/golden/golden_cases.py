"""Runs the reference on every little checkpoint and keeps each stage of each case."""

import os

import numpy as np
import torch
from PIL import Image
from transformers import AutoModelForCausalLM, AutoModelForImageTextToText, AutoProcessor, AutoTokenizer

import golden_models as gm
from golden_common import Blob, describe, draw, f32_bytes, fnv1a64, sha256, write_json
from golden_quant import quantise_tensors

NEW_TOKENS = 48
MARGIN = 1e-3      # the smallest gap of the two best logits, as a part of the largest logit
DISTINCT = 10      # greedy output must not be one repeated token

PROMPTS = [
    "Describe the image.", "What is in this picture?", "What do you see?", "Write a caption.",
    "How many people are there?", "Which colour is the car?", "Is it day or night?", "Describe.",
    "What moves in the video?", "Is there a dog or a cat?", "Tell me about the scene in detail.",
    "Where is the red square?", "Read the text.", "Who is on the left?", "One word: what is this?",
    "Describe the picture\nin two lines.", "Détaille cette image, s'il te plaît.", "请描述这张图片。",
    "Что на картинке?", "画像を説明してください。", "  two spaces first", "DON'T guess; what's shown?",
    "Count to 12345, then describe.", "What changed between the frames?", "Name three objects.",
    "Is the street empty?", "What is behind the tree?", "Do you see a boat on the water?",
    "Describe the light and the sky.", "What would you call this picture?", "Is it large or small?",
    "Bild beschreiben, bitte!", "Why is it dark?", "Which one is near, which one is far?",
    "What happens next?", "Give a short title.", "What time of day is it?", "Is anything written here?",
    "List what you see: 1, 2, 3.", "Is the horse white?\r\nAnswer yes or no.",
]
SYSTEM = "You are a helpful assistant. Answer in short sentences."


def case(name, *pictures, system=None):
    return {"name": name, "pictures": list(pictures), "system": system}


# A picture is (pattern, width, height[, seed]).
CASES = {
    "lfm25": [
        case("text"), case("text-system", system=SYSTEM),
        case("80x48", ("mix", 80, 48, 1)), case("exact-512x512", ("hash", 512, 512, 2)),
        case("exact-256x256", ("tri", 256, 256, 3)), case("640x480", ("mix", 640, 480, 4)),
        case("300x100", ("ramp", 300, 100)), case("1024x512", ("tri", 1024, 512, 5)),
        case("tiled-1024x544-halves", ("halves", 1024, 544)), case("tiled-1280x720", ("mix", 1280, 720, 6)),
        case("tiled-1920x1080", ("tri", 1920, 1080, 7)), case("tiled-768x1024", ("mix", 768, 1024, 8)),
        case("tiled-1100x900", ("ramp", 1100, 900)), case("tiled-4000x300", ("tri", 4000, 300, 9)),
        case("two-images", ("mix", 400, 300, 10), ("tri", 224, 224, 11)),
        case("two-images-tiled", ("hash", 1000, 1000, 12), ("mix", 80, 48, 13), system=SYSTEM),
        case("1x1", ("hash", 1, 1, 14)), case("1x8000", ("hash", 1, 8000, 15)),
        case("16384x16", ("hash", 16384, 16, 16)), case("144x4000", ("tri", 144, 4000, 17)),
    ],
    "lfm2-first": [
        case("text"), case("80x48", ("mix", 80, 48, 21)), case("exact-256x256", ("hash", 256, 256, 22)),
        case("320x200", ("tri", 320, 200, 23)), case("200x333", ("mix", 200, 333, 24)),
        case("tiled-640x360", ("mix", 640, 360, 25)), case("tiled-300x600", ("tri", 300, 600, 26)),
        case("two-images", ("mix", 100, 40, 27), ("hash", 512, 512, 28), system=SYSTEM),
    ],
    "attn-first": [
        case("text", system=SYSTEM), case("80x48", ("tri", 80, 48, 31)), case("exact-256x256", ("mix", 256, 256, 32)),
        case("exact-128x512", ("hash", 128, 512, 33)), case("tiled-640x360", ("tri", 640, 360, 34)),
        case("tiled-360x640", ("mix", 360, 640, 35)), case("two-images", ("hash", 64, 64, 36), ("mix", 700, 700, 37)),
    ],
    "ids-moved": [
        case("text"), case("90x50", ("mix", 90, 50, 41)), case("exact-256x256", ("tri", 256, 256, 42)),
        case("tiled-800x450", ("mix", 800, 450, 43)), case("tiled-300x900", ("hash", 300, 900, 44)),
        case("two-images", ("tri", 160, 120, 45), ("mix", 60, 90, 46)), case("17x1000", ("tri", 17, 1000, 47)),
        case("end-id", ("mix", 120, 90, 48)),
    ],
    "sharded": [
        case("text"), case("80x48", ("mix", 80, 48, 51)), case("exact-256x512", ("hash", 256, 512, 52)),
        case("1280x720", ("mix", 1280, 720, 53)), case("two-images", ("tri", 333, 222, 54), ("mix", 64, 300, 55)),
    ],
    "untied": [
        case("text"), case("40x30", ("mix", 40, 30, 61)), case("exact-128x128", ("tri", 128, 128, 62)),
        case("tiled-320x200", ("mix", 320, 200, 63)), case("tiled-200x320", ("hash", 200, 320, 64)),
        case("tiled-900x200", ("tri", 900, 200, 65)), case("two-images", ("tri", 100, 64, 66), ("mix", 256, 256, 67)),
    ],
    "vl-3b": [
        case("text", system=SYSTEM), case("80x48", ("mix", 80, 48, 81)), case("exact-256x256", ("hash", 256, 256, 82)),
        case("320x200", ("tri", 320, 200, 83)), case("tiled-640x360", ("mix", 640, 360, 84)),
        case("tiled-300x900", ("tri", 300, 900, 85)),
    ],
    "text-only": [case("text"), case("text-2"), case("text-system", system=SYSTEM)],
}


# Checkpoints of which the converted form is judged: the model, types of text and vision, its cases.
QUANTISED = {
    "lfm25-int8": ("lfm25", "int8", "int8", ("text", "80x48", "exact-256x256", "tiled-768x1024")),
    "attn-first-int4": ("attn-first", "int4", "int8", ("text", "80x48", "exact-128x512", "tiled-640x360")),
    "untied-int4": ("untied", "int4", "int8", ("text", "exact-128x128", "tiled-320x200")),
    "text-only-int4": ("text-only", "int4", "int8", ("text", "text-system")),
    "text-only-f16": ("text-only", "f16", "f16", ("text-2",)),
}


class Reference:
    """A loaded checkpoint: float32, CPU, eager attention."""

    def __init__(self, folder, name):
        text_only = gm.SPECS[name].get("text_only", False)
        auto = AutoModelForCausalLM if text_only else AutoModelForImageTextToText
        self.model, info = auto.from_pretrained(
            folder, dtype=torch.float32, attn_implementation="eager", output_loading_info=True)
        assert not info["missing_keys"] and not info["unexpected_keys"] and not info["mismatched_keys"], info
        self.model.eval()
        self.processor = None if text_only else AutoProcessor.from_pretrained(folder)
        self.tokenizer = AutoTokenizer.from_pretrained(folder) if text_only else self.processor.tokenizer

    def render(self, system, prompt, images):
        content = [{"type": "image"}] * images + [{"type": "text", "text": prompt}]
        messages = [{"role": "user", "content": content if images else prompt}]
        if system:
            messages.insert(0, {"role": "system", "content": system})
        render = (self.processor or self.tokenizer).apply_chat_template
        text = render(messages, tokenize=False, add_generation_prompt=True)
        expected = "<|startoftext|>" + ("<|im_start|>system\n%s<|im_end|>\n" % system if system else "")
        expected += "<|im_start|>user\n" + "<image>" * images + prompt + "<|im_end|>\n<|im_start|>assistant\n"
        assert text == expected, (text, expected)
        return text

    def inputs(self, text, pictures):
        if not pictures:
            encoded = self.tokenizer(text, add_special_tokens=False, return_tensors="pt")
            return {k: encoded[k] for k in ("input_ids", "attention_mask")}
        images = [Image.fromarray(draw(*p)) for p in pictures]
        return dict(self.processor(text=[text], images=[images], return_tensors="pt"))

    def generate(self, inputs):
        out = self.model.generate(**inputs, do_sample=False, max_new_tokens=NEW_TOKENS, output_logits=True,
                                  return_dict_in_generate=True)
        start = inputs["input_ids"].shape[1]
        return out.sequences[0, start:].tolist(), torch.stack(out.logits)[:, 0].float()


def crops_of(pixel_values, shapes):
    """The uint8 crops back from the reference's patch rows; the way back is exact."""
    crops = []
    for rows, (h, w) in zip(pixel_values, shapes.tolist()):
        rows = rows[: h * w].numpy()
        levels = np.rint(rows.astype(np.float64) * 127.5 + 127.5).astype(np.uint8)
        again = (levels.astype(np.float32) - np.float32(127.5)) / np.float32(127.5)
        assert np.array_equal(again, rows)
        picture = levels.reshape(h, w, 16, 16, 3).transpose(0, 2, 1, 3, 4).reshape(h * 16, w * 16, 3)
        crops.append(np.ascontiguousarray(picture))
    return crops


def layout_of(reference, pictures):
    """For each crop in order: which picture, tile or thumbnail, row and column (from the reference)."""
    processor, kinds = reference.processor.image_processor, []
    for index, p in enumerate(pictures):
        info = processor([Image.fromarray(draw(*p))], return_row_col_info=True, return_tensors=None)
        rows, cols = info["image_rows"][0], info["image_cols"][0]
        count = len(info["spatial_shapes"])
        if count == 1:
            kinds.append({"image": index, "kind": "single", "row": 1, "col": 1})
            continue
        for r in range(rows):
            kinds += [{"image": index, "kind": "tile", "row": r + 1, "col": c + 1} for c in range(cols)]
        if count == rows * cols + 1:
            kinds.append({"image": index, "kind": "thumbnail", "row": 0, "col": 0})
    return kinds


def stride_for(count, wanted):
    return max(1, count // wanted)


def keep_crops(reference, inputs, pictures, blob, many):
    """Every stage of every crop, in full as hashes and in part as rows."""
    shapes = inputs["spatial_shapes"]
    with torch.no_grad():
        out = reference.model.model.get_image_features(
            pixel_values=inputs["pixel_values"], spatial_shapes=shapes,
            pixel_attention_mask=inputs["pixel_attention_mask"], output_hidden_states=True, return_dict=True)
    kept = []
    kinds = layout_of(reference, pictures)
    pictures_u8 = crops_of(inputs["pixel_values"], shapes)
    assert len(kinds) == len(pictures_u8)
    wanted = 4 if many else 10
    for i, (kind, crop) in enumerate(zip(kinds, pictures_u8)):
        h, w = shapes[i].tolist()
        pixels = inputs["pixel_values"][i, : h * w].numpy()
        tower = out.last_hidden_state[i, : h * w].float().numpy()
        tokens = out.pooler_output[i].float().numpy()
        assert len(tokens) == h * w // 4
        kept.append({
            **kind, "h": crop.shape[0], "w": crop.shape[1], "patches_h": h, "patches_w": w,
            "crop_fnv": fnv1a64(crop.tobytes()), "crop_sha256": sha256(crop.tobytes()),
            "pixels_fnv": fnv1a64(f32_bytes(pixels)),
            "pixels": blob.rows(pixels, 1 % len(pixels), max(37, len(pixels) // 2)),
            "tower": blob.rows(tower, 0, stride_for(h * w, wanted)),
            "projector": blob.rows(tokens, 0, stride_for(h * w // 4, wanted)),
        })
        if i == 0:  # the state that enters each tower layer, then the one that leaves the last, of one patch
            states = torch.cat([s[0, 1:2] for s in out.hidden_states])
            kept[0]["tower_states"] = blob.rows(states.float().numpy())
    return kept


def run_case(reference, item, blob):
    """One case: the first prompt whose greedy path is clear at every step."""
    offset = sum(map(ord, item["name"]))
    for attempt in range(len(PROMPTS)):
        prompt = PROMPTS[(offset + 7 * attempt) % len(PROMPTS)]
        text = reference.render(item["system"], prompt, len(item["pictures"]))
        inputs = reference.inputs(text, item["pictures"])
        greedy, logits = reference.generate(inputs)
        best = logits.topk(2, dim=-1).values
        gaps = best[:, 0] - best[:, 1]
        relative = (gaps / logits.abs().amax(dim=-1)).min().item()
        if relative > MARGIN and len(set(greedy)) >= min(DISTINCT, len(greedy)):
            break
    else:
        raise SystemExit("no prompt with clear margins: " + item["name"])
    with torch.no_grad():
        full = reference.model(**inputs, output_hidden_states=True, use_cache=False)
    first = full.logits[0, -1].float()
    assert int(first.argmax()) == greedy[0]
    hidden = torch.cat([h[0, -1:] for h in full.hidden_states]).float().numpy()
    ids = inputs["input_ids"][0].tolist()
    kept = {
        "name": item["name"], "pictures": [describe(*p) for p in item["pictures"]],
        "system": item["system"], "prompt": prompt, "rendered": text,
        "ids_count": len(ids), "ids": ids, "crops": [],
        "hidden_last": blob.rows(hidden), "logits": blob.rows(first[None].numpy()),
        "greedy": greedy, "greedy_gap": [round(g, 5) for g in gaps.tolist()],
        "smallest_relative_gap": round(relative, 6),
        "stopped": len(greedy) < NEW_TOKENS,
    }
    if item["pictures"]:
        kept["crops"] = keep_crops(reference, inputs, item["pictures"], blob, inputs["spatial_shapes"].shape[0] > 4)
    print("  %-24s ids %5d  crops %2d  gap %.4f  distinct %2d  attempt %d  logits %.1f" % (
        item["name"], len(ids), len(kept["crops"]), relative, len(set(greedy)), attempt, first.abs().max()))
    return kept


def write_cases(out, name, head, reference, items):
    """cases/<name>.json and the blob that it names; head goes before the cases."""
    blob = Blob()
    cases = [run_case(reference, item, blob) for item in items]
    write_json(os.path.join(out, "cases", name + ".json"), {**head, "cases": cases})
    blob.write(os.path.join(out, "cases", head["blob"]))


def make_model(out, scratch, name):
    """Writes models/<name>/ and its cases."""
    print(name)
    gm.write_checkpoint(os.path.join(out, "models", name), name)
    folder = os.path.join(scratch, "reference", name)
    config = gm.write_checkpoint(folder, name, reference=True)
    reference = Reference(folder, name)
    end = reference.model.generation_config.eos_token_id
    write_cases(out, name, {
        "model": name, "about": gm.MODELS[name]["about"], "blob": name + ".f32.gz",
        "vocab_size": config.get("text_config", config)["vocab_size"],
        "image_token_id": config.get("image_token_id"), "end_ids": end if isinstance(end, list) else [end],
        "ff_rows": gm.ff_rows(gm.MODELS[name]["text"])}, reference, CASES[name])


def make_quantised(out, scratch, name):
    """Cases of a checkpoint whose weights went through the rules of golden_quant.py, computed in float32."""
    model, text, vision, wanted = QUANTISED[name]
    print(name)
    folder = os.path.join(scratch, "reference", name)
    config = gm.write_checkpoint(folder, model, reference=True)
    values, stored = quantise_tensors(gm.weights_of(model, config), text, vision)
    gm.save(values, os.path.join(folder, "model.safetensors"))
    items = [item for item in CASES[model] if item["name"] in wanted]
    assert len(items) == len(wanted)
    write_cases(out, name, {
        "model": model, "blob": name + ".f32.gz", "type": text, "vision_type": vision,
        "tensors": dict(sorted(stored.items()))}, Reference(folder, model), items)
