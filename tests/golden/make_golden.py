#!/usr/bin/env python3
"""Makes the golden data of tests/golden: see README.md there.

    make_golden.py [--out DIR] [--only PART[,PART]] [--model NAME[,NAME]]

Running it again on the same host gives the same bytes.
"""

import argparse
import os
import platform
import sys
import tempfile
from importlib.metadata import version

sys.dont_write_bytecode = True
os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["HF_HUB_OFFLINE"] = "1"

import torch  # noqa: E402

import golden_cases  # noqa: E402
import golden_chat  # noqa: E402
import golden_gguf  # noqa: E402
import golden_gguf_model  # noqa: E402
import golden_image  # noqa: E402
import golden_quant  # noqa: E402
import golden_sampling  # noqa: E402
import golden_tokenizer  # noqa: E402
from golden_common import HERE, sha256, write_json  # noqa: E402
from golden_models import MODELS  # noqa: E402


def wanted(args, names):
    """Those of names that --model asks for."""
    return [n for n in names if not args.model or n in args.model.split(",")]


def make_models(out, args):
    with tempfile.TemporaryDirectory(prefix="golden-") as scratch:
        for name in wanted(args, MODELS):
            golden_cases.make_model(out, scratch, name)


def make_quantised(out, args):
    with tempfile.TemporaryDirectory(prefix="golden-") as scratch:
        for name in wanted(args, golden_cases.QUANTISED):
            golden_cases.make_quantised(out, scratch, name)


def make_gguf_models(out, args):
    with tempfile.TemporaryDirectory(prefix="golden-") as scratch:
        for name in wanted(args, [*golden_gguf_model.FILES, *golden_gguf_model.QUANTISED_FILES]):
            golden_gguf_model.make_gguf_model(out, scratch, name)


def make_manifest(out, args):
    """Versions, CPU and the size and hash of every generated file; limits on the size are checked here."""
    files, total = {}, 0
    for folder, folders, names in os.walk(out):
        folders[:] = sorted(f for f in folders if not f.startswith((".", "__")))
        for name in sorted(names):
            path = os.path.join(folder, name)
            if name.endswith((".py", ".md", ".pyc")) or name == "manifest.json":
                continue
            with open(path, "rb") as f:
                data = f.read()
            assert len(data) < 8 << 20, path
            total += len(data)
            files[os.path.relpath(path, out)] = [len(data), sha256(data)]
    assert total < 14 << 20, total
    packages = ("torch", "torchvision", "transformers", "tokenizers", "safetensors", "numpy", "pillow", "gguf")
    write_json(os.path.join(out, "manifest.json"), {
        "python": platform.python_version(), "machine": platform.machine(),
        "versions": {p: version(p) for p in packages},
        "torch_cpu_capability": torch.backends.cpu.get_cpu_capability(), "dtype": "float32", "attention": "eager",
        "bytes": total, "files": dict(sorted(files.items()))})
    print("manifest: %d files, %.2f MB" % (len(files), total / 1e6))


PARTS = {
    "geometry": golden_image.make_geometry,
    "resize": golden_image.make_resize,
    "positions": golden_image.make_positions,
    "tokenizer": golden_tokenizer.make_tokenizer,
    "chat": golden_chat.make_chat,
    "sampling": golden_sampling.make_sampling,
    "models": make_models,
    "quant": golden_quant.make_quant,
    "quantised": make_quantised,
    "gguf": golden_gguf.make_gguf,
    "gguf-models": make_gguf_models,
    "manifest": make_manifest,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", default=HERE)
    parser.add_argument("--only", default=",".join(PARTS))
    parser.add_argument("--model", default="")
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    for part in args.only.split(","):
        PARTS[part](args.out, args)


if __name__ == "__main__":
    main()
