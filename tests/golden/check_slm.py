#!/usr/bin/env python3
"""Opens a converted model with the safetensors package and compares every value with the rules.

    check_slm.py DIR FILE.slm int8|int4|f16 [f16|int8]

DIR is the Hugging Face directory that FILE.slm was made of; then the types of text and vision.
Nothing of the program that wrote the file is used here.
"""

import glob
import os
import sys

sys.dont_write_bytecode = True

import numpy as np  # noqa: E402
import torch  # noqa: E402
from safetensors import safe_open  # noqa: E402

from golden_quant import kind_of, quantise  # noqa: E402


def read_all(paths):
    tensors, metadata = {}, {}
    for path in paths:
        with safe_open(path, "pt") as f:
            metadata.update(f.metadata() or {})
            tensors.update({name: f.get_tensor(name) for name in f.keys()})
    return tensors, metadata


def nibbles(q):
    """Two integers a byte, the earlier one low, eight added to each; an odd row ends with an empty half."""
    q = q.numpy().astype(np.int16) + 8
    if q.shape[1] % 2:
        q = np.pad(q, ((0, 0), (0, 1)), constant_values=8)
    return torch.from_numpy((q[:, 0::2] | q[:, 1::2] << 4).astype(np.uint8))


def expected_of(name, tensor, text, vision):
    kind = kind_of(name, tensor.shape, text, vision)
    if kind == "f16":
        return {name: tensor.to(torch.float32).to(torch.float16)}
    q, scale = quantise(tensor, kind)
    if kind == "int8":
        return {name: q, name + ".scale": scale[:, 0]}
    return {name: nibbles(q), name + ".scale": scale}


def main():
    folder, path, text = sys.argv[1:4]
    vision = sys.argv[4] if len(sys.argv) > 4 else ("f16" if text == "f16" else "int8")
    source, _ = read_all(glob.glob(os.path.join(folder, "*.safetensors")))
    stored, metadata = read_all([path])
    expected = {}
    for name, tensor in source.items():
        expected.update(expected_of(name, tensor, text, vision))
    for name in [n for n in stored if n.startswith("files/")]:
        with open(os.path.join(folder, name[len("files/"):]), "rb") as f:
            expected[name] = torch.from_numpy(np.frombuffer(f.read(), np.uint8).copy())
    for name in [n for n in stored if n.startswith("padding/")]:
        assert not stored.pop(name).any(), name
    assert set(expected) == set(stored), set(expected) ^ set(stored)
    for name, tensor in expected.items():
        found = stored[name]
        assert found.dtype == tensor.dtype and found.shape == tensor.shape, (name, found, tensor)
        assert found.numpy().tobytes() == tensor.numpy().tobytes(), name
    print("%s: %d tensors, all as expected; metadata %s" % (path, len(stored), ", ".join(sorted(metadata))))


if __name__ == "__main__":
    main()
