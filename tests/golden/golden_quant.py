"""The rules by which this program makes integers of floats, and the hard cases of them."""

import os

import numpy as np
import torch

from golden_common import Blob, fnv1a64, hash_normals, write_json

GROUP = 64
TEXT_PARTS = (".w1.", ".w2.", ".w3.", ".in_proj.", ".out_proj.", ".q_proj.", ".k_proj.", ".v_proj.",
              "embed_tokens.", "lm_head.")
VISION_PARTS = (".q_proj.", ".k_proj.", ".v_proj.", ".out_proj.", ".fc1.", ".fc2.", ".linear_1.", ".linear_2.")


# ---------------------------------------------------------------- the rules


def _round(x, divisor, limit):
    """x [n][span]: one scale for each row of x. float32 throughout, and the scale as it is stored."""
    scale = (x.abs().amax(dim=1) / divisor).to(torch.float16)
    wide = scale.to(torch.float32)[:, None]
    q = torch.where(wide == 0, torch.zeros_like(x), x / wide)  # 0 / 0 is not taken
    return q.round().clamp(-limit, limit).to(torch.int8), scale


def quantise(x, kind):
    """q int8 [rows][cols], scales float16 [rows][groups]; kind is int8 or int4."""
    x = x.to(torch.float32)
    if kind == "int8":
        q, scale = _round(x, 127.0, 127)
        return q, scale[:, None]
    parts = [_round(x[:, at : at + GROUP], 7.0, 7) for at in range(0, x.shape[1], GROUP)]
    return torch.cat([q for q, _ in parts], dim=1), torch.stack([s for _, s in parts], dim=1)


def dequantise(q, scale, kind):
    wide = scale.to(torch.float32)
    if kind == "int4":
        wide = wide.repeat_interleave(GROUP, dim=1)[:, : q.shape[1]]
    return q.to(torch.float32) * wide


# ---------------------------------------------------------------- checkpoints


def kind_of(name, shape, text, vision):
    """What a tensor of a checkpoint becomes: int8, int4 or f16."""
    if len(shape) != 2 or "_embedding." in name:
        return "f16"
    of_vision = "vision_tower" in name or "multi_modal_projector" in name
    assert any(p in "." + name for p in (VISION_PARTS if of_vision else TEXT_PARTS)), name
    return vision if of_vision else text


def quantise_tensors(tensors, text, vision):
    """The values that a converted checkpoint stands for, as float32, and what to find in its file."""
    values, stored = {}, {}
    for name, tensor in tensors.items():
        kind = kind_of(name, tensor.shape, text, vision)
        if kind == "f16":
            half = tensor.to(torch.float32).to(torch.float16)
            assert half.isfinite().all(), name
            values[name] = half.to(torch.float32)
            stored[name] = {"type": kind, "fnv": fnv1a64(half.numpy().tobytes())}
            continue
        q, scale = quantise(tensor, kind)
        values[name] = dequantise(q, scale, kind)
        stored[name] = {"type": kind, "q_fnv": fnv1a64(q.numpy().tobytes()),
                        "scale_fnv": fnv1a64(scale.numpy().tobytes())}
    return values, stored


# ---------------------------------------------------------------- hard rows


def _noise(seed, count, std=1.0):
    return (hash_normals(seed, count) * std).astype(np.float32)


def _heavy(seed, count):
    """Mostly small, a few values thirty and a hundred times as large."""
    x = _noise(seed, count)
    x[seed % 7 :: 53] *= 30
    x[seed % 5 :: 97] *= 100
    return x


def _scale_tie(low_bits, divisor, count, seed):
    """amax / divisor lies on the middle of two neighbouring halves, so that the even one must be taken."""
    low = np.array([low_bits], dtype=np.uint16).view(np.float16).astype(np.float64)[0]
    high = np.array([low_bits + 1], dtype=np.uint16).view(np.float16).astype(np.float64)[0]
    amax = (low + high) / 2 * divisor
    assert float(np.float32(amax)) == amax
    x = _noise(seed, count)
    x *= np.float32(0.9 * amax / np.abs(x).max())
    x[count // 2] = -amax
    return x


def _value_ties(scale, divisor, count, ulps):
    """Values at every half step of a scale that is a half itself; ulps moves each by as many float32 steps."""
    scale = np.float32(np.float16(scale))
    steps = np.arange(count) % (2 * divisor) - divisor + 0.5
    x = (steps * float(scale)).astype(np.float32)
    assert ulps or np.array_equal(x.astype(np.float64), steps * float(scale))
    bits = x.view(np.int32) + ulps
    x = bits.view(np.float32).copy()
    x[::divisor] = scale * divisor
    return x


def _tiny(amax, count, seed):
    x = _noise(seed, count)
    x *= np.float32(amax) / np.abs(x).max()
    x[3] = amax
    return x


def hard_rows(divisor, cols):
    """name to rows of cols values."""
    smallest, normal = 2.0**-24, 2.0**-14  # of the halves: smallest number, smallest normal one
    rows = {
        "normal": [_noise(i, cols, 0.02) for i in range(3)],
        "heavy": [_heavy(100 + i, cols) for i in range(3)],
        "zero": [np.zeros(cols, np.float32), -np.zeros(cols, np.float32)],
        "one-value": [np.where(np.arange(cols) == cols - 1, np.float32(v), np.float32(0)) for v in (-0.3, 1e4)],
        "constant": [np.full(cols, v, np.float32) for v in (0.1, -7.0, 127.0)],
        "scale-ties": [_scale_tie(bits, divisor, cols, i) for i, bits in
                       enumerate((0x2000, 0x2001, 0x211F, 0x2FFF, 0x3BFF, 0x0002, 0x0003, 0x03FF, 0x0400))],
        "value-ties": [_value_ties(s, divisor, cols, u) for s in (1.0, 0.0123, 3e-7) for u in (0, 1, -1)],
        # A stored scale below amax / divisor makes quotients beyond the limit: they are clamped.
        "subnormal-scale": [_tiny(t * smallest * divisor, cols, i) for i, t in
                            enumerate((0.50001, 0.75, 1.0, 1.4999, 2.4999, 3.3, 100.3))]
        + [_tiny(t * normal * divisor, cols, 20 + i) for i, t in enumerate((0.999, 1.0, 1.001))],
        "scale-to-zero": [_tiny(t * smallest * divisor, cols, 30 + i) for i, t in enumerate((0.5, 0.25, 1e-3))],
        "subnormal-values": [_noise(40, cols, 1e-40), _noise(41, cols, 1e-38)],
        "large": [_tiny(t * 65504.0 * divisor, cols, 50 + i) for i, t in enumerate((1.0, 1.0002, 0.5))],
        "large-and-small": [np.where(np.arange(cols) % 64 < 32, _noise(60, cols, 1e5 / 3), _noise(61, cols, 1e-6))],
    }
    return {name: np.stack(group).astype(np.float32) for name, group in rows.items()}


def make_quant(out, args):
    """quant.json and quant.f32.gz"""
    blob, entries = Blob(), []
    for kind, divisor, widths in (("int8", 127, (160, 33)), ("int4", 7, (64, 160, 33))):
        for cols in widths:
            for name, x in hard_rows(divisor, cols).items():
                q, scale = quantise(torch.from_numpy(x), kind)
                assert scale.isfinite().all(), (kind, name)
                assert q.abs().max() <= divisor
                entries.append({
                    "name": "%s-%d-%s" % (kind, cols, name), "kind": kind, "rows": len(x), "cols": cols,
                    "x": blob.add(x), "q": [row.numpy().tobytes().hex() for row in q],
                    "scales": [row.numpy().view(np.uint16).tolist() for row in scale],
                })
    write_json(os.path.join(out, "quant.json"), {
        "about": "x is an offset into the blob; q are int8 values as hexadecimal bytes, scales the bits of halves",
        "blob": "quant.f32.gz", "entries": entries})
    blob.write(os.path.join(out, "quant.f32.gz"))
