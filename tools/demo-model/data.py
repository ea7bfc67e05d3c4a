# SPDX-License-Identifier: LGPL-2.1-or-later
"""Training data: scenes drawn by scene.c, frames of videotestsrc, prompts, and what the model sees.

Run as a script it stores the videotestsrc frames that training mixes in:
    python data.py FRAMES_DIRECTORY
"""

import ctypes
import io
import math
import os
import random
import subprocess
import sys

import numpy as np
import torch
from PIL import Image
from torchvision.transforms.v2 import functional as tvf

HERE = os.path.dirname(os.path.abspath(__file__))

SEED_TEST = 1
SEED_TRAINING = 1 << 32

N_SHAPES, N_COLOURS, N_GROUNDS = 6, 8, 5
# What each patch is taught: which shape in which colour (or which ground), the part it plays in the
# caption, and its size.
DENSE_WIDTHS = (N_SHAPES * N_COLOURS + N_GROUNDS, 9, 4)

MIN_TOKENS, MAX_TOKENS, CELL = 64, 80, 32

DEFAULT_PROMPT = "Describe this picture in one sentence."
OTHER_PROMPTS = (
    "Describe the image.",
    "Describe this image.",
    "Describe this image in one sentence.",
    "Describe this frame in one sentence.",
    "Describe the picture briefly.",
    "Describe what you see.",
    "What do you see?",
    "What is in this picture?",
    "What is shown in this image?",
    "What does this video frame show?",
    "What can be seen here?",
    "Caption this image.",
    "Caption this frame.",
    "Write a short caption.",
    "Give a one-sentence description of the picture.",
    "Please describe the scene.",
)
SYSTEM_PROMPTS = (
    "You are a helpful assistant.",
    "You are a helpful multimodal assistant by Liquid AI.",
    "You describe pictures.",
)

# The sizes a scene picks by itself, and a few more that the model shall have met.
SIZES = (
    (320, 240), (640, 480), (400, 300), (240, 320), (480, 640), (256, 256),
    (384, 384), (320, 180), (640, 360), (480, 270), (270, 480), (360, 240),
    (320, 240), (640, 480), (640, 360), (352, 288), (800, 600), (854, 480),
)
# Grids of patches (height, width) of the first part of training: a third of the true ones' cost.
SMALL_GRIDS = ((8, 10), (8, 12), (10, 10), (10, 8), (12, 8), (10, 12))

PLAIN_PICTURES = {
    "red": (220, 20, 20), "green": (20, 180, 40), "blue": (25, 40, 225), "white": (248, 248, 248),
    "black": (6, 6, 6), "grey": (128, 128, 128), "yellow": (242, 228, 25), "purple": (140, 40, 170),
    "orange": (248, 136, 16),
}
MOVING_PATTERNS = {"snow": 40, "ball": 160, "smpte": 6}


class SceneObject(ctypes.Structure):
    _fields_ = [("shape", ctypes.c_int32), ("colour", ctypes.c_int32), ("size", ctypes.c_int32),
                ("cx", ctypes.c_int32), ("cy", ctypes.c_int32), ("radius", ctypes.c_int32),
                ("rgb", ctypes.c_int32 * 3)]


class Scene(ctypes.Structure):
    _fields_ = [("seed", ctypes.c_uint64), ("width", ctypes.c_int32), ("height", ctypes.c_int32),
                ("n_shapes", ctypes.c_int32), ("ground", ctypes.c_int32),
                ("relation", ctypes.c_int32), ("objects", SceneObject * 3),
                ("ground_rgb", (ctypes.c_int32 * 3) * 2), ("direction", ctypes.c_int32),
                ("period", ctypes.c_int32), ("amplitude", ctypes.c_int32),
                ("text", ctypes.c_char * 128)]

    @property
    def caption(self):
        return self.text.decode()

    def draw(self):
        """The picture as an array (height, width, 3)."""
        rgb = np.empty((self.height, self.width, 3), np.uint8)
        library().vlm_scene_draw(ctypes.byref(self), rgb.ctypes.data, self.width * 3)
        return rgb

    def labels(self, columns, rows):
        cells = np.empty((rows, columns), np.uint8)
        library().vlm_scene_label(ctypes.byref(self), columns, rows, cells.ctypes.data)
        return cells


_library = None


def library():
    """scene.c as a shared library, built where $VLM_SCENE_BUILD or /tmp says."""
    global _library
    if _library is None:
        source = os.path.join(HERE, "scene.c")
        target = os.path.join(os.environ.get("VLM_SCENE_BUILD", "/tmp"), "libvlmscene.so")
        if not os.path.exists(target) or os.path.getmtime(target) < os.path.getmtime(source):
            partial = f"{target}.{os.getpid()}"
            subprocess.check_call([os.environ.get("CC", "cc"), "-std=c11", "-O3", "-fPIC",
                                   "-shared", "-o", partial, source])
            os.replace(partial, target)
        _library = ctypes.CDLL(target)
        _library.vlm_scene_init.argtypes = [ctypes.c_void_p, ctypes.c_uint64]
        _library.vlm_scene_init_sized.argtypes = [ctypes.c_void_p, ctypes.c_uint64, ctypes.c_int,
                                                  ctypes.c_int]
        _library.vlm_scene_draw.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]
        _library.vlm_scene_label.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_int,
                                             ctypes.c_void_p]
        _library.vlm_scene_checksum.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_int,
                                                ctypes.c_size_t]
        _library.vlm_scene_checksum.restype = ctypes.c_uint64
    return _library


def make_scene(seed, size=None):
    scene = Scene()
    if size is None:
        library().vlm_scene_init(ctypes.byref(scene), seed)
    else:
        library().vlm_scene_init_sized(ctypes.byref(scene), seed, *size)
    return scene


def checksum(rgb):
    height, width, _ = rgb.shape
    return library().vlm_scene_checksum(rgb.ctypes.data, width, height, width * 3)


def pattern_captions():
    table = {}
    with open(os.path.join(HERE, "patterns.txt"), encoding="utf-8") as lines:
        for line in lines:
            if not line.startswith("#"):
                name, caption = line.rstrip("\n").split("\t")
                table[name] = caption
    return table


def pattern_frames(pattern, width, height, count):
    """The first `count` frames of a videotestsrc pattern, (count, height, width, 3)."""
    caps = f"video/x-raw,format=RGB,width={width},height={height}"
    # GStreamer pads RGB rows to four bytes.
    stride = (width * 3 + 3) // 4 * 4
    raw = subprocess.run(["gst-launch-1.0", "-q", "videotestsrc", f"pattern={pattern}",
                          f"num-buffers={count}", "!", caps, "!", "fdsink", "fd=1"],
                         check=True, stdout=subprocess.PIPE).stdout
    rows = np.frombuffer(raw, np.uint8).reshape(count, height, stride)
    return rows[:, :, :width * 3].reshape(count, height, width, 3)


def store_patterns(directory):
    """Frames whose number is a multiple of ten are left for the tests."""
    os.makedirs(directory, exist_ok=True)
    for pattern in pattern_captions():
        for width, height in sorted(set(SIZES)):
            count = MOVING_PATTERNS.get(pattern, 2)
            frames = pattern_frames(pattern, width, height, count)
            keep = [i for i in range(count) if i % 10 != 0]
            np.save(os.path.join(directory, f"{pattern}-{width}x{height}.npy"), frames[keep])


def smart_resize(width, height):
    """The Lfm2Vl image processor's rule for one crop; returns (height, width)."""
    low, high = MIN_TOKENS * CELL * CELL, MAX_TOKENS * CELL * CELL
    h = max(CELL, round(height / CELL) * CELL)
    w = max(CELL, round(width / CELL) * CELL)
    if h * w > high:
        beta = (height * width / high) ** 0.5
        h = max(CELL, math.floor(height / beta / CELL) * CELL)
        w = max(CELL, math.floor(width / beta / CELL) * CELL)
    elif h * w < low:
        beta = (low / (height * width)) ** 0.5
        h = math.ceil(height * beta / CELL) * CELL
        w = math.ceil(width * beta / CELL) * CELL
    return h, w


def to_patches(rgb, grid):
    """Resizes to `grid` (height, width in patches) and cuts, (patches, 768) of uint8."""
    rows, columns = grid
    if rgb.shape[:2] != (rows * 16, columns * 16):
        picture = torch.from_numpy(np.ascontiguousarray(rgb)).permute(2, 0, 1)
        picture = tvf.resize(picture, [rows * 16, columns * 16],
                             interpolation=tvf.InterpolationMode.BILINEAR, antialias=True)
        rgb = picture.permute(1, 2, 0).numpy()
    cut = rgb.reshape(rows, 16, columns, 16, 3).transpose(0, 2, 1, 3, 4)
    return np.ascontiguousarray(cut).reshape(rows * columns, 768)


def roughen(rgb, rng):
    """What lossy video does to a picture: chroma at half size, blocks, another brightness."""
    if rng.random() < 0.3:
        gain, offset = rng.uniform(0.9, 1.1), rng.uniform(-12, 12)
        table = np.clip(np.arange(256) * gain + offset, 0, 255).astype(np.uint8)
        rgb = table[rgb]
    if rng.random() < 0.35:
        memory = io.BytesIO()
        Image.fromarray(rgb).save(memory, "JPEG", quality=rng.randint(30, 95), subsampling=2)
        rgb = np.asarray(Image.open(memory))
    return rgb


def dense_labels(scene, grid):
    cells = scene.labels(grid[1], grid[0]).ravel()
    table = np.zeros((scene.n_shapes + 1, 3), np.int64)
    table[0, 0] = N_SHAPES * N_COLOURS + scene.ground
    for i in range(scene.n_shapes):
        item = scene.objects[i]
        part = {1: 1, 2: 2 * scene.relation + i, 3: 6 + i}[scene.n_shapes]
        table[i + 1] = (item.shape * N_COLOURS + item.colour, part, item.size + 1)
    return table[cells]


def pick_prompt(rng):
    return DEFAULT_PROMPT if rng.random() < 0.5 else rng.choice(OTHER_PROMPTS)


def chat(prompt, n_image_tokens, system=None):
    """The text before the answer, placeholders expanded."""
    head = f"<|im_start|>system\n{system}<|im_end|>\n" if system else ""
    return (f"<|startoftext|>{head}<|im_start|>user\n<|image_start|>{'<image>' * n_image_tokens}"
            f"<|image_end|>{prompt}<|im_end|>\n<|im_start|>assistant\n")


class BatchMaker:
    """Batches of one grid each; batch number n is the same in every run."""

    def __init__(self, tokenizer, frames, batch_size, pattern_share=0.12):
        self.tokenizer = tokenizer
        self.batch_size = batch_size
        self.pattern_share = pattern_share
        self.captions = pattern_captions()
        self.patterns = list(self.captions)
        self.frames = frames
        self.opened = {}
        self.encoded = {}

    def encode(self, text):
        if text not in self.encoded:
            self.encoded[text] = self.tokenizer.encode(text, add_special_tokens=False).ids
        return self.encoded[text]

    def pattern(self, rng, size):
        if rng.random() < 0.25:
            name = rng.choice(list(PLAIN_PICTURES))
            colour = np.array(PLAIN_PICTURES[name]) + [rng.randint(-14, 14) for _ in range(3)]
            rgb = np.empty((size[1], size[0], 3), np.uint8)
            rgb[:] = np.clip(colour, 0, 255).astype(np.uint8)
            return rgb, f"A plain {name} picture."
        name = rng.choice(self.patterns)
        key = f"{name}-{size[0]}x{size[1]}.npy"
        if key not in self.opened:
            self.opened[key] = np.load(os.path.join(self.frames, key), mmap_mode="r")
        return np.array(rng.choice(self.opened[key])), self.captions[name]

    def sample(self, rng, seed, size, grid, small):
        if rng.random() < self.pattern_share:
            rgb, caption = self.pattern(rng, size)
            dense = np.full((grid[0] * grid[1], 3), -100, np.int64)
        else:
            scene = make_scene(seed, (grid[1] * 16, grid[0] * 16) if small else size)
            rgb, caption = scene.draw(), scene.caption
            dense = dense_labels(scene, grid)
        system = rng.choice(SYSTEM_PROMPTS) if rng.random() < 0.1 else None
        start = self.encode(chat(pick_prompt(rng), grid[0] * grid[1] // 4, system))
        answer = self.encode(caption) + self.encode("<|im_end|>")
        return to_patches(roughen(rgb, rng), grid), dense, start, answer

    def __call__(self, number, small, part=0):
        """Batch `number`, of which each process draws another part; all parts share the grid."""
        rng = random.Random(number)
        sizes = [rng.choice(SIZES)]
        if small:
            grid = rng.choice(SMALL_GRIDS)
        else:
            h, w = smart_resize(*sizes[0])
            grid = (h // 16, w // 16)
            sizes = [s for s in SIZES if smart_resize(*s) == (h, w)]
        rng = random.Random(number * 16 + part)
        first = SEED_TRAINING + (number * 16 + part) * 100
        samples = [self.sample(rng, first + i, rng.choice(sizes), grid, small)
                   for i in range(self.batch_size)]
        length = max(len(s[2]) + len(s[3]) for s in samples)
        ids = np.zeros((self.batch_size, length), np.int64)
        targets = np.full((self.batch_size, length), -100, np.int64)
        for i, (_, _, start, answer) in enumerate(samples):
            ids[i, :len(start) + len(answer)] = start + answer
            targets[i, len(start) - 1:len(start) + len(answer) - 1] = answer
        return {"patches": torch.from_numpy(np.stack([s[0] for s in samples])),
                "dense": torch.from_numpy(np.stack([s[1] for s in samples])),
                "ids": torch.from_numpy(ids), "targets": torch.from_numpy(targets),
                "grid": grid, "number": number}


if __name__ == "__main__":
    store_patterns(sys.argv[1])
