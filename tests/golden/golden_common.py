"""Helpers that every golden generator shares: hashes, pictures, blobs, JSON.

The picture formulas are integer arithmetic on purpose: the C tests redraw the same bytes.
tests/golden/README.md describes them in words.
"""

import ctypes
import gzip
import hashlib
import json
import os
import subprocess
import tempfile

import numpy as np

MASK = (1 << 64) - 1
HERE = os.path.dirname(os.path.abspath(__file__))

# ---------------------------------------------------------------- hashes

_FNV_C = """
#include <stdint.h>
#include <stddef.h>
uint64_t fnv(const unsigned char *p, size_t n) {
  uint64_t h = 0xcbf29ce484222325ull;
  for (size_t i = 0; i < n; i++) { h ^= p[i]; h *= 0x100000001b3ull; }
  return h;
}
"""


def _build_fnv():
    """FNV-1a byte by byte is slow in Python; use the C compiler when there is one."""
    folder = tempfile.mkdtemp(prefix="golden-fnv-")
    source, library = os.path.join(folder, "fnv.c"), os.path.join(folder, "fnv.so")
    with open(source, "w") as f:
        f.write(_FNV_C)
    try:
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", library, source], check=True)
        call = ctypes.CDLL(library).fnv
        call.restype, call.argtypes = ctypes.c_uint64, [ctypes.c_char_p, ctypes.c_size_t]
        return lambda data: call(data, len(data))
    except (OSError, subprocess.CalledProcessError):
        def slow(data):
            h = 0xCBF29CE484222325
            for byte in data:
                h = ((h ^ byte) * 0x100000001B3) & MASK
            return h
        return slow


_fnv = _build_fnv()


def fnv1a64(data):
    """FNV-1a, 64 bit, as 16 hex digits."""
    return "%016x" % _fnv(bytes(data))


def sha256(data):
    return hashlib.sha256(bytes(data)).hexdigest()


def f32_bytes(array):
    return np.ascontiguousarray(array, dtype="<f4").tobytes()


# ---------------------------------------------------------------- integer noise


def splitmix64(x):
    """One output of the splitmix64 mixer for the state x (Python int)."""
    z = (x + 0x9E3779B97F4A7C15) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def splitmix64_array(x):
    """The same for a numpy uint64 array; arithmetic wraps modulo 2^64."""
    with np.errstate(over="ignore"):
        z = x + np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def hash_bytes(seed, count):
    """count bytes: byte i is the top byte of splitmix64(seed * 2^32 + i)."""
    state = np.uint64((seed << 32) & MASK) + np.arange(count, dtype=np.uint64)
    return (splitmix64_array(state) >> np.uint64(56)).astype(np.uint8)


def hash_normals(seed, count):
    """count floats of about normal distribution: the sum of twelve uniform ones, less six.

    No library generator is used, so that the numbers do not depend on a numpy version.
    """
    total = np.zeros(count, dtype=np.float64)
    for k in range(12):
        state = np.uint64(((seed * 12 + k) << 32) & MASK) + np.arange(count, dtype=np.uint64)
        total += (splitmix64_array(state) >> np.uint64(11)).astype(np.float64) / float(1 << 53)
    return total - 6.0


# ---------------------------------------------------------------- pictures


def _axes(w, h):
    return np.arange(w, dtype=np.int64)[None, :], np.arange(h, dtype=np.int64)[:, None]


def draw_hash(w, h, seed):
    return hash_bytes(seed, w * h * 3).reshape(h, w, 3)


def draw_tri(w, h, seed):
    x, y = _axes(w, h)
    planes = []
    for c in range(3):
        total = np.zeros((h, w), dtype=np.int64)
        for k in range(3):
            r = splitmix64(((seed << 32) + 16 * c + k) & MASK)
            period = 24 + (r & 0xFF)
            ax, ay, phase = (r >> 8) & 7, (r >> 16) & 7, (r >> 24) & 0x3FF
            if ax == 0 and ay == 0:
                ax = 1
            t = (ax * x + ay * y + phase) % (2 * period)
            total += np.abs(t - period) * 255 // period
        planes.append(total // 3)
    return np.stack(planes, axis=-1).astype(np.uint8)


def draw_mix(w, h, seed):
    smooth, noise = draw_tri(w, h, seed).astype(np.int64), draw_hash(w, h, seed).astype(np.int64)
    return ((3 * smooth + noise) // 4).astype(np.uint8)


def draw_ramp(w, h, seed):
    x, y = _axes(w, h)
    red = x * 255 // max(w - 1, 1) + 0 * y
    green = y * 255 // max(h - 1, 1) + 0 * x
    blue = (x + y) * 255 // max(w + h - 2, 1)
    return np.stack([red, green, blue], axis=-1).astype(np.uint8)


def draw_halves(w, h, seed):
    picture = np.zeros((h, w, 3), dtype=np.uint8)
    picture[:, : w // 2, 0] = 255
    picture[:, w // 2 :, 2] = 255
    return picture


def draw_checker(w, h, seed):
    x, y = _axes(w, h)
    return np.repeat((((x ^ y) & 1) * 255).astype(np.uint8)[:, :, None], 3, axis=2)


def draw_solid(w, h, seed):
    colour = [(seed >> 16) & 255, (seed >> 8) & 255, seed & 255]
    return np.broadcast_to(np.array(colour, dtype=np.uint8), (h, w, 3)).copy()


DRAW = {
    "hash": draw_hash, "tri": draw_tri, "mix": draw_mix, "ramp": draw_ramp,
    "halves": draw_halves, "checker": draw_checker, "solid": draw_solid,
}


def draw(pattern, w, h, seed=0):
    """RGB picture as uint8 [h][w][3]."""
    return DRAW[pattern](w, h, seed)


def describe(pattern, w, h, seed=0):
    """The JSON descriptor of a picture, with the hash of its bytes."""
    data = draw(pattern, w, h, seed).tobytes()
    return {"pattern": pattern, "w": w, "h": h, "seed": seed, "fnv": fnv1a64(data)}


# ---------------------------------------------------------------- output


class Blob:
    """A file of little-endian float32 values that JSON entries point into."""

    def __init__(self):
        self.parts, self.count = [], 0

    def add(self, array):
        array = np.ascontiguousarray(array, dtype="<f4")
        offset = self.count
        self.parts.append(array.reshape(-1))
        self.count += array.size
        return offset

    def rows(self, matrix, start=0, stride=1):
        """Store rows start, start+stride, ... of a matrix; describe what was stored."""
        matrix = np.asarray(matrix, dtype=np.float32)
        kept = matrix[start::stride]
        return {
            "offset": self.add(kept), "rows": int(kept.shape[0]), "cols": int(kept.shape[1]),
            "start": start, "stride": stride, "of": int(matrix.shape[0]),
            "maxabs": float(np.abs(matrix).max()) if matrix.size else 0.0,
        }

    def write(self, path):
        data = np.concatenate(self.parts) if self.parts else np.zeros(0, dtype="<f4")
        write_gzip(path, data.astype("<f4").tobytes())


def write_bytes(path, data):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as f:
        f.write(data)


def write_gzip(path, data):
    """gzip without name and time, so that equal content gives equal bytes."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as f:
        with gzip.GzipFile(filename="", mode="wb", compresslevel=9, fileobj=f, mtime=0) as z:
            z.write(data)


def _has_structure(value):
    items = value.values() if isinstance(value, dict) else value
    return any(isinstance(v, (dict, list)) for v in items)


def _lines(value, indent, width):
    """JSON that stays readable: flat arrays and objects on one line each."""
    pad = " " * indent
    flat = json.dumps(value, ensure_ascii=False, separators=(", ", ": "))
    if not isinstance(value, (dict, list)) or not value:
        return flat
    if not _has_structure(value) or len(flat) + indent <= width:
        return flat
    inner = " " * (indent + 1)
    if isinstance(value, dict):
        body = [inner + json.dumps(k) + ": " + _lines(v, indent + 1, width) for k, v in value.items()]
        return "{\n" + ",\n".join(body) + "\n" + pad + "}"
    body = [inner + _lines(v, indent + 1, width) for v in value]
    return "[\n" + ",\n".join(body) + "\n" + pad + "]"


def json_text(value, width=110):
    return (_lines(value, 0, width) + "\n").encode("utf-8", "surrogatepass")


def write_json(path, value, compress=False):
    data = json_text(value)
    if compress:
        write_gzip(path, data)
    else:
        write_bytes(path, data)
