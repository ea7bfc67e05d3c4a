"""Goldens of sizes, tiles, resampling and the position table, from the reference's own functions."""

import math
import os

import numpy as np
import torch
from torchvision.transforms.v2 import functional as tvf
from transformers.models.lfm2_vl.image_processing_lfm2_vl import Lfm2VlImageProcessor
from transformers.models.lfm2_vl.processing_lfm2_vl import Lfm2VlProcessor
from transformers.models.siglip2.modeling_siglip2 import Siglip2VisionEmbeddings

from golden_common import Blob, describe, draw, fnv1a64, hash_normals, splitmix64, write_json

# ---------------------------------------------------------------- geometry

SETTINGS = {
    "lfm2.5": {},
    "min-tokens-32": {"min_image_tokens": 32},
    "tiles-1..10": {"min_tiles": 1},
    "tiles-2..6": {"max_tiles": 6},
    "tiles-4..4": {"min_tiles": 4, "max_tiles": 4},
    "tiles-1..1": {"min_tiles": 1, "max_tiles": 1},
    "no-splitting": {"do_image_splitting": False},
    "no-thumbnail": {"use_thumbnail": False},
    "tolerance-1.5": {"max_pixels_tolerance": 1.5},
    "small": {"tile_size": 256, "min_image_tokens": 16, "max_image_tokens": 64, "min_tiles": 1, "max_tiles": 6},
}

TABLE = """32x32 80x48 224x224 256x256 320x240 336x336 400x300 480x270 512x512 512x1024 640x480 650x500 720x730
768x768 768x1024 800x600 960x540 1000x300 1000x500 1000x1000 1024x512 1024x544 1024x768 1024x1024 1080x1920
1280x720 1600x800 1920x1080 1920x2485 2560x1440 3840x2160 4000x300 4000x3000 144x4000 1x8000 1x1 1x9000
16384x16 16x16384 300x100 1100x420 1100x900 2x2 16x16 17x17 48x48 8000x1 9000x1 1x4096 4096x1 1x64 64x1
1448x724 1449x724 1254x1254 1255x1255 723x723 724x724 725x725 727x720 528x528 7680x4320 10000x10000
1024x1025 1025x1024 1536x1024 1024x1536 2048x512 512x2048 511x1023 513x1025 1040x512 1039x512 1041x512"""


def sizes():
    """Width, height pairs: the table, roundings at half, tie ratios, extremes and noise."""
    listed = [tuple(map(int, s.split("x"))) for s in TABLE.split()]
    halves = [(w, h) for w in range(16, 336, 32) for h in range(16, 336, 32)]
    halves += [(16 * i, 16 * j) for i in (31, 33, 44, 45, 63, 64, 65, 66) for j in (31, 33, 44, 45, 63, 64, 65, 66)]
    ties = []
    for gw in range(1, 11):
        for gh in range(1, 11):
            if gw * gh <= 10:
                for unit in (97, 361, 362, 363, 512, 640):
                    ties.append((gw * unit, gh * unit))
                ties.append((gw * 1024 // gh, 1024))
    # a ratio half-way between two grid ratios: (a/b + c/d) / 2 = (ad + cb) / 2bd
    grids = [(a, b) for a in range(1, 11) for b in range(1, 11) if a * b <= 10]
    for i, (a, b) in enumerate(grids):
        for c, d in grids[i + 1 :]:
            w, h = a * d + c * b, 2 * b * d
            k = math.ceil(math.sqrt(1200000 / (w * h)))
            ties.append((w * k, h * k))
    noise, state = [], 0
    while len(noise) < 900:
        r = splitmix64(0x60D0000 + state)
        state += 1
        w, h = 1 + (r & 0xFFFF) % 2600, 1 + (r >> 20 & 0xFFFF) % 2600
        if state % 5 == 0:
            w = 1 + (r >> 40) % 9000
        if state % 7 == 0:
            h = 1 + (r >> 44) % 400
        noise.append((w, h))
    seen = dict.fromkeys(listed + halves + ties + noise)
    return list(seen)


def geometry_row(image, text, settings, w, h):
    """One line of numbers, by calling the reference's functions as its preprocessing does."""
    get = lambda key: settings.get(key, getattr(image, key))  # noqa: E731
    low, high = (get("min_tiles"), get("max_tiles")) if get("do_image_splitting") else (1, 1)
    shared = {"max_image_tokens": get("max_image_tokens"), "encoder_patch_size": 16, "downsample_factor": 2}
    width, height = image.smart_resize(height=h, width=w, min_image_tokens=get("min_image_tokens"), **shared)
    large = image._is_image_too_large(height=h, width=w, max_pixels_tolerance=get("max_pixels_tolerance"), **shared)
    split = large and not (low == high == 1)
    cols = rows = 1
    if split:
        cols, rows, _, _, _ = image._get_grid_layout(h, w, min_tiles=low, max_tiles=high, tile_size=get("tile_size"))
    text.image_processor = image
    per_tile, whole = text._get_image_num_tokens([height, width], tile_size=get("tile_size"),
                                                 encoder_patch_size=16, downsample_factor=2)
    marks = text._build_image_tokens(rows, cols, per_tile, whole, get("use_thumbnail"), True)
    return [w, h, int(split), rows, cols, height, width, marks.count("<image>"), marks.count("<|")]


def make_geometry(out, args):
    image = Lfm2VlImageProcessor()
    text = Lfm2VlProcessor.__new__(Lfm2VlProcessor)
    text.image_token, text.image_start_token, text.image_end_token = "<image>", "<|image_start|>", "<|image_end|>"
    text.image_thumbnail_token = "<|img_thumbnail|>"
    everything, result = sizes(), []
    for name, settings in SETTINGS.items():
        chosen = everything if name in ("lfm2.5", "tiles-1..10") else everything[: 61] + everything[61::3]
        result.append({"name": name, "settings": settings,
                       "rows": [geometry_row(image, text, settings, w, h) for w, h in chosen]})
    columns = ["w", "h", "split", "grid_rows", "grid_cols", "smart_h", "smart_w", "image_tokens", "marker_tokens"]
    write_json(os.path.join(out, "geometry.json"), {"columns": columns, "groups": result})
    print("geometry: %d rows" % sum(len(g["rows"]) for g in result))


# ---------------------------------------------------------------- resampling

RESIZES = """7x5>3x2 3x2>7x5 7x1>3x1 7x1>5x1 7x1>10x1 1x7>1x3 1x1>4x4 2x2>2x1 4x4>2x2 4x4>8x8 5x5>5x9 5x5>9x5
9x4>9x2 16x16>15x17 3x3>1x7 1x9>5x3 13x11>12x10 11x13>32x32 2x9>8x8 31x17>16x16 33x33>32x32 6x6>5x5 8x2>3x7
20x3>4x12 256x256>32x32 300x100>448x160 640x480>576x416 80x48>352x224 512x512>512x512 512x300>512x256
300x512>256x512 1280x720>1024x512 1x1>256x256 1x2000>32x500 2000x3>512x32 100x100>99x101"""


def resize_list():
    return [[tuple(map(int, p.split("x"))) for p in s.split(">")] for s in RESIZES.split()]


def torch_resize(picture, w, h, bicubic):
    mode = tvf.InterpolationMode.BICUBIC if bicubic else tvf.InterpolationMode.BILINEAR
    chw = torch.from_numpy(picture).permute(2, 0, 1).contiguous()
    return tvf.resize(chw, [h, w], interpolation=mode, antialias=True).permute(1, 2, 0).contiguous().numpy()


def torch_float_resize(picture, w, h):
    chw = torch.from_numpy(picture).permute(2, 0, 1).float()
    return np.rint(tvf.resize(chw, [h, w], antialias=True).permute(1, 2, 0).numpy()).astype(np.uint8)


F = np.float32


def float_taps(size_in, size_out):
    """The weights of the float bilinear path, rounded to float32 where the reference rounds."""
    s = F(size_in) / F(size_out)
    sup = s if s >= 1 else F(1)
    inv = F(1) / s if s >= 1 else F(1)
    kmax = math.ceil(sup) * 2 + 1
    taps = []
    for i in range(size_out):
        c = F(float(s) * (i + 0.5))
        lo = max(int(float(F(c - sup)) + 0.5), 0)
        n = min(max(min(int(float(F(c + sup)) + 0.5), size_in) - lo, 0), kmax)
        w = []
        for j in range(n):
            x = abs(F((float(F(F(lo + j) - c)) + 0.5) * float(inv)))
            w.append(F(F(1) - x) if x < 1 else F(0))
        total = F(0)
        for value in w:
            total = F(total + value)
        taps.append((lo, [F(value / total) for value in w]))
    return taps


def float_pass(rows, taps):
    """rows: float32 [n][length][3] along the axis; fused multiply-add by way of double."""
    result = np.zeros((rows.shape[0], len(taps), rows.shape[2]), dtype=F)
    for i, (lo, w) in enumerate(taps):
        acc = (rows[:, lo] * w[0]).astype(F)
        for j in range(1, len(w)):
            acc = (rows[:, lo + j].astype(np.float64) * float(w[j]) + acc.astype(np.float64)).astype(F)
        result[:, i] = acc
    return result


def float_resize(picture, w, h):
    """The float bilinear path from its formula; make_resize compares it with torch on float32 input."""
    data = picture.astype(F)
    if w != picture.shape[1]:
        data = float_pass(data, float_taps(picture.shape[1], w))
    if h != picture.shape[0]:
        data = float_pass(np.swapaxes(data, 0, 1), float_taps(picture.shape[0], h)).swapaxes(0, 1)
    return np.clip(np.rint(data), 0, 255).astype(np.uint8)


def make_resize(out, args):
    entries, differing = [], 0
    for index, ((w, h), (to_w, to_h)) in enumerate(resize_list()):
        for pattern in ("hash", "mix"):
            if pattern == "mix" and index < 24:
                continue
            picture = draw(pattern, w, h, 1000 + index)
            for name in ("bilinear", "bicubic", "bilinear-float"):
                if name == "bilinear-float":
                    result = float_resize(picture, to_w, to_h)
                    beside = int((result != torch_float_resize(picture, to_w, to_h)).sum())
                else:
                    result = torch_resize(picture, to_w, to_h, name == "bicubic")
                entry = {"picture": describe(pattern, w, h, 1000 + index), "out_w": to_w, "out_h": to_h,
                         "filter": name, "fnv": fnv1a64(result.tobytes())}
                if name == "bilinear-float":
                    entry["differs_from_torch"] = beside
                    if beside:
                        print("  float path: %dx%d>%dx%d %s: %d of %d bytes differ from torch on float32" % (
                            w, h, to_w, to_h, pattern, beside, result.size))
                if result.size <= 400:
                    entry["bytes"] = result.reshape(-1).tolist()
                entries.append(entry)
                if name == "bilinear":
                    exact = result
                elif name == "bilinear-float":
                    gap = np.abs(result.astype(int) - exact.astype(int)).max()
                    assert gap <= 1, (w, h, to_w, to_h, gap)
                    differing += int(gap)
    checker = draw("checker", 256, 256)
    small = torch_resize(checker, 32, 32, False)
    assert set(np.unique(small)) <= {127, 128}
    entries.append({"picture": describe("checker", 256, 256), "out_w": 32, "out_h": 32, "filter": "bilinear",
                    "fnv": fnv1a64(small.tobytes())})
    row = np.array([0, 10, 200, 255, 30, 77, 140], dtype=np.uint8).repeat(3).reshape(1, 7, 3)
    check = [{"out_w": n, "filter": f, "bytes": torch_resize(row, n, 1, f == "bicubic")[0, :, 0].tolist()}
             for n in (3, 5, 10) for f in ("bilinear", "bicubic")]
    write_json(os.path.join(out, "resize.json"), {
        "entries": entries, "check_row": {"source": row[0, :, 0].tolist(), "results": check}})
    print("resize: %d entries, float path differs in %d" % (len(entries), differing))


GRIDS = [(16, 16), (4, 12), (8, 116), (168, 6), (14, 22), (32, 32), (16, 20), (26, 36), (2, 512), (500, 2), (1, 1),
         (24, 42), (15, 17), (16, 5), (7, 16), (3, 5), (64, 2)]


def make_positions(out, args):
    blob, entries = Blob(), []
    tables = {"noise": hash_normals(77001, 256 * 8).reshape(16, 16, 8).astype(np.float32)}
    y, x = np.mgrid[0:16, 0:16].astype(np.float32)
    tables["ramp"] = np.stack([x, y, x + 16 * y, 0 * x + 1], axis=-1).astype(np.float32)
    for name, table in tables.items():
        source = blob.rows(table.reshape(256, -1))
        for h, w in GRIDS:
            result = Siglip2VisionEmbeddings.resize_positional_embeddings(
                torch.from_numpy(table), torch.tensor([[h, w]]), max_length=h * w)[0].numpy()
            step = max(1, h * w // 40)
            entries.append({"table": name, "h": h, "w": w, "rows": blob.rows(result, 0, step)})
        tables[name] = source
    write_json(os.path.join(out, "positions.json"), {
        "blob": "positions.f32.gz", "table_h": 16, "table_w": 16, "tables": tables, "entries": entries})
    blob.write(os.path.join(out, "positions.f32.gz"))
    print("positions: %d entries" % len(entries))
