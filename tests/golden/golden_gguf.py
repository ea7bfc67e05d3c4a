"""Blocks of integers as GGUF files hold them, and the float32 values that the gguf package makes of them."""

import os

import numpy as np
from gguf import GGMLQuantizationType as Type
from gguf.constants import GGML_QUANT_SIZES
from gguf.quants import dequantize

from golden_common import fnv1a64, hash_bytes, write_json

# Type, and the places of the halves in its blocks.
TYPES = ((Type.Q8_0, (0,)), (Type.Q4_0, (0,)), (Type.Q4_1, (0, 2)), (Type.Q5_0, (0,)), (Type.Q5_1, (0, 2)),
         (Type.Q4_K, (0, 2)), (Type.Q5_K, (0, 2)), (Type.Q6_K, (208,)))
ROWS, BLOCKS = 160, 8  # blocks in a row: 1280 of each type


def random_blocks(kind, halves):
    """Bytes of hash_bytes (), seed 7000 + number of the type; halves that would not be finite lose their top
    exponent bit, so that every exponent down to the subnormal ones and both signs occur."""
    size = GGML_QUANT_SIZES[kind][1]
    blocks = hash_bytes(7000 + int(kind), ROWS * BLOCKS * size).reshape(ROWS * BLOCKS, size)
    for at in halves:
        top = blocks[:, at + 1]
        blocks[:, at + 1] = np.where((top & 0x7C) == 0x7C, top & 0xBF, top)
    return blocks


def check_coverage(kind, blocks):
    """Every nibble and every code of a scale is there."""
    if kind in (Type.Q4_K, Type.Q5_K):
        s = blocks[:, 4:16].astype(int)
        codes = np.concatenate([s[:, :4] & 63, (s[:, 8:] & 15) | (s[:, :4] >> 6 << 4)])
        mins = np.concatenate([s[:, 4:8] & 63, (s[:, 8:] >> 4) | (s[:, 4:8] >> 6 << 4)])
        assert len(np.unique(codes)) == len(np.unique(mins)) == 64
    if kind == Type.Q6_K:
        assert len(np.unique(blocks[:, 192:208])) == 256
    assert len(np.unique(blocks[:, :128] if kind == Type.Q6_K else blocks[:, -16:])) == 256


def make_gguf(out, args):
    """gguf.json"""
    entries = []
    for kind, halves in TYPES:
        blocks = random_blocks(kind, halves)
        check_coverage(kind, blocks)
        values = dequantize(blocks.reshape(ROWS, -1), kind)
        assert values.dtype == np.float32 and np.isfinite(values).all()
        entries.append({
            "name": kind.name, "type": int(kind), "halves": list(halves), "rows": ROWS, "cols": values.shape[1],
            "block_fnv": fnv1a64(blocks.tobytes()), "row_fnv": [fnv1a64(row.tobytes()) for row in values]})
    write_json(os.path.join(out, "gguf.json"), {
        "about": "blocks are bytes of splitmix64; row_fnv are hashes of the float32 values of each row",
        "entries": entries})
