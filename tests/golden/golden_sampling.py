"""Sampling goldens: logits before and after the logits processors that `generate` would build."""

import os

import numpy as np
import torch
from transformers import GenerationConfig, Lfm2Config, Lfm2ForCausalLM

from golden_common import Blob, hash_normals, splitmix64, write_json

SETTINGS = [
    {}, {"temperature": 0.1}, {"temperature": 0.7}, {"temperature": 2.5}, {"top_k": 1}, {"top_k": 5}, {"top_k": 50},
    {"top_k": 100000}, {"top_p": 0.1}, {"top_p": 0.5}, {"top_p": 0.9}, {"top_p": 0.99}, {"min_p": 0.05},
    {"min_p": 0.15}, {"min_p": 0.6}, {"repetition_penalty": 1.05}, {"repetition_penalty": 2.0},
    {"repetition_penalty": 0.7}, {"temperature": 0.1, "min_p": 0.15, "repetition_penalty": 1.05},
    {"temperature": 0.3, "min_p": 0.15, "repetition_penalty": 1.05}, {"temperature": 0.3, "top_k": 50},
    {"temperature": 1.5, "top_k": 20, "top_p": 0.8}, {"temperature": 1.5, "top_k": 20, "top_p": 0.8, "min_p": 0.1},
    {"temperature": 0.8, "top_p": 0.95, "min_p": 0.05, "repetition_penalty": 1.2}, {"top_k": 3, "min_p": 0.9},
    {"temperature": 3.0, "top_k": 40, "top_p": 0.7, "min_p": 0.02, "repetition_penalty": 1.3},
]
KEYS = ("temperature", "top_k", "top_p", "min_p", "repetition_penalty")


def vectors():
    """name, logits, ids seen in prompt and output (with repeats)."""
    for name, size, scale, seed in (("small", 40, 2.0, 1), ("peaked", 300, 6.0, 2), ("flat", 300, 0.4, 3), ("wide", 1280, 3.0, 4)):
        logits = (hash_normals(88000 + seed, size) * scale).astype(np.float32)
        seen = [splitmix64(99000 + 100 * seed + i) % size for i in range(30)] + [int(logits.argmax())] * 3
        yield name, logits, seen
    tied = np.round(hash_normals(88009, 60) * 2).astype(np.float32)   # many equal logits: top-k keeps all that tie
    yield "tied", tied, [3, 3, 7, 11]
    yield "two", np.array([2, -2], dtype=np.float32), [0, 1]


def scores_before(processors, step, seen, scores):
    """Sorted finite logits as they reach a step, in double precision; None if the step is not taken."""
    for processor in processors:
        if type(processor).__name__ == step:
            z = np.sort(scores[0].double().numpy())
            return z[np.isfinite(z)]
        scores = processor(seen, scores)
    return None


def clear(processors, seen, scores, settings):
    """False where rounding, or the order of equal logits, could decide which ids survive."""
    z = scores_before(processors, "TopPLogitsWarper", seen, scores)
    if z is not None:
        total = np.cumsum(np.exp(z - z.max()) / np.exp(z - z.max()).sum())
        limit = 1 - settings["top_p"]
        border = np.searchsorted(total, limit)
        tie = 0 < border < len(z) and z[border] == z[border - 1]
        if tie or np.abs(total[:-1] - limit).min(initial=1) <= 1e-6:
            return False
    z = scores_before(processors, "MinPLogitsWarper", seen, scores)
    return z is None or np.abs(np.exp(z - z.max()) - settings["min_p"]).min() > 1e-5


def make_sampling(out, args):
    model = Lfm2ForCausalLM(Lfm2Config(vocab_size=64, hidden_size=32, intermediate_size=32, num_hidden_layers=1,
                                       num_attention_heads=1, num_key_value_heads=1, layer_types=["conv"]))
    blob, entries, orders = Blob(), [], set()
    sources = {}
    for name, logits, seen in vectors():
        sources[name] = {"logits": blob.rows(logits[None]), "seen": seen}
        for settings in SETTINGS:
            if settings.get("top_k", 0) == 100000:
                settings = dict(settings, top_k=logits.size + 7)
            config = GenerationConfig(do_sample=True, **{"top_k": 0, **settings})
            processors = model._get_logits_processor(config, input_ids_seq_length=len(seen))
            orders.add(" ".join(type(p).__name__ for p in processors))
            ids, scores = torch.tensor([seen]), torch.from_numpy(logits)[None]
            if not clear(processors, ids, scores, settings):
                continue
            processed = processors(ids, scores.clone())
            kept = torch.isfinite(processed[0]).nonzero()[:, 0]
            probabilities = torch.softmax(processed, dim=-1)[0]
            entry = {"vector": name, **{k: settings[k] for k in KEYS if k in settings}, "kept_count": len(kept)}
            if len(kept) < logits.size:
                entry["kept"] = kept.tolist()
            entry["logits"] = blob.rows(processed[0][kept][None].numpy())
            entry["probabilities"] = blob.rows(probabilities[kept][None].numpy())
            entries.append(entry)
    write_json(os.path.join(out, "sampling.json"), {
        "blob": "sampling.f32.gz", "order": max(orders, key=len).split(), "vectors": sources, "entries": entries})
    blob.write(os.path.join(out, "sampling.f32.gz"))
    print("sampling: %d entries; order %s" % (len(entries), max(orders, key=len)))
